/* support.c - folders and files of tests, the real samples and seeded chance (commands: support/run.c).
 * Invariant: nothing outside the private folders is written or removed. */
#include "tests/support/support.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
    (void)st, (void)kind, (void)ftw;
    return remove(path);
}

/* A folder without permissions cannot be emptied; tests make such folders. */
static int unlock_one(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
    (void)st, (void)ftw;
    if (kind == FTW_D || kind == FTW_DNR)
        (void)chmod(path, 0700);
    return 0;
}

char *support_tmpdir(void)
{
    const char *base = getenv("TMPDIR");
    char *dir = support_path("%s/millrace-test-XXXXXX", base && *base ? base : "/tmp");
    if (!mkdtemp(dir))
        fail_msg("cannot create the folder %s: %s", dir, strerror(errno));
    return dir;
}

void support_tmpdir_remove(char *dir)
{
    const char *keep = getenv("MILLRACE_KEEP_TMP");
    if (dir && keep && *keep == '1') {
        print_message("kept: %s\n", dir);
    } else if (dir) {
        nftw(dir, unlock_one, 16, FTW_PHYS);
        if (nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS))
            print_error("cannot remove %s: %s\n", dir, strerror(errno));
    }
    free(dir);
}

int support_tmpdir_set_up(void **state)
{
    *state = support_tmpdir();
    return 0;
}

int support_tmpdir_tear_down(void **state)
{
    support_tmpdir_remove(*state);
    return 0;
}

static char *path_of(const char *format, va_list args)
{
    char *text = NULL;
    if (vasprintf(&text, format, args) < 0)
        fail_msg("out of memory");
    return text;
}

char *support_path(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    char *text = path_of(format, args);
    va_end(args);
    return text;
}

static void make_parents(const char *path)
{
    char *copy = support_path("%s", path);
    for (char *p = copy + 1; (p = strchr(p, '/')); *p++ = '/') {
        *p = '\0';
        if (mkdir(copy, 0777) && errno != EEXIST)
            fail_msg("cannot create the folder %s: %s", copy, strerror(errno));
    }
    free(copy);
}

void support_write(const char *path, const void *bytes, size_t len)
{
    make_parents(path);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0)
        fail_msg("cannot create %s: %s", path, strerror(errno));
    for (size_t done = 0; done < len;) {
        ssize_t n = write(fd, (const char *)bytes + done, len - done);
        if (n < 0)
            fail_msg("cannot write %s: %s", path, strerror(errno));
        done += (size_t)n;
    }
    if (close(fd))
        fail_msg("cannot close %s: %s", path, strerror(errno));
}

void support_write_text(const char *path, const char *text)
{
    support_write(path, text, strlen(text));
}

void support_put(const char *dir, const char *name, const char *text)
{
    support_write_textf(text, "%s/%s", dir, name);
}

static void put(const void *bytes, size_t len, const char *format, va_list args)
{
    char *path = path_of(format, args);
    support_write(path, bytes, len);
    free(path);
}

void support_writef(const void *bytes, size_t len, const char *path, ...)
{
    va_list args;
    va_start(args, path);
    put(bytes, len, path, args);
    va_end(args);
}

void support_write_textf(const char *text, const char *path, ...)
{
    va_list args;
    va_start(args, path);
    put(text, strlen(text), path, args);
    va_end(args);
}

uint8_t *support_read(const char *path, size_t *len)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat st;
    if (fd < 0 || fstat(fd, &st))
        fail_msg("cannot open %s: %s", path, strerror(errno));
    size_t size = (size_t)st.st_size;
    uint8_t *bytes = malloc(size + 1);
    if (!bytes)
        fail_msg("out of memory for %s", path);
    for (size_t done = 0; done < size;) {
        ssize_t n = read(fd, bytes + done, size - done);
        if (n <= 0)
            fail_msg("cannot read %s", path);
        done += (size_t)n;
    }
    close(fd);
    bytes[size] = '\0';
    if (len)
        *len = size;
    return bytes;
}

bool support_exists(const char *path)
{
    struct stat st;
    return !lstat(path, &st);
}

uint64_t support_size(const char *path)
{
    struct stat st;
    if (stat(path, &st))
        fail_msg("%s: %s", path, strerror(errno));
    return (uint64_t)st.st_size;
}

void support_assert_same_file(const char *a, const char *b)
{
    size_t a_len, b_len;
    uint8_t *a_bytes = support_read(a, &a_len), *b_bytes = support_read(b, &b_len);
    if (a_len != b_len)
        fail_msg("%s has %zu bytes, %s has %zu", a, a_len, b, b_len);
    for (size_t i = 0; i < a_len; i++)
        if (a_bytes[i] != b_bytes[i])
            fail_msg("%s and %s differ at byte %zu", a, b, i);
    free(a_bytes);
    free(b_bytes);
}

/* ---- trees ---------------------------------------------------------------------------------------------------- */

typedef struct names {
    char **items;
    size_t count, capacity;
} names;

static void collect(const char *dir, const char *prefix, names *out)
{
    DIR *d = opendir(dir);
    if (!d)
        fail_msg("cannot list %s: %s", dir, strerror(errno));
    for (struct dirent *e; (e = readdir(d));) {
        /* What an export notes about its own files is the matter of test_made.c. */
        if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, "..") || !strcmp(e->d_name, ".millrace-export"))
            continue;
        char *path = support_path("%s/%s", dir, e->d_name);
        char *name = support_path("%s%s", prefix, e->d_name);
        struct stat st;
        if (!lstat(path, &st) && S_ISDIR(st.st_mode)) {
            char *deeper = support_path("%s/", name);
            collect(path, deeper, out);
            free(deeper);
            free(name);
        } else {
            if (out->count == out->capacity) {
                out->capacity = out->capacity ? out->capacity * 2 : 64;
                out->items = realloc(out->items, out->capacity * sizeof *out->items);
                if (!out->items)
                    fail_msg("out of memory");
            }
            out->items[out->count++] = name;
        }
        free(path);
    }
    closedir(d);
}

static int by_bytes(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static names list(const char *dir)
{
    names found = {0};
    collect(dir, "", &found);
    if (found.count)
        qsort(found.items, found.count, sizeof *found.items, by_bytes);
    return found;
}

static void names_free(names *n)
{
    for (size_t i = 0; i < n->count; i++)
        free(n->items[i]);
    free(n->items);
}

char *support_list(const char *dir)
{
    names found = list(dir);
    char *text = NULL;
    size_t len;
    FILE *f = open_memstream(&text, &len);
    if (!f)
        fail_msg("out of memory");
    for (size_t i = 0; i < found.count; i++)
        fprintf(f, "%s\n", found.items[i]);
    if (fclose(f))
        fail_msg("out of memory");
    names_free(&found);
    return text;
}

/* FNV-1a, 64 bits: Fowler, Noll, Vo; enough to tell trees of our own making apart. */
static uint64_t mix(uint64_t hash, const void *bytes, size_t len)
{
    for (size_t i = 0; i < len; i++)
        hash = (hash ^ ((const uint8_t *)bytes)[i]) * UINT64_C(0x100000001b3);
    return hash;
}

size_t support_occurrences(const char *text, const char *word)
{
    size_t n = 0;
    for (; (text = strstr(text, word)); text += strlen(word))
        n++;
    return n;
}

uint64_t support_tree_hash(const char *dir)
{
    names found = list(dir);
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < found.count; i++) {
        char *path = support_path("%s/%s", dir, found.items[i]);
        size_t len;
        uint8_t *bytes = support_read(path, &len);
        hash = mix(hash, found.items[i], strlen(found.items[i]) + 1);
        hash = mix(hash, &len, sizeof len);
        hash = mix(hash, bytes, len);
        free(bytes);
        free(path);
    }
    names_free(&found);
    return hash;
}

uint64_t support_dataset_hash(const char *dataset)
{
    char *report = support_path("%s/report.json", dataset);
    assert_int_equal(unlink(report), 0);
    free(report);
    return support_tree_hash(dataset);
}

/* ---- samples and chance --------------------------------------------------------------------------------------- */

char *support_data(const char *sub)
{
    const char *base = getenv("MILLRACE_DATA");
    char *path = base && *base ? support_path("%s/%s", base, sub)
                               : support_path("%s/../shared/data/%s", MILLRACE_SOURCE_DIR, sub);
    if (support_exists(path))
        return path;
    print_message("skipped: no real samples at %s (set MILLRACE_DATA to their folder)\n", path);
    free(path);
    return NULL;
}

mr_random support_random(void)
{
    const char *text = getenv("MILLRACE_TEST_SEED");
    uint64_t seed = text && *text ? strtoull(text, NULL, 0) : 1;
    if (seed != 1)
        print_message("MILLRACE_TEST_SEED=%llu\n", (unsigned long long)seed);
    mr_random r;
    mr_random_seed(&r, seed);
    return r;
}
