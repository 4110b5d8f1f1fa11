/* stall.c - counting the ticks without beats, without work, and without an end of waiting.
 * Invariant: a rank that announced its end is never reported as stalled. */
#include "base/ranks/stall.h"

#include <stdlib.h>

mr_status mr_stalls_begin(mr_stalls *s, unsigned world, unsigned limit, mr_error *err)
{
    *s = (mr_stalls){.world = world, .limit = limit, .lines = mr_alloc(world, sizeof *s->lines)};
    return s->lines ? MR_OK : mr_fail_memory(err, "watching the ranks");
}

void mr_stalls_end(mr_stalls *s)
{
    free(s->lines);
    *s = (mr_stalls){0};
}

void mr_stalls_hear(mr_stalls *s, unsigned rank, const mr_beat *beat)
{
    mr_stall_line *line = &s->lines[rank];
    if (beat->waits || beat->work != line->last.work || beat->turns != line->last.turns)
        line->idle = 0;
    line->silent = 0;
    line->last = *beat;
}

static bool all_wait(const mr_stalls *s)
{
    uint64_t turns = 0;
    for (unsigned i = 0; i < s->world; i++) {
        if (!s->lines[i].last.waits || s->lines[i].last.over)
            return false;
        turns += s->lines[i].last.turns;
    }
    return turns == s->turns;
}

/* Whether one more tick makes this rank a stall; *early: or half of one. */
static mr_stall_kind age(mr_stall_line *line, unsigned limit, bool *early)
{
    *early = false;
    if (line->last.over)
        return MR_STALL_NONE;
    line->silent++;
    line->idle++;
    *early = line->silent == limit / 2 + 1 && line->silent <= limit;
    return line->silent > limit ? MR_STALL_SILENT : line->idle > limit ? MR_STALL_IDLE : MR_STALL_NONE;
}

mr_stall mr_stalls_tick(mr_stalls *s)
{
    uint64_t turns = 0;
    mr_stall found = {MR_STALL_NONE, 0, false}, soon = found;
    s->locked = all_wait(s) ? s->locked + 1 : 0;
    for (unsigned i = 0; i < s->world; i++) {
        bool early;
        mr_stall_kind kind = age(&s->lines[i], s->limit, &early);
        turns += s->lines[i].last.turns;
        if (kind == MR_STALL_SILENT ? found.kind != MR_STALL_SILENT
                                    : kind != MR_STALL_NONE && found.kind == MR_STALL_NONE)
            found = (mr_stall){kind, i, false};
        if (early && !soon.early)
            soon = (mr_stall){MR_STALL_SILENT, i, true};
    }
    s->turns = turns;
    if (found.kind == MR_STALL_NONE && s->locked > s->limit)
        found = (mr_stall){MR_STALL_LOCKED, 0, false};
    return found.kind != MR_STALL_NONE ? found : soon;
}

mr_status mr_stall_explain(const mr_stall *stall, const char *host, uint64_t seconds, mr_error *err)
{
    unsigned long long s = seconds;
    if (stall->early)
        return mr_fail(err, MR_SYSTEM, "rank %u on %s has not been heard from for %llu s; the run ends after %llu s",
                       stall->rank, host, (s + 1) / 2, s);
    if (stall->kind == MR_STALL_SILENT)
        return mr_fail(err, MR_SYSTEM,
                       "rank %u on %s has not been heard from for %llu s: it is stopped, or its host or the network is "
                       "down; check that host, then run the command again",
                       stall->rank, host, s);
    if (stall->kind == MR_STALL_IDLE)
        return mr_fail(
            err, MR_SYSTEM,
            "rank %u on %s has made no progress for %llu s and is not waiting for another rank: a disk or a device "
            "does not respond; check that host, then run the command again, with a longer --stall-timeout if it "
            "was only slow",
            stall->rank, host, s);
    return mr_fail(err, MR_SYSTEM,
                   "all ranks have been waiting for one another for %llu s: MPI's network does not deliver data; check "
                   "it, then run the command again, with a longer --stall-timeout if it was only slow",
                   s);
}
