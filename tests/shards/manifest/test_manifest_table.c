/* test_manifest_table.c - the table of shards: written, read back, and refused for everything that may be wrong in it.
 * Invariant tested: a manifest gets the shards that were written or none, and a changed byte is always found. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shards/manifest/format.h"
#include "shards/manifest/manifest.h"
#include "tests/support/support.h"

enum { TRAIN = 5, VAL = 2, SHARDS = TRAIN + VAL };

typedef struct written {
    mr_buf text, table;
} written;

static void fill(mr_split *split, const char *name, size_t count, uint64_t seed)
{
    snprintf(split->name, sizeof split->name, "%s", name);
    split->shards = calloc(count, sizeof *split->shards);
    assert_non_null(split->shards);
    split->shard_count = count;
    for (size_t i = 0; i < count; i++) {
        mr_shard *s = &split->shards[i];
        *s = (mr_shard){.first = split->samples, .samples = 3 + i, .images = 2 + i, .image_bytes = 500 + i};
        s->mdb.bytes = 8192 + 4096 * i;
        s->idx.bytes = 64 + 64 * s->samples;
        memset(s->mdb.xxh3_128, (int)(seed + i), 16);
        memset(s->mdb.sha256, (int)(seed + i + 50), 32);
        memset(s->idx.xxh3_128, (int)(seed + i + 100), 16);
        memset(s->idx.sha256, (int)(seed + i + 150), 32);
        snprintf(s->name, sizeof s->name, "%s-%05zu", name, i);
        split->samples += s->samples;
        split->images += s->images;
        split->image_bytes += s->image_bytes;
    }
}

static written write_dataset(size_t train, size_t val)
{
    static char layout[] = "coco", variant[] = "";
    mr_split splits[3] = {{.name = "empty"}};
    mr_manifest m = {
        .format = MR_FORMAT_TABLE, .layout = layout, .variant = variant, .splits = splits, .split_count = 3};
    written w = {{0}, {0}};
    mr_error err;
    fill(&splits[1], "train", train, 1);
    fill(&splits[2], "val", val, 9);
    if (mr_manifest_write(&m, &w.text, &err) != MR_OK || mr_manifest_write_table(&m, &w.table, &err) != MR_OK)
        fail_msg("%s", err.text);
    free(splits[1].shards);
    free(splits[2].shards);
    return w;
}

static void release(written *w)
{
    mr_buf_free(&w->text);
    mr_buf_free(&w->table);
}

static mr_manifest *parse(written *w)
{
    mr_manifest *m = NULL;
    mr_error err;
    if (mr_manifest_parse(w->text.data, w->text.len, MR_MANIFEST, &m, &err) != MR_OK)
        fail_msg("%s", err.text);
    return m;
}

static void test_round_trip(void **state)
{
    (void)state;
    written w = write_dataset(TRAIN, VAL);
    mr_buf text = {0}, table = {0};
    mr_error err;
    assert_int_equal(w.table.len, 64 + 128 * SHARDS);
    assert_int_equal(mr_manifest_check_seal(w.text.data, w.text.len, "m", &err), MR_OK);
    mr_manifest *m = parse(&w);
    assert_true(m->format == MR_FORMAT_TABLE && m->split_count == 3 && m->splits[1].shard_count == TRAIN);
    assert_null(m->splits[1].shards);
    if (mr_manifest_take_table(m, w.table.data, w.table.len, &err) != MR_OK)
        fail_msg("%s", err.text);
    const mr_shard *s = &mr_manifest_split(m, "val")->shards[1];
    assert_string_equal(s->name, "val-00001");
    assert_true(s->first == 3 && s->samples == 4 && s->images == 3 && s->image_bytes == 501);
    assert_true(s->mdb.bytes == 12288 && s->idx.bytes == 320 && s->mdb.xxh3_128[15] == 10 && s->mdb.sha256[31] == 60);
    assert_true(s->idx.xxh3_128[0] == 110 && s->idx.sha256[31] == 160);
    assert_int_equal(mr_manifest_write(m, &text, &err), MR_OK);
    assert_int_equal(mr_manifest_write_table(m, &table, &err), MR_OK);
    assert_true(text.len == w.text.len && memcmp(text.data, w.text.data, text.len) == 0);
    assert_true(table.len == w.table.len && memcmp(table.data, w.table.data, table.len) == 0);
    mr_manifest_free(m);
    mr_buf_free(&text);
    mr_buf_free(&table);
    release(&w);
}

/* Beyond 99999 the number has more digits; and far more shards than a list may have are read. */
static void test_many_shards(void **state)
{
    (void)state;
    enum { MANY = MR_SHARDS_MAX + 7 };
    written w = write_dataset(MANY, 0);
    mr_error err;
    mr_manifest *m = parse(&w);
    assert_true(w.text.len < 2048);
    if (mr_manifest_take_table(m, w.table.data, w.table.len, &err) != MR_OK)
        fail_msg("%s", err.text);
    const mr_split *train = mr_manifest_split(m, "train");
    assert_string_equal(train->shards[99999].name, "train-99999");
    assert_string_equal(train->shards[MANY - 1].name, "train-100006");
    mr_manifest_free(m);
    release(&w);
}

/* The digest is made to fit, so that the rules for rows are reached. */
static mr_status take_as_stated(written *w, const mr_buf *table, mr_error *err)
{
    mr_manifest *m = parse(w);
    mr_hasher *hasher;
    assert_int_equal(mr_hasher_begin(true, &hasher, err), MR_OK);
    mr_hasher_add(hasher, table->data, table->len);
    assert_int_equal(mr_hasher_end(hasher, &m->table, err), MR_OK);
    mr_status status = mr_manifest_take_table(m, table->data, table->len, err);
    assert_true(status == MR_OK || (!m->rows && !m->splits[1].shards));
    mr_manifest_free(m);
    return status;
}

static void test_rows_are_checked(void **state)
{
    (void)state;
    static const struct {
        size_t at; /* the bytes from here on, little-endian, become: */
        uint64_t value;
        size_t len;
        const char *words;
    } trials[] = {
        {0, 'X', 1, "manifest.shards: is not a table of shards"},
        {8, 3, 4, "version 3 with rows of 128 bytes"},
        {12, 64, 4, "version 2 with rows of 64 bytes"},
        {16, SHARDS - 1, 8, "the header says 6 rows, the file has 7"},
        {40, 1, 1, "byte 40 of the header is 1, not 0"},
        {64, 1, 8, "manifest.shards: train-00000: begins at sample 1, the shard before ends at 0"},
        {64 + 128, 2, 8, "train-00001: begins at sample 2"},
        {64 + 128 * TRAIN, 25, 8, "val-00000: begins at sample 25"},
        {64 + 8, 0, 8, "a shard has 1 to 4294967295 samples"},
        {64 + 12, 0, 4, "at least one image"},
        {64 + 12, 4, 4, "more images than samples"},
        {64 + 8, 4, 4, "train-00001: begins at sample 3, the shard before ends at 4"},
        {64 + 12, 1, 4, "not the sum over its shards"},
        {64 + 16, 499, 8, "manifest.shards: train: its samples, images or bytes are not the sum over its shards"},
        {64 + 16, 8193, 8, "not a whole number of pages that hold its images"},
        {64 + 24, 4097, 8, "not a whole number of pages"},
        {64 + 24, 0, 8, "not a whole number of pages"},
        {64 + 8, 600, 4, "an .mdb of 8192 bytes has no room for 600 samples"},
    };
    written w = write_dataset(TRAIN, VAL);
    mr_buf table = {0};
    mr_error err;
    assert_int_equal(take_as_stated(&w, &w.table, &err), MR_OK);
    for (size_t i = 0; i < MR_COUNT(trials); i++) {
        mr_buf_clear(&table);
        mr_buf_add(&table, w.table.data, w.table.len);
        for (size_t k = 0; k < trials[i].len; k++)
            table.data[trials[i].at + k] = (uint8_t)(trials[i].value >> 8 * k);
        mr_status status = take_as_stated(&w, &table, &err);
        if (status != MR_BAD_DATA || !strstr(err.text, trials[i].words) || !strstr(err.text, MR_TABLE))
            fail_msg("trial %zu: status %d, \"%s\"", i, status, err.text);
    }
    mr_buf_free(&table);
    release(&w);
}

static void expect_open_bad(const char *dir, const char *words)
{
    mr_manifest *m = NULL;
    mr_error err;
    if (mr_manifest_open(dir, &m, NULL, &err) != MR_BAD_DATA || m || !strstr(err.text, words))
        fail_msg("\"%s\" does not speak of \"%s\"", err.text, words);
}

static void test_damaged_files(void **state)
{
    (void)state;
    char *dir = support_tmpdir(), *text = support_path("%s/manifest.json", dir);
    char *path = support_path("%s/manifest.shards", dir);
    mr_manifest *m = NULL;
    mr_error err;
    uint8_t digest[32], expected[32];
    written w = write_dataset(TRAIN, VAL);
    support_write(text, w.text.data, w.text.len);
    expect_open_bad(dir, "manifest.shards: is missing");
    support_write(path, w.table.data, w.table.len);
    if (mr_manifest_open(dir, &m, digest, &err) != MR_OK)
        fail_msg("%s", err.text);
    mr_sha256(w.text.data, w.text.len, expected); /* of the manifest alone: it states the table's */
    assert_memory_equal(digest, expected, sizeof digest);
    mr_manifest_free(m);
    m = NULL;
    for (size_t at = 0; at < w.table.len; at += 7) {
        w.table.data[at] ^= 1;
        support_write(path, w.table.data, w.table.len);
        expect_open_bad(dir, "manifest.shards: does not match the manifest");
        w.table.data[at] ^= 1;
    }
    support_write(path, w.table.data, w.table.len - 1);
    expect_open_bad(dir, "manifest.shards: 959 bytes instead of 960");
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkfifo(path, 0600), 0);
    expect_open_bad(dir, "manifest.shards");
    release(&w);
    free(text);
    free(path);
    support_tmpdir_remove(dir);
}

static char *replaced(written *w, const char *from, const char *to)
{
    const char *text = mr_buf_text(&w->text), *at = strstr(text, from);
    if (!at)
        fail_msg("the test itself is wrong: no %s", from);
    return support_path("%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
}

/* What the manifest says of the table, before the table is read. */
static void test_ranges_are_checked(void **state)
{
    (void)state;
    static const struct {
        const char *from, *to, *words;
    } trials[] = {
        {"\"first\": 5", "\"first\": 4", "val: its shards begin at row 4, those before end at 5"},
        {"\"first\": 5", "\"first\": 6", "val: its shards begin at row 6, those before end at 5"},
        {"\"count\": 5", "\"count\": 6", "val: its shards begin at row 5, those before end at 6"},
        {"\"count\": 2", "\"count\": 1", "a table of 960 bytes does not match 6 shards"},
        {"\"count\": 2", "\"count\": 2000000", "are more than the 2000000 that a table may have"},
        {"\"first\": 5", "\"first\": 18446744073709551615", "big"},
        {"\"bytes\": 960", "\"bytes\": 959", "a table of 959 bytes does not match 7 shards"},
        {"\"bytes\": 960", "\"bytes\": 0", "a table of 0 bytes does not match 7 shards"},
        {"\"table\": {", "\"tables\": {", "\"table\" is missing"},
        {"\"shards\": {\n    \"first\": 5,\n    \"count\": 2\n   }", "\"shards\": []", "\"shards\" is not an object"},
    };
    written w = write_dataset(TRAIN, VAL);
    for (size_t i = 0; i < MR_COUNT(trials); i++) {
        mr_manifest *m = NULL;
        mr_error err;
        char *text = replaced(&w, trials[i].from, trials[i].to);
        mr_status status = mr_manifest_parse(text, strlen(text), MR_MANIFEST, &m, &err);
        if (status != MR_BAD_DATA || m || !strstr(err.text, trials[i].words))
            fail_msg("%s -> %s: status %d, \"%s\"", trials[i].from, trials[i].to, status, err.text);
        free(text);
    }
    release(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),         cmocka_unit_test(test_many_shards),
        cmocka_unit_test(test_rows_are_checked),   cmocka_unit_test(test_damaged_files),
        cmocka_unit_test(test_ranges_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
