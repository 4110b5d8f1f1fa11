/* text.c - human-readable text, and names that may hold any bytes.
 * Invariant: mr_text_unescape(mr_text_escape(x)) is x for every x. */
#include "base/text.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/scope.h"

void mr_text_escape(mr_buf *out, const char *bytes, size_t len)
{
    const uint8_t *p = (const uint8_t *)bytes;
    for (size_t i = 0; i < len;) {
        size_t n = mr_utf8_len(p + i, len - i);
        if (p[i] == '\\')
            mr_buf_add(out, "\\\\", 2);
        else if (n == 0 || p[i] < 0x20 || p[i] == 0x7F)
            mr_buf_printf(out, "\\x%02X", p[i]);
        else
            mr_buf_add(out, p + i, n);
        i += n ? n : 1;
    }
}

bool mr_text_unescape(mr_buf *out, const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (text[i] != '\\') {
            mr_buf_add(out, text + i, 1);
        } else if (i + 1 < len && text[i + 1] == '\\') {
            mr_buf_add(out, "\\", 1);
            i++;
        } else if (i + 3 < len && text[i + 1] == 'x' && isxdigit((unsigned char)text[i + 2]) &&
                   isxdigit((unsigned char)text[i + 3])) {
            char hex[3] = {text[i + 2], text[i + 3], 0};
            uint8_t byte = (uint8_t)strtoul(hex, NULL, 16);
            mr_buf_add(out, &byte, 1);
            i += 3;
        } else {
            return false;
        }
    }
    return true;
}

/* NULL: none is needed. */
static const char *reference_to(char c)
{
    switch (c) {
    case '&':
        return "&amp;";
    case '<':
        return "&lt;";
    case '>':
        return "&gt;";
    case '"':
        return "&quot;";
    case '\'':
        return "&#39;"; /* HTML 4 has no &apos; */
    default:
        return NULL;
    }
}

void mr_text_add_markup(mr_buf *out, const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        const char *reference = reference_to(text[i]);
        if (reference)
            mr_buf_add_text(out, reference);
        else
            mr_buf_add(out, text + i, 1);
    }
}

void mr_text_show(mr_buf *out, const char *text, size_t len)
{
    char shown[5];
    for (size_t i = 0; i < len;) {
        i += mr_text_next(text + i, len - i, shown);
        mr_buf_add_text(out, shown);
    }
}

void mr_json_show(mr_buf *out, const char *json, size_t len)
{
    const uint8_t *p = (const uint8_t *)json;
    size_t from = 0;
    for (size_t i = 0; i < len; i++) {
        bool c1 = p[i] == 0xC2 && i + 1 < len && p[i + 1] >= 0x80 && p[i + 1] < 0xA0;
        if (!c1 && p[i] != 0x7F)
            continue;
        mr_buf_add(out, p + from, i - from);
        i += c1;
        mr_buf_printf(out, "\\u%04x", p[i]);
        from = i + 1;
    }
    mr_buf_add(out, p + from, len - from);
}

void mr_json_add_string(mr_buf *out, const char *bytes, size_t len)
{
    mr_buf_add(out, "\"", 1);
    size_t from = 0;
    for (size_t i = 0; i < len; i++) {
        uint8_t c = (uint8_t)bytes[i];
        if (c >= 0x20 && c != '"' && c != '\\')
            continue;
        mr_buf_add(out, bytes + from, i - from);
        from = i + 1;
        if (c == '"' || c == '\\')
            mr_buf_printf(out, "\\%c", c);
        else if (c == '\n')
            mr_buf_add(out, "\\n", 2);
        else if (c == '\t')
            mr_buf_add(out, "\\t", 2);
        else
            mr_buf_printf(out, "\\u%04x", c);
    }
    mr_buf_add(out, bytes + from, len - from);
    mr_buf_add(out, "\"", 1);
}

void mr_json_add_shown(mr_buf *out, const char *bytes, size_t len)
{
    MR_AUTO(mr_buf_free) mr_buf text = {0};
    mr_json_add_string(&text, bytes, len);
    mr_json_show(out, (const char *)text.data, text.len);
    out->failed |= text.failed;
}

void mr_json_add_path(mr_buf *out, const char *bytes, size_t len)
{
    MR_AUTO(mr_buf_free) mr_buf text = {0};
    mr_text_escape(&text, bytes, len);
    const char *escaped = mr_buf_text(&text); /* "" for no bytes, where text.data is NULL */
    if (text.failed)
        out->failed = true;
    else
        mr_json_add_string(out, escaped, text.len);
}

/* Levenshtein distance with two rows; words longer than 63 bytes are near nothing. */
static size_t distance(const char *a, const char *b)
{
    size_t na = strlen(a), nb = strlen(b), before[64], row[64];
    if (na > 63 || nb > 63)
        return SIZE_MAX;
    for (size_t j = 0; j <= nb; j++)
        before[j] = j;
    for (size_t i = 1; i <= na; i++) {
        row[0] = i;
        for (size_t j = 1; j <= nb; j++) {
            size_t best = before[j - 1] + (tolower((unsigned char)a[i - 1]) != tolower((unsigned char)b[j - 1]));
            if (before[j] + 1 < best)
                best = before[j] + 1;
            if (row[j - 1] + 1 < best)
                best = row[j - 1] + 1;
            row[j] = best;
        }
        memcpy(before, row, (nb + 1) * sizeof *row);
    }
    return before[nb];
}

const char *mr_text_nearest(const char *word, const char *const *words)
{
    const char *best = NULL;
    size_t best_distance = strlen(word) / 3 + 2; /* "verfy" is near "verify"; "x" is near nothing long */
    for (; *words; words++) {
        size_t d = distance(word, *words);
        if (strlen(word) >= 3 && strncmp(*words, word, strlen(word)) == 0)
            d = 1;
        if (d < best_distance && d < strlen(*words)) {
            best_distance = d;
            best = *words;
        }
    }
    return best;
}

static int by_bytes(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

void mr_names_sort(const char **names, size_t count)
{
    if (count)
        qsort(names, count, sizeof *names, by_bytes);
}

bool mr_names_have(const char *const *sorted, size_t count, const char *name, size_t len)
{
    for (size_t low = 0, high = count; low < high;) {
        size_t mid = low + (high - low) / 2;
        int cmp = strncmp(sorted[mid], name, len);
        if (cmp == 0 && sorted[mid][len] == '\0')
            return true;
        if (cmp < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return false;
}

char *mr_text_bytes(uint64_t bytes, char *out)
{
    static const char *const units[] = {"B", "kB", "MB", "GB", "TB", "PB", "EB"};
    double value = (double)bytes;
    size_t unit = 0;
    while (value >= 999.5 && unit + 1 < MR_COUNT(units)) {
        value /= 1000;
        unit++;
    }
    snprintf(out, 32,
             unit == 0       ? "%.0f %s"
             : value < 9.995 ? "%.2f %s"
             : value < 99.95 ? "%.1f %s"
                             : "%.0f %s",
             value, units[unit]);
    return out;
}

char *mr_text_count(uint64_t count, char *out)
{
    char digits[24];
    int n = snprintf(digits, sizeof digits, "%llu", (unsigned long long)count), at = 0;
    for (int i = 0; i < n; i++) {
        if (i > 0 && (n - i) % 3 == 0)
            out[at++] = ',';
        out[at++] = digits[i];
    }
    out[at] = '\0';
    return out;
}

char *mr_text_seconds(double seconds, char *out)
{
    unsigned long whole = seconds > 0 && seconds < 1e9 ? (unsigned long)(seconds + 0.5) : 0;
    if (seconds < 0.9995)
        snprintf(out, 32, "%.0f ms", seconds > 0 ? seconds * 1000 : 0);
    else if (seconds < 9.95)
        snprintf(out, 32, "%.1f s", seconds);
    else if (whole < 60)
        snprintf(out, 32, "%lu s", whole);
    else if (whole < 3600)
        snprintf(out, 32, "%lu min %lu s", whole / 60, whole % 60);
    else
        snprintf(out, 32, "%lu h %lu min", whole / 3600, whole % 3600 / 60);
    return out;
}

bool mr_text_parse_u64(const char *text, uint64_t *out)
{
    char *end;
    if (!isdigit((unsigned char)*text))
        return false;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    if (errno || *end)
        return false;
    *out = value;
    return true;
}

bool mr_text_parse_size(const char *text, uint64_t *out)
{
    static const char letters[] = "kmgt";
    char *end;
    if (!isdigit((unsigned char)text[0]) ||
        tolower((unsigned char)text[1]) == 'x') /* strtod() reads hexadecimal, too */
        return false;
    errno = 0;
    double value = strtod(text, &end);
    if (errno)
        return false;
    while (*end == ' ')
        end++;
    double factor = 1;
    const char *letter = *end ? strchr(letters, tolower((unsigned char)*end)) : NULL;
    if (letter) {
        bool decimal = tolower((unsigned char)end[1]) == 'b' && end[2] == '\0';
        if (end[1] && !decimal && (strcasecmp(end + 1, "ib") != 0 && strcasecmp(end + 1, "i") != 0))
            return false;
        for (const char *l = letters; l <= letter; l++)
            factor *= decimal ? 1000 : 1024;
    } else if (*end && strcasecmp(end, "b") != 0) {
        return false;
    }
    if (value * factor >= 1.8e19)
        return false;
    *out = (uint64_t)(value * factor + 0.5);
    return true;
}

static bool is_among(char c, const char *chars)
{
    return c && strchr(chars, c);
}

void mr_text_trim(const char **text, size_t *len, const char *blanks)
{
    for (; *len && is_among(**text, blanks); --*len)
        ++*text;
    while (*len && is_among((*text)[*len - 1], blanks))
        --*len;
}

bool mr_text_is_lfs_pointer(const void *bytes, size_t len)
{
    static const char version[] = "version https://git-lfs";
    return len >= sizeof version - 1 && !memcmp(bytes, version, sizeof version - 1);
}
