/* json_repair.c - see json_repair.h.
 * Source of the words: Python's json module writes NaN, Infinity and -Infinity; JavaScript's readers accept no others.
 * Invariant: outside of strings only whole words are replaced, each by a string of its length. */
#include "ingest/tables/json_repair.h"

#include <stdlib.h>
#include <string.h>

#include "base/scope.h"
#include "base/text.h"

static const char *const words[] = {"NaN", "nan", "-NaN", "Infinity", "-Infinity"};

static void add(mr_json_repair *r, uint64_t at, bool text)
{
    if (r->failed || !MR_GROW(r->flaws, r->count, r->capacity))
        r->failed = true;
    else
        r->flaws[r->count++] = (mr_json_flaw){at, text};
}

static size_t take_string(mr_json_repair *r, char *text, size_t len, uint64_t at)
{
    if (!r->escaped && *text == '"')
        r->in_string = false;
    r->escaped = !r->escaped && *text == '\\';
    size_t n = mr_utf8_len((const uint8_t *)text, len);
    if (n)
        return n;
    *text = '?';
    add(r, at, true);
    return 1;
}

static size_t take_word(mr_json_repair *r, char *text, size_t len, uint64_t at)
{
    for (size_t i = 0; i < MR_COUNT(words); i++) {
        size_t n = strlen(words[i]);
        if (len < n || memcmp(text, words[i], n) != 0)
            continue;
        memmove(text + 1, text, n - 2);
        text[0] = text[n - 1] = '"';
        add(r, at, false);
        return n;
    }
    return 1;
}

void mr_json_repair_bytes(mr_json_repair *r, char *text, size_t len, uint64_t at)
{
    for (size_t i = 0; i < len;) {
        if (r->in_string) {
            i += take_string(r, text + i, len - i, at + i);
        } else if (text[i] == '"') {
            r->in_string = true;
            i++;
        } else {
            i += take_word(r, text + i, len - i, at + i);
        }
    }
}

size_t mr_json_repair_cut(const char *text, size_t len)
{
    size_t cut = 0;
    while (cut < len && cut < 9 && text[len - cut - 1] && strchr("-NnaInfity", text[len - cut - 1]))
        cut++;
    return cut < len ? cut : 0;
}

const mr_json_flaw *mr_json_repair_find(const mr_json_repair *r, size_t *next, uint64_t from, uint64_t to)
{
    while (*next < r->count && r->flaws[*next].at < from)
        ++*next;
    return *next < r->count && r->flaws[*next].at < to ? &r->flaws[*next] : NULL;
}

const char *mr_json_flaw_text(const mr_json_flaw *flaw)
{
    return flaw->text ? "text that is not UTF-8" : "NaN or Infinity, which JSON does not have";
}

void mr_json_repair_free(mr_json_repair *r)
{
    free(r->flaws);
    *r = (mr_json_repair){0};
}
