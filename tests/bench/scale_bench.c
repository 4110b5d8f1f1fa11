/* scale_bench.c - a made dataset of many shards, of which only the manifest exists: how long it takes to open and to
 * plan, and how much memory.
 * Invariant: every figure is of a process of its own, which does what a command does; nothing is read from a shard.
 *
 *      scale_bench FOLDER [SHARDS [SAMPLES]]       leaves FOLDER/dataset, for `millrace plan`
 *      mpirun -n 8 scale_bench FOLDER              how the ranks of a host open FOLDER/dataset together */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/cli/term.h"
#include "shards/dataset/dataset_ranks.h"
#include "shards/manifest/format.h"
#include "loader/order/schedule.h"
#include "tests/bench/measure.h"
#include "loader/bench/bench_limits.h"

enum { RANKS = 1024, BATCH = 32 * RANKS, PICTURE = 110000, EACH_HOST = 8 };

typedef unsigned long long ull;

static void fill_digest(uint8_t *at, size_t len, uint64_t n)
{
    for (size_t i = 0; i < len; i++)
        at[i] = (uint8_t)(mr_hash64(&n, sizeof n) >> (i % 8 * 8)) ^ (uint8_t)i;
}

static mr_split make_split(size_t shards, uint64_t samples)
{
    mr_split split = {.name = "train", .shard_count = shards, .shards = mr_alloc(shards, sizeof(mr_shard))};
    for (size_t i = 0; split.shards && i < shards; i++) {
        mr_shard *s = &split.shards[i];
        snprintf(s->name, sizeof s->name, "train-%05zu", i);
        s->first = split.samples;
        s->samples = samples / shards + (i < samples % shards);
        s->images = s->samples;
        s->image_bytes = s->samples * PICTURE;
        s->mdb.bytes = (s->image_bytes + s->image_bytes / 50) / 4096 * 4096;
        s->idx.bytes = 64 + 64 * s->samples;
        fill_digest(s->mdb.sha256, sizeof s->mdb.sha256, i);
        fill_digest(s->idx.sha256, sizeof s->idx.sha256, ~(uint64_t)i);
        split.samples += s->samples;
        split.images += s->images;
        split.image_bytes += s->image_bytes;
    }
    return split;
}

static void write_dataset(const char *path, size_t shards, uint64_t samples)
{
    static char layout[] = "imagenette", variant[] = "made";
    mr_split split = make_split(shards, samples);
    mr_manifest m = {.layout = layout, .variant = variant, .splits = &split, .split_count = split.shards != NULL};
    mr_buf text = {0};
    mr_error err;
    must(mr_dir_make(path, &err), &err);
    int dir = open(path, O_RDONLY | O_DIRECTORY);
    must(mr_manifest_write(&m, &text, &err), &err);
    must(mr_file_publish(dir, MR_MANIFEST, text.data, text.len, &err), &err);
    printf("%s: %zu shards, %llu samples, %.1f TB; %s %.1f MB\n", path, shards, (ull)split.samples,
           (double)split.image_bytes / 1e12, MR_MANIFEST, (double)text.len / 1e6);
    mr_buf_free(&text);
    free(split.shards);
    close(dir);
}

static double peak_mb(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)usage.ru_maxrss / 1024;
}

/* The slowest of some steps of an epoch, in milliseconds for one rank's slots and for those of all ranks. */
static void plan(const mr_split *split, mr_shuffle kind, const char *word)
{
    static const uint64_t epochs[] = {0, 1, 89, 1000000};
    mr_order order;
    mr_schedule s;
    mr_error err;
    double worst_rank = 0, worst_all = 0, worst_resume = 0;
    uint64_t sum = 0, step;
    must(mr_order_make(kind, split->samples, 1, (uint64_t)16 << 30, mr_split_mean_bytes(split), &order, &err), &err);
    must(mr_schedule_make(&order, BATCH, RANKS, MR_TAIL_PAD, &s, &err), &err);
    for (size_t i = 0; i < 4; i++)
        for (uint64_t k = 0; k < 5; k++) {
            double begin = mr_bench_thread_cpu();
            must(mr_schedule_step_at(&s, mr_schedule_position(&s, k * (s.steps - 1) / 4), &step, &err), &err);
            double resumed = mr_bench_thread_cpu(), first = 0;
            for (unsigned rank = 0; rank < RANKS; rank++) {
                for (uint64_t n = 0; n < mr_schedule_count(&s, step, rank); n++)
                    sum += (uint64_t)(mr_dataset_shard(split, mr_schedule_slot(&s, epochs[i], step, rank, n).sample) -
                                      split->shards);
                first = rank ? first : mr_bench_thread_cpu() - resumed;
            }
            double all = mr_bench_thread_cpu() - resumed;
            worst_resume = resumed - begin > worst_resume ? resumed - begin : worst_resume;
            worst_rank = first > worst_rank ? first : worst_rank;
            worst_all = all > worst_all ? all : worst_all;
        }
    printf("  %-7s batch of %d: %.3f ms for one rank of %d and the shards that it needs, %.1f ms for all of them; "
           "finding a place %.4f ms  (%llu)\n",
           word, BATCH, worst_rank * 1e3, RANKS, worst_all * 1e3, worst_resume * 1e3, (ull)sum % 10);
}

static void measure(const char *path, bool plans)
{
    mr_dataset *ds = NULL;
    mr_error err;
    double begin = mr_seconds(), before = peak_mb();
    must(mr_dataset_open(path, &ds, &err), &err);
    printf("%s: open in %.3f s, peak memory %.0f MiB (%.0f before)\n", path, mr_seconds() - begin, peak_mb(), before);
    const mr_split *split = mr_manifest_split(mr_dataset_manifest(ds), "train");
    if (plans) {
        plan(split, MR_SHUFFLE_NONE, "none");
        plan(split, MR_SHUFFLE_FULL, "full");
        plan(split, MR_SHUFFLE_WINDOW, "window");
    }
    mr_dataset_free(ds);
}

/* In a child, so that its peak of memory is its own. */
static void apart(void (*work)(const char *, bool), const char *path, bool flag)
{
    int status;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        work(path, flag);
        fflush(stdout);
        _exit(0);
    }
    if (child < 0 || waitpid(child, &status, 0) != child || status != 0) {
        fprintf(stderr, "scale_bench: %s: the measuring process failed\n", path);
        exit(3);
    }
}

/* ---- under mpirun ------------------------------------------------------------------------------------------------ */

typedef struct opened {
    double seconds;
    uint64_t seen, read, resident, share; /* a sum; bytes read by the process; KiB in memory at most, and at the end,
                                             each its part of what is common */
} opened;

/* The number after a word of a file in /proc. */
static uint64_t proc_number(const char *path, const char *word)
{
    char line[256];
    ull n = 0;
    FILE *file = fopen(path, "r");
    while (file && fgets(line, sizeof line, file))
        if (strncmp(line, word, strlen(word)) == 0 && sscanf(line + strlen(word), " %llu", &n) == 1)
            break;
    if (file)
        fclose(file);
    return n;
}

static int measure_ranks(mr_ranks *ranks, const char *path)
{
    mr_dataset *ds = NULL;
    mr_error err;
    mr_buf mine = {0}, all = {0};
    uint64_t read = proc_number("/proc/self/io", "rchar:"), held = proc_number("/proc/self/smaps_rollup", "Pss:");
    must(mr_ranks_barrier(ranks, &err), &err);
    double begin = mr_seconds();
    must(mr_dataset_open_all(path, ranks, &ds, &err), &err);
    opened o = {.seconds = mr_seconds() - begin};
    const mr_split *split = mr_manifest_split(mr_dataset_manifest(ds), "train");
    for (size_t i = 0; i < split->shard_count; i++) /* what is not looked at takes no memory yet */
        o.seen += split->shards[i].mdb.sha256[0];
    must(mr_ranks_barrier(ranks, &err), &err);
    o.read = proc_number("/proc/self/io", "rchar:") - read;
    o.share = proc_number("/proc/self/smaps_rollup", "Pss:") - held;
    o.resident = proc_number("/proc/self/status", "VmHWM:");
    mr_buf_add(&mine, &o, sizeof o);
    must(mr_ranks_gather(ranks, &mine, &all, NULL, &err), &err);
    uint64_t share = 0, peak = 0, total = 0;
    for (unsigned i = 0; i < mr_ranks_world(ranks) && mr_ranks_rank(ranks) == 0; i++) {
        const opened *of = (const opened *)(const void *)all.data + i;
        share += of->share;
        peak += of->resident;
        total += of->read;
        printf("  rank %u: %.3f s, %.1f MB read\n", i, of->seconds, (double)of->read / 1e6);
    }
    if (mr_ranks_rank(ranks) == 0)
        printf("%s: opened by %u ranks: %.0f MiB of memory more than before, all together; peaks add up to %.0f MiB\n",
               path, mr_ranks_world(ranks), (double)share / 1024, (double)peak / 1024);
    if (mr_ranks_rank(ranks) == 0)
        printf("  read from the disk: %.1f MB by a host; %.1f GB by %d ranks on %d hosts, %.1f GB if each read it\n",
               (double)total / 1e6, (double)total * RANKS / EACH_HOST / 1e9, RANKS, RANKS / EACH_HOST,
               (double)total * RANKS / 1e9);
    mr_buf_free(&mine);
    mr_buf_free(&all);
    mr_dataset_free(ds);
    return 0;
}

typedef struct asked {
    size_t shards;
    uint64_t samples;
} asked;
static asked wanted;

static void write_wanted(const char *path, bool flag)
{
    (void)flag;
    write_dataset(path, wanted.shards, wanted.samples);
}

int main(int argc, char **argv)
{
    char dataset[4096];
    mr_ranks *ranks = NULL;
    mr_error err;
    if (argc < 2) {
        fprintf(stderr, "scale_bench FOLDER [SHARDS [SAMPLES]]\n");
        return 2;
    }
    snprintf(dataset, sizeof dataset, "%s/dataset", argv[1]);
    must(mr_ranks_begin(&ranks, &err), &err);
    if (mr_ranks_world(ranks) > 1)
        measure_ranks(ranks, dataset);
    bool alone = mr_ranks_world(ranks) == 1;
    mr_ranks_end(ranks);
    if (!alone)
        return 0;
    wanted = (asked){.shards = argc > 2 ? strtoull(argv[2], NULL, 10) : MR_SHARDS_MAX,
                     .samples = argc > 3 ? strtoull(argv[3], NULL, 10) : 1000000000};
    apart(write_wanted, dataset, false);
    apart(measure, dataset, true);
    return 0;
}
