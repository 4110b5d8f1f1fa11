/* formats.c - what the formats for CI services share.
 * Invariant: the order of the problems is that of the report. */
#include "shards/verify/formats.h"

#include <string.h>

#include "base/hash.h"
#include "base/text.h"

static void each(const mr_problems *list, bool warning, void (*take)(void *, const mr_problem *, bool), void *context)
{
    for (size_t i = 0; i < list->count; i++)
        take(context, &list->items[i], warning);
}

void mr_verify_each(const mr_verify_report *r, void (*take)(void *context, const mr_problem *p, bool warning),
                    void *context)
{
    each(&r->problems, false, take, context);
    for (size_t i = 0; i < r->shard_count; i++)
        each(&r->shards[i].problems, false, take, context);
    each(&r->warnings, true, take, context);
}

void mr_problem_text(const mr_problem *p, mr_buf *out)
{
    if (p->sample != MR_NO_SAMPLE)
        mr_buf_printf(out, "sample %llu%s", (unsigned long long)p->sample, p->source ? " " : ": ");
    if (p->source)
        mr_buf_printf(out, "(%s): ", p->source);
    mr_buf_add_text(out, p->detail);
}

void mr_problem_place(const mr_problem *p, const char *dataset, mr_buf *out)
{
    while (strncmp(dataset, "./", 2) == 0)
        dataset += 2;
    size_t len = strlen(dataset);
    while (len > 1 && dataset[len - 1] == '/')
        len--;
    mr_text_escape(out, dataset, len);
    if (p->shard)
        mr_buf_printf(out, "/%s.mdb", p->shard);
    else
        mr_buf_add_text(out, "/manifest.json");
}

uint64_t mr_problem_fingerprint(const mr_problem *p)
{
    uint64_t hash = mr_hash64_seeded(p->detail, strlen(p->detail), p->sample + (uint64_t)p->kind);
    if (p->shard)
        hash = mr_hash64_seeded(p->shard, strlen(p->shard), hash);
    return hash;
}
