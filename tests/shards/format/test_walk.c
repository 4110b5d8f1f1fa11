/* test_walk.c - our page walk against liblmdb's own cursor, and against damage.
 * Invariant tested: on whole files the walk is the cursor, on any other file it ends and stays inside the file. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files/file.h"
#include "shards/manifest/format.h"
#include "shards/format/walk.h"
#include "tests/support/support.h"
#include "tests/support/shards/lmdb.h"

typedef struct record {
    uint64_t sample, offset, len;
} record;

typedef struct found {
    record *items;
    size_t count, capacity;
    uint64_t size;  /* of the file: records must lie inside */
    size_t stop_at; /* 0: never */
} found;

static mr_status collect(void *ctx, const mr_walk_record *r, mr_error *err)
{
    found *f = ctx;
    assert_true(r->offset <= f->size && r->len <= f->size - r->offset);
    assert_true(f->count == 0 || f->items[f->count - 1].sample < r->sample);
    assert_true(MR_GROW(f->items, f->count, f->capacity));
    f->items[f->count++] = (record){r->sample, r->offset, r->len};
    return f->count == f->stop_at ? mr_fail(err, MR_END, "enough") : MR_OK;
}

static mr_status walk_file(const char *path, const char *database, found *out, mr_error *err)
{
    int fd;
    *out = (found){.stop_at = out->stop_at};
    assert_int_equal(mr_file_open(AT_FDCWD, path, false, &fd, &out->size, err), MR_OK);
    mr_status status = mr_walk(fd, out->size, "t.mdb", database, collect, out, err);
    close(fd);
    return status;
}

/* Refused as damaged, with these words in the message. */
static void expect_bad(const char *path, const char *database, const char *words)
{
    found f = {0};
    mr_error err;
    assert_int_equal(walk_file(path, database, &f, &err), MR_BAD_DATA);
    if (!strstr(err.text, words) || !strstr(err.text, "t.mdb"))
        fail_msg("\"%s\" does not mention \"%s\"", err.text, words);
    free(f.items);
}

typedef struct versus {
    const found *walked;
    const uint8_t *file;
    size_t next;
} versus;

static void compare(void *ctx, uint64_t sample, const uint8_t *bytes, size_t len)
{
    versus *v = ctx;
    assert_true(v->next < v->walked->count);
    const record *r = &v->walked->items[v->next++];
    assert_true(r->sample == sample && r->len == len);
    assert_memory_equal(v->file + r->offset, bytes, len);
}

static void expect_cursor_equal(const char *path, const char *database)
{
    found f = {0};
    mr_error err;
    if (walk_file(path, database, &f, &err) != MR_OK)
        fail_msg("%s", err.text);
    uint8_t *file = support_read(path, NULL);
    versus v = {&f, file, 0};
    assert_int_equal(lmdb_each(path, database, compare, &v), f.count);
    assert_int_equal(v.next, f.count);
    free(file);
    free(f.items);
}

/* Numbers from first on; sizes spread evenly over orders of magnitude, so that pages of many records, of one record
 * and runs of pages all occur. */
static void write_random(const char *path, mr_random *r, size_t count, size_t max, uint64_t first, uint64_t batch)
{
    static uint8_t bytes[4 * MR_LMDB_PAGE];
    lmdb_file *f = lmdb_create(path, batch, 0);
    mr_random_bytes(r, bytes, sizeof bytes);
    for (size_t i = 0; i < count; i++) {
        size_t len = 1 + mr_random_below(r, 1 + mr_random_below(r, max));
        size_t at = mr_random_below(r, sizeof bytes - len);
        if (mr_random_below(r, 8) != 0)
            lmdb_put(f, true, first + i, bytes + at, len);
        lmdb_put(f, false, first + i, bytes, 2 + mr_random_below(r, 300));
    }
    lmdb_finish(f);
}

static void test_walk_is_cursor(void **state)
{
    (void)state;
    char *dir = support_tmpdir();
    mr_random r = support_random();
    for (int round = 0; round < 20; round++) {
        char *path = support_path("%s/%d.mdb", dir, round);
        size_t count = round < 4 ? (size_t)round : 1 + mr_random_below(&r, round < 17 ? 600 : 5000);
        size_t max = round % 3 == 0 ? 200 : 3 * MR_LMDB_PAGE;
        uint64_t first = round % 2 ? 0 : mr_random_u64(&r) >> mr_random_below(&r, 60) >> 1;
        write_random(path, &r, count, max, first, round % 4 ? 1 + mr_random_below(&r, 1 << 18) : 0);
        expect_cursor_equal(path, "image");
        expect_cursor_equal(path, "meta");
        unlink(path);
        free(path);
    }
    support_tmpdir_remove(dir);
}

/* Every size around the places where LMDB changes from a node to a run, and from a run to a longer one. */
static void test_edge_sizes(void **state)
{
    (void)state;
    static const uint8_t bytes[3 * MR_LMDB_PAGE];
    char *dir = support_tmpdir(), *path = support_path("%s/edge.mdb", dir);
    lmdb_file *f = lmdb_create(path, 0, 0);
    uint64_t n = 0;
    for (size_t len = 1960; len < 2060; len++)
        lmdb_put(f, true, n++, bytes, len);
    for (size_t len = 4070; len < 4100; len++)
        lmdb_put(f, true, n++, bytes, len);
    for (size_t len = 8170; len < 8200; len++)
        lmdb_put(f, true, n++, bytes, len);
    lmdb_put(f, true, UINT64_MAX - 1, bytes, 7);
    lmdb_put(f, true, UINT64_MAX, bytes, 8);
    lmdb_finish(f);
    expect_cursor_equal(path, "image");
    expect_cursor_equal(path, "meta");
    free(path);
    support_tmpdir_remove(dir);
}

static void test_stop_is_passed_on(void **state)
{
    (void)state;
    char *dir = support_tmpdir(), *path = support_path("%s/a.mdb", dir);
    mr_random r = support_random();
    mr_error err;
    write_random(path, &r, 300, 3000, 0, 0);
    found f = {.stop_at = 17};
    assert_int_equal(walk_file(path, "meta", &f, &err), MR_END);
    assert_int_equal(f.count, 17);
    free(f.items);
    free(path);
    support_tmpdir_remove(dir);
}

static void test_not_a_shard(void **state)
{
    (void)state;
    char *dir = support_tmpdir(), *path = support_path("%s/a.mdb", dir);
    support_write(path, "", 0);
    expect_bad(path, "image", "pages");
    support_write(path, "hello", 5);
    expect_bad(path, "image", "pages");
    uint8_t *zeros = calloc(3, MR_LMDB_PAGE);
    support_write(path, zeros, 3 * MR_LMDB_PAGE);
    expect_bad(path, "image", "not the start of an LMDB file");
    free(zeros);
    unlink(path);

    lmdb_finish(lmdb_create(path, 0, 0));
    expect_cursor_equal(path, "image");
    expect_bad(path, "labels", "no database \"labels\"");
    expect_bad(path, "imag", "no database \"imag\"");
    unlink(path);

    lmdb_finish(lmdb_create(path, 0, MDB_REVERSEKEY));
    expect_bad(path, "image", "flags");
    unlink(path);

    lmdb_file *f = lmdb_create(path, 0, 0);
    lmdb_put_key(f, true, "0000001", 7, "x", 1);
    lmdb_put_key(f, false, "000000001", 9, "x", 1);
    lmdb_finish(f);
    expect_bad(path, "image", "not 8 bytes");
    expect_bad(path, "meta", "not 8 bytes");
    free(path);
    support_tmpdir_remove(dir);
}

/* ---- damage --------------------------------------------------------------------------------------------------- */

static uint8_t *page_at(uint8_t *file, size_t n)
{
    return file + n * MR_LMDB_PAGE;
}

/* A page that has structure: a meta, branch or leaf page, or the first of a run. */
static uint8_t *structural_page(uint8_t *file, size_t pages, mr_random *r)
{
    for (;;) {
        size_t n = mr_random_below(r, pages);
        uint8_t *p = page_at(file, n);
        uint16_t flags = mr_get16le(p + 10);
        if (mr_get64le(p) == n && flags && flags <= 8)
            return p;
    }
}

/* One of the kinds of damage; returns the new size of the file. */
static size_t damage(uint8_t *file, size_t size, unsigned kind, mr_random *r)
{
    static const uint16_t odd[] = {0, 1, 2, 3, 8, 15, 16, 17, 0x7FFF, 0x8000, 4088, 4095, 4096, 4097, 0xFFFF};
    uint8_t other[MR_LMDB_PAGE];
    size_t pages = size / MR_LMDB_PAGE;
    uint8_t *p = structural_page(file, pages, r), *q = structural_page(file, pages, r);
    switch (kind) {
    case 0: /* a bit near the start, where headers and places are */
        p[mr_random_below(r, 160)] ^= (uint8_t)(1u << mr_random_below(r, 8));
        return size;
    case 1: /* a byte anywhere in a structural page */
        p[mr_random_below(r, MR_LMDB_PAGE)] ^= (uint8_t)(1 + mr_random_below(r, 255));
        return size;
    case 2: { /* a number with a value that invites mistakes */
        uint16_t v = odd[mr_random_below(r, MR_COUNT(odd))];
        memcpy(p + 2 * mr_random_below(r, MR_LMDB_PAGE / 2), &v, sizeof v);
        return size;
    }
    case 3:
        return mr_random_below(r, size); /* truncated, at any byte or at a page */
    case 4:
        return mr_random_below(r, pages) * MR_LMDB_PAGE;
    case 5: /* two pages change places */
        memcpy(other, p, sizeof other);
        memmove(p, q, sizeof other);
        memcpy(q, other, sizeof other);
        return size;
    case 6: /* a page stands twice, with its number set right */
        memmove(p, q, MR_LMDB_PAGE);
        mr_put64le(p, (uint64_t)(p - file) / MR_LMDB_PAGE);
        return size;
    case 7:
        memset(p, 0, MR_LMDB_PAGE);
        return size;
    case 8: { /* a field of a node: length, flags, key length */
        uint16_t v = odd[mr_random_below(r, MR_COUNT(odd))], at = mr_get16le(p + 16 + 2 * mr_random_below(r, 8));
        if (at <= MR_LMDB_PAGE - 8)
            memcpy(p + at + 2 * mr_random_below(r, 4), &v, sizeof v);
        return size;
    }
    default: /* a whole number in a node or a meta page */
        mr_put64le(p + mr_random_below(r, MR_LMDB_PAGE - 8), mr_random_u64(r) >> mr_random_below(r, 64));
        return size;
    }
}

static void test_damage(void **state)
{
    (void)state;
    char *dir = support_tmpdir(), *path = support_path("%s/whole.mdb", dir), *hurt = support_path("%s/hurt.mdb", dir);
    mr_random r = support_random();
    size_t size, refused = 0;
    write_random(path, &r, 700, 3000, 0, 200000);
    uint8_t *whole = support_read(path, &size);
    uint8_t *file = malloc(size);
    assert_non_null(file);
    for (unsigned trial = 0; trial < 1200; trial++) {
        found f = {0};
        mr_error err;
        memcpy(file, whole, size);
        size_t left = damage(file, size, trial % 10, &r);
        support_write(hurt, file, left);
        bool bad = false;
        for (int db = 0; db < 2; db++) {
            err.text[0] = '\0';
            mr_status status = walk_file(hurt, db ? "meta" : "image", &f, &err);
            assert_true(status == MR_OK || (status == MR_BAD_DATA && strstr(err.text, "t.mdb")));
            bad |= status != MR_OK;
            free(f.items);
        }
        assert_true(bad || trial % 10 != 3); /* a truncated file is never taken for whole */
        refused += bad;
    }
    assert_true(refused > 600);
    free(file);
    free(whole);
    free(path);
    free(hurt);
    support_tmpdir_remove(dir);
}

/* One field at a time, each with the words that name it. */
static void test_lies(void **state)
{
    (void)state;
    char *dir = support_tmpdir(), *path = support_path("%s/a.mdb", dir);
    mr_random r = support_random();
    size_t size;
    write_random(path, &r, 2000, 300, 0, 100000);
    uint8_t *file = support_read(path, &size), *copy = malloc(size);
    assert_non_null(copy);
    unsigned meta = mr_get64le(file + MR_LMDB_PAGE + 144) > mr_get64le(file + 144);
    uint8_t *head = page_at(copy, meta);
#define TRY(words, change)                                                                                             \
    do {                                                                                                               \
        memcpy(copy, file, size);                                                                                      \
        uint8_t *leaf = page_at(copy, mr_get64le(head + 88 + 40)); /* the table of databases */                        \
        uint8_t *db = leaf + mr_get16le(leaf + 16) + 8 + 5, *root = page_at(copy, mr_get64le(db + 40));                \
        (void)root;                                                                                                    \
        change;                                                                                                        \
        support_write(path, copy, size);                                                                               \
        expect_bad(path, "image", words);                                                                              \
    } while (0)
    TRY("not the start of an LMDB file", head[16] ^= 1);
    TRY("not the start of an LMDB file", head[20]++);
    TRY("pages of 8192 bytes", mr_put32le(head + 40, 8192));
    TRY("not a data page of this file", mr_put64le(head + 136, 4));
    TRY("table of databases", head[88 + 6] = 2);
    TRY("not a data page of this file", mr_put64le(head + 88 + 40, 1));
    TRY("no database \"image\"", db[-1]++);
    TRY("is not a database", db[-9] = 0);
    TRY("has flags", db[4] = 4);
    TRY("says 3 records", mr_put64le(db + 32, 3));
    TRY("the page counts of database", mr_put64le(db + 16, mr_get64le(db + 16) + 1));
    TRY("33 levels deep", db[6] = 33);
    TRY("0 levels deep", db[6] = 0);
    TRY("not the leaf page", db[6]--);
    TRY("not the branch page", db[6]++);
    TRY("records and has 0", mr_put64le(db + 40, UINT64_MAX); db[6] = 0);
    TRY("number of another page", root[0]++);
    TRY("bounds of its free space", root[12]++);
    TRY("bounds of its free space", root[15] = 0x20);
    TRY("a node is outside", root[17] = 0x10);
    TRY("ascending order", mr_put64le(root + mr_get16le(root + 18) + 8, 0);
        mr_put64le(root + mr_get16le(root + 20) + 8, 0));
    TRY("not 8 bytes", root[mr_get16le(root + 18) + 6] = 7);
    /* the first record of the first leaf below the root ends with its page */
#define FIRST page_at(copy, mr_get32le(root + mr_get16le(root + 16)))
    TRY("a node ends outside", FIRST[mr_get16le(FIRST + 16)] += 2);
    TRY("flags that a record never has", FIRST[mr_get16le(FIRST + 16) + 4] = 4);
#undef FIRST
#undef TRY
    support_write(path, file, size + 1);
    expect_bad(path, "image", "not a whole number of pages");
    free(copy);
    free(file);
    free(path);
    support_tmpdir_remove(dir);
}

/* A tree that leads into itself: every branch entry of the file names its own page, then its root. */
static void test_no_page_twice(void **state)
{
    (void)state;
    char *dir = support_tmpdir(), *path = support_path("%s/a.mdb", dir);
    mr_random r = support_random();
    size_t size, loops = 0;
    write_random(path, &r, 3000, 3000, 0, 0);
    uint8_t *file = support_read(path, &size);
    for (size_t n = 2; n < size / MR_LMDB_PAGE; n++) {
        uint8_t *p = page_at(file, n);
        if (mr_get64le(p) != n || mr_get16le(p + 10) != 1)
            continue;
        unsigned nodes = (mr_get16le(p + 12) - 16u) / 2;
        uint32_t kept = mr_get32le(p + mr_get16le(p + 16));
        assert_true(nodes >= 2);
        /* the second child again as the first: keys alone do not show it until the leaf is read */
        mr_put32le(p + mr_get16le(p + 16), mr_get32le(p + mr_get16le(p + 18)));
        support_write(path, file, size);
        found f = {0}, g = {0};
        mr_error err;
        mr_status image = walk_file(path, "image", &f, &err), meta = walk_file(path, "meta", &g, &err);
        assert_true(image == MR_BAD_DATA || meta == MR_BAD_DATA);
        free(f.items);
        free(g.items);
        mr_put32le(p + mr_get16le(p + 16), (uint32_t)n);
        support_write(path, file, size);
        f = g = (found){0};
        image = walk_file(path, "image", &f, &err);
        meta = walk_file(path, "meta", &g, &err);
        assert_true(image == MR_BAD_DATA || meta == MR_BAD_DATA);
        free(f.items);
        free(g.items);
        mr_put32le(p + mr_get16le(p + 16), kept);
        loops++;
    }
    assert_true(loops >= 2);
    free(file);
    free(path);
    support_tmpdir_remove(dir);
}

/* Two records in one run of pages, or in runs that overlap: only the memory of pages seen can tell. */
static void test_no_run_twice(void **state)
{
    (void)state;
    static const uint8_t bytes[3 * MR_LMDB_PAGE];
    char *dir = support_tmpdir(), *path = support_path("%s/a.mdb", dir);
    size_t size, leaves = 0;
    lmdb_file *f = lmdb_create(path, 0, 0);
    for (uint64_t n = 0; n < 500; n++)
        lmdb_put(f, true, n, bytes, 10000);
    lmdb_finish(f);
    expect_cursor_equal(path, "image");
    uint8_t *file = support_read(path, &size);
    for (size_t n = 2; n < size / MR_LMDB_PAGE && leaves < 3; n++) {
        uint8_t *p = page_at(file, n);
        uint8_t *first = p + mr_get16le(p + 16), *second = p + mr_get16le(p + 18);
        if (mr_get64le(p) != n || mr_get16le(p + 10) != 2 || mr_get16le(p + 12) < 20 || mr_get16le(first + 4) != 1)
            continue;
        uint64_t run = mr_get64le(second + 16);
        mr_put64le(second + 16, mr_get64le(first + 16));
        support_write(path, file, size);
        expect_bad(path, "image", "a second reference leads to it");
        mr_put64le(second + 16, mr_get64le(first + 16) + 1);
        support_write(path, file, size);
        expect_bad(path, "image", "a second reference leads to it");
        mr_put64le(second + 16, size / MR_LMDB_PAGE - 1);
        support_write(path, file, size);
        expect_bad(path, "image", "outside the file");
        mr_put64le(second + 16, run);
        leaves++;
    }
    assert_int_equal(leaves, 3);
    free(file);
    free(path);
    support_tmpdir_remove(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_walk_is_cursor),
        cmocka_unit_test(test_edge_sizes),
        cmocka_unit_test(test_stop_is_passed_on),
        cmocka_unit_test(test_not_a_shard),
        cmocka_unit_test(test_damage),
        cmocka_unit_test(test_lies),
        cmocka_unit_test(test_no_page_twice),
        cmocka_unit_test(test_no_run_twice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
