/* base64.c - see base64.h. */
#include "base/base64.h"

void mr_base64_add(mr_buf *out, const void *bytes, size_t len)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const uint8_t *from = bytes;
    if (!mr_buf_reserve(out, (len + 2) / 3 * 4))
        return;
    uint8_t *to = out->data + out->len;
    for (size_t i = 0; i < len; i += 3) {
        size_t left = len - i;
        uint32_t three =
            (uint32_t)from[i] << 16 | (left > 1 ? (uint32_t)from[i + 1] << 8 : 0) | (left > 2 ? from[i + 2] : 0);
        *to++ = (uint8_t)digits[three >> 18];
        *to++ = (uint8_t)digits[three >> 12 & 63];
        *to++ = left > 1 ? (uint8_t)digits[three >> 6 & 63] : '=';
        *to++ = left > 2 ? (uint8_t)digits[three & 63] : '=';
    }
    out->len = (size_t)(to - out->data);
}
