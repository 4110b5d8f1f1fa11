/* divide.c - --split: the samples of a source without splits are divided among several.
 * Invariant: a pure function of the images' bytes, names and labels, the shares and the pattern; a group, files that
 * show the same image or have the same key, is never divided.
 *
 *      equal bytes, looks, NAME.rf.*, --group-pattern --> groups --> of each class, in the order of their hashes:
 *
 *      |----------- train, 0.8 -----------|-- val, 0.1 --|-- test, 0.1 --|
 *        r     1+r    2+r    3+r   ...                             n-1+r        r: a part of 1, from the class's name
 *
 * So a class of n samples without groups has within one of what its share demands, classes of one sample go to splits
 * in proportion, and files that are added move only those that are near a border. */
#include <regex.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/scope.h"
#include "base/text.h"
#include "ingest/leaks/leaks.h"
#include "ingest/leaks/leak_parts.h"

enum { ROUNDS = 16 }; /* rounds of the search for images that look alike; what is left then is reported as a leak */

typedef struct key {
    uint64_t hash;
    uint32_t sample;
} key;

typedef struct group {
    uint64_t hash;         /* the least of its keys: places it in its class */
    uint32_t first, count; /* its first sample, and how many it has */
    int32_t label;         /* the label of its first image */
} group;

typedef struct division {
    uint32_t *parent; /* by sample: union-find; the root is the first sample of its group */
    uint64_t *hash;   /* by sample: a hash of its key or, without one, of its bytes */
    key *keys;
    group *groups;
    size_t group_count;
} division;

static uint32_t root_of(division *d, uint32_t sample)
{
    while (d->parent[sample] != sample)
        sample = d->parent[sample] = d->parent[d->parent[sample]];
    return sample;
}

static void join(division *d, uint32_t a, uint32_t b)
{
    a = root_of(d, a);
    b = root_of(d, b);
    d->parent[a > b ? a : b] = a > b ? b : a;
}

static bool is_good(const mr_ingest *in, const mr_sample *s)
{
    return !in->examined[in->file_of[s->entry]].why;
}

/* ---- keys -------------------------------------------------------------------------------------------------------- */

/* What --group-pattern matches, or its first group: the rest of the path does not count. */
static bool match(const regex_t *pattern, const mr_entry *e, uint64_t *hash, mr_error *err)
{
    regmatch_t found[2];
    MR_AUTO(mr_scope_free) char *path = strndup(e->path, e->path_len);
    if (!path) {
        mr_fail_memory(err, "dividing");
        return false;
    }
    if (regexec(pattern, path, 2, found, 0) != 0)
        return false;
    const regmatch_t *part = &found[pattern->re_nsub && found[1].rm_so >= 0 ? 1 : 0];
    *hash = mr_hash64(path + part->rm_so, (size_t)(part->rm_eo - part->rm_so));
    return true;
}

/* The part of the path that files made from one image share: the layout's, or all before ".rf.". */
static bool shared_name(const mr_ingest *in, const mr_sample *s, uint64_t *hash)
{
    const mr_entry *e = mr_source_entry(in->source, s->entry);
    const char *mark = s->group_len ? NULL : memmem(e->path, e->path_len, ".rf.", 4);
    if (!s->group_len && !mark)
        return false;
    *hash =
        s->group_len ? mr_hash64(e->path + s->group_at, s->group_len) : mr_hash64(e->path, (size_t)(mark - e->path));
    return true;
}

static int by_hash(const void *a, const void *b)
{
    const key *x = a, *y = b;
    return x->hash != y->hash ? (x->hash > y->hash) - (x->hash < y->hash)
                              : (x->sample > y->sample) - (x->sample < y->sample);
}

/* Samples of equal keys become one group. */
static void join_keys(division *d, size_t count)
{
    if (count)
        qsort(d->keys, count, sizeof *d->keys, by_hash);
    for (size_t i = 1; i < count; i++)
        if (d->keys[i].hash == d->keys[i - 1].hash)
            join(d, d->keys[i - 1].sample, d->keys[i].sample);
}

static mr_status join_by_names(mr_ingest *in, division *d, const regex_t *pattern, mr_error *err)
{
    size_t names = 0, matched = 0;
    err->status = MR_OK;
    for (uint32_t i = 0; i < in->plan.sample_count; i++) {
        const mr_sample *s = &in->plan.samples[i];
        if (is_good(in, s) && shared_name(in, s, &d->hash[i]))
            d->keys[names++] = (key){d->hash[i], i};
    }
    join_keys(d, names);
    for (uint32_t i = 0; pattern && i < in->plan.sample_count; i++) {
        const mr_sample *s = &in->plan.samples[i];
        if (is_good(in, s) && match(pattern, mr_source_entry(in->source, s->entry), &d->hash[i], err))
            d->keys[matched++] = (key){d->hash[i], i};
    }
    MR_TRY(err->status);
    join_keys(d, matched);
    if (pattern && !matched)
        return mr_fail(err, MR_MISUSE, "--group-pattern %s: matches none of the images' paths",
                       in->options->group_pattern);
    return MR_OK;
}

/* ---- groups ------------------------------------------------------------------------------------------------------ */

static mr_status join_by_content(mr_ingest *in, division *d, mr_error *err)
{
    MR_AUTO(mr_scope_free) uint32_t *first = mr_alloc(in->content_count, sizeof *first);
    if (!first)
        return mr_fail_memory(err, "dividing");
    memset(first, 0xff, in->content_count * sizeof *first);
    for (uint32_t i = 0; i < in->plan.sample_count; i++) {
        const mr_examined *x = &in->examined[in->file_of[in->plan.samples[i].entry]];
        if (x->why)
            continue;
        d->hash[i] = mr_hash64(x->hash128, sizeof x->hash128);
        if (first[x->content] == UINT32_MAX)
            first[x->content] = i;
        else
            join(d, first[x->content], i);
    }
    return MR_OK;
}

static void make_groups(const mr_ingest *in, division *d)
{
    d->group_count = 0;
    for (uint32_t i = 0; i < in->plan.sample_count; i++)
        d->keys[i].sample = UINT32_MAX; /* by root: its group */
    for (uint32_t i = 0; i < in->plan.sample_count; i++) {
        uint32_t root = root_of(d, i);
        if (!is_good(in, &in->plan.samples[i]))
            continue;
        if (d->keys[root].sample == UINT32_MAX) {
            d->keys[root].sample = (uint32_t)d->group_count;
            d->groups[d->group_count++] = (group){d->hash[i], i, 0, in->plan.samples[i].label};
        }
        group *g = &d->groups[d->keys[root].sample];
        g->count++;
        g->hash = d->hash[i] < g->hash ? d->hash[i] : g->hash;
    }
}

static int by_class(const void *a, const void *b)
{
    const group *x = a, *y = b;
    if (x->label != y->label)
        return (x->label > y->label) - (x->label < y->label);
    return x->hash != y->hash ? (x->hash > y->hash) - (x->hash < y->hash)
                              : (x->first > y->first) - (x->first < y->first);
}

/* ---- splits ------------------------------------------------------------------------------------------------------ */

static uint32_t share_at(const mr_ingest_options *o, double place)
{
    uint32_t split = 0;
    double end = o->shares[0].share;
    while (place >= end && split + 1 < o->share_count)
        end += o->shares[++split].share;
    return split;
}

/* A part of 1 that depends on the class's name. */
static double offset_of(const mr_plan *plan, int32_t label)
{
    const char *name = label < 0 ? "" : plan->classes[label].name;
    return (double)(mr_hash64(name, strlen(name)) >> 11) * 0x1p-53;
}

static void place_groups(const mr_ingest *in, division *d)
{
    for (size_t from = 0, end; from < d->group_count; from = end) {
        int32_t label = d->groups[from].label;
        double all = 0, before = 0, offset = offset_of(&in->plan, label);
        for (end = from; end < d->group_count && d->groups[end].label == label; end++)
            all += d->groups[end].count;
        for (size_t i = from; i < end; i++) {
            group *g = &d->groups[i];
            in->plan.samples[g->first].split = share_at(in->options, (before + offset * g->count) / all);
            before += g->count;
        }
    }
}

/* The source's name of its only split stays known. */
static mr_status make_splits(mr_ingest *in, mr_error *err)
{
    const mr_ingest_options *o = in->options;
    mr_plan *plan = &in->plan;
    mr_plan_split *splits = mr_alloc(o->share_count, sizeof *splits);
    if (!splits)
        return mr_fail_memory(err, "dividing");
    for (size_t i = 0; i < o->share_count; i++) {
        splits[i] = plan->splits[0];
        memcpy(splits[i].name, o->shares[i].name, sizeof splits[i].name);
    }
    free(plan->splits);
    plan->splits = splits;
    plan->split_count = plan->split_capacity = o->share_count;
    return MR_OK;
}

/* Gives every sample a split. */
static void assign(mr_ingest *in, division *d)
{
    mr_sample *samples = in->plan.samples;
    make_groups(in, d);
    if (d->group_count)
        qsort(d->groups, d->group_count, sizeof *d->groups, by_class);
    place_groups(in, d);
    for (uint32_t i = 0; i < in->plan.sample_count; i++)
        samples[i].split = samples[root_of(d, i)].split; /* rejected ones are alone, and not stored */
}

static mr_status report(mr_ingest *in, const division *d, mr_error *err)
{
    const mr_ingest_options *o = in->options;
    uint64_t counts[MR_SHARES_MAX] = {0}, kept = 0, groups = 0;
    char number[32], all[32];
    for (size_t i = 0; i < d->group_count; i++) {
        const group *g = &d->groups[i];
        counts[in->plan.samples[g->first].split] += g->count;
        groups += g->count > 1;
        kept += g->count > 1 ? g->count : 0;
    }
    for (size_t i = 0; i < o->share_count; i++)
        if (!counts[i] && d->group_count)
            return mr_fail(
                err, MR_BAD_DATA,
                "--split: %s would get none of the %zu images, or groups of images, and nothing was written; "
                "give it a larger share, or leave it out",
                o->shares[i].name, d->group_count);
    mr_note_add(
        &in->notes, MR_NOTE_INFO, "", 0, 0,
        "divided by --split, class by class; %s samples in %s groups (equal bytes, looks, names%s) stay together",
        mr_text_count(kept, number), mr_text_count(groups, all), o->group_pattern ? ", --group-pattern" : "");
    return make_splits(in, err);
}

/* ---- all of it --------------------------------------------------------------------------------------------------- */

static mr_status compile(const char *text, regex_t *pattern, mr_error *err)
{
    if (regcomp(pattern, text, REG_EXTENDED) == 0)
        return MR_OK;
    return mr_fail(err, MR_MISUSE, "--group-pattern %s: not a valid regular expression", text);
}

mr_status mr_divide_check(const mr_ingest *in, mr_error *err)
{
    const mr_plan *plan = &in->plan;
    regex_t pattern;
    if (!in->options->share_count)
        return MR_OK;
    if (in->options->group_pattern) {
        MR_TRY(compile(in->options->group_pattern, &pattern, err));
        regfree(&pattern);
    }
    if (plan->split_count == 1)
        return MR_OK;
    return mr_fail(
        err, MR_MISUSE,
        "--split divides sources without splits, and this one has %s and %s; --split-map renames splits, or leaves "
        "them out",
        plan->splits[0].name, plan->splits[1].name);
}

static mr_status begin(mr_ingest *in, division *d, mr_error *err)
{
    size_t count = in->plan.sample_count;
    d->parent = mr_alloc(count, sizeof *d->parent);
    d->hash = mr_alloc(count, sizeof *d->hash);
    d->keys = mr_alloc(count, sizeof *d->keys);
    d->groups = mr_alloc(count, sizeof *d->groups);
    if (!d->parent || !d->hash || !d->keys || !d->groups)
        return mr_fail_memory(err, "dividing");
    for (uint32_t i = 0; i < count; i++)
        d->parent[i] = i;
    return join_by_content(in, d, err);
}

/* False: they were in one group before. */
static bool join_alike(const mr_ingest *in, division *d, const uint32_t *alike)
{
    bool more = false;
    for (uint32_t i = 0; i < in->plan.sample_count; i++) {
        more = more || root_of(d, i) != root_of(d, alike[i]);
        join(d, i, alike[i]);
    }
    return more;
}

/* The search names one image that another looks like, and prefers those of earlier splits: so it is repeated until it
 * finds none across a border. */
static mr_status divide(mr_ingest *in, division *d, const regex_t *pattern, mr_error *err)
{
    MR_AUTO(mr_scope_free) uint32_t *alike = mr_alloc(in->plan.sample_count, sizeof *alike);
    mr_status status = alike ? begin(in, d, err) : mr_fail_memory(err, "dividing");
    if (status == MR_OK)
        status = join_by_names(in, d, pattern, err);
    MR_TRY(mr_ranks_agree(in->ranks, status, err));
    bool more = true;
    for (int round = 0; more && round < ROUNDS; round++) {
        MR_TRY(mr_leak_near_links(in, alike, err));
        more = join_alike(in, d, alike);
        assign(in, d);
    }
    return mr_ranks_agree(in->ranks, report(in, d, err), err);
}

mr_status mr_divide(mr_ingest *in, mr_error *err)
{
    division d = {0};
    regex_t pattern;
    const char *text = in->options->group_pattern;
    if (!in->options->share_count)
        return MR_OK;
    if (text)
        MR_TRY(compile(text, &pattern, err));
    mr_status status = divide(in, &d, text ? &pattern : NULL, err);
    if (text)
        regfree(&pattern);
    free(d.parent);
    free(d.hash);
    free(d.keys);
    free(d.groups);
    return status;
}
