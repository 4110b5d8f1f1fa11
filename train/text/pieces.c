/* pieces.c - splits a text into pieces that are tokenized separately.
 * Invariant: pieces are not empty and contain whole characters.
 * Source: the pattern of openai/gpt-2 src/encoder.py, as alternatives in its order. */
#include <string.h>

#include "base/scope.h"
#include "base/text.h"
#include "train/text/parts.h"

void mr_classes_fill(mr_classes *c)
{
    for (uint32_t code = 0; code < MR_COUNT(c->low); code++)
        c->low[code] = mr_class_of(code);
}

uint8_t mr_classes_at(const mr_classes *c, const char *at, size_t *len)
{
    const uint8_t *p = (const uint8_t *)at;
    if (p[0] < 0x80) {
        *len = 1;
        return c->low[p[0]];
    }
    if (p[0] < 0xE0) {
        *len = 2;
        return c->low[(p[0] & 0x1Fu) << 6 | (p[1] & 0x3Fu)];
    }
    if (p[0] < 0xF0) {
        *len = 3;
        return mr_class_of((p[0] & 0x0Fu) << 12 | (p[1] & 0x3Fu) << 6 | (p[2] & 0x3Fu));
    }
    *len = 4;
    return mr_class_of((p[0] & 0x07u) << 18 | (p[1] & 0x3Fu) << 12 | (p[2] & 0x3Fu) << 6 | (p[3] & 0x3Fu));
}

/* End of the run of a class that begins at `at`; `last`: where its last character begins. */
static size_t run_end(const mr_classes *c, const char *text, size_t len, size_t at, uint8_t class, size_t *last)
{
    while (at < len) {
        size_t n;
        if ((mr_classes_at(c, text + at, &n) & MR_CLASS) != class)
            break;
        *last = at;
        at += n;
    }
    return at;
}

/* Length of 's, 't, 're, 've, 'm, 'll or 'd; 0: another. */
static size_t contraction(const char *text, size_t len)
{
    if (len >= 2 && text[1] != '\0' && strchr("stmd", text[1]))
        return 2;
    return len >= 3 && (memcmp(text, "'re", 3) == 0 || memcmp(text, "'ve", 3) == 0 || memcmp(text, "'ll", 3) == 0) ? 3
                                                                                                                   : 0;
}

size_t mr_piece_end(const mr_classes *c, const char *text, size_t len, size_t at)
{
    size_t n, last = at, from = at, short_one = text[at] == '\'' ? contraction(text + at, len - at) : 0;
    if (short_one)
        return at + short_one;
    uint8_t class = mr_classes_at(c, text + at, &n) & MR_CLASS;
    if (text[at] == ' ' && at + 1 < len) { /* one space belongs to what follows */
        class = mr_classes_at(c, text + at + 1, &n) & MR_CLASS;
        from = at + 1;
    }
    size_t end = run_end(c, text, len, from, class, &last);
    /* The last of several white-space characters belongs to what follows. */
    return class == MR_SPACE && end < len && last > at ? last : end;
}

/* ---- bytes ------------------------------------------------------------------------------------------------------- */

/* Length of the sequence at p, and whether it is valid; an invalid one is as long as its valid beginning.
 * Source: The Unicode Standard 16.0, table 3-7 and section 3.9.6 (maximal subparts). */
static size_t sequence(const uint8_t *p, size_t left, bool *valid)
{
    uint8_t low = p[0] == 0xE0 ? 0xA0 : p[0] == 0xF0 ? 0x90 : 0x80;
    uint8_t high = p[0] == 0xED ? 0x9F : p[0] == 0xF4 ? 0x8F : 0xBF;
    size_t whole = p[0] < 0x80 ? 1 : p[0] < 0xC2 ? 0 : p[0] < 0xE0 ? 2 : p[0] < 0xF0 ? 3 : p[0] < 0xF5 ? 4 : 0, n = 1;
    while (n < whole && n < left && p[n] >= low && p[n] <= high) {
        low = 0x80;
        high = 0xBF;
        n++;
    }
    *valid = n == whole;
    return n;
}

void mr_utf8_repair(const char *text, size_t len, mr_buf *out)
{
    const uint8_t *p = (const uint8_t *)text;
    size_t from = 0;
    for (size_t i = 0; i < len;) {
        bool valid;
        size_t n = sequence(p + i, len - i, &valid);
        if (!valid) {
            mr_buf_add(out, p + from, i - from);
            mr_buf_add(out, "\xEF\xBF\xBD", 3);
            from = i + n;
        }
        i += n;
    }
    mr_buf_add(out, p + from, len - from);
}

mr_status mr_utf8_make_valid(const char **text, size_t *len, mr_buf *scratch, mr_error *err)
{
    if (mr_utf8_valid(*text, *len))
        return MR_OK;
    mr_buf_clear(scratch);
    mr_utf8_repair(*text, *len, scratch);
    MR_TRY(mr_buf_status(scratch, err, "tokenizing a text"));
    *text = mr_buf_text(scratch);
    *len = scratch->len;
    return MR_OK;
}

size_t mr_byte_text(uint8_t byte, char out[MR_BYTE_TEXT])
{
    uint32_t code = byte;
    if (byte <= 32) /* those that are not printable, in order from U+0100 on */
        code = 256u + byte;
    else if (byte >= 127 && byte <= 160)
        code = 256u + 33 + (byte - 127u);
    else if (byte == 173)
        code = 256u + 67;
    bool one = code < 0x80;
    const uint8_t bytes[MR_BYTE_TEXT] = {(uint8_t)(one ? code : 0xC0 | code >> 6),
                                         (uint8_t)(one ? 0 : 0x80 | (code & 0x3F)), 0};
    memcpy(out, bytes, sizeof bytes);
    return one ? 1 : 2;
}
