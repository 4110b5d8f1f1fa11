/* test_npz_hostile.c - .npz files that are damaged or made to mislead.
 * Invariant tested: every rejection is MR_BAD_DATA and names the file; what is accepted has the right data. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/hash.h"
#include "train/files/npz.h"
#include "train/files/npz_header.h"
#include "tests/support/support.h"
#include "tests/support/sources/archive.h"

static const float VALUES[6] = {1, -0.0f, 3.5f, 1e30f, -2, 7};

/* ---- one header -------------------------------------------------------------------------------------------------- */

#define F4      "'descr': '<f4', "
#define C_ORDER "'fortran_order': False, "

static void test_headers(void **state)
{
    static const struct {
        const char *text;
        const char *why; /* NULL: it is read */
        unsigned dims;
        uint64_t count;
    } cases[] = {
        {"{" F4 C_ORDER "'shape': (3, 4), }      \n", NULL, 2, 12},
        {"{\"shape\":(3,4,),\"fortran_order\":False,\"descr\":\"<f4\"}", NULL, 2, 12},
        {"{" F4 C_ORDER "'shape': ()}", NULL, 0, 1},
        {"{" F4 C_ORDER "'shape': (5,)}", NULL, 1, 5},
        {"{" F4 C_ORDER "'shape': (3L, 4L)}", NULL, 2, 12},
        {" { " F4 C_ORDER "'shape' : ( 0 , 9 ) , } ", NULL, 2, 0},
        {"{" F4 C_ORDER "'shape': (1,1,1,1,1,1,1,2)}", NULL, 8, 2},
        {"{" F4 C_ORDER "'shape': (1,1,1,1,1,1,1,1,1)}", "8 dimensions", 0, 0},
        {"{" F4 C_ORDER "'shape': (5)}", "not a tuple", 0, 0},
        {"{" F4 C_ORDER "'shape': 5}", "shape that cannot", 0, 0},
        {"{" F4 C_ORDER "'shape': (-5,)}", "shape that cannot", 0, 0},
        {"{" F4 C_ORDER "'shape': (,)}", "shape that cannot", 0, 0},
        {"{" F4 C_ORDER "'shape': (3 4)}", "shape that cannot", 0, 0},
        {"{" F4 C_ORDER "'shape': (3", "shape that cannot", 0, 0},
        {"{" F4 C_ORDER "'shape': (18446744073709551616,)}", "that no file could hold", 0, 0},
        {"{" F4 C_ORDER "'shape': (4294967296, 4294967296)}", "more elements", 0, 0},
        {"{" F4 C_ORDER "'shape': (4611686018427387904,)}", "more elements", 0, 0},
        {"{" F4 C_ORDER "'shape': (4294967296, 4294967296, 0)}", "more elements", 0, 0},
        {"{" F4 "'fortran_order': True, 'shape': (3, 4)}", "Fortran order", 0, 0},
        {"{" F4 "'fortran_order': 1, 'shape': (3, 4)}", "fortran_order", 0, 0},
        {"{'descr': '>f4', " C_ORDER "'shape': (3, 4)}", "big-endian", 0, 0},
        {"{'descr': '<f8', " C_ORDER "'shape': (3, 4)}", "a type other than", 0, 0},
        {"{'descr': '', " C_ORDER "'shape': (3, 4)}", "a type other than", 0, 0},
        {"{'descr': '|O', " C_ORDER "'shape': (3, 4)}", "a type other than", 0, 0},
        {"{'descr': [('a', '<f4')], " C_ORDER "'shape': (3, 4)}", "structured", 0, 0},
        {"{" F4 F4 C_ORDER "'shape': (3, 4)}", "one twice", 0, 0},
        {"{" F4 C_ORDER "'shape': (3, 4), 'more': 1}", "unknown key", 0, 0},
        {"{" F4 C_ORDER "}", "without one of", 0, 0},
        {"{}", "without one of", 0, 0},
        {"{" F4 C_ORDER "'shape': (3, 4)} x", "text after its end", 0, 0},
        {"{'descr': '<f4' " C_ORDER "'shape': (3, 4)}", "cannot be read", 0, 0},
        {"{'descr': '<f4\\', " C_ORDER "'shape': (3, 4)}", "cannot be read", 0, 0},
        {"{'descr", "cannot be read", 0, 0},
        {"{", "cannot be read", 0, 0},
        {"", "cannot be read", 0, 0},
        {"import os", "cannot be read", 0, 0},
    };
    (void)state;
    for (size_t i = 0; i < MR_COUNT(cases); i++) {
        size_t len = strlen(cases[i].text);
        char *text = malloc(len ? len : 1); /* just as long, for the sanitizer */
        const char *why = NULL;
        mr_npz_array a = {0};
        assert_non_null(text);
        memcpy(text, cases[i].text, len);
        bool ok = mr_npy_parse(text, len, &a, &why);
        if (ok != !cases[i].why || (ok && (a.dims != cases[i].dims || a.count != cases[i].count)) ||
            (!ok && !strstr(why, cases[i].why)))
            fail_msg("%s: %s, %u sides", cases[i].text, ok ? "read" : why, a.dims);
        free(text);
    }
}

static void test_header_written_is_read(void **state)
{
    mr_random rnd = support_random();
    (void)state;
    for (int round = 0; round < 2000; round++) {
        mr_npz_array a = {.type = (mr_npz_type)mr_random_below(&rnd, 3)}, b = {0};
        uint8_t out[MR_NPY_HEADER];
        size_t more, len;
        const char *why = "";
        a.dims = (unsigned)mr_random_below(&rnd, 9);
        for (unsigned i = 0; i < a.dims; i++)
            a.shape[i] = mr_random_u64(&rnd) >> mr_random_between(&rnd, 1, 63);
        size_t head = mr_npy_header(&a, out);
        uint64_t bytes;
        assert_int_equal(head % 64, 0);
        assert_true(mr_npy_prefix(out, 10, &more, &len, &why));
        assert_int_equal(more, 0);
        assert_int_equal(10 + len, head);
        if (mr_npz_count(a.type, a.dims, a.shape, &a.count, &bytes)) {
            if (!mr_npy_parse((char *)out + 10, len, &b, &why))
                fail_msg("%.300s: %s", (char *)out + 10, why);
            assert_memory_equal(&a, &b, sizeof a);
        } else {
            assert_false(mr_npy_parse((char *)out + 10, len, &b, &why));
        }
    }
}

/* ---- whole files ------------------------------------------------------------------------------------------------- */

/* A .npy of VALUES as 2x3, in this version of the format and with this many bytes after it (or missing). */
static uint8_t *make_npy(unsigned version, int more, size_t *len)
{
    static const char text[] = "{" F4 C_ORDER "'shape': (2, 3), }   \n";
    size_t words = sizeof text - 1, at = version == 1 ? 10 : 12;
    uint8_t *npy = calloc(1, at + words + sizeof VALUES + 64);
    assert_non_null(npy);
    memcpy(npy, "\x93NUMPY", 6);
    npy[6] = (uint8_t)version;
    npy[8] = (uint8_t)words;
    memcpy(npy + at, text, words);
    memcpy(npy + at + words, VALUES, sizeof VALUES);
    *len = (size_t)((int)(at + words + sizeof VALUES) + more);
    return npy;
}

/* Walks all of a file, with or without taking; the status of the end, MR_END or the failure. */
static mr_status walk(const char *path, bool take, size_t *arrays, mr_error *err)
{
    mr_npz_reader *r = NULL;
    const mr_npz_array *a;
    float have[6];
    *arrays = 0;
    mr_status status = mr_npz_open(path, &r, err);
    while (status == MR_OK && (status = mr_npz_next(r, &a, err)) == MR_OK) {
        ++*arrays;
        if (!take)
            continue;
        assert_int_equal(mr_npz_bytes(a), sizeof have);
        if ((status = mr_npz_take(r, have, sizeof have, err)) == MR_OK)
            assert_memory_equal(have, VALUES, sizeof have);
    }
    mr_npz_reader_free(r);
    return status;
}

static void test_members(void **state)
{
    static const struct {
        const char *kind, *first, *second, *why;
        unsigned version;
        int more;
    } cases[] = {
        {"zip", "a.npy", NULL, NULL, 1, 0},
        {"zip-deflate", "a/b.npy", "a/c.npy", NULL, 1, 0},
        {"zip", "a.npy", NULL, NULL, 2, 0},
        {"zip", "a.npy", NULL, NULL, 3, 0},
        {"zip", "a.npy", NULL, "unknown version", 4, 0},
        {"zip", "a.npy", "a.npy", "twice", 1, 0},
        {"zip", "a.npy", NULL, "header asks for", 1, 1},
        {"zip", "a.npy", NULL, "header asks for", 1, -1},
        {"zip", "a.npy", NULL, "header asks for", 1, -24},
        {"zip", "a.npy", NULL, "ends early", 1, -30},
        {"zip", "a.npy", NULL, "ends early", 1, -76},
        {"zip", "a.txt", NULL, "is not a .npy file", 1, 0},
        {"zip", "npy", NULL, "is not a .npy file", 1, 0},
        {"zip", ".npy", NULL, "no name", 1, 0},
        {"zip", "../a.npy", NULL, "\"..\"", 1, 0},
        {"zip", "/a.npy", NULL, "empty part", 1, 0},
        {"zip", "a\nb.npy", NULL, "ASCII", 1, 0},
        {"zip", "a\x1b[2J.npy", NULL, "ASCII", 1, 0},
        {"tar", "a.npy", NULL, "not a .npz file", 1, 0},
        {"7z", "a.npy", NULL, "not a .npz file", 1, 0},
    };
    char *path = support_path("%s/a.npz", (char *)*state);
    for (size_t i = 0; i < MR_COUNT(cases); i++) {
        size_t len, arrays;
        uint8_t *npy = make_npy(cases[i].version, cases[i].more, &len);
        support_entry entries[2] = {{.path = cases[i].first, .bytes = npy, .len = len},
                                    {.path = cases[i].second, .bytes = npy, .len = len}};
        mr_error err = {0};
        support_archive(path, cases[i].kind, entries, cases[i].second ? 2 : 1);
        mr_status status = walk(path, true, &arrays, &err);
        if (status != (cases[i].why ? MR_BAD_DATA : MR_END) || (cases[i].why && !strstr(err.text, cases[i].why)))
            fail_msg("case %zu: %d %s", i, status, err.text);
        for (const char *p = err.text; *p; p++)
            assert_true(*p >= 0x20);
        free(npy);
    }
    char *name = support_path("%0300d.npy", 1);
    size_t len, arrays;
    uint8_t *npy = make_npy(1, 0, &len);
    mr_error err;
    support_archive(path, "zip", &(support_entry){.path = name, .bytes = npy, .len = len}, 1);
    assert_int_equal(walk(path, false, &arrays, &err), MR_BAD_DATA);
    assert_non_null(strstr(err.text, "255 bytes"));
    free(npy);
    free(name);
    free(path);
}

static void test_other_files(void **state)
{
    char *path = support_path("%s/a.npz", (char *)*state);
    size_t arrays, len;
    mr_error err;
    uint8_t *npy = make_npy(1, 0, &len);
    support_write(path, npy, len); /* a lone .npy */
    assert_int_equal(walk(path, true, &arrays, &err), MR_BAD_DATA);
    assert_non_null(strstr(err.text, path));
    support_write(path, "", 0);
    assert_int_equal(walk(path, true, &arrays, &err), MR_BAD_DATA);
    assert_int_equal(walk(*state, true, &arrays, &err), MR_BAD_DATA); /* a folder */
    free(npy);
    free(path);
}

/* An array may claim no more than its file could hold; 100 GB of zeros deflated once more would fit. */
static void test_claims(void **state)
{
    static const char text[] = "{" F4 C_ORDER "'shape': (25000000000,), }\n";
    char *path = support_path("%s/a.npz", (char *)*state);
    uint8_t npy[10 + sizeof text - 1 + 4000] = "\x93NUMPY\1";
    size_t arrays;
    mr_error err;
    npy[8] = sizeof text - 1;
    memcpy(npy + 10, text, sizeof text - 1);
    support_archive(path, "zip", &(support_entry){.path = "a.npy", .bytes = npy, .len = sizeof npy}, 1);
    assert_int_equal(walk(path, false, &arrays, &err), MR_BAD_DATA);
    assert_non_null(strstr(err.text, "larger than its file"));
    free(path);
}

/* ---- damage ------------------------------------------------------------------------------------------------------ */

typedef struct file {
    uint8_t *bytes;
    size_t len;
    int fd; /* a file in memory that gets the damaged bytes */
} file;

/* Two arrays, "one" and "two/three", stored by us or deflated by libarchive. */
static file make_file(const char *dir, bool deflated)
{
    file f;
    size_t len;
    char *path = support_path("%s/a.npz", dir);
    uint8_t *npy = make_npy(1, 0, &len);
    if (deflated) {
        support_entry entries[] = {{.path = "one.npy", .bytes = npy, .len = len},
                                   {.path = "two/three.npy", .bytes = npy, .len = len}};
        support_archive(path, "zip-deflate", entries, 2);
    } else {
        mr_npz_array a = {.name = "one", .dims = 2, .shape = {2, 3}, .count = 6};
        mr_npz_writer *w;
        int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
        assert_int_equal(mr_npz_create(fd, path, &w, NULL), MR_OK);
        assert_int_equal(mr_npz_add(w, &a, VALUES, NULL), MR_OK);
        strcpy(a.name, "two/three");
        assert_int_equal(mr_npz_add(w, &a, VALUES, NULL), MR_OK);
        assert_int_equal(mr_npz_finish(w, NULL, NULL), MR_OK);
        close(fd);
    }
    f.bytes = support_read(path, &f.len);
    f.fd = memfd_create("npz", MFD_CLOEXEC);
    assert_true(f.fd >= 0);
    free(npy);
    free(path);
    return f;
}

static void file_free(file *f)
{
    close(f->fd);
    free(f->bytes);
}

/* Reads the first `len` bytes of the file: true if both arrays came back, with the right data (then *names says whether
 * under their names). */
static bool reads(file *f, size_t len, bool *names)
{
    mr_npz_reader *r = NULL;
    const mr_npz_array *a;
    mr_error err = {0};
    float have[6];
    size_t count = 0;
    bool hurt = false;
    *names = true;
    assert_int_equal(ftruncate(f->fd, 0), 0);
    assert_int_equal(pwrite(f->fd, f->bytes, len, 0), len);
    mr_status status = mr_npz_open_fd(f->fd, "in.npz", &r, &err);
    while (status == MR_OK && (status = mr_npz_next(r, &a, &err)) == MR_OK) {
        *names = *names && strcmp(a->name, count ? "two/three" : "one") == 0;
        count++;
        hurt = hurt || mr_npz_bytes(a) != sizeof have; /* the caller sees that, and does not take it */
        if (mr_npz_bytes(a) == sizeof have && (status = mr_npz_take(r, have, sizeof have, &err)) == MR_OK)
            assert_memory_equal(have, VALUES, sizeof have);
    }
    mr_npz_reader_free(r);
    if (status != MR_END) {
        assert_int_equal(status, MR_BAD_DATA);
        assert_int_equal(err.status, MR_BAD_DATA);
        assert_non_null(strstr(err.text, "in.npz"));
    }
    return status == MR_END && count == 2 && !hurt;
}

static void test_truncations(void **state)
{
    for (int deflated = 0; deflated < 2; deflated++) {
        file f = make_file(*state, deflated);
        bool names;
        assert_true(reads(&f, f.len, &names) && names);
        for (size_t len = 0; len < f.len; len++)
            if (reads(&f, len, &names))
                fail_msg("the first %zu of %zu bytes are read", len, f.len);
        file_free(&f);
    }
}

/* Every byte of a file, changed in some ways.  What is read without complaint has the right data; a name may differ if
 * one of its own bytes was hurt, which nothing in a zip protects (a checkpoint's digest does). */
static void test_flips(void **state)
{
    static const uint8_t flips[] = {0x01, 0x02, 0x04, 0x08, 0x10, 0x20, 0x40, 0x80, 0xFF, 0x55};
    for (int deflated = 0; deflated < 2; deflated++) {
        file f = make_file(*state, deflated);
        size_t renamed = 0, silent = 0;
        for (size_t at = 0; at < f.len; at++)
            for (size_t k = 0; k < MR_COUNT(flips); k++) {
                bool names;
                f.bytes[at] ^= flips[k];
                if (reads(&f, f.len, &names)) {
                    renamed += !names;
                    silent += names;
                }
                f.bytes[at] ^= flips[k];
            }
        print_message("%s: of %zu changes %zu mean nothing, %zu change a name\n", deflated ? "deflated" : "stored",
                      f.len * MR_COUNT(flips), silent, renamed);
        assert_true(renamed <= MR_COUNT(flips) * (strlen("one.npy") + strlen("two/three.npy")));
        file_free(&f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_headers), cmocka_unit_test(test_header_written_is_read),
        IN_TMPDIR(test_members),        IN_TMPDIR(test_other_files),
        IN_TMPDIR(test_claims),         IN_TMPDIR(test_truncations),
        IN_TMPDIR(test_flips),
    };
    return cmocka_run_group_tests_name("npz_hostile", tests, NULL, NULL);
}
