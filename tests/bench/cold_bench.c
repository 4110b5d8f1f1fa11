/* cold_bench.c - records of which nothing is in memory, in shuffled order: the loader beside plain pread of the same
 * records in the same order with posix_fadvise(WILLNEED) ahead, for several distances; one thread each.
 * Invariant: before each turn the shards' pages are dropped; all ways alternate, and read the same bytes.
 *
 *      cold_bench DATASET [RECORDS [ROUNDS]]
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/term.h"
#include "batch/loader.h"
#include "batch/work.h"
#include "bench/median.h"

enum { BATCH = 64, WAYS = 5, LOADER = 0, READ_AHEAD = 128 << 10, MAX_ROUNDS = 101 };

static const size_t ahead[WAYS] = {0, 16, 32, 64, 128}; /* records; [LOADER] is not used */

typedef struct record {
    int fd;
    uint64_t offset;
    size_t len;
} record;

static void must(mr_status s, const mr_error *err)
{
    if (s == MR_OK)
        return;
    fprintf(stderr, "cold_bench: %s\n", err->text);
    exit(3);
}

static void drop(mr_work *w)
{
    mr_error err;
    for (size_t i = 0; i < w->split->shard_count; i++) {
        const mr_open_shard *open;
        must(mr_shard_files_borrow(w->files, w->split->shards[i].first, &open, &err), &err);
        fdatasync(open->mdb);
        posix_fadvise(open->mdb, 0, 0, POSIX_FADV_DONTNEED);
        mr_shard_files_return(w->files, open);
    }
}

/* A descriptor of each shard of the split, which outlives what the loader keeps open. */
static int *open_shards(mr_work *w)
{
    int *fds = malloc(w->split->shard_count * sizeof *fds);
    mr_error err;
    for (size_t i = 0; fds && i < w->split->shard_count; i++) {
        const mr_open_shard *open;
        must(mr_shard_files_borrow(w->files, w->split->shards[i].first, &open, &err), &err);
        fds[i] = dup(open->mdb);
        mr_shard_files_return(w->files, open);
        if (fds[i] < 0) {
            perror("cold_bench: a descriptor a shard; `ulimit -n` says how many there may be");
            exit(3);
        }
    }
    return fds;
}

/* Where the loader finds the records of its first batches. */
static void list(mr_work *w, const int *fds, record *r, size_t count)
{
    mr_error err;
    for (size_t i = 0; i < count; i++) {
        const mr_open_shard *open;
        mr_row row;
        uint64_t sample = mr_schedule_slot(&w->schedule, 0, i / BATCH, 0, i % BATCH).sample;
        must(mr_shard_files_borrow(w->files, sample, &open, &err), &err);
        must(mr_shard_files_row(w->files, open, sample, &row, &err), &err);
        r[i] = (record){fds[open->shard - w->split->shards], row.image_offset, row.image_len};
        mr_shard_files_return(w->files, open);
    }
}

static double by_hand(const record *r, size_t count, size_t distance, uint8_t *to, size_t room)
{
    double start = mr_seconds();
    mr_error err;
    size_t at = 0;
    for (size_t i = 0, asked = 0; i < count; i++) {
        for (; asked < count && asked <= i + distance; asked++)
            for (size_t n = 0; n < r[asked].len; n += READ_AHEAD)
                posix_fadvise(r[asked].fd, (off_t)(r[asked].offset + n),
                              (off_t)(r[asked].len - n < READ_AHEAD ? r[asked].len - n : READ_AHEAD),
                              POSIX_FADV_WILLNEED);
        at = at + r[i].len > room ? 0 : at;
        must(mr_file_pread(r[i].fd, to + at, r[i].len, r[i].offset, "shard", &err), &err);
        at += r[i].len;
    }
    return mr_seconds() - start;
}

static double by_loader(const mr_dataset *ds, const mr_loader_options *o, size_t count)
{
    double start = mr_seconds();
    mr_loader *l;
    mr_error err;
    must(mr_loader_open(ds, o, &l, &err), &err);
    for (size_t i = 0; i < count; i += BATCH) {
        const mr_batch *batch;
        must(mr_loader_next(l, &batch, &err), &err);
        mr_batch_release(l, batch);
    }
    double took = mr_seconds() - start;
    mr_loader_free(l);
    return took;
}

int main(int argc, char **argv)
{
    static double took[WAYS][MAX_ROUNDS];
    size_t wanted = argc > 2 ? strtoul(argv[2], NULL, 10) : 2048, rounds = argc > 3 ? strtoul(argv[3], NULL, 10) : 5;
    mr_loader_options o = {.global_batch = BATCH, .threads = 1, .tail = MR_TAIL_DROP, .epochs = 1};
    mr_dataset *ds;
    mr_work w;
    mr_error err;
    if (argc < 2 || wanted < BATCH || rounds < 1 || rounds > MAX_ROUNDS) {
        fprintf(stderr, "use: cold_bench DATASET [RECORDS [ROUNDS]]\n");
        return 2;
    }
    must(mr_dataset_open(argv[1], &ds, &err), &err);
    o.split = mr_dataset_manifest(ds)->splits[0].name;
    must(mr_work_open(&w, ds, &o, &err), &err);
    uint64_t there = w.schedule.steps * BATCH;
    size_t count = (wanted < there ? wanted : (size_t)there) / BATCH * BATCH, room = 0;
    record *records = malloc(count * sizeof *records);
    int *fds = open_shards(&w);
    if (!records || !fds || !count)
        return 3;
    double bytes = 0;
    list(&w, fds, records, count);
    for (size_t i = 0; i < count; i++)
        bytes += (double)records[i].len;
    for (size_t i = 0; i < count && i < BATCH; i++)
        room += records[i].len;
    uint8_t *to = malloc(room *= 2);
    if (!to)
        return 3;
    memset(to, 1, room);
    for (size_t round = 0; round < rounds; round++)
        for (int way = 0; way < WAYS; way++) {
            drop(&w);
            took[way][round] = way == LOADER ? by_loader(ds, &o, count) : by_hand(records, count, ahead[way], to, room);
        }
    printf("%zu records of %.0f KB, nothing of them in memory, one thread; medians of %zu rounds\n", count,
           bytes / (double)count / 1e3, rounds);
    double best = 0;
    for (int way = WAYS - 1; way >= 0; way--) {
        double rate = bytes / median(took[way], rounds) / 1e6;
        best = way != LOADER && rate > best ? rate : best;
        if (way == LOADER)
            printf("loader                    %6.0f MB/s, %.2f of the best\n", rate, rate / best);
        else
            printf("pread + fadvise %3zu ahead %6.0f MB/s\n", ahead[way], rate);
    }
    for (size_t i = 0; i < w.split->shard_count; i++)
        close(fds[i]);
    mr_work_close(&w);
    mr_dataset_free(ds);
    free(fds);
    free(records);
    free(to);
    return 0;
}
