/* codec.h - what the codecs share: reading numbers from bytes.
 * Invariant: the caller has checked the bounds. */
#ifndef MR_CODEC_H
#define MR_CODEC_H

#include "image/codec/image.h"

/* `shrink` of the JPEG codec (shrink_jpeg.c). */
mr_status mr_jpeg_shrink(const uint8_t *bytes, size_t len, const mr_image_limits *limits, mr_alike *out, mr_error *err);

static inline uint32_t mr_be16(const uint8_t *p)
{
    return (uint32_t)p[0] << 8 | p[1];
}

static inline uint32_t mr_be32(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static inline uint32_t mr_le16(const uint8_t *p)
{
    return (uint32_t)p[1] << 8 | p[0];
}

static inline uint32_t mr_le24(const uint8_t *p)
{
    return (uint32_t)p[2] << 16 | (uint32_t)p[1] << 8 | p[0];
}

static inline uint32_t mr_le32(const uint8_t *p)
{
    return (uint32_t)p[3] << 24 | (uint32_t)p[2] << 16 | (uint32_t)p[1] << 8 | p[0];
}

#endif
