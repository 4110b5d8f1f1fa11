/* support_hub.h - hub folders for tests without Python: a "Parquet" file here is the tar stream that its reader would
 * write, and the reader is cat. */
#ifndef MR_SUPPORT_HUB_H
#define MR_SUPPORT_HUB_H

#include "buf.h"
#include "support.h"

typedef struct support_row {
    const char *json;               /* NULL: the entry is not written */
    unsigned width;                 /* of its image, a PNG that differs with it; 0: none */
    const char *path;               /* of an image elsewhere, in ROW.path */
} support_row;

/* Makes DIR/NAME of these rows and this schema ("%zu" in it is their number). */
void support_hub_file(const char *dir, const char *name, const char *schema, const support_row *rows, size_t count);

/* Makes the shell script PATH and names it to millrace as the reader of Parquet files. */
void support_hub_reader(const char *path, const char *script);

/* `count` rows {"label":i%classes,"text":"row i"} with images of widths from `width` on. */
void support_hub_rows(const char *dir, const char *name, size_t count, unsigned classes, unsigned width);

#endif
