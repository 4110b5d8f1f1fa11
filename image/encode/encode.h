/* encode.h - pixels as JPEG and PNG files.
 * Invariant: the encoders hold no clock and no comment, so equal pixels and style give equal bytes. */
#ifndef MR_ENCODE_H
#define MR_ENCODE_H

#include "base/buf.h"

typedef struct mr_picture {
    uint32_t width, height, channels; /* 1 gray, 3 RGB; rows without padding */
    uint8_t *pixels;
} mr_picture;

void mr_picture_free(mr_picture *p); /* contents, not the struct */

typedef struct mr_jpeg_style {
    int quality;      /* 1 to 100 */
    bool full_chroma; /* 4:4:4 instead of 4:2:0 */
    bool progressive;
    unsigned restart_rows; /* rows of blocks between restart markers; 0: none */
} mr_jpeg_style;

/* Append the file to `out`.  MR_SYSTEM: out of memory. */
mr_status mr_picture_jpeg(const mr_picture *p, const mr_jpeg_style *style, mr_buf *out, mr_error *err);
mr_status mr_picture_png(const mr_picture *p, mr_buf *out, mr_error *err);

#endif
