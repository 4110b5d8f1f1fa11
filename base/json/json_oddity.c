/* json_oddity.c - finds common mistakes in JSON in the bytes around where a parser stopped. */
#include "base/json/json_oddity.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/text.h"

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool in_word(char c)
{
    return is_digit(c) || is_letter(c) || c == '+' || c == '-' || c == '.';
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/* The last byte before `at` that is not blank; '\0' at the beginning of the document, '?' at that of the window. */
static char before(const mr_json_place *p, size_t at)
{
    while (at && is_blank(p->text[at - 1]))
        at--;
    if (at)
        return p->text[at - 1];
    return p->begins ? '\0' : '?';
}

static bool starts(const mr_json_place *p, const char *with, size_t len)
{
    return p->begins && p->len >= len && !memcmp(p->text, with, len);
}

/* ---- the whole document ---------------------------------------------------------------------------------------- */

static const char *encoding(const mr_json_place *p)
{
    size_t first = 0;
    if (starts(p, "\xFF\xFE", 2) || starts(p, "\xFE\xFF", 2) ||
        (p->begins && p->len >= 2 && !p->text[0] != !p->text[1]))
        return "this is UTF-16: save it as UTF-8";
    if (starts(p, "\x1F\x8B", 2))
        return "this is gzip-compressed: decompress it";
    if (p->begins && mr_text_is_lfs_pointer(p->text, p->len))
        return "this is a Git LFS pointer, not the file itself: run `git lfs pull`";
    while (first < p->len && is_blank(p->text[first]))
        first++;
    if (p->begins && first < p->len && p->text[first] == '<')
        return "this looks like a web page: download the file again";
    if (p->begins && p->at <= 4 && mr_utf8_mark(p->text, p->len))
        return "it starts with a byte order mark: save it as UTF-8 without one";
    return NULL;
}

/* ---- one word -------------------------------------------------------------------------------------------------- */

static bool is(const char *word, size_t len, const char *other)
{
    return len == strlen(other) && !strncasecmp(word, other, len);
}

static const char *python_word(const char *word, size_t len)
{
    static const char *const words[][2] = {
        {"True", "true"}, {"False", "false"}, {"None", "null"}, {"undefined", "null"},
        {"TRUE", "true"}, {"FALSE", "false"}, {"NULL", "null"}, {"Null", "null"},
    };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (len == strlen(words[i][0]) && !memcmp(word, words[i][0], len))
            return words[i][1];
    return NULL;
}

/* A number in a form that JSON does not have: +1, .5, 1., 01. */
static bool is_bad_number(const char *word, size_t len)
{
    size_t first = *word == '-' || *word == '+', digits = first;
    while (digits < len && is_digit(word[digits]))
        digits++;
    if (first == len ||
        (!is_digit(word[first]) && !(word[first] == '.' && first + 1 < len && is_digit(word[first + 1]))))
        return false;
    return *word == '+' || word[first] == '.' || (word[first] == '0' && digits > first + 1) ||
           (digits < len && word[digits] == '.' && (digits + 1 == len || !is_digit(word[digits + 1])));
}

static bool explain_word(const mr_json_place *p, size_t begin, size_t end, char out[MR_JSON_ODDITY])
{
    const char *word = p->text + begin, *body = word;
    size_t len = end - begin, body_len = len;
    int shown = len > 24 ? 24 : (int)len;
    if (*body == '-' || *body == '+') {
        body++;
        body_len--;
    }
    const char *right = python_word(word, len);
    if (is(body, body_len, "nan") || is(body, body_len, "inf") || is(body, body_len, "infinity"))
        snprintf(out, MR_JSON_ODDITY,
                 "JSON has no %.*s: write null or a number (Python's json.dump writes it unless "
                 "allow_nan=False)",
                 shown, word);
    else if (right)
        snprintf(out, MR_JSON_ODDITY, "JSON has no %.*s: write %s (Python's json.dump does, str() and repr() do not)",
                 shown, word, right);
    else if (is_bad_number(word, len))
        snprintf(out, MR_JSON_ODDITY,
                 "%.*s is not a JSON number: no plus sign, no leading zero, digits on both sides of the point", shown,
                 word);
    else if (is_letter(*word) && !(end == p->len && p->ends))
        snprintf(out, MR_JSON_ODDITY, "%.*s has no quotes: JSON puts strings and names in double quotes", shown, word);
    else
        return false;
    return true;
}

/* The parser stopped in or right after a word: a value or a name, not a part of a string. */
static bool at_word(mr_json_place *p, char out[MR_JSON_ODDITY])
{
    enum { LONGEST = 64 };
    size_t begin = p->at ? p->at - 1 : 0, end;
    if (begin >= p->len || !in_word(p->text[begin]))
        return false;
    for (size_t from = begin; begin && in_word(p->text[begin - 1]) && from - begin < LONGEST;)
        begin--;
    for (end = begin; end < p->len && in_word(p->text[end]);)
        end++;
    char led = before(p, begin);
    if ((led && !strchr(":,[{", led)) || !explain_word(p, begin, end, out))
        return false;
    p->at = begin;
    return true;
}

/* ---- punctuation ----------------------------------------------------------------------------------------------- */

static bool is_comment(const mr_json_place *p, size_t at)
{
    return at < p->len && (p->text[at] == '#' || (p->text[at] == '/' && at + 1 < p->len &&
                                                  (p->text[at + 1] == '/' || p->text[at + 1] == '*')));
}

static const char *punctuation(mr_json_place *p)
{
    size_t at = p->at ? p->at - 1 : 0;
    for (size_t from = at ? at - 1 : 0; from <= p->at; from++)
        if (is_comment(p, from)) {
            p->at = from;
            return "a comment: JSON has none";
        }
    if (at >= p->len)
        return NULL;
    char c = p->text[at], led = before(p, at);
    bool value = !led || strchr(":,[{", led);
    if ((c == '}' || c == ']') && led == ',') {
        p->at = at;
        return "a comma before the closing bracket: remove it";
    }
    if (c == '\'' && value) {
        p->at = at;
        return "a string in single quotes: JSON has double quotes (Python's json.dump writes them, str() and repr() "
               "do not)";
    }
    return NULL;
}

bool mr_json_oddity(mr_json_place *p, char out[MR_JSON_ODDITY])
{
    const char *words = encoding(p);
    if (words)
        p->at = 0;
    else if (at_word(p, out))
        return true;
    else
        words = punctuation(p);
    if (words)
        snprintf(out, MR_JSON_ODDITY, "%s", words);
    return words;
}

mr_json_line mr_json_line_of(const char *text, size_t at)
{
    mr_json_line place = {1, 1};
    const char *line = text, *newline;
    while ((newline = memchr(line, '\n', at - (size_t)(line - text)))) {
        line = newline + 1;
        place.line++;
    }
    place.column = at - (size_t)(line - text) + 1;
    return place;
}
