/* replay.c - runs a fuzz target's seeds and past findings with any compiler, and small seeded mutations of them.
 *
 *      fuzz_NAME [-s SECONDS] [-n MUTATIONS] FILE|FOLDER...
 *
 * Invariant: every file given is run whole, whatever the time; the limit cuts only the mutations.  They are a function
 * of the file's bytes and their number alone, so a failure repeats.  An input that kills the process, hangs it, or as a
 * mutation costs far more than any of the files is left in ./NAME.input. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/hash.h"
#include "base/random.h"
#include "tests/fuzz/fuzz.h"
#include "tests/support/hang.h"

enum {
    MAX_FILE = 1 << 20,
    MOST_TIMES = 1000, /* what a mutation may cost of the dearest file: less than 5 is usual */
};

static struct { /* what a signal handler has to know */
    const uint8_t *bytes;
    size_t len;
    char name[256], keep[300];
} now;

static void keep_input(void)
{
    int fd = open(now.keep, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0 || write(fd, now.bytes, now.len) < 0)
        return;
    close(fd);
    dprintf(STDERR_FILENO, "fuzz: the input, made from %s, is kept in %s\n", now.name, now.keep);
}

static void on_death(int number)
{
    if (number == SIGALRM)
        dprintf(STDERR_FILENO, "fuzz: hung: one input takes longer than %d s\n", HANG_SECONDS);
    keep_input();
    signal(number, SIG_DFL);
    raise(number);
}

static double seconds(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* The sanitizers', if there are any: their reports do not come as signals. */
void __sanitizer_set_death_callback(void (*callback)(void)) __attribute__((weak));

/* The CPU seconds it took. */
static double run(const uint8_t *bytes, size_t len)
{
    uint8_t *copy = malloc(len ? len : 1); /* exactly as long, so that a byte too far is seen */
    if (!copy)
        exit(3);
    memcpy(copy, bytes, len);
    now.bytes = copy;
    now.len = len;
    alarm(HANG_SECONDS);
    double start = seconds(CLOCK_PROCESS_CPUTIME_ID);
    LLVMFuzzerTestOneInput(copy, len);
    double took = seconds(CLOCK_PROCESS_CPUTIME_ID) - start;
    free(copy);
    return took;
}

/* Runs it, again if it was dear: other programs may have been in its way. */
static void run_mutation(const uint8_t *bytes, size_t len, double dearest)
{
    for (int tries = 0; run(bytes, len) > MOST_TIMES * dearest; tries++) {
        if (tries < 3)
            continue;
        fprintf(stderr, "fuzz: one input costs more than %d times what any file does\n", MOST_TIMES);
        now.bytes = bytes;
        abort();
    }
}

/* One to four small changes: bits, bytes, a cut, a piece doubled, a piece taken out, an interesting number. */
static size_t mutate(uint8_t *bytes, size_t len, mr_random *r)
{
    static const uint8_t odd[] = {0x00, 0x01, 0x7F, 0x80, 0xFF, '"', '{', '[', ',', '\n', '/', '.'};
    for (uint64_t n = mr_random_between(r, 1, 4); n > 0 && len > 0; n--) {
        size_t at = mr_random_below(r, len), piece = 1 + mr_random_below(r, len - at < 64 ? len - at : 64);
        switch (mr_random_below(r, 6)) {
        case 0:
            bytes[at] ^= (uint8_t)(1 << mr_random_below(r, 8));
            break;
        case 1:
            bytes[at] = (uint8_t)mr_random_u64(r);
            break;
        case 2:
            bytes[at] = odd[mr_random_below(r, sizeof odd)];
            break;
        case 3:
            len = at;
            break;
        case 4:
            memmove(bytes + at, bytes + mr_random_below(r, len - piece + 1), piece);
            break;
        default:
            memmove(bytes + at, bytes + at + piece, len - at - piece);
            len -= piece;
        }
    }
    return len;
}

typedef struct corpus {
    mr_buf *files;
    char **names;
    size_t count, capacity, name_capacity;
} corpus;

static void collect(corpus *c, const char *path)
{
    struct stat st;
    struct dirent **list;
    mr_error err;
    if (stat(path, &st) != 0)
        return; /* a target without findings has no folder */
    if (S_ISDIR(st.st_mode)) {
        int n = scandir(path, &list, NULL, alphasort);
        for (int i = 0; i < n; i++) {
            char *inner;
            if (list[i]->d_name[0] != '.' && asprintf(&inner, "%s/%s", path, list[i]->d_name) > 0) {
                collect(c, inner);
                free(inner);
            }
            free(list[i]);
        }
        if (n >= 0)
            free(list);
        return;
    }
    mr_buf bytes = {0};
    if (mr_file_read_all(AT_FDCWD, path, MAX_FILE, &bytes, &err) != MR_OK ||
        !MR_GROW(c->files, c->count, c->capacity)) {
        fprintf(stderr, "fuzz: %s\n", err.text);
        exit(3);
    }
    c->names = mr_realloc(c->names, c->count + 1, sizeof *c->names);
    c->names[c->count] = strdup(path);
    c->files[c->count++] = bytes;
}

int main(int argc, char **argv)
{
    corpus c = {0};
    double limit = 3, start = seconds(CLOCK_MONOTONIC), dearest = 0;
    unsigned long long mutations = 1000, done = 0;
    const char *self = strrchr(argv[0], '/');
    for (int option; (option = getopt(argc, argv, "s:n:")) != -1;) {
        if (option == 's')
            limit = atof(optarg);
        else if (option == 'n')
            mutations = strtoull(optarg, NULL, 10);
        else
            return 2;
    }
    snprintf(now.keep, sizeof now.keep, "%s.input", self ? self + 1 : argv[0]);
    for (; optind < argc; optind++)
        collect(&c, argv[optind]);
    if (c.count == 0) {
        fprintf(stderr, "fuzz: no file to run\n");
        return 2;
    }
    const int deadly[] = {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGALRM};
    if (__sanitizer_set_death_callback)
        __sanitizer_set_death_callback(keep_input);
    for (size_t i = 0; i < MR_COUNT(deadly); i++)
        if (!__sanitizer_set_death_callback || deadly[i] == SIGALRM || deadly[i] == SIGABRT)
            signal(deadly[i], on_death);
    run((const uint8_t *)"", 0);
    for (size_t i = 0; i < c.count; i++) {
        snprintf(now.name, sizeof now.name, "%s", c.names[i]);
        double cost = run(c.files[i].data, c.files[i].len);
        dearest = cost > dearest ? cost : dearest;
    }
    for (unsigned long long m = 0; m < mutations && seconds(CLOCK_MONOTONIC) - start < limit; m++) {
        for (size_t i = 0; i < c.count && seconds(CLOCK_MONOTONIC) - start < limit; i++, done++) {
            mr_random r;
            uint8_t *copy = malloc(c.files[i].len + 1);
            if (!copy)
                return 3;
            mr_random_stream(&r, mr_hash64(c.files[i].data, c.files[i].len), m);
            memcpy(copy, mr_buf_text(&c.files[i]), c.files[i].len);
            snprintf(now.name, sizeof now.name, "%s, mutation %llu", c.names[i], m);
            run_mutation(copy, mutate(copy, c.files[i].len, &r), dearest);
            free(copy);
        }
    }
    printf("%zu files, %llu mutations of them, %.1f s\n", c.count, done, seconds(CLOCK_MONOTONIC) - start);
    for (size_t i = 0; i < c.count; i++) {
        mr_buf_free(&c.files[i]);
        free(c.names[i]);
    }
    free(c.files);
    free(c.names);
    return 0;
}
