/* test_npz.c - .npz files: round trips, wrong calls, exchange with numpy both ways.
 * Invariant tested: arrays are compared as bytes, so a changed NaN or -0 is seen. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <archive.h>
#include <archive_entry.h>

#include "base/files/file.h"
#include "train/files/npz.h"
#include "tests/support/support.h"
#include "tests/support/training/npz.h"

typedef struct drawn {
    mr_npz_array array;
    uint8_t *bytes;
} drawn;

static size_t element(mr_npz_type type)
{
    return type == MR_NPZ_F32 ? 4 : type == MR_NPZ_I64 ? 8 : 1;
}

/* Any type, 0 to 8 sides, sides of 0 sometimes, up to some 100,000 elements. */
static drawn draw(mr_random *r, size_t number)
{
    drawn d = {.array = {.type = (mr_npz_type)mr_random_below(r, 3), .count = 1}};
    d.array.dims = (unsigned)mr_random_below(r, 9);
    uint64_t most = mr_random_below(r, 4) ? 300 : 100000;
    snprintf(d.array.name, sizeof d.array.name, "block_%zu/%.*s", number, (int)mr_random_between(r, 1, 40),
             "kernel of a layer with a long name ~!@#$%&");
    for (unsigned i = 0; i < d.array.dims; i++) {
        d.array.shape[i] = mr_random_below(r, 60) == 0 ? 0 : mr_random_between(r, 1, d.array.dims < 3 ? most : 4);
        if (d.array.count * d.array.shape[i] > 200000)
            d.array.shape[i] = 1;
        d.array.count *= d.array.shape[i];
    }
    d.bytes = malloc(d.array.count * 8 + 1);
    assert_non_null(d.bytes);
    mr_random_bytes(r, d.bytes, d.array.count * element(d.array.type));
    return d;
}

static int new_file(const char *path)
{
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    assert_true(fd >= 0);
    return fd;
}

static mr_digest write_all(const char *path, const drawn *arrays, size_t count)
{
    mr_npz_writer *w;
    mr_digest digest;
    mr_error err;
    int fd = new_file(path);
    assert_int_equal(mr_npz_create(fd, path, &w, &err), MR_OK);
    for (size_t i = 0; i < count; i++)
        if (mr_npz_add(w, &arrays[i].array, arrays[i].bytes, &err) != MR_OK)
            fail_msg("%s", err.text);
    if (mr_npz_finish(w, &digest, &err) != MR_OK)
        fail_msg("%s", err.text);
    close(fd);
    return digest;
}

static void assert_same_array(const mr_npz_array *a, const mr_npz_array *b)
{
    assert_string_equal(a->name, b->name);
    assert_int_equal(a->type, b->type);
    assert_int_equal(a->dims, b->dims);
    assert_int_equal(a->count, b->count);
    for (unsigned i = 0; i < a->dims; i++)
        assert_int_equal(a->shape[i], b->shape[i]);
}

static void take_and_compare(mr_npz_reader *r, const mr_npz_array *a, const void *want)
{
    size_t bytes = a->count * element(a->type);
    mr_error err;
    uint8_t *have = malloc(bytes + 1);
    assert_non_null(have);
    assert_int_equal(mr_npz_bytes(a), bytes);
    if (mr_npz_take(r, have, bytes, &err) != MR_OK)
        fail_msg("%s", err.text);
    assert_memory_equal(have, want, bytes);
    free(have);
}

static mr_npz_reader *open_npz(const char *path)
{
    mr_npz_reader *r;
    mr_error err;
    if (mr_npz_open(path, &r, &err) != MR_OK)
        fail_msg("%s", err.text);
    return r;
}

static const mr_npz_array *next_array(mr_npz_reader *r)
{
    const mr_npz_array *a;
    mr_error err;
    if (mr_npz_next(r, &a, &err) != MR_OK)
        fail_msg("%s", err.text);
    return a;
}

static void expect_end(mr_npz_reader *r)
{
    const mr_npz_array *a;
    assert_int_equal(mr_npz_next(r, &a, NULL), MR_END);
    mr_npz_reader_free(r);
}

static void test_round_trip(void **state)
{
    enum { COUNT = 40 };
    char *dir = *state, *path = support_path("%s/a.npz", dir);
    mr_random rnd = support_random();
    drawn arrays[COUNT];
    for (size_t i = 0; i < COUNT; i++)
        arrays[i] = draw(&rnd, i);
    mr_digest said = write_all(path, arrays, COUNT), seen;
    mr_npz_reader *r = open_npz(path);
    for (size_t i = 0; i < COUNT; i++) {
        const mr_npz_array *a = next_array(r);
        assert_same_array(a, &arrays[i].array);
        if (mr_random_below(&rnd, 3)) /* the others are passed over */
            take_and_compare(r, a, arrays[i].bytes);
    }
    expect_end(r);

    int fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_int_equal(mr_file_digest(fd, support_size(path), false, path, &seen, NULL), MR_OK);
    assert_int_equal(said.bytes, support_size(path));
    assert_memory_equal(said.xxh3_128, seen.xxh3_128, 16);
    close(fd);
    char *again = support_path("%s/b.npz", dir);
    setenv("TZ", "XYZ-11:30", 1); /* the same bytes at any time and place */
    tzset();
    write_all(again, arrays, COUNT);
    unsetenv("TZ");
    tzset();
    support_assert_same_file(path, again);
    for (size_t i = 0; i < COUNT; i++)
        free(arrays[i].bytes);
    free(path);
    free(again);
}

static void test_no_arrays(void **state)
{
    char *path = support_path("%s/none.npz", (char *)*state);
    mr_npz_reader *r;
    mr_error err;
    write_all(path, NULL, 0);
    assert_int_equal(mr_npz_open(path, &r, &err), MR_BAD_DATA); /* libarchive sees no zip in an empty one */
    mr_npz_reader_free(NULL);
    assert_int_equal(mr_npz_finish(NULL, NULL, NULL), MR_OK);
    free(path);
}

static void test_misuse(void **state)
{
    char *path = support_path("%s/a.npz", (char *)*state);
    float values[6] = {0};
    const mr_npz_array good = {.name = "a/b", .dims = 2, .shape = {2, 3}, .count = 6};
    static const char *const names[] = {"",  "a/../b", "..",    "/a",   "a//b",       "a/",
                                        ".", "a\nb",   "a\x7f", "a\\b", "caf\xC3\xA9"};
    mr_npz_writer *w;
    mr_error err;
    int fd = new_file(path);
    assert_int_equal(mr_npz_create(fd, path, &w, &err), MR_OK);
    for (size_t i = 0; i < MR_COUNT(names); i++) {
        mr_npz_array bad = good;
        snprintf(bad.name, sizeof bad.name, "%s", names[i]);
        assert_int_equal(mr_npz_add(w, &bad, values, &err), MR_MISUSE);
        assert_int_equal(err.status, MR_MISUSE);
    }
    mr_npz_array bad = good;
    memset(bad.name, 'x', sizeof bad.name);
    assert_int_equal(mr_npz_add(w, &bad, values, &err), MR_MISUSE);
    bad = good;
    bad.count = 5;
    assert_int_equal(mr_npz_add(w, &bad, values, &err), MR_MISUSE);
    bad = good;
    bad.shape[0] = UINT64_MAX / 2;
    assert_int_equal(mr_npz_add(w, &bad, values, &err), MR_MISUSE);
    bad = good;
    bad.dims = MR_NPZ_DIMS + 1;
    assert_int_equal(mr_npz_add(w, &bad, values, &err), MR_MISUSE);
    assert_int_equal(mr_npz_add(w, &good, values, &err), MR_OK);
    assert_int_equal(mr_npz_add(w, &good, values, &err), MR_MISUSE); /* twice */
    assert_non_null(strstr(err.text, "a/b"));
    assert_int_equal(mr_npz_finish(w, NULL, &err), MR_OK);
    close(fd);

    mr_npz_reader *r = open_npz(path);
    assert_int_equal(mr_npz_take(r, values, sizeof values, &err), MR_MISUSE); /* nothing met yet */
    next_array(r);
    assert_int_equal(mr_npz_take(r, values, sizeof values - 4, &err), MR_MISUSE);
    assert_int_equal(mr_npz_take(r, values, sizeof values, &err), MR_OK);
    assert_int_equal(mr_npz_take(r, values, sizeof values, &err), MR_MISUSE);
    expect_end(r);
    assert_int_equal(mr_npz_open("/nonexistent/a.npz", &r, &err), MR_SYSTEM);
    free(path);
}

/* ---- numpy ------------------------------------------------------------------------------------------------------- */

static bool numpy(const char *mode, const char *a, const char *b)
{
    return support_python_ran("train/files/npz_numpy.py", (const char *[]){mode, a, b, NULL}, NULL);
}

/* One line of an index: "NAME DESCR 2x3". */
static mr_npz_array parse_line(char *line)
{
    mr_npz_array a = {.count = 1};
    char *name = strsep(&line, " "), *descr = strsep(&line, " "), *side;
    snprintf(a.name, sizeof a.name, "%s", name);
    a.type = strcmp(descr, "<f4") == 0 ? MR_NPZ_F32 : strcmp(descr, "<i8") == 0 ? MR_NPZ_I64 : MR_NPZ_U8;
    while (*line != '-' && (side = strsep(&line, "x"))) {
        a.count *= a.shape[a.dims++] = strtoull(side, NULL, 10);
        if (!line)
            break;
    }
    return a;
}

static void test_ours_read_by_numpy(void **state)
{
    enum { COUNT = 12 };
    char *dir = *state, *path = support_path("%s/a.npz", dir), *unpacked = support_path("%s/u", dir);
    mr_random rnd = support_random();
    drawn arrays[COUNT];
    for (size_t i = 0; i < COUNT; i++) {
        arrays[i] = draw(&rnd, i);
        snprintf(arrays[i].array.name, sizeof arrays[i].array.name, "b%zu/kernel", i);
    }
    write_all(path, arrays, COUNT);
    assert_int_equal(mkdir(unpacked, 0755), 0);
    bool ran = numpy("unpack", path, unpacked);
    char *index_path = support_path("%s/index", unpacked);
    char *index = ran ? (char *)support_read(index_path, NULL) : NULL, *rest = index;
    for (size_t i = 0; ran && i < COUNT; i++) {
        char *raw_path = support_path("%s/%zu.bin", unpacked, i);
        size_t len;
        uint8_t *raw = support_read(raw_path, &len);
        mr_npz_array a = parse_line(strsep(&rest, "\n"));
        assert_same_array(&a, &arrays[i].array);
        assert_int_equal(len, a.count * element(a.type));
        assert_memory_equal(raw, arrays[i].bytes, len);
        free(raw);
        free(raw_path);
    }
    for (size_t i = 0; i < COUNT; i++)
        free(arrays[i].bytes);
    free(index);
    free(index_path);
    free(unpacked);
    free(path);
    if (!ran)
        skip();
}

static void test_numpys_read_by_us(void **state)
{
    static const char *const kinds[] = {"stored", "deflated", "piped"};
    char *dir = *state;
    if (!numpy("pack", dir, NULL))
        skip();
    for (size_t k = 0; k < MR_COUNT(kinds); k++) {
        char *path = support_path("%s/%s.npz", dir, kinds[k]), *index_path = support_path("%s/index", dir);
        char *index = (char *)support_read(index_path, NULL), *rest = index, *line;
        mr_npz_reader *r = open_npz(path);
        for (size_t i = 0; (line = strsep(&rest, "\n")) && *line; i++) {
            char *raw_path = support_path("%s/%zu.bin", dir, i);
            uint8_t *raw = support_read(raw_path, NULL);
            mr_npz_array want = parse_line(line);
            const mr_npz_array *a = next_array(r);
            assert_same_array(a, &want);
            take_and_compare(r, a, raw);
            free(raw);
            free(raw_path);
        }
        expect_end(r);
        free(index);
        free(index_path);
        free(path);
    }
}

/* The end of member "NAME.npy", which is its elements, as libarchive alone gives it; heap. */
static uint8_t *member_end(const char *path, const char *name, size_t bytes)
{
    struct archive *z = archive_read_new();
    struct archive_entry *e;
    char *want = support_path("%s.npy", name);
    uint8_t *all = NULL;
    archive_read_support_format_zip_streamable(z);
    assert_int_equal(archive_read_open_filename(z, path, 1 << 16), ARCHIVE_OK);
    while (!all && archive_read_next_header(z, &e) == ARCHIVE_OK)
        if (strcmp(archive_entry_pathname(e), want) == 0) {
            size_t size = (size_t)archive_entry_size(e);
            all = malloc(size);
            assert_non_null(all);
            assert_int_equal(archive_read_data(z, all, size), size);
            assert_true(size > bytes);
            memmove(all, all + size - bytes, bytes);
        }
    archive_read_free(z);
    free(want);
    return all;
}

static void test_parity_files(void **state)
{
    static const char *const names[] = {"vit_a_weights.npz", "vit_b_io.npz", "bt_a_io.npz", "posembed.npz",
                                        "images/resize.npz"};
    (void)state;
    size_t files = 0, arrays = 0;
    for (size_t i = 0; i < MR_COUNT(names); i++) {
        char *path = support_parity(names[i]);
        if (!path)
            continue;
        mr_npz_reader *r = open_npz(path);
        const mr_npz_array *a;
        mr_status status;
        mr_error err;
        while ((status = mr_npz_next(r, &a, &err)) == MR_OK) {
            uint8_t *want = member_end(path, a->name, mr_npz_bytes(a));
            assert_non_null(want);
            take_and_compare(r, a, want);
            free(want);
            arrays++;
        }
        if (status != MR_END)
            fail_msg("%s", err.text);
        mr_npz_reader_free(r);
        free(path);
        files++;
    }
    if (files == 0) {
        print_message("skipped: no parity fixtures (MILLRACE_PARITY)\n");
        skip();
    }
    assert_true(arrays > 50);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_TMPDIR(test_round_trip),         IN_TMPDIR(test_no_arrays),         IN_TMPDIR(test_misuse),
        IN_TMPDIR(test_ours_read_by_numpy), IN_TMPDIR(test_numpys_read_by_us), cmocka_unit_test(test_parity_files),
    };
    return cmocka_run_group_tests_name("npz", tests, NULL, NULL);
}
