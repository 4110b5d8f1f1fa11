/* image.h - small pictures of every kind, made by the libraries, and tools to put them out of order.
 * Invariant: every picture is a heap block of exactly its length, so that a sanitizer sees one byte too far. */
#ifndef MR_SUPPORT_IMAGE_H
#define MR_SUPPORT_IMAGE_H

#include "image/codec/image.h"
#include "tests/support/support.h"

typedef struct picture {
    uint8_t *bytes;
    size_t len;
} picture;

typedef struct jpeg_kind {
    unsigned width, height, components;
    bool progressive, arithmetic;
    unsigned restart;    /* blocks between restart markers */
    const picture *exif; /* an APP1 body */
} jpeg_kind;

picture make_jpeg(jpeg_kind kind);
picture make_png(unsigned width, unsigned height, uint8_t colour, uint8_t depth, bool interlaced);
picture make_webp(unsigned width, unsigned height, bool lossless, bool alpha);
/* The same picture in an extended file: `frames` times as an animation (0: a still), with an EXIF block after it if
 * any. */
picture make_webp_extended(unsigned width, unsigned height, unsigned frames, const picture *exif);
/* An EXIF block of one directory: some other tag, then the orientation of this type, count and value. */
picture make_exif(bool big, unsigned type, uint32_t count, uint32_t value);

picture picture_copy(const uint8_t *bytes, size_t len);
picture picture_splice(picture p, size_t at, const void *bytes, size_t len); /* a copy with bytes put in */
void picture_free(picture *p);

size_t jpeg_marker(picture p, uint8_t marker); /* where FF marker stands first, before any scan */
size_t png_chunk(picture p, const char *tag);  /* where the chunk's length stands */
picture png_with(picture p, const char *before, const char *tag, const void *body, size_t len);
void png_mend(picture p); /* sets every CRC right */

#endif
