/* report.c - problems as a list, and as JSON.
 * Invariant: every text in it is valid UTF-8. */
#include "shards/verify/parts.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

const char *const mr_problem_words[MR_PROBLEM_KIND_COUNT] = {
#define X(name, word, means) word,
    MR_PROBLEM_KINDS(X)
#undef X
};

const char *const mr_verify_level_words[] = {"quick", "full", "deep", "decode"};

void mr_problem_add(mr_problems *list, mr_problem_kind kind, const char *shard, uint64_t sample, const char *source,
                    const char *format, ...)
{
    mr_problem p = {.kind = kind, .sample = sample};
    va_list args;
    va_start(args, format);
    int n = vasprintf(&p.detail, format, args);
    va_end(args);
    if (n < 0)
        p.detail = NULL;
    p.shard = shard ? strdup(shard) : NULL;
    p.source = source ? strdup(source) : NULL;
    /* A name that the system's message quotes may hold any bytes. */
    if (p.detail && !mr_utf8_valid(p.detail, (size_t)n)) {
        mr_buf text = {0};
        mr_text_escape(&text, p.detail, (size_t)n);
        free(p.detail);
        p.detail = text.failed ? NULL : strdup(mr_buf_text(&text));
        mr_buf_free(&text);
    }
    if (!p.detail || (shard && !p.shard) || (source && !p.source) ||
        !MR_GROW(list->items, list->count, list->capacity)) {
        free(p.detail);
        free(p.shard);
        free(p.source);
        list->failed = true;
        return;
    }
    list->items[list->count++] = p;
}

void mr_problems_free(mr_problems *list)
{
    for (size_t i = 0; i < list->count; i++) {
        free(list->items[i].detail);
        free(list->items[i].shard);
        free(list->items[i].source);
    }
    free(list->items);
    *list = (mr_problems){0};
}

size_t mr_verify_problem_count(const mr_verify_report *r)
{
    size_t n = r->problems.count;
    for (size_t i = 0; i < r->shard_count; i++)
        n += r->shards[i].problems.count;
    return n;
}

bool mr_verify_ok(const mr_verify_report *r)
{
    return mr_verify_problem_count(r) == 0;
}

bool mr_verify_whole(const mr_verify_report *r)
{
    size_t others = 0;
    for (size_t i = 0; i < r->problems.count; i++)
        others += r->problems.items[i].kind == MR_PROBLEM_EXPECT || r->problems.items[i].kind == MR_PROBLEM_EXTRA;
    return mr_verify_problem_count(r) == others;
}

const mr_problem *mr_verify_refused(const mr_verify_report *r)
{
    for (size_t i = 0; i < r->shard_count; i++)
        for (size_t k = 0; k < r->shards[i].problems.count; k++)
            if (r->shards[i].problems.items[k].refused)
                return &r->shards[i].problems.items[k];
    return NULL;
}

bool mr_verify_only(const mr_verify_shard *s, unsigned kinds)
{
    for (size_t i = 0; i < s->problems.count; i++)
        if (!(kinds >> s->problems.items[i].kind & 1))
            return false;
    return true;
}

/* ---- JSON ----------------------------------------------------------------------------------------------------- */

/* A problem as the JSON report shows it. */
static json_t *problem_json(const mr_problem *p)
{
    json_t *sample = p->sample == MR_NO_SAMPLE ? json_null() : json_integer((json_int_t)p->sample);
    return json_pack("{s:s,s:s?,s:o,s:s?,s:s,s:o*}", "kind", mr_problem_words[p->kind], "shard", p->shard, "sample",
                     sample, "source", p->source, "detail", p->detail, "refused", p->refused ? json_true() : NULL);
}

bool mr_problem_unjson(const json_t *from, mr_problems *list)
{
    const char *kind = json_string_value(json_object_get(from, "kind"));
    const char *detail = json_string_value(json_object_get(from, "detail"));
    const json_t *sample = json_object_get(from, "sample");
    for (int k = 0; kind && detail && k < MR_PROBLEM_KIND_COUNT; k++) {
        if (strcmp(kind, mr_problem_words[k]) != 0)
            continue;
        mr_problem_add(list, (mr_problem_kind)k, json_string_value(json_object_get(from, "shard")),
                       json_is_integer(sample) ? (uint64_t)json_integer_value(sample) : MR_NO_SAMPLE,
                       json_string_value(json_object_get(from, "source")), "%s", detail);
        if (!list->failed)
            list->items[list->count - 1].refused = json_is_true(json_object_get(from, "refused"));
        return !list->failed;
    }
    return false;
}

bool mr_problems_json(const mr_problems *list, json_t *array)
{
    for (size_t i = 0; i < list->count; i++)
        if (json_array_append_new(array, problem_json(&list->items[i])) != 0)
            return false;
    return true;
}

mr_status mr_verify_json(const mr_verify_report *r, json_t **out, mr_error *err)
{
    char digest[65];
    json_t *problems = json_array(), *warnings = json_array(), *damaged = json_array();
    bool good = problems && warnings && damaged && mr_problems_json(&r->problems, problems) &&
                mr_problems_json(&r->warnings, warnings);
    uint64_t samples = 0;
    for (size_t i = 0; good && i < r->shard_count; i++) {
        const mr_verify_shard *s = &r->shards[i];
        samples += s->damaged;
        good = mr_problems_json(&s->problems, problems);
        if (good && s->problems.count)
            good = json_array_append_new(damaged, json_pack("{s:s,s:I,s:I,s:b,s:b}", "shard", s->name, "samples",
                                                            (json_int_t)s->samples, "hit", (json_int_t)s->damaged,
                                                            "index_only", s->index_only, "seek_only",
                                                            mr_verify_only(s, 1u << MR_PROBLEM_SEEK))) == 0;
    }
    mr_hex(r->digest, sizeof r->digest, digest);
    json_t *doc = !good
                      ? NULL
                      : json_pack("{s:b,s:b,s:I,s:I,s:I,s:I,s:s?,s:s,s:f,s:I,s:O,s:O,s:O}", "ok", mr_verify_ok(r),
                                  "whole", mr_verify_whole(r), "shards", (json_int_t)r->shard_count, "seek_indexes",
                                  (json_int_t)r->seeks, "records", (json_int_t)r->samples, "bytes",
                                  (json_int_t)r->bytes, "digest", r->have_digest ? digest : NULL, "level",
                                  mr_verify_level_words[r->level], "seconds", r->seconds, "records_hit",
                                  (json_int_t)samples, "damaged", damaged, "problems", problems, "warnings", warnings);
    json_decref(problems);
    json_decref(warnings);
    json_decref(damaged);
    if (!doc)
        return mr_fail_memory(err, "writing JSON");
    *out = doc;
    return MR_OK;
}
