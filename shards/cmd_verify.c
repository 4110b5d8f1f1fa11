/* cmd_verify.c - `millrace verify DST`: is the dataset whole?
 * Invariant: under mpirun only rank 0 prints. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "commands.h"
#include "file.h"
#include "hash.h"
#include "text.h"
#include "verify.h"

enum { LINES_A_SHARD = 20 };

enum { OPT_QUICK = 256, OPT_DEEP, OPT_DECODE, OPT_NO_SHA256, OPT_EXPECT, OPT_MAX_PIXELS, OPT_JSON, OPT_JUNIT };

typedef struct request {
    const char *dir, *junit;
    bool json, leveled;
    mr_verify_options options;
} request;

static const struct argp_option options[] = {
    {"quick", OPT_QUICK, NULL, 0, "sizes, manifest and indexes only: seconds for terabytes, but no image byte is "
     "read", 1},
    {"deep", OPT_DEEP, NULL, 0, "also walk LMDB's pages and compare metas and image headers with the index", 1},
    {"decode", OPT_DECODE, NULL, 0, "also decode every pixel, and make seek indexes again to compare (implies "
     "--deep)", 1},
    {"no-sha256", OPT_NO_SHA256, NULL, 0, "XXH3 alone: finds every accident, ten times faster, but no forgery", 2},
    {"expect", OPT_EXPECT, "DIGEST", 0, "insist on this dataset digest (inspect prints it): pins the very dataset", 2},
    {"max-pixels", OPT_MAX_PIXELS, "N", 0, "with --decode: a larger picture is a problem (default 178956970)", 2},
    {"jobs", 'j', "N", 0, "threads (default: one a processor)", 3},
    {"json", OPT_JSON, NULL, 0, "print one JSON object with every problem", 4},
    {"junit", OPT_JUNIT, "FILE", 0, "also write JUnit XML, a test case a shard", 4},
    {"quiet", 'q', NULL, 0, "no progress, and no words when all is well", 4},
    {0},
};

static const char help[] =
    "Proves that a dataset is whole: every file's size and digest, every index row, every record's hash.  On damage, "
    "names the shards, samples and source files that are hit, and says what is whole.  Nothing is changed."
    "\vExamples:\n"
    "  millrace verify imagenette                       everything, all processors\n"
    "  millrace verify --quick imagenette               before a run\n"
    "  millrace verify --expect 3f9c... --junit verify.xml imagenette\n"
    "  mpirun -n 8 millrace verify imagenette           8 ranks share the shards\n\n"
    "Exit status: 0 whole; 1 damage found; 2 wrong use or no dataset there; 3 the system failed.";

static void set_level(request *q, mr_verify_level level, struct argp_state *state)
{
    if (q->leveled && q->options.level != level && (q->options.level == MR_VERIFY_QUICK || level == MR_VERIFY_QUICK))
        mr_cli_misuse(state, "--quick and --%s exclude each other",
                      mr_verify_level_words[level == MR_VERIFY_QUICK ? q->options.level : level]);
    if (!q->leveled || level > q->options.level)
        q->options.level = level;
    q->leveled = true;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    request *q = state->input;
    uint64_t n;
    uint8_t digest[32];
    switch (key) {
    case OPT_QUICK: set_level(q, MR_VERIFY_QUICK, state); break;
    case OPT_DEEP: set_level(q, MR_VERIFY_DEEP, state); break;
    case OPT_DECODE: set_level(q, MR_VERIFY_DECODE, state); break;
    case OPT_NO_SHA256: q->options.no_sha256 = true; break;
    case OPT_JSON: q->json = true; break;
    case OPT_JUNIT: q->junit = arg; break;
    case 'q': q->options.quiet = true; break;
    case OPT_EXPECT:
        if (!mr_unhex(arg, digest, sizeof digest))
            mr_cli_misuse(state, "--expect %s: a dataset digest is 64 hexadecimal digits, as inspect prints it", arg);
        q->options.expect = arg;
        break;
    case OPT_MAX_PIXELS:
        if (!mr_text_parse_u64(arg, &q->options.limits.max_pixels) || q->options.limits.max_pixels == 0)
            mr_cli_misuse(state, "--max-pixels %s: expected a number from 1", arg);
        break;
    case 'j':
        if (!mr_text_parse_u64(arg, &n) || n < 1 || n > 1024)
            mr_cli_misuse(state, "--jobs %s: expected a number from 1 to 1024", arg);
        q->options.jobs = (unsigned)n;
        break;
    default: return mr_cli_dataset(key, arg, state, &q->dir);
    }
    return 0;
}

/* ---- for people ----------------------------------------------------------------------------------------------- */

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
    for (size_t i = 0; i < list->count && i < LINES_A_SHARD; i++)
        print_problem(&list->items[i]);
    if (list->count > LINES_A_SHARD)
        printf("  ... and %zu more (--json lists all)\n", list->count - LINES_A_SHARD);
}

enum { DECODE = 1u << MR_PROBLEM_DECODE, SEEK = 1u << MR_PROBLEM_SEEK, MANIFEST = 1u << MR_PROBLEM_MANIFEST };

/* Every record as ingested, only pictures that were never sound: no damage to mend. */
static bool only_undecodable(const mr_verify_shard *shard)
{
    return mr_verify_only(shard, DECODE | SEEK) && !mr_verify_only(shard, SEEK);
}

static void print_shard(const mr_verify_shard *s, mr_verify_level level)
{
    char hit[32], samples[32], whole[32];
    mr_text_count(s->hit, hit);
    mr_text_count(s->samples, samples);
    mr_text_count(s->samples - s->hit, whole);
    printf("%s%s%s: %s%s%s, ", mr_sgr(stdout, MR_BOLD), s->name, mr_sgr(stdout, MR_PLAIN), mr_sgr(stdout, MR_RED),
           only_undecodable(s) ? "not sound" : "damaged", mr_sgr(stdout, MR_PLAIN));
    if (mr_verify_only(s, SEEK))
        printf("yet the shard is whole%s: only its seek index is hit\n",
               level == MR_VERIFY_QUICK ? " as far as was looked" : "");
    else if (level == MR_VERIFY_QUICK && s->hit == 0)
        printf("%s samples not looked at\n", samples);
    else if (s->index_only)
        printf("yet its %s samples are whole: only the index is hit\n", samples);
    else if (s->hit == 0)
        printf("yet its %s samples are whole\n", samples);
    else if (s->hit >= s->samples)
        printf("all %s samples are lost or suspect\n", samples);
    else
        printf("%s of %s samples hit, %s whole\n", hit, samples, whole);
    print_problems(&s->problems);
}

static const char *what_was_read(const mr_verify_report *r, bool no_sha256)
{
    switch (r->level) {
    case MR_VERIFY_QUICK: return "sizes and indexes (--quick: no image byte was read)";
    case MR_VERIFY_FULL: break;
    case MR_VERIFY_DEEP: return "digests, indexes, every record, pages, metas and image headers";
    case MR_VERIFY_DECODE: return "digests, indexes, every record, pages, metas and every pixel";
    }
    return no_sha256 ? "XXH3 digests, indexes and every record" : "digests, indexes and every record";
}

static void print_totals(const request *q, const mr_verify_report *r)
{
    char shards[32], samples[32], bytes[32], seconds[32], rate[32], digest[65];
    mr_text_count(r->shard_count, shards);
    mr_text_count(r->samples, samples);
    mr_text_bytes(r->bytes, bytes);
    mr_text_seconds(r->seconds, seconds);
    mr_text_bytes(r->seconds > 0 ? (uint64_t)((double)r->bytes / r->seconds) : 0, rate);
    printf("  %s sample%s in %s shard%s of %zu split%s, %s\n", samples, r->samples == 1 ? "" : "s", shards,
           r->shard_count == 1 ? "" : "s", r->split_count, r->split_count == 1 ? "" : "s", bytes);
    printf("  checked %s", what_was_read(r, q->options.no_sha256));
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

/* What to do about seek indexes: one that is whole by its own hashes and yet wrong is made again only by force. */
static void print_next_seek(const request *q, const mr_verify_report *r)
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
               q->dir);
}

static void print_next(const request *q, bool mend, bool reindex, bool undecodable)
{
    if (mend)
        printf("  next: bring the damaged .mdb files back from a copy, or ingest again%s\n",
               reindex ? "; 'millrace reindex' mends the indexes" : "");
    else if (reindex)
        printf("  next: millrace reindex %s\n", q->dir);
    if (undecodable)
        printf("  next: pictures that cannot be decoded are stored as the source had them; mend the source, or ingest with "
               "--check decode, which rejects them\n");
}

/* All as the manifest says, and only another manifest than --expect names. */
static void print_another(const request *q, const mr_verify_report *r)
{
    print_problems(&r->problems);
    printf("%s: whole%s, but %snot the dataset expected%s\n", q->dir,
           r->level == MR_VERIFY_QUICK ? " as far as was looked" : "", mr_sgr(stdout, MR_RED),
           mr_sgr(stdout, MR_PLAIN));
    print_totals(q, r);
}

static void print_report(const request *q, const mr_verify_report *r)
{
    uint64_t hit = 0;
    size_t damaged = 0;
    bool reindex = false, mend = false, undecodable = false;
    char count[32], shards[32], all[32];
    for (size_t i = 0; i < r->warnings.count && !q->options.quiet; i++)
        mr_term_warn(r->warnings.items[i].detail);
    if (mr_verify_ok(r)) {
        if (q->options.quiet)
            return;
        printf("%s: %swhole%s\n", q->dir, mr_sgr(stdout, MR_GREEN), mr_sgr(stdout, MR_PLAIN));
        print_totals(q, r);
        return;
    }
    if (mr_verify_whole(r)) {
        print_another(q, r);
        return;
    }
    print_problems(&r->problems);
    for (size_t i = 0; i < r->shard_count; i++) {
        if (!r->shards[i].problems.count)
            continue;
        print_shard(&r->shards[i], r->level);
        damaged++;
        hit += r->shards[i].hit;
        reindex |= r->shards[i].index_only;
        bool unsound = only_undecodable(&r->shards[i]);
        undecodable |= unsound;
        mend |= !unsound && !r->shards[i].index_only && r->level != MR_VERIFY_QUICK &&
                !mr_verify_only(&r->shards[i], SEEK | MANIFEST);
    }
    printf("%s: %s%s%s", q->dir, mr_sgr(stdout, MR_RED), undecodable && !mend && !reindex ? "not sound" : "damaged",
           mr_sgr(stdout, MR_PLAIN));
    if (r->shard_count)
        printf(", %s of %s shard%s", mr_text_count(damaged, shards), mr_text_count(r->shard_count, all),
               r->shard_count == 1 ? "" : "s");
    if (r->shard_count && r->level == MR_VERIFY_QUICK)
        printf("; without --quick verify says which samples are hit");
    else if (r->shard_count)
        printf(", %s sample%s hit; all else is whole", mr_text_count(hit, count), hit == 1 ? "" : "s");
    printf("\n");
    print_next(q, mend, reindex, undecodable);
    print_next_seek(q, r);
    if (r->shard_count)
        print_totals(q, r);
}

static mr_status print_json(const mr_verify_report *r, mr_error *err)
{
    json_t *json = NULL;
    mr_status status = mr_verify_json(r, &json, err);
    if (status == MR_OK)
        status = mr_json_print(json, err);
    json_decref(json);
    return status;
}

static mr_status write_junit(const request *q, const mr_verify_report *r, mr_error *err)
{
    mr_buf xml = {0};
    mr_status status = mr_verify_junit(r, q->dir, &xml, err);
    if (status == MR_OK)
        status = mr_file_publish(AT_FDCWD, q->junit, xml.data, xml.len, err);
    mr_buf_free(&xml);
    return status;
}

/* The verdict is printed whatever becomes of the file, and the other way round. */
static mr_status deliver(const request *q, const mr_verify_report *r, mr_error *err)
{
    mr_status written = q->junit ? write_junit(q, r, err) : MR_OK, printed = MR_OK;
    if (q->json)
        printed = print_json(r, written == MR_OK ? err : NULL);
    else
        print_report(q, r);
    return written == MR_OK ? printed : written;
}

int cmd_verify(int argc, char **argv)
{
    static const struct argp argp = {options, parse, "DST", help, NULL, NULL, NULL};
    request q = {.options = {.level = MR_VERIFY_FULL}};
    mr_verify_report *report = NULL;
    mr_ranks *ranks = NULL;
    mr_error err = {0};
    mr_cli_parse(&argp, argc, argv, &q);
    mr_status status = mr_ranks_begin(&ranks, &err);
    bool first = status != MR_OK || mr_ranks_rank(ranks) == 0;
    q.options.ranks = ranks;
    if (status == MR_OK)
        status = mr_verify(q.dir, &q.options, &report, &err);
    if (status == MR_OK && first)
        status = deliver(&q, report, &err);
    if (status != MR_OK && first)
        mr_term_error(&err);
    int code = status == MR_OK && first && !mr_verify_ok(report) ? 1 : mr_exit_code(status);
    mr_verify_report_free(report);
    mr_ranks_end(ranks);
    return code;
}
