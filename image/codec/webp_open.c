/* webp_open.c - opens a WebP with libwebp; see webp_open.h. */
#include "image/codec/webp_open.h"

#include <string.h>

mr_status mr_webp_failure(VP8StatusCode code, mr_error *err)
{
    static const char *const words[] = {
        [VP8_STATUS_OK] = "no error",
        [VP8_STATUS_INVALID_PARAM] = "a value out of range",
        [VP8_STATUS_BITSTREAM_ERROR] = "the coded data is damaged",
        [VP8_STATUS_UNSUPPORTED_FEATURE] = "an unsupported feature",
        [VP8_STATUS_SUSPENDED] = "the data ends too early",
        [VP8_STATUS_USER_ABORT] = "stopped",
        [VP8_STATUS_NOT_ENOUGH_DATA] = "the data ends too early",
    };
    if (code == VP8_STATUS_OUT_OF_MEMORY)
        return mr_fail_memory(err, "decoding a WebP");
    bool known = (size_t)code < MR_COUNT(words) && words[code];
    return mr_fail(err, MR_BAD_SAMPLE, "WebP cannot be decoded: %s", known ? words[code] : "an unknown error");
}

mr_status mr_webp_config(const uint8_t *bytes, size_t len, WebPDecoderConfig *out, mr_error *err)
{
    if (!WebPInitDecoderConfig(out))
        return mr_fail(err, MR_SYSTEM,
                       "libwebp is not the version that millrace was built with; reinstall it or rebuild millrace");
    VP8StatusCode code = WebPGetFeatures(bytes, len, &out->input);
    return code == VP8_STATUS_OK ? MR_OK : mr_webp_failure(code, err);
}

mr_status mr_webp_frame_open(const uint8_t *bytes, size_t len, mr_webp_frame *out, mr_error *err)
{
    memset(out, 0, sizeof *out);
    out->demux = WebPDemux(&(WebPData){bytes, len});
    if (!out->demux)
        return mr_fail(err, MR_BAD_SAMPLE, "WebP cannot be decoded: the animation's structure is damaged");
    if (!WebPDemuxGetFrame(out->demux, 1, &out->it))
        return mr_fail(err, MR_BAD_SAMPLE, "WebP cannot be decoded: it has no first frame");
    return MR_OK;
}

void mr_webp_frame_free(mr_webp_frame *f)
{
    if (f->demux)
        WebPDemuxReleaseIterator(&f->it);
    WebPDemuxDelete(f->demux);
}
