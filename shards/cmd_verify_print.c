/* cmd_verify_print.c - what verify found, as human-readable text: shard by shard, then totals, then what to do.
 * Invariant: a dataset of which a byte is not as the manifest says, or cannot be read, is never called intact. */
#include <stdio.h>

#include "base/hash.h"
#include "base/text.h"
#include "shards/cmd_verify.h"

enum { LINES_PER_SHARD = 20 };

static void print_problem(const mr_problem *p)
{
    printf("  %s%-9s%s ", mr_sgr(stdout, MR_RED), mr_problem_words[p->kind], mr_sgr(stdout, MR_PLAIN));
    if (p->sample != MR_NO_SAMPLE)
        printf("sample %llu%s", (unsigned long long)p->sample, p->source ? " " : ": ");
    if (p->source) {
        printf("(%s", mr_sgr(stdout, MR_BOLD));
        mr_term_text(stdout, p->source);
        printf("%s): ", mr_sgr(stdout, MR_PLAIN));
    }
    mr_term_text(stdout, p->detail);
    printf("\n");
}

static void print_problems(const mr_problems *list)
{
    for (size_t i = 0; i < list->count && i < LINES_PER_SHARD; i++)
        print_problem(&list->items[i]);
    if (list->count > LINES_PER_SHARD)
        printf("  ... and %zu more (--json lists all)\n", list->count - LINES_PER_SHARD);
}

enum { DECODE = 1u << MR_PROBLEM_DECODE, SEEK = 1u << MR_PROBLEM_SEEK, MANIFEST = 1u << MR_PROBLEM_MANIFEST };

/* Every record as ingested, only images that were never sound: nothing to repair. */
static bool only_undecodable(const mr_verify_shard *shard)
{
    return mr_verify_only(shard, DECODE | SEEK) && !mr_verify_only(shard, SEEK);
}

/* The shard's own files, not its seek index. */
static bool cannot_be_read(const mr_verify_shard *s)
{
    for (size_t i = 0; i < s->problems.count; i++)
        if (s->problems.items[i].refused && s->problems.items[i].kind != MR_PROBLEM_SEEK)
            return true;
    return false;
}

static const char *as_far(mr_verify_level level)
{
    return level == MR_VERIFY_QUICK ? " as far as checked" : "";
}

/* Undecodable samples are as ingested, so they are never called damaged. */
static const char *state_of(bool undecodable, bool unreadable)
{
    return undecodable ? "cannot be decoded" : unreadable ? "damaged or unreadable" : "damaged";
}

static void print_shard(const mr_verify_shard *s, mr_verify_level level)
{
    char damaged[32], samples[32], whole[32];
    mr_text_count(s->damaged, damaged);
    mr_text_count(s->samples, samples);
    mr_text_count(s->samples - s->damaged, whole);
    printf("%s%s%s: %s%s%s, ", mr_sgr(stdout, MR_BOLD), s->name, mr_sgr(stdout, MR_PLAIN), mr_sgr(stdout, MR_RED),
           only_undecodable(s) ? "contains undecodable images"
           : cannot_be_read(s) ? "cannot be read completely"
                               : "damaged",
           mr_sgr(stdout, MR_PLAIN));
    if (mr_verify_only(s, SEEK))
        printf("but the shard is intact%s: only its seek index is damaged\n", as_far(level));
    else if (level == MR_VERIFY_QUICK && s->damaged == 0)
        printf("%s samples not checked\n", samples);
    else if (s->index_only)
        printf("but its %s samples are intact: only the index is damaged\n", samples);
    else if (s->damaged == 0)
        printf("but its %s samples are intact\n", samples);
    else if (s->damaged >= s->samples)
        printf("all %s samples are lost or untrustworthy\n", samples);
    else
        printf("%s of %s samples %s, %s intact\n", damaged, samples, state_of(only_undecodable(s), cannot_be_read(s)),
               whole);
    print_problems(&s->problems);
}

static const char *what_was_read(const mr_verify_report *r, bool no_sha256)
{
    switch (r->level) {
    case MR_VERIFY_QUICK:
        return "sizes and indexes (--quick: no image byte was read)";
    case MR_VERIFY_FULL:
        break;
    case MR_VERIFY_DEEP:
        return "digests, indexes, every record, pages, metas and image headers";
    case MR_VERIFY_DECODE:
        return "digests, indexes, every record, pages, metas and every pixel";
    }
    return no_sha256 ? "XXH3 digests, indexes and every record" : "digests, indexes and every record";
}

static void print_totals(const mr_verify_report *r, const mr_verify_options *o)
{
    char shards[32], samples[32], bytes[32], seconds[32], rate[32], digest[65];
    mr_text_count(r->shard_count, shards);
    mr_text_count(r->samples, samples);
    mr_text_bytes(r->bytes, bytes);
    mr_text_seconds(r->seconds, seconds);
    mr_text_bytes(r->seconds > 0 ? (uint64_t)((double)r->bytes / r->seconds) : 0, rate);
    printf("  %s sample%s in %s shard%s of %zu split%s, %s\n", samples, r->samples == 1 ? "" : "s", shards,
           r->shard_count == 1 ? "" : "s", r->split_count, r->split_count == 1 ? "" : "s", bytes);
    printf("  checked %s", what_was_read(r, o->no_sha256));
    printf(" in %s", seconds);
    if (r->level != MR_VERIFY_QUICK)
        printf(", %s/s", rate);
    if (r->seeks)
        printf(", with %zu seek index%s", r->seeks, r->seeks == 1 ? "" : "es");
    printf("\n");
    if (r->have_digest) {
        mr_hex(r->digest, sizeof r->digest, digest);
        printf("  digest %s\n", digest);
    }
}

/* A seek index that matches its own hashes and yet is wrong is rebuilt only by force. */
static void print_next_seek(const mr_verify_report *r, const char *dir)
{
    bool seek = false, force = false;
    for (size_t i = 0; i < r->shard_count; i++)
        for (size_t k = 0; k < r->shards[i].problems.count; k++) {
            const mr_problem *p = &r->shards[i].problems.items[k];
            seek |= p->kind == MR_PROBLEM_SEEK;
            force |= p->kind == MR_PROBLEM_SEEK && p->sample != MR_NO_SAMPLE;
        }
    if (seek)
        printf("  next: millrace seek %s%s (until then the damaged seek index is not used)\n", force ? "--force " : "",
               dir);
}

typedef struct next_steps {
    bool restore, reindex, undecodable, refused, extra;
} next_steps;

static void add_next(const mr_verify_shard *s, mr_verify_level level, next_steps *w)
{
    bool unsound = only_undecodable(s), refused = cannot_be_read(s);
    w->reindex |= s->index_only;
    w->undecodable |= unsound;
    w->refused |= refused;
    w->restore |=
        !unsound && !refused && !s->index_only && level != MR_VERIFY_QUICK && !mr_verify_only(s, SEEK | MANIFEST);
}

static void print_next(const next_steps *w, const char *dir)
{
    if (w->restore)
        printf("  next: restore the damaged .mdb files from a copy, or ingest again%s\n",
               w->reindex ? "; 'millrace reindex' rebuilds the indexes" : "");
    else if (w->reindex)
        printf("  next: millrace reindex %s\n", dir);
    if (w->refused)
        printf(
            "  next: see why files cannot be read (permissions, a failing disk); restore what is lost from a copy, or "
            "ingest again\n");
    if (w->undecodable)
        printf(
            "  next: images that cannot be decoded are stored exactly as in the source; repair the source, or ingest "
            "with "
            "--check decode, which rejects them\n");
    if (w->extra)
        printf("  next: move away the files that the manifest does not list\n");
}

static size_t count(const mr_problems *list, mr_problem_kind kind)
{
    size_t n = 0;
    for (size_t i = 0; i < list->count; i++)
        n += list->items[i].kind == kind;
    return n;
}

/* All is as in the manifest; but it is not the dataset that --expect names, or there are extra files. */
static void print_whole_but(const mr_verify_report *r, const char *dir, const mr_verify_options *o)
{
    size_t extra = count(&r->problems, MR_PROBLEM_EXTRA), others = r->problems.count - extra;
    const next_steps w = {.extra = extra > 0};
    print_problems(&r->problems);
    printf("%s: intact%s, but %s%s", dir, as_far(r->level), mr_sgr(stdout, MR_RED),
           others ? "not the expected dataset" : "");
    if (extra)
        printf("%s%zu unexpected file%s", others ? ", and " : "", extra, extra == 1 ? "" : "s");
    printf("%s\n", mr_sgr(stdout, MR_PLAIN));
    print_next(&w, dir);
    print_totals(r, o);
}

static void print_damage(const mr_verify_report *r, const char *dir, const mr_verify_options *o)
{
    uint64_t samples = 0;
    size_t shards = 0;
    next_steps w = {.extra = count(&r->problems, MR_PROBLEM_EXTRA) > 0};
    char damaged[32], some[32], all[32];
    print_problems(&r->problems);
    for (size_t i = 0; i < r->shard_count; i++) {
        if (!r->shards[i].problems.count)
            continue;
        print_shard(&r->shards[i], r->level);
        add_next(&r->shards[i], r->level, &w);
        shards++;
        samples += r->shards[i].damaged;
    }
    bool unreadable = !w.restore && !w.reindex && w.refused;
    bool undecodable = !w.restore && !w.reindex && !w.refused && w.undecodable;
    const char *verdict = unreadable    ? "cannot be read completely"
                          : undecodable ? "contains undecodable images"
                                        : "damaged";
    printf("%s: %s%s%s", dir, mr_sgr(stdout, MR_RED), verdict, mr_sgr(stdout, MR_PLAIN));
    if (r->shard_count)
        printf(", %s of %s shard%s", mr_text_count(shards, some), mr_text_count(r->shard_count, all),
               r->shard_count == 1 ? "" : "s");
    if (r->shard_count && r->level == MR_VERIFY_QUICK)
        printf("; without --quick verify says which samples are damaged");
    else if (r->shard_count)
        printf(", %s sample%s %s; everything else is intact", mr_text_count(samples, damaged), samples == 1 ? "" : "s",
               state_of(undecodable, unreadable));
    printf("\n");
    print_next(&w, dir);
    print_next_seek(r, dir);
    if (r->shard_count)
        print_totals(r, o);
}

void mr_cmd_verify_print(const mr_verify_report *r, const char *dir, const mr_verify_options *o)
{
    for (size_t i = 0; i < r->warnings.count && !o->quiet; i++)
        mr_term_warn(r->warnings.items[i].detail);
    if (!mr_verify_whole(r)) {
        print_damage(r, dir, o);
    } else if (!mr_verify_ok(r)) {
        print_whole_but(r, dir, o);
    } else if (!o->quiet) {
        printf("%s: %sintact%s%s\n", dir, mr_sgr(stdout, MR_GREEN), mr_sgr(stdout, MR_PLAIN), as_far(r->level));
        print_totals(r, o);
    }
}
