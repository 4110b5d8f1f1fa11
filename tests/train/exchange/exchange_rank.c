/* exchange_rank.c - one rank of what test_exchange.c starts under mpirun.
 * Invariant: every gradient is a function of rank, update and element, so each rank knows what the sum must be.
 *
 *      exchange_rank sums COUNT:RANKS_A_HOST:BUCKET_BYTES[:apart][:bf16]...
 *          both kinds, integers and fractions, checked; rank 0 prints for each one number over the bits of all sums.
 *          apart: rank 1 cannot open the others' memory; bf16: between hosts in halves
 *      exchange_rank overlaps COUNT:RANKS_A_HOST:BUCKET_BYTES[:bf16]...
 *          between hosts, pieces become sums while the rank does not call the exchange
 *      exchange_rank fails WHEN RANK RANKS_A_HOST
 *          that rank fails in the third update: status, kill, kill-late, exit or leave; all must end
 *      exchange_rank stalls HOW RANK RANKS_A_HOST
 *          that rank is stopped (stop), or sleeps before (sleep) or in the backward pass (sleep-late) of the third
 * update; all must end within some seconds exchange_rank lacks RANK that rank has no memory for what the others send;
 * all must learn of it and go on */
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <xxhash.h>

#include "base/bf16.h"
#include "base/random.h"
#include "train/exchange/parts.h"

enum { UPDATES = 4 };

typedef struct run {
    mr_ranks *ranks;
    unsigned rank, world;
    uint64_t count, bucket;
    unsigned ranks_a_host;
    bool apart, halves;
} run;

#define MUST(what)                                                                                                     \
    do {                                                                                                               \
        if (!(what)) {                                                                                                 \
            fprintf(stderr, "exchange_rank:%d: rank %u: failed: %s\n", __LINE__, r->rank, #what);                      \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

static uint64_t mix(uint64_t rank, uint64_t update, uint64_t at)
{
    uint64_t x = (rank + 1) * 0x9E3779B97F4A7C15u ^ (update + 1) * 0xC2B2AE3D27D4EB4Fu ^ (at + 1) * 0x165667B19E3779F9u;
    x = (x ^ x >> 31) * 0xBF58476D1CE4E5B9u;
    return x ^ x >> 29;
}

/* Even updates: whole numbers with exact sums; odd ones: fractions over six powers of ten, whose sums are rounded. */
static float value(uint64_t rank, uint64_t update, uint64_t at)
{
    uint64_t x = mix(rank, update, at);
    if (update % 2 == 0)
        return (float)((int)(x % 2001) - 1000);
    return ((float)(x >> 40) - (float)(1 << 23)) * powf(10, -(float)(x % 7));
}

static void nap(long ns)
{
    nanosleep(&(struct timespec){.tv_nsec = ns}, NULL);
}

/* Fills the gradients from the end as a backward pass does, reporting at random places. */
static void fill(const run *r, mr_exchange *x, uint64_t update, mr_random *chance)
{
    float *g = mr_exchange_gradients(x);
    for (uint64_t to = r->count; to > 0;) {
        uint64_t n = 1 + mr_random_below(chance, r->count / 3 + 1);
        uint64_t from = to > n ? to - n : 0;
        for (uint64_t i = from; i < to; i++)
            g[i] = value(r->rank, update, i);
        if (mr_random_below(chance, 3))
            mr_exchange_ready(x, from);
        if (!mr_random_below(chance, 3))
            nap((long)mr_random_below(chance, 300000));
        to = from;
    }
}

/* ((host 0) + (host 1)), each ((rank 0 + rank 1) + ...): what it must be for one host or two; in halves for any
 * number. */
static float expected(const run *r, unsigned a_host, uint64_t update, uint64_t at)
{
    float all = 0;
    for (unsigned host = 0; host < r->world; host += a_host) {
        float sum = value(host, update, at);
        for (unsigned rank = host + 1; rank < r->world && rank < host + a_host; rank++)
            sum += value(rank, update, at);
        sum = r->halves && a_host < r->world ? mr_bf16_float(mr_bf16_of(sum)) : sum;
        all = host ? all + sum : sum;
    }
    return r->halves && a_host < r->world ? mr_bf16_float(mr_bf16_of(all)) : all;
}

static void check(const run *r, const float *sum, uint64_t update)
{
    unsigned a_host = r->apart ? 1 : r->ranks_a_host ? r->ranks_a_host : r->world;
    bool exact = update % 2 == 0 || r->halves || (r->world + a_host - 1) / a_host <= 2;
    for (uint64_t i = 0; i < r->count; i++) {
        float e = expected(r, a_host, update, i);
        MUST(exact ? memcmp(&sum[i], &e, sizeof e) == 0 : fabsf(sum[i] - e) <= 1e-6f * 8e6f * (float)r->world);
    }
}

static void check_numbers(const run *r, mr_exchange *x, uint64_t update)
{
    mr_error err = {0};
    double mine[MR_EXCHANGE_NUMBERS], sums[MR_EXCHANGE_NUMBERS];
    for (unsigned k = 0; k < MR_EXCHANGE_NUMBERS; k++)
        mine[k] = 0.1 * (r->rank + 1) / (double)(update + k + 1);
    MUST(mr_exchange_begin(x, MR_OK, mine, MR_EXCHANGE_NUMBERS, sums, &err) == MR_OK);
    for (unsigned k = 0; k < MR_EXCHANGE_NUMBERS; k++) {
        double e = 0;
        for (unsigned rank = 0; rank < r->world; rank++)
            e += 0.1 * (rank + 1) / (double)(update + k + 1);
        MUST(memcmp(&e, &sums[k], sizeof e) == 0);
    }
}

/* Containers limit /dev/shm, where MPI's shared windows are files, to 64 MB; a memfd has no such limit. */
static bool gradients_are_in_a_memfd(const mr_exchange_options *o, mr_exchange *x)
{
    unsigned long long from, to, at = (uintptr_t)mr_exchange_gradients(x);
    char line[512];
    bool found = false;
    FILE *maps = fopen("/proc/self/maps", "re");
    while (maps && fgets(line, sizeof line, maps))
        found = found || (strstr(line, "/memfd:millrace") && sscanf(line, "%llx-%llx", &from, &to) == 2 && from <= at &&
                          to - at >= o->count * sizeof(float));
    if (maps)
        fclose(maps);
    return found;
}

static mr_exchange *open_kind(const run *r, mr_exchange_kind kind)
{
    const mr_exchange_options o = {.kind = kind,
                                   .count = r->count,
                                   .bucket_bytes = r->bucket,
                                   .halves = r->halves,
                                   .ranks_a_host = r->ranks_a_host};
    struct rlimit old, none;
    mr_exchange *x = NULL;
    mr_error err = {0};
    getrlimit(RLIMIT_NOFILE, &old);
    none = old;
    none.rlim_cur = 3;
    if (r->apart && r->rank == 1)
        setrlimit(RLIMIT_NOFILE, &none);
    mr_status status = mr_exchange_open(r->ranks, &o, &x, &err);
    setrlimit(RLIMIT_NOFILE, &old);
    if (status != MR_OK)
        fprintf(stderr, "exchange_rank: %s\n", err.text);
    MUST(status == MR_OK);
    MUST((uintptr_t)mr_exchange_gradients(x) % 64 == 0);
    MUST(r->world == 1 || r->ranks_a_host || r->apart || gradients_are_in_a_memfd(&o, x));
    for (uint64_t i = 0; i < r->count; i++)
        MUST(mr_exchange_gradients(x)[i] == 0);
    return x;
}

static void run_sums(const run *r)
{
    XXH64_hash_t hash[2] = {0, 0};
    mr_error err = {0};
    for (int kind = MR_EXCHANGE_FLAT; kind <= MR_EXCHANGE_BUCKETS; kind++) {
        mr_random chance;
        mr_random_stream(&chance, (uint64_t)kind, r->rank);
        mr_exchange *x = open_kind(r, (mr_exchange_kind)kind);
        for (uint64_t update = 0; update < UPDATES; update++) {
            const float *sum = NULL;
            check_numbers(r, x, update);
            fill(r, x, update, &chance);
            MUST(mr_exchange_finish(x, &sum, &err) == MR_OK);
            check(r, sum, update);
            hash[kind] = XXH64(sum, r->count * sizeof *sum, hash[kind]);
            check_numbers(r, x, update + 100); /* a begin without an update */
        }
        MUST(mr_exchange_seconds(x) > 0);
        mr_exchange_free(x);
    }
    MUST(hash[MR_EXCHANGE_FLAT] == hash[MR_EXCHANGE_BUCKETS]);
    mr_buf mine = {0}, all = {0};
    mr_buf_add(&mine, &hash[0], sizeof hash[0]);
    MUST(mr_ranks_gather(r->ranks, &mine, &all, NULL, &err) == MR_OK);
    for (unsigned i = 0; i < r->world; i++)
        MUST(memcmp(all.data + i * sizeof hash[0], &hash[0], sizeof hash[0]) == 0);
    if (r->rank == 0)
        printf("%016" PRIx64 "\n", (uint64_t)hash[0]);
    mr_buf_free(&mine);
    mr_buf_free(&all);
}

/* What ends this if nothing arrives is the limit of the test. */
static void await_pieces(mr_exchange *x, uint64_t pieces)
{
    while (mr_exchange_arrived(x) < pieces)
        nap(100000);
}

/* The upper half of the gradients is ready, then the rest. */
static void overlap_once(const run *r, mr_exchange *x, uint64_t update)
{
    mr_error err = {0};
    float *g = mr_exchange_gradients(x);
    const float *sum;
    uint64_t half = (x->pieces + 1) / 2, from = (x->pieces - half) * x->piece;
    MUST(mr_exchange_begin(x, MR_OK, NULL, 0, NULL, &err) == MR_OK);
    MUST(mr_exchange_arrived(x) == 0);
    for (uint64_t i = from; i < r->count; i++)
        g[i] = value(r->rank, update, i);
    mr_exchange_ready(x, from);
    await_pieces(x, half);
    for (uint64_t i = 0; i < from; i++)
        g[i] = value(r->rank, update, i);
    mr_exchange_ready(x, 0);
    await_pieces(x, x->pieces);
    MUST(mr_exchange_finish(x, &sum, &err) == MR_OK);
    check(r, sum, update);
}

static void run_overlaps(const run *r)
{
    mr_exchange *x = open_kind(r, MR_EXCHANGE_BUCKETS);
    MUST(x->pieces > 1 && x->hosts);
    for (uint64_t update = 0; update < UPDATES; update++)
        overlap_once(r, x, update);
    mr_exchange_free(x);
}

static mr_status update_once(const run *r, mr_exchange *x, const char *when, mr_error *err)
{
    double mine = 1, all = 0;
    const float *sum;
    mr_status status = MR_OK;
    if (strcmp(when, "kill") == 0)
        kill(getpid(), SIGKILL);
    if (strcmp(when, "exit") == 0)
        _exit(0);
    if (strcmp(when, "stop") == 0)
        raise(SIGSTOP);
    while (strcmp(when, "sleep") == 0)
        pause();
    if (strcmp(when, "leave") == 0)
        return MR_END;
    if (strcmp(when, "status") == 0)
        status = mr_fail(err, MR_BAD_DATA, "train-00000.mdb: the disk has rotted");
    status = mr_exchange_begin(x, status, &mine, 1, &all, err);
    bool late = status == MR_OK && strstr(when, "-late");
    if (late)
        mr_exchange_ready(x, r->count / 2);
    if (late && strcmp(when, "kill-late") == 0)
        kill(getpid(), SIGKILL);
    while (late && strcmp(when, "sleep-late") == 0)
        pause();
    if (status == MR_OK)
        mr_exchange_ready(x, r->count / 3);
    return status == MR_OK ? mr_exchange_finish(x, &sum, err) : status;
}

static int fails(const run *r, const char *when, unsigned who)
{
    mr_exchange *x = open_kind(r, MR_EXCHANGE_BUCKETS);
    mr_error err = {0};
    mr_status status = MR_OK;
    for (unsigned update = 0; status == MR_OK && update < 1000; update++)
        status = update_once(r, x, update == 2 && r->rank == who ? when : "", &err);
    if (status < 0 && mr_exchange_speaks(x))
        fprintf(stderr, "exchange_rank: %s\n", err.text);
    mr_exchange_free(x);
    return mr_exit_code(status);
}

static void tell(const mr_error *err)
{
    fprintf(stderr, "exchange_rank: %s\n", err->text);
}

static int lacks(const run *r, unsigned who)
{
    const char *mine = r->rank == who ? "out of memory" : "out of memory on another rank";
    for (unsigned round = 0; round < 2; round++) {
        bool short_of = round == 0, poor = short_of && r->rank == who;
        mr_error err = {0};
        mr_buf all = {.failed = poor}, told = {.failed = poor}, one = {0}; /* failed: takes nothing */
        mr_buf_add(&one, &r->rank, sizeof r->rank);
        if (r->rank == 0)
            mr_buf_add_text(&told, "from rank 0");
        MUST(mr_ranks_gather(r->ranks, &one, &all, NULL, &err) == (short_of ? MR_SYSTEM : MR_OK));
        MUST(!short_of || strstr(err.text, mine));
        MUST(mr_ranks_share(r->ranks, &told, &err) == (short_of && who ? MR_SYSTEM : MR_OK));
        MUST(short_of || (all.len == r->world * sizeof r->rank && strcmp(mr_buf_text(&told), "from rank 0") == 0));
        MUST(mr_ranks_agree(r->ranks, MR_OK, &err) == MR_OK);
        mr_buf_free(&all);
        mr_buf_free(&told);
        mr_buf_free(&one);
    }
    return 0;
}

int main(int argc, char **argv)
{
    run one = {0}, *r = &one;
    mr_error err = {0};
    int code = 2;
    if (mr_ranks_begin(&r->ranks, &err) != MR_OK) {
        fprintf(stderr, "exchange_rank: %s\n", err.text);
        return 3;
    }
    r->rank = mr_ranks_rank(r->ranks);
    r->world = mr_ranks_world(r->ranks);
    bool sums = argc > 2 && strcmp(argv[1], "sums") == 0, overlaps = argc > 2 && strcmp(argv[1], "overlaps") == 0;
    for (int i = 2; (sums || overlaps) && i < argc; i++) {
        MUST(sscanf(argv[i], "%" SCNu64 ":%u:%" SCNu64, &r->count, &r->ranks_a_host, &r->bucket) == 3);
        r->apart = strstr(argv[i], ":apart") != NULL;
        r->halves = strstr(argv[i], ":bf16") != NULL;
        if (sums)
            run_sums(r);
        else
            run_overlaps(r);
        code = 0;
    }
    if (argc == 5 && strcmp(argv[1], "stalls") == 0)
        MUST(mr_ranks_watch(r->ranks, 1, tell, &err) == MR_OK);
    if (argc == 5 && (strcmp(argv[1], "fails") == 0 || strcmp(argv[1], "stalls") == 0)) {
        r->count = 100000;
        r->bucket = 40000;
        r->ranks_a_host = (unsigned)atoi(argv[4]);
        code = fails(r, argv[2], (unsigned)atoi(argv[3]));
    }
    if (argc == 3 && strcmp(argv[1], "lacks") == 0)
        code = lacks(r, (unsigned)atoi(argv[2]));
    mr_ranks_end(r->ranks);
    return code;
}
