/* hub.h - hub folders for tests without Python: a "Parquet" file here is the tar stream that its reader would
 * write, and the reader is cat. */
#ifndef MR_SUPPORT_HUB_H
#define MR_SUPPORT_HUB_H

#include <jansson.h>

#include "base/buf.h"
#include "tests/support/support.h"

typedef struct support_row {
    const char *json; /* NULL: the entry is not written */
    unsigned width;   /* of its image, a PNG that differs with it; 0: none */
    const char *path; /* of an image elsewhere, in ROW.path */
} support_row;

/* Makes DIR/NAME of these rows and this schema ("%zu" in it is their number). */
void support_hub_file(const char *dir, const char *name, const char *schema, const support_row *rows, size_t count);

/* Makes the shell script PATH and names it to millrace as the Parquet reader. */
void support_hub_reader(const char *path, const char *script);

/* `count` rows {"label":i%classes,"text":"row i"} with images of widths from `width` on. */
void support_hub_rows(const char *dir, const char *name, size_t count, unsigned classes, unsigned width);

/* ---- a hub folder of the test's own ---------------------------------------------------------------------------- */

extern char *hub_dir, *hub_source, *hub_target; /* between these two, whose reader is cat */
int hub_set_up(void **state);
int hub_tear_down(void **state);

/* Ingests hub_source into hub_target, expects this exit status, these words on either stream, and no partial
 * dataset. */
void hub_ingest(int status, const char *words, const char *option, const char *value);
/* Removes both. */
void hub_start_again(void);
/* The meta of a sample of hub_target; a new reference. */
json_t *hub_meta(const char *split, const char *sample);
void hub_assert_meta(const char *split, const char *sample, const char *expected);

#endif
