/* oddity.c - images that decode with a harmless warning: counted per shard, reported in one line per kind.
 * Invariant: the report depends on the dataset alone, not on the threads and ranks that shared out its shards. */
#include <stdlib.h>
#include <string.h>

#include "shards/verify/parts.h"

typedef unsigned long long ull;

mr_status mr_verify_oddity_add(mr_verify_job *job, uint64_t row, uint32_t oddities, mr_error *err)
{
    for (int i = 0; i < MR_ODDITY_COUNT; i++) {
        mr_verify_oddity *oddity = &job->out->oddities[i];
        if (!(oddities >> i & 1) || oddity->count++)
            continue;
        const char *source = mr_verify_source(job, row);
        oddity->first = job->shard->first + row;
        oddity->source = source ? strdup(source) : NULL;
        if (source && !oddity->source)
            return mr_fail_memory(err, job->mdb_name);
    }
    return MR_OK;
}

void mr_verify_oddity_free(mr_verify_shard *s)
{
    for (int i = 0; i < MR_ODDITY_COUNT; i++) {
        free(s->oddities[i].source);
        s->oddities[i] = (mr_verify_oddity){0};
    }
}

void mr_verify_oddity_warn(mr_verify_report *r)
{
    for (int i = 0; i < MR_ODDITY_COUNT; i++) {
        const mr_verify_shard *first = NULL;
        uint64_t count = 0;
        for (size_t k = 0; k < r->shard_count; k++) {
            if (!count && r->shards[k].oddities[i].count)
                first = &r->shards[k];
            count += r->shards[k].oddities[i].count;
        }
        if (!first)
            continue;
        const char *source = first->oddities[i].source;
        mr_problem_add(
            &r->warnings, MR_PROBLEM_DECODE, first->name, first->oddities[i].first, source,
            "%s, in %llu image%s, first in %s, sample %llu%s%s%s: harmless, every decoder gives the same pixels",
            mr_oddity_words[i], (ull)count, count == 1 ? "" : "s", first->name, (ull)first->oddities[i].first,
            source ? " (" : "", source ? source : "", source ? ")" : "");
    }
}

json_t *mr_verify_oddity_json(const mr_verify_shard *s)
{
    json_t *list = json_array();
    for (int i = 0; list && i < MR_ODDITY_COUNT; i++) {
        const mr_verify_oddity *oddity = &s->oddities[i];
        if (json_array_append_new(
                list, json_pack("[I,I,s?]", (json_int_t)oddity->count, (json_int_t)oddity->first, oddity->source)) == 0)
            continue;
        json_decref(list);
        return NULL;
    }
    return list;
}

bool mr_verify_oddity_unjson(json_t *from, mr_verify_shard *s)
{
    if (json_array_size(from) != MR_ODDITY_COUNT)
        return false;
    for (size_t i = 0; i < MR_ODDITY_COUNT; i++) {
        json_int_t count, first;
        json_t *text;
        if (json_unpack(json_array_get(from, i), "[I,I,o]", &count, &first, &text) != 0)
            return false;
        const char *source = json_string_value(text); /* NULL: null */
        s->oddities[i] = (mr_verify_oddity){(uint64_t)count, (uint64_t)first, source ? strdup(source) : NULL};
        if (source && !s->oddities[i].source)
            return false;
    }
    return true;
}
