/* shard_plan.c - which samples go into which shard, in which order; checks the limits on metas and shards.
 * Invariant: a pure function of the plan, the examined images, the shard size and the seed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/scope.h"
#include "ingest/pipeline/ingest_state.h"

enum { SHARD_SAMPLES_MAX = 1 << 20 };

typedef struct keyed {
    uint64_t key;
    uint32_t sample;
} keyed;

static int by_key(const void *a, const void *b)
{
    const keyed *x = a, *y = b;
    return x->key != y->key ? (x->key > y->key) - (x->key < y->key) : (x->sample > y->sample) - (x->sample < y->sample);
}

/* Sorts the samples by XXH3-64(seed, position), so that the order depends on the seed alone. */
static mr_status shuffle(uint32_t *samples, size_t count, uint64_t seed, mr_error *err)
{
    MR_AUTO(mr_scope_free) keyed *keys = mr_alloc(count, sizeof *keys);
    if (!keys)
        return mr_fail_memory(err, "shuffling");
    for (size_t i = 0; i < count; i++) {
        uint8_t bytes[16];
        mr_put64le(bytes, seed);
        mr_put64le(bytes + 8, i);
        keys[i] = (keyed){mr_hash64(bytes, sizeof bytes), samples[i]};
    }
    if (count)
        qsort(keys, count, sizeof *keys, by_key);
    for (size_t i = 0; i < count; i++)
        samples[i] = keys[i].sample;
    return MR_OK;
}

static uint64_t size_of(const mr_ingest *in, const mr_sample *s)
{
    return mr_source_entry(in->source, s->entry)->size;
}

static uint64_t all_bytes(const mr_ingest *in)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < in->plan.sample_count; i++)
        bytes += in->plan.samples[i].meta_bytes + size_of(in, &in->plan.samples[i]);
    return bytes;
}

/* Two neighboring shards together exceed the shard size, so a size at which half the allowed number of shards could
 * hold everything is large enough.  (Shards cut at SHARD_SAMPLES_MAX are too many only beyond 10^11 samples.) */
static void choose_size(mr_ingest *in)
{
    in->shard_size = in->options->shard_size;
    for (uint64_t bytes = all_bytes(in); !in->options->shard_size_given && bytes / in->shard_size >= MR_SHARDS_MAX / 2;)
        in->shard_size *= 2;
}

static mr_status too_many(const mr_ingest *in, uint32_t split, mr_error *err)
{
    return mr_fail(err, MR_MISUSE,
                   "--shard-size %llu: makes more than %d shards, the limit for split '%s'; use %lluMiB or more",
                   (unsigned long long)in->shard_size, MR_SHARDS_MAX, in->plan.splits[split].name,
                   (unsigned long long)(all_bytes(in) / (MR_SHARDS_MAX / 2) >> 20) + 1);
}

static mr_status begin_cut(mr_ingest *in, uint32_t split, size_t at, uint64_t first, size_t number, mr_error *err)
{
    if (number == MR_SHARDS_MAX)
        return too_many(in, split, err);
    if (!MR_GROW(in->cuts, in->cut_count, in->cut_capacity))
        return mr_fail_memory(err, "planning shards");
    mr_shard_plan *cut = &in->cuts[in->cut_count++];
    *cut = (mr_shard_plan){.split = split, .first = first, .begin = at};
    snprintf(cut->name, sizeof cut->name, "%s-%05zu", in->plan.splits[split].name, number);
    return MR_OK;
}

/* last_cut: by content, the number of the cut that last got it, from 1. */
static mr_status cut_split(mr_ingest *in, uint32_t split, size_t begin, size_t end, uint32_t *last_cut, mr_error *err)
{
    uint64_t bytes = 0;
    size_t number = 0;
    for (size_t at = begin; at < end; at++) {
        const mr_sample *s = &in->plan.samples[in->order[at]];
        const mr_examined *x = &in->examined[in->file_of[s->entry]];
        uint64_t size = size_of(in, s);
        mr_shard_plan *cut = in->cut_count && number ? &in->cuts[in->cut_count - 1] : NULL;
        uint64_t more = s->meta_bytes;
        if (!cut || last_cut[x->content] != in->cut_count)
            more += size;
        if (!cut || (cut->count && bytes + more > in->shard_size) || cut->count >= SHARD_SAMPLES_MAX) {
            MR_TRY(begin_cut(in, split, at, at - begin, number++, err));
            cut = &in->cuts[in->cut_count - 1];
            bytes = 0;
            more = s->meta_bytes + size;
        }
        if (last_cut[x->content] != in->cut_count) {
            cut->images++;
            cut->image_bytes += size;
        }
        last_cut[x->content] = (uint32_t)in->cut_count;
        bytes += more;
        cut->count++;
    }
    return MR_OK;
}

/* A class's name, a table's header or a caption may occur once in the source, but in the meta of every sample. */
mr_status mr_check_metas(const mr_ingest *in, mr_error *err)
{
    const mr_plan *plan = &in->plan;
    uint64_t ratio = in->options->for_source.max_ratio, metas = 0, bytes = 0;
    for (uint32_t e = 0; e < mr_source_count(in->source); e++)
        bytes += plan->used[e] ? mr_source_entry(in->source, e)->size : 0;
    uint64_t max = mr_source_max_expansion(bytes, ratio);
    for (size_t i = 0; i < plan->sample_count && metas <= max; i++) {
        const mr_sample *s = &plan->samples[i];
        metas += s->meta_bytes + (s->label >= 0 ? strlen(plan->classes[s->label].name) : 0);
    }
    if (metas <= max)
        return MR_OK;
    return mr_fail(err, MR_BAD_DATA,
                   "%s: its %zu samples repeat so much of its tables that their metas have more than %llu times the "
                   "bytes of all its files, like an archive bomb; --max-ratio N raises the limit",
                   in->options->sources[0], plan->sample_count, (unsigned long long)mr_source_ratio(ratio));
}

mr_status mr_plan_shards(mr_ingest *in, mr_error *err)
{
    const mr_plan *plan = &in->plan;
    choose_size(in);
    MR_AUTO(mr_scope_free) uint32_t *last_cut = mr_alloc(in->content_count, sizeof *last_cut);
    in->order = mr_alloc(plan->sample_count, sizeof *in->order);
    if (!last_cut || !in->order)
        return mr_fail_memory(err, "planning shards");
    for (uint32_t split = 0; split < plan->split_count; split++) {
        size_t begin = in->order_count;
        for (size_t i = 0; i < plan->sample_count; i++)
            if (plan->samples[i].split == split && !in->examined[in->file_of[plan->samples[i].entry]].why)
                in->order[in->order_count++] = (uint32_t)i;
        if (in->options->shuffle)
            MR_TRY(shuffle(in->order + begin, in->order_count - begin, in->options->seed, err));
        MR_TRY(cut_split(in, split, begin, in->order_count, last_cut, err));
    }
    in->shards = mr_alloc(in->cut_count, sizeof *in->shards);
    in->tallies = mr_alloc(in->cut_count, sizeof *in->tallies);
    if (!in->shards || !in->tallies)
        return mr_fail_memory(err, "planning shards");
    return mr_ranks_rank(in->ranks) == 0 ? mr_ingest_check_manifest(in, err) : MR_OK;
}
