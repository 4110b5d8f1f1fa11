/* ranks.c - the findings of all ranks, gathered on rank 0.
 *
 * Each rank sends one line of JSON:
 *      [[problem of the dataset, ...], [[shard number, samples damaged, index only, seconds, [problem, ...], oddities],
 * ...]] oddities: [[images, first sample, source], ...], one an mr_oddity
 *
 * Invariant: shard i is taken from rank i % world only. */
#include "shards/verify/parts.h"
#include "base/scope.h"

#include <stdlib.h>
#include <string.h>

static json_t *pack_problems(const mr_problems *problems)
{
    json_t *list = json_array();
    if (list && mr_problems_json(problems, list))
        return list;
    json_decref(list);
    return NULL;
}

static json_t *pack_shard(const mr_verify_shard *s, size_t number)
{
    return json_pack("[I,I,b,f,o,o]", (json_int_t)number, (json_int_t)s->damaged, s->index_only, s->seconds,
                     pack_problems(&s->problems), mr_verify_oddity_json(s));
}

static mr_status pack(const mr_ranks *ranks, const mr_verify_report *r, mr_buf *out, mr_error *err)
{
    json_t *shards = json_array();
    bool good = shards != NULL;
    for (size_t i = mr_ranks_rank(ranks); good && i < r->shard_count; i += mr_ranks_world(ranks))
        good = json_array_append_new(shards, pack_shard(&r->shards[i], i)) == 0;
    json_t *all = good ? json_pack("[o,O]", pack_problems(&r->problems), shards) : NULL;
    char *text = all ? json_dumps(all, JSON_COMPACT) : NULL;
    if (text) {
        mr_buf_add_text(out, text);
        mr_buf_add(out, "\n", 1);
    }
    good = text && !out->failed;
    free(text);
    json_decref(all);
    json_decref(shards);
    return good ? MR_OK : mr_fail_memory(err, "gathering problems");
}

/* What all ranks found alike is reported once. */
static bool unpack_problem(mr_verify_report *r, const json_t *entry)
{
    const char *detail = json_string_value(json_object_get(entry, "detail"));
    for (size_t i = 0; detail && i < r->problems.count; i++)
        if (strcmp(r->problems.items[i].detail, detail) == 0)
            return true;
    return mr_problem_unjson(entry, &r->problems);
}

static bool unpack_shard(const mr_ranks *ranks, mr_verify_report *r, json_t *entry)
{
    json_int_t n, damaged;
    int index_only;
    double seconds;
    json_t *list, *oddities, *p;
    size_t i;
    if (json_unpack(entry, "[I,I,b,F,o,o]", &n, &damaged, &index_only, &seconds, &list, &oddities) != 0 || n < 0 ||
        (size_t)n >= r->shard_count)
        return false;
    if ((size_t)n % mr_ranks_world(ranks) == mr_ranks_rank(ranks))
        return true;
    mr_verify_shard *s = &r->shards[n];
    s->damaged = (uint64_t)damaged;
    s->index_only = index_only;
    s->seconds = seconds;
    json_array_foreach(list, i, p) if (!mr_problem_unjson(p, &s->problems)) return false;
    return mr_verify_oddity_unjson(oddities, s);
}

static bool unpack_rank(const mr_ranks *ranks, mr_verify_report *r, json_t *doc)
{
    json_t *entry;
    size_t i;
    bool good = json_is_array(json_array_get(doc, 0)) && json_is_array(json_array_get(doc, 1));
    json_array_foreach(json_array_get(doc, 0), i, entry) good = good && unpack_problem(r, entry);
    json_array_foreach(json_array_get(doc, 1), i, entry) good = good && unpack_shard(ranks, r, entry);
    return good;
}

static mr_status unpack(const mr_ranks *ranks, mr_verify_report *r, const mr_buf *all, mr_error *err)
{
    const char *at = (const char *)all->data, *end = at + all->len;
    mr_status status = MR_OK;
    while (status == MR_OK && at < end) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        json_t *doc = NULL;
        if (!stop)
            stop = end;
        status = mr_json_parse(at, (size_t)(stop - at), "another rank", &doc, err);
        if (status == MR_OK && !unpack_rank(ranks, r, doc))
            status = mr_fail(err, MR_SYSTEM, "mpirun: the findings of another rank cannot be parsed");
        json_decref(doc);
        at = stop + 1;
    }
    return status;
}

mr_status mr_verify_gather(mr_ranks *ranks, mr_verify_report *r, mr_error *err)
{
    MR_AUTO(mr_buf_free) mr_buf mine = {0}, all = {0};
    MR_TRY(mr_ranks_agree(ranks, pack(ranks, r, &mine, err), err));
    MR_TRY(mr_ranks_gather(ranks, &mine, &all, NULL, err));
    return mr_ranks_rank(ranks) == 0 ? unpack(ranks, r, &all, err) : MR_OK;
}
