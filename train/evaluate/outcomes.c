/* outcomes.c - evaluation.jsonl: written from an evaluation, read for a report.
 * Invariant: what is written is read back as the same outcomes; a line that is not one of these is damage, not
 * skipped. */
#include "train/evaluate/outcomes.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/scope.h"
#include "base/text.h"
#include "base/json/json.h"

typedef unsigned long long ull;

void mr_outcomes_release(mr_outcomes *o)
{
    free(o->items);
    free(o->searches);
    mr_scores_release(&o->scores);
    mr_buf_free(&o->text);
    *o = (mr_outcomes){0};
}

/* ---- writing ---------------------------------------------------------------------------------------------------- */

static void add_number(mr_buf *out, double value)
{
    if (isfinite(value))
        mr_buf_printf(out, "%.6g", value);
    else
        mr_buf_add_text(out, "null");
}

static void begin_line(const mr_outcomes *o, uint64_t sample, mr_buf *out)
{
    mr_buf_printf(out, "{\"step\": %llu, \"split\": \"%s\", \"sample\": %llu, ", (ull)o->step, o->split, (ull)sample);
}

static void add_outcome(const mr_outcomes *o, const mr_outcome *i, const mr_manifest *m, mr_buf *out)
{
    const char *label = m->classes[i->label].name, *predicted = m->classes[i->predicted].name;
    begin_line(o, i->sample, out);
    mr_buf_add_text(out, "\"label\": ");
    mr_json_add_string(out, label, strlen(label));
    mr_buf_add_text(out, ", \"predicted\": ");
    mr_json_add_string(out, predicted, strlen(predicted));
    mr_buf_add_text(out, ", \"probability\": ");
    add_number(out, (double)i->probability);
    mr_buf_add_text(out, ", \"loss\": ");
    add_number(out, (double)i->loss);
    mr_buf_add_text(out, "}\n");
}

static void add_search(const mr_outcomes *o, const mr_search *s, mr_buf *out)
{
    begin_line(o, s->sample, out);
    mr_buf_add_text(out, "\"words\": ");
    mr_json_add_string(out, (const char *)o->text.data + s->words, s->words_len);
    mr_buf_add_text(out, ", \"found\": [");
    for (size_t i = 0; i < s->count; i++) {
        mr_buf_printf(out, "%s[%llu, ", i ? ", " : "", (ull)s->found[i]);
        add_number(out, (double)s->scores[i]);
        mr_buf_add_text(out, s->right[i] ? ", true]" : ", false]");
    }
    mr_buf_add_text(out, "]}\n");
}

static void add_class(const mr_outcomes *o, const mr_class_score *c, const char *name, mr_buf *out)
{
    const double shares[] = {c->average_precision < 0 ? NAN : c->average_precision, c->precision, c->recall, c->f1};
    static const char *const names[] = {"average_precision", "precision", "recall", "f1"};
    mr_buf_printf(out, "{\"step\": %llu, \"split\": \"%s\", \"class\": ", (ull)o->step, o->split);
    mr_json_add_string(out, name, strlen(name));
    mr_buf_add_text(out, ", \"threshold\": ");
    add_number(out, o->scores.threshold);
    mr_buf_printf(out, ", \"samples\": %llu", (ull)c->positives);
    for (size_t i = 0; i < MR_COUNT(names); i++) {
        mr_buf_printf(out, ", \"%s\": ", names[i]);
        add_number(out, shares[i]);
    }
    mr_buf_add_text(out, "}\n");
}

mr_status mr_outcomes_json(const mr_outcomes *o, const mr_manifest *m, mr_buf *out, mr_error *err)
{
    for (size_t i = 0; i < o->count; i++) {
        const mr_outcome *item = &o->items[i];
        if (item->label < 0 || (size_t)item->label >= m->class_count || item->predicted < 0 ||
            (size_t)item->predicted >= m->class_count)
            return mr_fail(err, MR_MISUSE, "sample %llu: is not of a class of the dataset", (ull)item->sample);
        add_outcome(o, item, m, out);
    }
    for (size_t i = 0; i < o->search_count; i++)
        add_search(o, &o->searches[i], out);
    if (o->scores.classes > m->class_count)
        return mr_fail(err, MR_MISUSE, "%zu classes were scored, the dataset has %zu", o->scores.classes,
                       m->class_count);
    for (size_t i = 0; i < o->scores.classes; i++)
        add_class(o, &o->scores.each[i], m->classes[i].name, out);
    return mr_buf_status(out, err, "keeping an evaluation");
}

/* ---- reading ---------------------------------------------------------------------------------------------------- */

typedef struct name {
    const char *text;
    int32_t class;
} name;

typedef struct reading {
    name *names; /* sorted */
    size_t count;
    mr_outcomes *out;
} reading;

static int by_text(const void *a, const void *b)
{
    return strcmp(((const name *)a)->text, ((const name *)b)->text);
}

static int32_t class_of(const reading *r, const json_t *line, const char *key)
{
    const name wanted = {.text = json_string_value(json_object_get(line, key))};
    const name *found =
        wanted.text && r->count ? bsearch(&wanted, r->names, r->count, sizeof *r->names, by_text) : NULL;
    return found ? found->class : -1;
}

static float real_of(const json_t *value)
{
    return json_is_number(value) ? (float)json_number_value(value) : NAN;
}

static mr_status take_outcome(reading *r, const json_t *line, uint64_t sample, mr_error *err)
{
    mr_outcomes *o = r->out;
    mr_outcome item = {.sample = sample,
                       .label = class_of(r, line, "label"),
                       .predicted = class_of(r, line, "predicted"),
                       .probability = real_of(json_object_get(line, "probability")),
                       .loss = real_of(json_object_get(line, "loss"))};
    if (item.label < 0 || item.predicted < 0)
        return MR_OK;
    if (!MR_GROW(o->items, o->count, o->capacity))
        return mr_fail_memory(err, "reading an evaluation");
    o->items[o->count++] = item;
    return MR_OK;
}

static mr_status take_search(reading *r, const json_t *line, uint64_t sample, const json_t *words, mr_error *err)
{
    mr_outcomes *o = r->out;
    const json_t *found = json_object_get(line, "found"), *pair;
    mr_search s = {.sample = sample, .words = o->text.len, .words_len = json_string_length(words)};
    size_t i;
    json_array_foreach(found, i, pair)
    {
        json_int_t other = json_integer_value(json_array_get(pair, 0));
        if (other < 0 || s.count == MR_FOUND)
            break;
        s.found[s.count] = (uint64_t)other;
        s.right[s.count] = json_is_true(json_array_get(pair, 2));
        s.scores[s.count++] = real_of(json_array_get(pair, 1));
    }
    mr_buf_add(&o->text, json_string_value(words), s.words_len);
    if (!MR_GROW(o->searches, o->search_count, o->search_capacity))
        return mr_fail_memory(err, "reading an evaluation");
    o->searches[o->search_count++] = s;
    return mr_buf_status(&o->text, err, "reading an evaluation");
}

static double share_of(const json_t *line, const char *key)
{
    double share = (double)real_of(json_object_get(line, key));
    return share >= 0 && share <= 1 ? share : 0;
}

static mr_status take_class(reading *r, const json_t *line, const char *called, mr_error *err)
{
    mr_scores *s = &r->out->scores;
    int32_t class = class_of(r, line, "class");
    if (!s->each && r->count && !(s->each = mr_alloc(r->count, sizeof *s->each)))
        return mr_fail_memory(err, "reading an evaluation");
    s->classes = r->count;
    if (class < 0 || !s->each)
        return MR_OK;
    s->threshold = share_of(line, "threshold");
    mr_class_score *c = &s->each[class];
    MR_TRY(mr_json_get_u64(line, "samples", called, &c->positives, err));
    c->average_precision = c->positives ? share_of(line, "average_precision") : -1;
    c->precision = share_of(line, "precision");
    c->recall = share_of(line, "recall");
    c->f1 = share_of(line, "f1");
    return MR_OK;
}

static mr_status take_line(reading *r, const char *text, size_t len, const char *called, mr_error *err)
{
    MR_AUTO(json_decrefp) json_t *line = NULL;
    uint64_t sample;
    const char *split;
    MR_TRY(mr_json_parse(text, len, called, &line, err));
    MR_TRY(mr_json_get_u64(line, "step", called, &r->out->step, err));
    MR_TRY(mr_json_get_string(line, "split", called, &split, err));
    snprintf(r->out->split, sizeof r->out->split, "%s", split);
    if (json_object_get(line, "class"))
        return take_class(r, line, called, err);
    MR_TRY(mr_json_get_u64(line, "sample", called, &sample, err));
    const json_t *words = json_object_get(line, "words");
    return json_is_string(words) ? take_search(r, line, sample, words, err) : take_outcome(r, line, sample, err);
}

static mr_status take_lines(reading *r, const char *path, const char *at, size_t len, mr_error *err)
{
    const char *end = at + len;
    MR_AUTO(mr_buf_free) mr_buf called = {0};
    for (unsigned line = 1; at < end; line++) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        mr_buf_clear(&called);
        mr_buf_printf(&called, "%s: line %u", path, line);
        MR_TRY(mr_buf_status(&called, err, path));
        if (!newline)
            return mr_fail(err, MR_BAD_DATA, "%s: is truncated", mr_buf_text(&called));
        MR_TRY(take_line(r, at, (size_t)(newline - at), mr_buf_text(&called), err));
        at = newline + 1;
    }
    return MR_OK;
}

mr_status mr_outcomes_parse(const char *text, size_t len, const char *path, const char *const *classes,
                            size_t class_count, mr_outcomes *out, mr_error *err)
{
    MR_AUTO(mr_scope_free) name *names = mr_alloc(class_count + 1, sizeof *names);
    if (!names)
        return mr_fail_memory(err, path);
    for (size_t i = 0; i < class_count; i++)
        names[i] = (name){classes[i], (int32_t)i};
    qsort(names, class_count, sizeof *names, by_text);
    reading r = {.names = names, .count = class_count, .out = out};
    return take_lines(&r, path, text, len, err);
}

mr_status mr_outcomes_read(const char *path, const char *const *classes, size_t class_count, mr_outcomes *out,
                           mr_error *err)
{
    MR_AUTO(mr_buf_free) mr_buf text = {0};
    if (access(path, F_OK) != 0 && errno == ENOENT)
        return MR_END;
    MR_TRY(mr_file_read_all(AT_FDCWD, path, MR_OUTCOMES_MAX, &text, err));
    return mr_outcomes_parse((const char *)text.data, text.len, path, classes, class_count, out, err);
}
