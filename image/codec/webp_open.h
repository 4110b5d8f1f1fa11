/* webp_open.h - opening a WebP with libwebp, for codec_webp.c and region/webp.c.
 * Invariant: an animation is decoded from its first frame alone. */
#ifndef MR_WEBP_OPEN_H
#define MR_WEBP_OPEN_H

#include <webp/decode.h>
#include <webp/demux.h>

#include "base/error.h"

/* The failure for a status of libwebp other than VP8_STATUS_OK. */
mr_status mr_webp_failure(VP8StatusCode code, mr_error *err);

/* A config for one image, with its header in `input`. */
mr_status mr_webp_config(const uint8_t *bytes, size_t len, WebPDecoderConfig *out, mr_error *err);

typedef struct mr_webp_frame { /* a zeroed one is closed */
    WebPDemuxer *demux;
    WebPIterator it;
} mr_webp_frame;

/* The first frame of an animation; `bytes` must outlive it. */
mr_status mr_webp_frame_open(const uint8_t *bytes, size_t len, mr_webp_frame *out, mr_error *err);
void mr_webp_frame_free(mr_webp_frame *f);

#endif
