/* label.c - reads YOLO label files, line by line.
 * Source: "Dataset format" of the tasks detect, segment, obb and pose in Ultralytics' documentation; labelTxt is the
 * format of DOTA v1.5.
 * Invariant: every failure describes one line. */
#include "ingest/layout/yolo/label.h"

#include "base/text.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Fractions of the image: a box may extend beyond it, but 320 is a pixel. */
static const double low = -1, high = 2;

void mr_yolo_reader_free(mr_yolo_reader *r)
{
    free(r->numbers);
    *r = (mr_yolo_reader){0};
}

/* ---- numbers ---------------------------------------------------------------------------------------------------- */

/* Exact: a whole number below 2^53 divided by a power of ten that a double holds, both without error; anything else is
 * left to strtod(). */
static bool quick_number(const char *text, size_t len, double *out)
{
    static const double tens[] = {1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15};
    uint64_t digits = 0;
    size_t at = len && *text == '-', count = 0, behind = 0;
    bool point = false;
    for (; at < len && count < 15; at++) {
        if (text[at] == '.' && !point) {
            point = true;
            continue;
        }
        if (text[at] < '0' || text[at] > '9')
            return false;
        digits = digits * 10 + (uint64_t)(text[at] - '0');
        count++;
        behind += point;
    }
    *out = (double)digits / tens[behind];
    *out = *text == '-' ? -*out : *out;
    return count && at == len;
}

static bool read_number(const char *text, size_t len, double *out)
{
    char copy[64], *end;
    if (quick_number(text, len, out))
        return true;
    if (!len || len >= sizeof copy)
        return false;
    memcpy(copy, text, len);
    copy[len] = '\0';
    if (strspn(copy, "+-.0123456789eE") < len)
        return false;
    *out = strtod(copy, &end);
    return !*end && isfinite(*out);
}

/* ---- words ------------------------------------------------------------------------------------------------------ */

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == ',';
}

static bool next_word(const char **at, const char *end, const char **word, size_t *len)
{
    while (*at < end && is_blank(**at))
        ++*at;
    *word = *at;
    while (*at < end && !is_blank(**at))
        ++*at;
    *len = (size_t)(*at - *word);
    return *len > 0;
}

static mr_status refuse_word(mr_yolo_reader *r, const char *word, size_t len, const char *what)
{
    mr_buf text = {0};
    mr_text_show(&text, word, len < 40 ? len : 40);
    snprintf(r->why, sizeof r->why, "\"%s\" is not %s", mr_buf_text(&text), what);
    mr_buf_free(&text);
    return MR_BAD_DATA;
}

static mr_status add_number(mr_yolo_reader *r, const char *word, size_t len)
{
    double value;
    if (!read_number(word, len, &value))
        return refuse_word(r, word, len, "a number");
    if (!MR_GROW(r->numbers, r->count, r->capacity))
        return MR_SYSTEM;
    r->numbers[r->count++] = value;
    return MR_OK;
}

/* ---- lines ------------------------------------------------------------------------------------------------------ */

static mr_status check_class(mr_yolo_reader *r, const mr_yolo_rules *rules, double value, mr_yolo_line *out)
{
    size_t classes = rules->plan ? rules->plan->class_count : 0;
    if (value < 0 || value >= MR_YOLO_CLASSES || floor(value) != value) {
        snprintf(r->why, sizeof r->why, "class %g is not an integer from 0 to %d", value, MR_YOLO_CLASSES - 1);
        return MR_BAD_DATA;
    }
    out->class = (uint32_t)value;
    if (!classes || out->class < classes)
        return MR_OK;
    snprintf(r->why, sizeof r->why, "class %" PRIu32 ", but the dataset has %zu, numbered from 0", out->class, classes);
    return MR_BAD_DATA;
}

static mr_status find_kind(mr_yolo_reader *r, const mr_yolo_rules *rules, mr_yolo_line *out)
{
    size_t pose = rules->keypoints ? 4 + (size_t)rules->keypoints * rules->dims : 0;
    if (pose && out->count == pose)
        out->kind = MR_YOLO_POSE;
    else if (out->count == 4 || (rules->any && out->count > 4))
        out->kind = MR_YOLO_BOX;
    else if (!pose && out->count >= 6 && out->count % 2 == 0)
        out->kind = MR_YOLO_POLYGON;
    else {
        if (pose)
            snprintf(r->why, sizeof r->why, "%zu numbers after the class, where kpt_shape asks for %zu", out->count,
                     pose);
        else
            snprintf(r->why, sizeof r->why,
                     "%zu number%s after the class, where a box has 4 and a polygon 6, 8 or more, two per point%s",
                     out->count, out->count == 1 ? "" : "s",
                     out->count > 4 && out->count % 3 == 1 ? "; keypoints need kpt_shape in data.yaml" : "");
        return MR_BAD_DATA;
    }
    return MR_OK;
}

static mr_status check_parts(mr_yolo_reader *r, const mr_yolo_rules *rules, const mr_yolo_line *line)
{
    size_t count = rules->any ? 4 : line->count; /* what follows may be of any kind */
    for (size_t i = 0; i < count; i++) {
        bool visibility = line->kind == MR_YOLO_POSE && rules->dims == 3 && i >= 4 && (i - 4) % 3 == 2;
        double value = line->numbers[i];
        if (visibility ? value == 0 || value == 1 || value == 2 : value >= low && value <= high)
            continue;
        snprintf(r->why, sizeof r->why,
                 visibility ? "visibility %g is not 0, 1 or 2"
                            : "%g is not a part of the image: YOLO's coordinates are from 0 to 1, not pixels",
                 value);
        return MR_BAD_DATA;
    }
    return MR_OK;
}

static mr_status read_parts(mr_yolo_reader *r, const mr_yolo_rules *rules, mr_yolo_line *out)
{
    const char *at = out->text, *end = at + out->len, *word;
    size_t len;
    double class;
    next_word(&at, end, &word, &len);
    if (!read_number(word, len, &class))
        return refuse_word(r, word, len, "a class number");
    mr_status status = check_class(r, rules, class, out);
    while (status == MR_OK && next_word(&at, end, &word, &len))
        status = add_number(r, word, len);
    out->numbers = r->numbers;
    out->count = r->count;
    if (status == MR_OK)
        status = find_kind(r, rules, out);
    return status == MR_OK ? check_parts(r, rules, out) : status;
}

/* The class is what follows the coordinates, without the difficulty at its end; it may hold blanks. */
static bool find_name(const char *at, const char *end, mr_yolo_line *out)
{
    while (at < end && is_blank(*at))
        at++;
    const char *last = end;
    while (last > at && strchr("0123456789", last[-1]))
        last--;
    const char *stop = last;
    while (stop > at && is_blank(stop[-1]))
        stop--;
    if (stop == last || stop == at)
        stop = end;
    out->name = at;
    out->name_len = (size_t)(stop - at);
    return stop > at;
}

static mr_status read_text(mr_yolo_reader *r, const mr_yolo_rules *rules, mr_yolo_line *out)
{
    const char *at = out->text, *end = at + out->len, *word;
    size_t len;
    mr_status status = MR_OK;
    for (int i = 0; i < 8 && status == MR_OK; i++)
        status = next_word(&at, end, &word, &len) ? add_number(r, word, len)
                                                  : refuse_word(r, out->text, out->len, "8 numbers and a class");
    if (status != MR_OK)
        return status;
    if (!find_name(at, end, out))
        return refuse_word(r, out->text, out->len, "8 numbers and a class");
    bool listed = rules->plan && rules->plan->class_count;
    int32_t class = listed ? mr_plan_class_find(rules->plan, out->name, out->name_len) : 0;
    if (class < 0)
        return refuse_word(r, out->name, out->name_len, "a class of the dataset");
    for (size_t i = 0; i < r->count; i++) {
        mr_milli milli;
        if (!mr_milli_of(r->numbers[i], &milli))
            return refuse_word(r, out->text, out->len, "a position in an image");
    }
    out->kind = MR_YOLO_TEXT;
    out->class = (uint32_t) class;
    out->numbers = r->numbers;
    out->count = r->count;
    return MR_OK;
}

/* DOTA's files begin with "imagesource:" and "gsd:". */
static bool is_head(const char *text, size_t len)
{
    return (len > 11 && !memcmp(text, "imagesource", 11)) || (len > 3 && !memcmp(text, "gsd", 3));
}

bool mr_yolo_is_text(const char *text, size_t len)
{
    mr_lines l = mr_lines_of(text, len);
    size_t word_len;
    double number;
    if (!mr_lines_next(&l))
        return false;
    const char *at = l.line, *end = at + l.len, *word;
    if (is_head(at, l.len))
        return true;
    for (int i = 0; i < 9; i++) {
        if (!next_word(&at, end, &word, &word_len))
            return false;
        if (!read_number(word, word_len, &number))
            return i == 8;
    }
    return false;
}

mr_status mr_yolo_next(mr_yolo_reader *r, const mr_yolo_rules *rules, mr_yolo_line *out)
{
    while (mr_lines_next(&r->lines)) {
        *out = (mr_yolo_line){.text = r->lines.line, .len = r->lines.len};
        mr_text_trim(&out->text, &out->len, " \t,");
        if (!out->len || (rules->text && is_head(out->text, out->len)))
            continue;
        r->count = 0;
        return rules->text ? read_text(r, rules, out) : read_parts(r, rules, out);
    }
    return MR_END;
}
