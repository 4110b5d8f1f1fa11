/* objects.h - the objects that a layout makes of a sample. */
#ifndef MR_SUPPORT_OBJECTS_H
#define MR_SUPPORT_OBJECTS_H

#include "tests/support/json.h"

/* Those of a sample in a picture of this size, as JSON: "[{...}]", or "-" where the source does not mention them. */
void support_assert_objects(const support_plan *p, size_t sample, unsigned width, unsigned height,
                            const char *expected);

#endif
