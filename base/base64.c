/* base64.c - see base64.h. */
#include "base/base64.h"

#include <string.h>

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void mr_base64_add(mr_buf *out, const void *bytes, size_t len)
{
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

bool mr_base64_read(const char *text, size_t len, mr_buf *out)
{
    uint8_t values[256];
    memset(values, 64, sizeof values);
    for (uint8_t i = 0; i < 64; i++)
        values[(uint8_t)digits[i]] = i;
    if (len % 4 || !mr_buf_reserve(out, len / 4 * 3))
        return false;
    uint8_t *to = out->data + out->len;
    for (size_t i = 0; i < len; i += 4) {
        size_t left = len - i > 4 || text[i + 3] != '=' ? 3 : text[i + 2] != '=' ? 2 : 1;
        uint32_t three = 0;
        for (size_t k = 0; k < 4; k++) {
            uint8_t value = k <= left ? values[(uint8_t)text[i + k]] : 0;
            if (value > 63)
                return false;
            three = three << 6 | value;
        }
        if (three & ((1u << (24 - 8 * left)) - 1)) /* bits that no byte has */
            return false;
        for (size_t k = 0; k < left; k++)
            *to++ = (uint8_t)(three >> (16 - 8 * k));
    }
    out->len = (size_t)(to - out->data);
    return true;
}
