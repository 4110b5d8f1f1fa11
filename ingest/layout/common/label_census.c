/* label_census.c - see label_census.h.
 * Invariant: the verdict on a label depends on the set of all labels, not on their order. */
#include "ingest/layout/common/label_census.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/scope.h"

enum { DIGITS_MAX = 15, UNIQUE_FEW = 5, UNIQUE_MANY = 20, WORDS = 3, WORDS_LONG = 4 };

/* ---- values ---------------------------------------------------------------------------------------------------- */

/* What pandas reads as missing, and writes; https://pandas.pydata.org/docs/reference/api/pandas.read_csv.html */
static bool is_none(const char *text, size_t len)
{
    static const char *const words[] = {"nan",  "NaN",  "NAN", "-nan", "-NaN", "none", "None", "null", "Null",
                                        "NULL", "<NA>", "N/A", "n/a",  "#N/A", "NA",   "NaT",  "nil"};
    if (len && *text >= '0' && *text <= '9') /* most cells, of which there may be millions */
        return false;
    for (size_t i = 0; i < MR_COUNT(words); i++)
        if (strlen(words[i]) == len && !memcmp(words[i], text, len))
            return true;
    return !len;
}

static size_t digits(const char *text, size_t len)
{
    size_t n = 0;
    while (n < len && text[n] >= '0' && text[n] <= '9')
        n++;
    return n;
}

/* A decimal number without exponent and leading zeros: its name lacks the zeros at the end of its fraction. */
static bool number_of(const char *text, size_t len, mr_value *out)
{
    bool minus = *text == '-';
    size_t whole = digits(text + minus, len - minus), at = minus + whole, fraction = 0;
    if (!whole || whole > DIGITS_MAX || (whole > 1 && text[minus] == '0'))
        return false;
    if (at < len && text[at] == '.') {
        fraction = digits(text + at + 1, len - at - 1);
        if (at + 1 + fraction < len)
            return false;
    } else if (at < len) {
        return false;
    }
    while (fraction && text[at + fraction] == '0')
        fraction--;
    if (at + 1 + fraction >= sizeof out->name)
        return false;
    size_t kept = fraction ? at + 1 + fraction : at;
    memcpy(out->name, text, kept);
    out->name[kept] = '\0';
    if (!strcmp(out->name, "-0"))
        memcpy(out->name, "0", 2);
    out->number = strtod(out->name, NULL);
    out->kind = fraction ? MR_VALUE_NUMBER : MR_VALUE_WHOLE;
    return true;
}

mr_value mr_value_of(const char *text, size_t len)
{
    mr_value v = {.kind = MR_VALUE_TEXT};
    if (is_none(text, len))
        v.kind = MR_VALUE_NONE;
    else
        (void)number_of(text, len, &v);
    return v;
}

/* Numbers by their value, then names bytewise. */
static int compare_values(const char *a, const char *b)
{
    mr_value x = mr_value_of(a, strlen(a)), y = mr_value_of(b, strlen(b));
    bool x_number = x.kind == MR_VALUE_WHOLE || x.kind == MR_VALUE_NUMBER;
    bool y_number = y.kind == MR_VALUE_WHOLE || y.kind == MR_VALUE_NUMBER;
    if (x_number && y_number && (x.number < y.number || x.number > y.number))
        return x.number < y.number ? -1 : 1;
    return x_number != y_number ? y_number - x_number : strcmp(a, b);
}

/* ---- counting -------------------------------------------------------------------------------------------------- */

static size_t words_in(const char *text, size_t len)
{
    size_t words = 0;
    for (size_t i = 0; i < len; i++)
        words += text[i] != ' ' && (!i || text[i - 1] == ' ');
    return words;
}

static void add_number(mr_label_census *c, const mr_value *v)
{
    bool first = c->numbers == c->minus_ones;
    c->numbers++;
    c->whole += v->kind == MR_VALUE_WHOLE;
    if (!strcmp(v->name, "-1")) {
        c->minus_ones++;
        return;
    }
    c->lowest = first || v->number < c->lowest ? v->number : c->lowest;
    c->highest = first || v->number > c->highest ? v->number : c->highest;
    c->other_than_one = c->other_than_one || strcmp(v->name, "1") != 0;
}

mr_status mr_label_census_add(mr_label_census *c, const char *text, size_t len, mr_label_gaps *gaps, mr_error *err)
{
    mr_value v = mr_value_of(text, len);
    if (v.kind == MR_VALUE_NONE) {
        gaps->empty += !len;
        gaps->words += len > 0;
        return MR_OK;
    }
    c->labels++;
    if (v.kind == MR_VALUE_TEXT) {
        c->words += words_in(text, len);
    } else {
        add_number(c, &v);
        gaps->minus_one += !strcmp(v.name, "-1");
        text = v.name;
        len = strlen(v.name);
    }
    if (c->full)
        return MR_OK;
    size_t before = c->distinct.class_count;
    mr_status status = mr_class_set_add(&c->set, &c->distinct, text, len, err);
    c->full = status == MR_BAD_DATA;
    c->once += c->distinct.class_count > before;
    return c->full ? MR_OK : status;
}

void mr_label_census_settle(mr_label_census *c, double most)
{
    bool others = c->numbers > c->minus_ones, signed_scale = others && c->lowest < 0;
    /* -1 and 1 alone are two classes; what is below -1 shows that -1 is a number like others. */
    c->minus_is_none = c->minus_ones && !signed_scale && !(others && !c->other_than_one && c->labels == c->numbers);
    c->filled = others && c->labels == c->numbers && c->whole == c->numbers && !signed_scale && c->highest <= most &&
                (c->minus_is_none || !c->minus_ones);
}

bool mr_label_census_unique(const mr_label_census *c)
{
    size_t texts = c->labels - c->whole; /* numbers with a fraction are measurements */
    if (texts * 2 <= c->labels)
        return false;
    if (c->full || (c->labels >= UNIQUE_FEW && c->once == c->labels))
        return true;
    if (c->labels >= UNIQUE_MANY && c->once * 10 >= c->labels * 9)
        return true;
    return c->labels > 1 && c->once * 2 > c->labels && c->words >= WORDS_LONG * texts;
}

bool mr_label_census_sentences(const mr_label_census *c)
{
    return c->labels > c->numbers && c->words >= WORDS * (c->labels - c->numbers);
}

/* ---- classes --------------------------------------------------------------------------------------------------- */

static int by_value(const void *a, const void *b)
{
    return compare_values(((const mr_class *)a)->name, ((const mr_class *)b)->name);
}

mr_status mr_plan_classes_in_order(mr_plan *plan, mr_error *err)
{
    if (plan->class_count)
        qsort(plan->classes, plan->class_count, sizeof *plan->classes, by_value);
    return mr_plan_classes_place(plan, err);
}

mr_status mr_label_census_classes(const mr_label_census *c, const char *where, mr_plan *plan, mr_error *err)
{
    if (c->full)
        return mr_fail(err, MR_MISUSE,
                       "%s: has more than %d different labels; choose another column with --label-column", where,
                       MR_CLASS_SET_MAX);
    for (int32_t n = 0; c->filled && n <= (int32_t)c->highest; n++) {
        char name[16];
        MR_TRY(mr_plan_class(plan, name, (size_t)snprintf(name, sizeof name, "%d", (int)n), false, 0, err));
    }
    for (size_t i = 0; i < c->distinct.class_count && !c->filled; i++) {
        const char *name = c->distinct.classes[i].name; /* path text, which is not escaped again */
        if (c->minus_is_none && !strcmp(name, "-1"))
            continue;
        char *copy = MR_GROW(plan->classes, plan->class_count, plan->class_capacity) ? strdup(name) : NULL;
        if (!copy)
            return mr_fail_memory(err, "listing the classes");
        plan->classes[plan->class_count++] = (mr_class){.name = copy};
    }
    if (c->numbers > c->whole)
        mr_note_add(plan->notes, MR_NOTE_INFO, where, strlen(where), 0,
                    "labels that are numbers with a fraction: %zu of %zu; each different one is a class",
                    c->numbers - c->whole, c->labels);
    return mr_plan_classes_in_order(plan, err);
}

int32_t mr_label_census_find(const mr_label_census *c, const mr_plan *plan, const char *text, size_t len)
{
    mr_value v = mr_value_of(text, len);
    if (v.kind == MR_VALUE_NONE || (c->minus_is_none && !strcmp(v.name, "-1")))
        return -1;
    if (c->filled)
        return (int32_t)v.number;
    return v.kind == MR_VALUE_TEXT ? mr_plan_class_find(plan, text, len)
                                   : mr_plan_class_find(plan, v.name, strlen(v.name));
}

static void add_kind(mr_buf *out, const char *kind, size_t count)
{
    if (count)
        mr_buf_printf(out, "%s%s: %zu", out->len ? ", " : "", kind, count);
}

void mr_label_census_note(const mr_label_census *c, const mr_label_gaps *gaps, const char *file, const char *what,
                          mr_notes *notes)
{
    MR_AUTO(mr_buf_free) mr_buf kinds = {0};
    size_t minus = c->minus_is_none ? gaps->minus_one : 0, absent = c->labels ? gaps->absent : 0;
    size_t all = absent + gaps->empty + gaps->words + minus;
    add_kind(&kinds, "absent", absent);
    add_kind(&kinds, "empty", gaps->empty);
    add_kind(&kinds, "-1", minus);
    add_kind(&kinds, "NaN, None and the like", gaps->words);
    if (all)
        mr_note_add(notes, MR_NOTE_INFO, file, strlen(file), 0,
                    "%s without a label: %zu (%s), which are kept without one", what, all, mr_buf_text(&kinds));
    notes->failed = notes->failed || kinds.failed;
}

void mr_label_census_free(mr_label_census *c)
{
    mr_class_set_free(&c->set);
    for (size_t i = 0; i < c->distinct.class_count; i++)
        free(c->distinct.classes[i].name);
    free(c->distinct.classes);
    *c = (mr_label_census){0};
}
