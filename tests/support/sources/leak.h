/* leak.h - a Roboflow export of the test's own, and the leaks that ingest finds in it.
 * Invariant: files are put under leak_source; what is reported is compared to the letter. */
#ifndef MR_SUPPORT_LEAK_H
#define MR_SUPPORT_LEAK_H

#include "tests/support/images/alike.h"
#include "tests/support/support.h"

extern char *leak_dir, *leak_source; /* between these two */
int leak_set_up(void **state);
int leak_tear_down(void **state);

void leak_put(const char *name, uint64_t seed, alike_edit edit, enum alike_codec codec);
void leak_put_bytes(const char *name, picture file); /* takes the picture over */
void leak_put_text(const char *name, const char *text);

/* Each kind's lines as "FILE: REASON\n", then the exit codes with --fail-on-leak and --fail-on-leak=alike. */
void leak_expect(const char *leaks, const char *same_names, int equal, int alike);

#define LEAK_COPY "copies of one image (they look alike), in train and val: also "

#endif
