/* checkpoint_bench.c - writing and reading a checkpoint beside plain write() + fsync() and read() of the same bytes.
 * Invariant: both ways move the same bytes between the same memory and the same disk in the same run, alternating; what
 * is read back is compared.
 *
 *      checkpoint_bench DIR [ROUNDS [MODEL]]       ViT-B_16 with 1,000 classes and SGD: 692 MB in two files
 *
 * Plain writing is two files out of the same buffers, 1 MiB at a time, over older ones; plain reading is into one
 * buffer of 1 MiB (cat), and into new memory of the files' size, which is what a program needs that goes on to use it.
 * Medians of wall and of CPU time, the kernel's included. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/random.h"
#include "checkpoint/checkpoint.h"
#include "bench/median.h"

enum { CHUNK = 1 << 20, MAX_ROUNDS = 101 };

typedef struct took {
    double wall[MAX_ROUNDS], cpu[MAX_ROUNDS];
} took;

static double now(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void begin(took *t, int round)
{
    t->wall[round] = -now(CLOCK_MONOTONIC);
    t->cpu[round] = -now(CLOCK_PROCESS_CPUTIME_ID);
}

static void end(took *t, int round)
{
    t->wall[round] += now(CLOCK_MONOTONIC);
    t->cpu[round] += now(CLOCK_PROCESS_CPUTIME_ID);
}

static _Noreturn void stop(const char *why)
{
    fprintf(stderr, "checkpoint_bench: %s\n", why);
    exit(3);
}

static void path_of(char *path, size_t size, const char *dir, const char *file)
{
    if ((size_t)snprintf(path, size, "%s/%s", dir, file) >= size)
        stop("the path is too long");
}

static void plain_write(const char *dir, uint64_t bytes, float *const buffers[2])
{
    for (int f = 0; f < 2; f++) {
        char path[4096];
        path_of(path, sizeof path, dir, f ? "plain-1" : "plain-0");
        int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
        for (uint64_t at = 0; at < bytes;) {
            ssize_t n = write(fd, (const char *)buffers[f] + at, bytes - at < CHUNK ? bytes - at : CHUNK);
            if (n <= 0)
                stop("cannot write");
            at += (uint64_t)n;
        }
        if (fsync(fd) != 0 || close(fd) != 0)
            stop("cannot sync");
    }
}

/* Out of the page cache, or off the disk if `cold` (the pages are clean, so the kernel drops them). */
static void warm_or_cold(const char *const files[2], bool cold, char *chunk)
{
    for (int f = 0; f < 2; f++) {
        int fd = open(files[f], O_RDONLY | O_CLOEXEC);
        if (fd < 0 || (cold && posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED) != 0))
            stop("cannot open what was written");
        while (!cold && read(fd, chunk, CHUNK) > 0)
            ;
        close(fd);
    }
}

static void plain_read(const char *const files[2], char *chunk)
{
    for (int f = 0; f < 2; f++) {
        int fd = open(files[f], O_RDONLY | O_CLOEXEC);
        while (fd >= 0 && read(fd, chunk, CHUNK) > 0)
            ;
        close(fd);
    }
}

static void read_to_memory(const char *const files[2], uint64_t bytes)
{
    char *memory[2];
    for (int f = 0; f < 2; f++) {
        int fd = open(files[f], O_RDONLY | O_CLOEXEC);
        memory[f] = malloc(bytes + CHUNK);
        ssize_t n = memory[f] ? read(fd, memory[f], CHUNK) : -1;
        for (uint64_t at = 0; n > 0 && at + CHUNK < bytes; n = read(fd, memory[f] + at, CHUNK))
            at += (uint64_t)n;
        if (n < 0)
            stop("cannot read");
        close(fd);
    }
    free(memory[0]);
    free(memory[1]);
}

static void whole_read(const char *dir, const mr_checkpoint *want, took *t, int round)
{
    mr_checkpoint c;
    mr_error err;
    begin(t, round);
    if (mr_checkpoint_read(dir, false, true, &c, NULL, &err) != MR_OK)
        stop(err.text);
    end(t, round);
    size_t bytes = c.params.total * sizeof(float);
    if (memcmp(c.values, want->values, bytes) != 0 || memcmp(c.state[0], want->state[0], bytes) != 0)
        stop("other values came back");
    mr_checkpoint_release(&c);
}

static mr_checkpoint make(const char *model)
{
    mr_error err;
    mr_random r;
    mr_checkpoint c = {.slots = 1, .accuracy = -1, .best_accuracy = -1};
    if (mr_model_find(model, &c.model, &err) != MR_OK)
        stop(err.text);
    c.model.classes = 1000;
    if (c.model.card->params(&c.model, &c.params, &err) != MR_OK)
        stop(err.text);
    c.values = mr_alloc(c.params.total, sizeof(float));
    c.state[0] = mr_alloc(c.params.total, sizeof(float));
    if (!c.values || !c.state[0])
        stop("out of memory");
    mr_random_seed(&r, 1);
    for (size_t i = 0; i < c.params.count; i++) {
        mr_random_bytes(&r, c.values + c.params.items[i].offset, c.params.items[i].count * sizeof(float));
        mr_random_bytes(&r, c.state[0] + c.params.items[i].offset, c.params.items[i].count * sizeof(float));
    }
    return c;
}

static void report(const char *what, uint64_t bytes, took *t, int rounds, const char *beside, took *plain)
{
    double wall = median(t->wall, (size_t)rounds), cpu = median(t->cpu, (size_t)rounds);
    printf("%-12s wall %6.3f s (%5.0f MB/s)  CPU %6.3f s", what, wall, (double)bytes / 1e6 / wall, cpu);
    if (plain)
        printf("   of %s: wall x %.2f, CPU x %.2f", beside, wall / median(plain->wall, (size_t)rounds),
               cpu / median(plain->cpu, (size_t)rounds));
    printf("\n");
}

static void bench_write(mr_checkpoint *c, const char *dir, int rounds, uint64_t *total)
{
    static took ours, plain;
    mr_error err;
    float *const buffers[2] = {c->values, c->state[0]};
    for (int i = -1; i < rounds; i++) { /* round -1 only makes what the others replace */
        int round = i < 0 ? 0 : i;
        c->update++;
        begin(&ours, round);
        if (mr_checkpoint_write(c, dir, 1, total, &err) != MR_OK)
            stop(err.text);
        end(&ours, round);
        begin(&plain, round);
        plain_write(dir, c->params.total * sizeof(float), buffers);
        end(&plain, round);
    }
    report("plain write", *total, &plain, rounds, NULL, NULL);
    report("checkpoint", *total, &ours, rounds, "plain write", &plain);
}

static void bench_read(const mr_checkpoint *c, const char *dir, bool cold, int rounds, uint64_t total, char *chunk)
{
    static took ours, plain, memory;
    char weights[4096 + 64], optimizer[4096 + 64];
    const char *const files[2] = {weights, optimizer};
    snprintf(weights, sizeof weights, "%s/step-%08llu/weights.npz", dir, (unsigned long long)c->update);
    snprintf(optimizer, sizeof optimizer, "%s/step-%08llu/optimizer.npz", dir, (unsigned long long)c->update);
    for (int i = 0; i < rounds; i++) {
        warm_or_cold(files, cold, chunk);
        whole_read(dir, c, &ours, i);
        warm_or_cold(files, cold, chunk);
        begin(&plain, i);
        plain_read(files, chunk);
        end(&plain, i);
        warm_or_cold(files, cold, chunk);
        begin(&memory, i);
        read_to_memory(files, total / 2);
        end(&memory, i);
    }
    printf("%s\n", cold ? "read from disk" : "read from the page cache");
    report("cat", total, &plain, rounds, NULL, NULL);
    report("into memory", total, &memory, rounds, "cat", &plain);
    report("checkpoint", total, &ours, rounds, "cat", &plain);
    report("checkpoint", total, &ours, rounds, "into memory", &memory);
}

int main(int argc, char **argv)
{
    char dir[4096], *chunk = malloc(CHUNK);
    int rounds = argc > 2 ? atoi(argv[2]) : 5;
    uint64_t total = 0;
    mr_error err;
    if (argc < 2 || rounds < 1 || rounds > MAX_ROUNDS || !chunk) {
        fprintf(stderr, "use: checkpoint_bench DIR [ROUNDS [MODEL]]\n");
        return 2;
    }
    mr_checkpoint c = make(argc > 3 ? argv[3] : "ViT-B_16");
    path_of(dir, sizeof dir, argv[1], "checkpoint-bench");
    if (mr_dir_make(dir, &err) != MR_OK)
        stop(err.text);
    bench_write(&c, dir, rounds, &total);
    bench_read(&c, dir, false, rounds, total, chunk);
    bench_read(&c, dir, true, rounds, total, chunk);
    mr_dir_remove(AT_FDCWD, dir, NULL);
    mr_checkpoint_release(&c);
    free(chunk);
    return 0;
}
