/* conditions.c - the table of conditions, and what each asks.
 * Invariant: shares and folds are chosen by the hash of the image's bytes, so that copies stay together and what a
 * dataset gains moves nothing that it had. */
#include "shards/view/condition_kinds.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/scope.h"
#include "base/text.h"
#include "shards/format/meta.h"

/* ---- what is asked ----------------------------------------------------------------------------------------------- */

static mr_status mr_condition_text_make(const char *argument, void **state, mr_error *err)
{
    *state = strdup(argument);
    return *state ? MR_OK : mr_fail_memory(err, "reading a condition");
}

size_t mr_condition_name_end(const char *names)
{
    size_t end = 0;
    while (names[end] && names[end] != ',')
        end += names[end] == '\\' && names[end + 1] ? 2 : 1;
    return end;
}

/* Whether `name` is the part of a list from `at` to `end`, in which "\," stands for a comma. */
static bool is_name(const char *at, const char *end, const char *name)
{
    for (; at < end; at++, name++) {
        at += *at == '\\' && at + 1 < end && at[1] == ',';
        if (*at != *name)
            return false;
    }
    return !*name;
}

static bool list_has(const char *list, const char *name)
{
    for (const char *at = list, *end;; at = end + 1) {
        end = at + mr_condition_name_end(at);
        if (is_name(at, end, name))
            return true;
        if (!*end)
            return false;
    }
}

static bool mr_condition_class_meets(const void *state, const mr_candidate *c)
{
    return c->class_is && list_has(state, c->class_is);
}

static bool mr_condition_source_meets(const void *state, const mr_candidate *c)
{
    MR_AUTO(mr_buf_free) mr_buf source = {0};
    mr_meta_facts facts;
    return mr_meta_scan(c->meta, c->meta_len, &facts, &source, NULL) == MR_OK &&
           fnmatch(state, mr_buf_text(&source), 0) == 0;
}

static mr_status mr_condition_number_make(const char *argument, void **state, mr_error *err)
{
    uint64_t *n = malloc(sizeof *n);
    *state = n;
    if (!n)
        return mr_fail_memory(err, "reading a condition");
    if (mr_text_parse_u64(argument, n) && *n)
        return MR_OK;
    return mr_fail(err, MR_MISUSE, "%s: is not a whole number above 0", argument);
}

static bool mr_condition_min_side_meets(const void *state, const mr_candidate *c)
{
    uint32_t side = c->row->width < c->row->height ? c->row->width : c->row->height;
    return side >= *(const uint64_t *)state;
}

static bool mr_condition_first_meets(const void *state, const mr_candidate *c)
{
    return c->passed < *(const uint64_t *)state;
}

/* Evenly distributed, the same everywhere, and a different number for each purpose. */
static uint64_t hash_for(const mr_candidate *c, uint8_t purpose)
{
    uint8_t bytes[9];
    mr_put64le(bytes, c->row->image_hash);
    bytes[8] = purpose;
    return mr_hash64(bytes, sizeof bytes);
}

static mr_status mr_condition_fraction_make(const char *argument, void **state, mr_error *err)
{
    char *end;
    double share = strtod(argument, &end), *kept = malloc(sizeof *kept);
    *state = kept;
    if (!kept)
        return mr_fail_memory(err, "reading a condition");
    if (end == argument || *end || !(share > 0) || share > 1)
        return mr_fail(err, MR_MISUSE, "%s: is not a share above 0 and up to 1", argument);
    *kept = share;
    return MR_OK;
}

static bool mr_condition_fraction_meets(const void *state, const mr_candidate *c)
{
    return (double)(hash_for(c, 'f') >> 11) * 0x1p-53 < *(const double *)state;
}

typedef struct fold {
    uint64_t number, count;
    bool others;
} fold;

static mr_status mr_condition_fold_make(const char *argument, void **state, mr_error *err)
{
    MR_AUTO(mr_buf_free) mr_buf number = {0};
    fold *f = malloc(sizeof *f);
    bool others = argument[0] == '-';
    const char *text = argument + others, *slash = strchr(text, '/');
    *state = f;
    if (!f)
        return mr_fail_memory(err, "reading a condition");
    mr_buf_add(&number, text, slash ? (size_t)(slash - text) : 0);
    f->others = others;
    if (slash && mr_text_parse_u64(mr_buf_text(&number), &f->number) && mr_text_parse_u64(slash + 1, &f->count) &&
        f->number >= 1 && f->number <= f->count && f->count >= 2)
        return MR_OK;
    return mr_fail(err, MR_MISUSE, "%s: is not a fold such as 1/5, or -1/5 for all of the others", argument);
}

static bool mr_condition_fold_meets(const void *state, const mr_candidate *c)
{
    const fold *f = state;
    return (hash_for(c, 'k') % f->count + 1 == f->number) != f->others;
}

/* ---- numbers ----------------------------------------------------------------------------------------------------- */

typedef struct ranges {
    size_t count;
    struct {
        uint64_t first, last;
    } of[];
} ranges;

/* "0-99,105": in order, without a number twice. */
static mr_status mr_condition_ranges_make(const char *argument, void **state, mr_error *err)
{
    size_t capacity = 1;
    for (const char *p = argument; *p; p++)
        capacity += *p == ',';
    ranges *r = mr_alloc(1, sizeof *r + capacity * sizeof r->of[0]);
    *state = r;
    if (!r)
        return mr_fail_memory(err, "reading a condition");
    for (const char *p = argument; *p;) {
        char *end;
        uint64_t first = strtoull(p, &end, 10), last = *end == '-' ? strtoull(end + 1, &end, 10) : first;
        bool sorted = !r->count || first > r->of[r->count - 1].last;
        if (*p < '0' || *p > '9' || last < first || !sorted || (*end && *end != ',') || (*end && !end[1]))
            return mr_fail(err, MR_MISUSE, "%.40s: are not numbers of samples in order, such as 0-99,105", p);
        r->of[r->count].first = first;
        r->of[r->count++].last = last;
        p = *end ? end + 1 : end;
    }
    return MR_OK;
}

static bool mr_condition_samples_meets(const void *state, const mr_candidate *c)
{
    const ranges *r = state;
    size_t low = 0, high = r->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (c->number > r->of[middle].last)
            low = middle + 1;
        else
            high = middle;
    }
    return low < r->count && c->number >= r->of[low].first;
}

/* ---- the table --------------------------------------------------------------------------------------------------- */

const mr_condition_kind mr_condition_kinds[] = {
#define X(word, name, value, meta, prepare, help)                                                                      \
    {name, value, help, meta, mr_condition_##prepare##_make, mr_condition_##word##_meets},
    MR_CONDITIONS(X)
#undef X
        {0},
};

mr_status mr_condition_make(const char *name, const char *argument, mr_condition *out, mr_error *err)
{
    mr_error why;
    const mr_condition_kind *kind = mr_condition_kinds;
    while (kind->name && strcmp(kind->name, name) != 0)
        kind++;
    if (!kind->name)
        return mr_fail(err, MR_MISUSE, "%s: not a condition that this version knows", name);
    mr_condition c = {.kind = kind, .argument = strdup(argument)};
    mr_status status = c.argument ? kind->prepare(argument, &c.state, &why) : mr_fail_memory(&why, "a condition");
    if (status == MR_OK) {
        *out = c;
        return MR_OK;
    }
    mr_condition_free(&c);
    return mr_fail(err, status, "--%s %s", name, why.text);
}

void mr_condition_free(mr_condition *c)
{
    free(c->argument);
    free(c->state);
    *c = (mr_condition){0};
}

bool mr_conditions_meet(mr_condition *conditions, size_t count, mr_candidate *c)
{
    for (size_t i = 0; i < count; i++) {
        c->passed = conditions[i].passed;
        if (!conditions[i].kind->meets(conditions[i].state, c))
            return false;
        conditions[i].passed++;
    }
    return true;
}

bool mr_conditions_need_meta(const mr_condition *conditions, size_t count)
{
    bool needed = false;
    for (size_t i = 0; i < count; i++)
        needed = needed || conditions[i].kind->needs_meta;
    return needed;
}

void mr_conditions_restart(mr_condition *conditions, size_t count)
{
    for (size_t i = 0; i < count; i++)
        conditions[i].passed = 0;
}
