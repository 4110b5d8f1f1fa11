/* test_npz_large.c - .npz files of more than 4 GiB, and files larger than the disk.
 * Invariant tested: nothing large is written: the 5 GiB are a hole in a sparse file. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "train/files/npz.h"
#include "tests/support/support.h"

static int new_file(const char *path)
{
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    assert_true(fd >= 0);
    return fd;
}

static void put16(uint8_t *to, unsigned v)
{
    to[0] = (uint8_t)v;
    to[1] = (uint8_t)(v >> 8);
}

static void put64(uint8_t *to, uint64_t v)
{
    for (int i = 0; i < 8; i++)
        to[i] = (uint8_t)(v >> 8 * i);
}

/* A zip64 file of one stored member "big.npy" of 5 GiB, which is a hole, and after it the members of `small`: the
 * directory of `small` is moved, and its local headers with it. */
static void make_large(const char *path, const char *small)
{
    const uint64_t hole = 5ull << 30;
    const char text[] = "{'descr': '<f4', 'fortran_order': False, 'shape': (1342177248,), }";
    uint8_t local[30 + 7 + 20] = "PK\3\4\55", central[46 + 7 + 28] = "PK\1\2\55\0\55", head[128] = "\x93NUMPY\1\0\x76";
    uint8_t end[56 + 20 + 22] = "PK\6\6";
    size_t len;
    uint8_t *tail = support_read(small, &len);
    int fd = new_file(path);
    put16(local + 26, 7);
    put16(local + 28, 20);
    memset(local + 18, 0xFF, 8);
    memcpy(local + 30, "big.npy", 7);
    put16(local + 37, 1);
    put16(local + 39, 16);
    put64(local + 41, hole);
    put64(local + 49, hole);
    memset(head + 10, ' ', 117);
    memcpy(head + 10, text, sizeof text - 1);
    head[127] = '\n';
    memset(central + 20, 0xFF, 8);
    put16(central + 28, 7);
    put16(central + 30, 20);
    memcpy(central + 46, "big.npy", 7);
    memcpy(central + 53, local + 37, 20);

    /* the directory of `small` stands where its last 22 bytes say; every entry's offset becomes a zip64 one */
    uint8_t *eocd = tail + len - 22, *entry;
    uint32_t at, size, shift = sizeof local;
    memcpy(&size, eocd + 12, 4);
    memcpy(&at, eocd + 16, 4);
    uint64_t base = shift + hole, directory = base + at;
    assert_int_equal(pwrite(fd, local, sizeof local, 0), sizeof local);
    assert_int_equal(pwrite(fd, head, sizeof head, sizeof local), sizeof head);
    assert_int_equal(pwrite(fd, tail, at, (off_t)base), at);
    uint64_t to = directory;
    assert_int_equal(pwrite(fd, central, 73, (off_t)to), 73);
    to += 73;
    for (entry = tail + at; entry < tail + at + size;) {
        uint32_t offset;
        unsigned name = entry[28] | entry[29] << 8, extra = entry[30] | entry[31] << 8;
        uint8_t wide[12];
        memcpy(&offset, entry + 42, 4);
        put16(wide, 1);
        put16(wide + 2, 8);
        put64(wide + 4, base + offset);
        memset(entry + 42, 0xFF, 4);
        put16(entry + 30, 12);
        assert_int_equal(pwrite(fd, entry, 46 + name, (off_t)to), 46 + name);
        assert_int_equal(pwrite(fd, wide, 12, (off_t)(to + 46 + name)), 12);
        to += 46 + name + 12;
        entry += 46 + name + extra;
    }
    unsigned count = 1u + (eocd[10] | (unsigned)eocd[11] << 8);
    put64(end + 4, 44);
    put16(end + 12, 45);
    put16(end + 14, 45);
    put64(end + 24, count);
    put64(end + 32, count);
    put64(end + 40, to - directory);
    put64(end + 48, directory);
    memcpy(end + 56, "PK\6\7", 4);
    put64(end + 64, to);
    end[72] = 1;
    memcpy(end + 76, "PK\5\6", 4);
    put16(end + 84, count);
    put16(end + 86, count);
    memset(end + 88, 0xFF, 8);
    assert_int_equal(pwrite(fd, end, sizeof end, (off_t)to), sizeof end);
    close(fd);
    free(tail);
}

static uint64_t bytes_read(void)
{
    char text[512] = "";
    int fd = open("/proc/self/io", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    ssize_t n = read(fd, text, sizeof text - 1);
    close(fd);
    return n > 0 && strstr(text, "rchar: ") ? strtoull(strstr(text, "rchar: ") + 7, NULL, 10) : 0;
}

static void test_large_members_are_passed_over(void **state)
{
    enum { COUNT = 3 };
    char *dir = *state, *small = support_path("%s/small.npz", dir), *large = support_path("%s/large.npz", dir);
    mr_random rnd = support_random();
    float values[COUNT][20000], have[20000];
    mr_npz_array a = {.dims = 2, .shape = {100, 200}, .count = 20000};
    const mr_npz_array *met;
    mr_npz_reader *r;
    mr_npz_writer *w;
    mr_error err;
    int fd = new_file(small);
    assert_int_equal(mr_npz_create(fd, small, &w, &err), MR_OK);
    for (int i = 0; i < COUNT; i++) {
        mr_random_bytes(&rnd, values[i], sizeof values[i]);
        snprintf(a.name, sizeof a.name, "small/%d", i);
        assert_int_equal(mr_npz_add(w, &a, values[i], &err), MR_OK);
    }
    assert_int_equal(mr_npz_finish(w, NULL, &err), MR_OK);
    close(fd);
    make_large(large, small);

    uint64_t before = bytes_read();
    assert_int_equal(mr_npz_open(large, &r, &err), MR_OK);
    assert_int_equal(mr_npz_next(r, &met, &err), MR_OK);
    assert_string_equal(met->name, "big");
    assert_int_equal(mr_npz_bytes(met), (5ull << 30) - 128);
    for (int i = 0; i < COUNT; i++) {
        if (mr_npz_next(r, &met, &err) != MR_OK || mr_npz_take(r, have, sizeof have, &err) != MR_OK)
            fail_msg("%s", err.text);
        assert_int_equal(met->name[6], '0' + i);
        assert_memory_equal(have, values[i], sizeof have);
    }
    assert_int_equal(mr_npz_next(r, &met, &err), MR_END);
    mr_npz_reader_free(r);
    assert_true(bytes_read() - before < 16 << 20);
    free(small);
    free(large);
}

static void test_full_disk(void **state)
{
    char *path = support_path("%s/full.npz", (char *)*state);
    const mr_npz_array array = {.name = "a", .dims = 1, .shape = {300000}, .count = 300000};
    float *values = calloc(array.count, sizeof *values);
    struct rlimit old, limit;
    mr_npz_writer *w;
    mr_error err, again;
    int fd = new_file(path);
    assert_non_null(values);
    assert_int_equal(mr_npz_create(fd, path, &w, &err), MR_OK);
    getrlimit(RLIMIT_FSIZE, &old);
    limit = old;
    limit.rlim_cur = 500000;
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &limit);
    mr_status status = mr_npz_add(w, &array, values, &err), finished = mr_npz_finish(w, NULL, &again);
    setrlimit(RLIMIT_FSIZE, &old);
    assert_int_equal(status, MR_SYSTEM);
    assert_non_null(strstr(err.text, path));
    assert_non_null(strstr(err.text, strerror(EFBIG)));
    assert_int_equal(finished, MR_SYSTEM);
    assert_string_equal(again.text, err.text);
    close(fd);
    free(values);
    free(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_TMPDIR(test_large_members_are_passed_over),
        IN_TMPDIR(test_full_disk),
    };
    return cmocka_run_group_tests_name("npz_large", tests, NULL, NULL);
}
