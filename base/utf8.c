/* utf8.c - characters of UTF-8, and which of them a terminal may show.
 * Invariant: no byte past the end is read; overlong forms and surrogates are rejected.
 * Source: RFC 3629, section 4. */
#include "base/utf8.h"

#include <stdio.h>
#include <string.h>

size_t mr_utf8_len(const uint8_t *p, size_t left)
{
    if (p[0] < 0x80)
        return 1;
    size_t n = p[0] >= 0xC2 && p[0] <= 0xDF ? 2 : (p[0] & 0xF0) == 0xE0 ? 3 : p[0] >= 0xF0 && p[0] <= 0xF4 ? 4 : 0;
    if (n == 0 || n > left)
        return 0;
    for (size_t i = 1; i < n; i++)
        if ((p[i] & 0xC0) != 0x80)
            return 0;
    bool overlong = (p[0] == 0xE0 && p[1] < 0xA0) || (p[0] == 0xF0 && p[1] < 0x90);
    bool surrogate = p[0] == 0xED && p[1] > 0x9F;
    bool beyond = p[0] == 0xF4 && p[1] > 0x8F;
    return overlong || surrogate || beyond ? 0 : n;
}

bool mr_utf8_valid(const char *bytes, size_t len)
{
    for (size_t i = 0; i < len;) {
        uint64_t eight = UINT64_MAX; /* ASCII is checked eight bytes at a time: files may have 500 MB */
        if (len - i >= sizeof eight)
            memcpy(&eight, bytes + i, sizeof eight);
        size_t n = eight & 0x8080808080808080u ? mr_utf8_len((const uint8_t *)bytes + i, len - i) : sizeof eight;
        if (n == 0)
            return false;
        i += n;
    }
    return true;
}

size_t mr_utf8_cut(const char *bytes, size_t len)
{
    for (size_t back = 1; back <= 3 && back <= len; back++) {
        uint8_t c = (uint8_t)bytes[len - back];
        if (c >= 0xC0)
            return back < (c >= 0xF0 ? 4u : c >= 0xE0 ? 3u : 2u) ? back : 0;
    }
    return 0;
}

size_t mr_utf8_mark(const void *bytes, size_t len)
{
    static const char mark[] = "\xEF\xBB\xBF";
    return len >= 3 && !memcmp(bytes, mark, 3) ? 3 : 0;
}

bool mr_text_is_no_character(const char *text, size_t len)
{
    return len > 2 && (memcmp(text, "\xEF\xBF\xBE", 3) == 0 || memcmp(text, "\xEF\xBF\xBF", 3) == 0);
}

size_t mr_text_printable(const char *text, size_t len)
{
    const uint8_t *p = (const uint8_t *)text;
    if (len == 0 || p[0] < 0x20 || p[0] == 0x7F || (p[0] == 0xC2 && len > 1 && p[1] < 0xA0))
        return 0;
    if (len > 2 && p[0] == 0xE2 &&
        ((p[1] == 0x80 && p[2] >= 0xAA && p[2] <= 0xAE) || /* U+202A to 202E */
         (p[1] == 0x81 && p[2] >= 0xA6 && p[2] <= 0xA9)))  /* U+2066 to 2069 */
        return 0;
    return mr_text_is_no_character(text, len) ? 0 : mr_utf8_len(p, len);
}

size_t mr_text_next(const char *text, size_t len, char shown[5])
{
    size_t n = mr_text_printable(text, len);
    if (n) {
        memcpy(shown, text, n);
        shown[n] = '\0';
        return n;
    }
    snprintf(shown, 5, "\\x%02X", (uint8_t)*text);
    return 1;
}
