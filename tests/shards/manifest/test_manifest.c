/* test_manifest.c - the manifest: written, read back, and refused for every thing that may be wrong in it.
 * Invariant tested: what mr_manifest_parse() returns names nothing outside of the dataset and adds up.
 * Covers manifest/format.c. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shards/manifest/format.h"
#include "shards/manifest/manifest.h"
#include "tests/support/shards/dataset_maker.h"

#define HEX32      "000102030405060708090a0b0c0d0e0f"
#define IDX(bytes) "{\"bytes\":" bytes ",\"xxh3_128\":\"" HEX32 "\",\"sha256\":\"" HEX32 HEX32 "\"}"

/* One that is right; each trial replaces one piece of its text. */
static const char good[] =
    "{\"millrace\":\"dataset\",\"format\":1,\"layout\":\"coco\",\"variant\":\"instances\",\"licence\":null,"
    "\"options\":{\"shuffle\":7},\"classes\":[{\"name\":\"cat\",\"id\":17},{\"name\":\"dog\"}],\"splits\":{"
    "\"train\":{\"samples\":5,\"images\":4,\"bytes\":900,\"shards\":["
    "{\"name\":\"train-00000\",\"first\":0,\"samples\":3,\"images\":2,\"bytes\":500,"
    "\"mdb\":" IDX("8192") ",\"idx\":" IDX(
        "256") "},"
               "{\"name\":\"train-00001\",\"first\":3,\"samples\":2,\"images\":2,\"bytes\":400,"
               "\"mdb\":" IDX("4096") ",\"idx\":" IDX(
                   "192") "}]},"
                          "\"test\":{\"samples\":0,\"images\":0,\"bytes\":0,\"shards\":[]}}}";

static char *replace(const char *text, const char *from, const char *to)
{
    const char *at = strstr(text, from);
    if (!at)
        fail_msg("the test itself is wrong: no %s", from);
    return support_path("%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
}

static mr_status parse(const char *text, mr_manifest **m, mr_error *err)
{
    size_t len = strlen(text);
    char *copy = malloc(len ? len : 1); /* exactly its length, for the sanitizer */
    assert_non_null(copy);
    memcpy(copy, text, len);
    mr_status status = mr_manifest_parse(copy, len, "manifest.json", m, err);
    free(copy);
    return status;
}

static void test_parse(void **state)
{
    (void)state;
    mr_manifest *m = NULL;
    mr_error err;
    if (parse(good, &m, &err) != MR_OK)
        fail_msg("%s", err.text);
    assert_string_equal(m->layout, "coco");
    assert_string_equal(m->variant, "instances");
    assert_null(m->licence);
    assert_int_equal(json_integer_value(json_object_get(m->options, "shuffle")), 7);
    assert_int_equal(m->class_count, 2);
    assert_true(m->classes[0].has_id && m->classes[0].id == 17 && !m->classes[1].has_id);
    assert_string_equal(m->classes[1].name, "dog");
    assert_int_equal(m->split_count, 2);
    const mr_split *train = mr_manifest_split(m, "train");
    assert_ptr_equal(train, &m->splits[0]);
    assert_true(train->samples == 5 && train->images == 4 && train->image_bytes == 900 && train->shard_count == 2);
    const mr_shard *s = &train->shards[1];
    assert_string_equal(s->name, "train-00001");
    assert_true(s->first == 3 && s->samples == 2 && s->images == 2 && s->image_bytes == 400);
    assert_true(s->mdb.bytes == 4096 && s->idx.bytes == 192 && s->mdb.xxh3_128[15] == 15 && s->idx.sha256[31] == 15);
    assert_null(mr_manifest_split(m, "val"));
    assert_int_equal(mr_manifest_split(m, "test")->shard_count, 0);
    mr_manifest_free(m);
    mr_manifest_free(NULL);
}

static void test_order_and_extras(void **state)
{
    (void)state;
    mr_manifest *m = NULL;
    mr_error err;
    char *a = replace(good, "{\"millrace\":\"dataset\",\"format\":1,", "{\"later\":[1,{}],\"format\":1,");
    char *b = replace(a, "\"options\":", "\"millrace\":\"dataset\",\"options\":");
    char *c =
        replace(b, "{\"name\":\"train-00000\",\"first\":0,", "{\"more\":null,\"first\":0,\"name\":\"train-00000\",");
    char *d = replace(c, "\"licence\":null", "\"licence\":\"CC BY 4.0\"");
    if (parse(d, &m, &err) != MR_OK)
        fail_msg("%s", err.text);
    assert_string_equal(m->licence, "CC BY 4.0");
    mr_manifest_free(m);
    free(a);
    free(b);
    free(c);
    free(d);
}

static void test_refusals(void **state)
{
    (void)state;
    static const struct {
        const char *from, *to, *words;
    } trials[] = {
        {"\"dataset\"", "\"checkpoint\"", "not the manifest"},
        {"\"millrace\":\"dataset\",", "", "not the manifest"},
        {"\"format\":1", "\"format\":0", "\"format\" is 0; formats start at 1"},
        {"\"format\":1", "\"format\":-1", "\"format\" is -1; formats start at 1"},
        {"\"format\":1", "\"format\":3.0", "\"format\" is not an integer"},
        {"\"format\":1", "\"format\":\"1\"", "\"format\" is not an integer"},
        {"\"layout\":\"coco\"", "\"layout\":3", "\"layout\" is not a string"},
        {"\"variant\":\"instances\",", "", "\"variant\" is missing"},
        {"\"licence\":null", "\"licence\":[]", "\"licence\""},
        {"\"licence\":null,", "", "\"licence\" is missing"},
        {"\"options\":{\"shuffle\":7}", "\"options\":[]", "\"options\""},
        {"[{\"name\":\"cat\",\"id\":17}", "[7", "class 0: is not an object"},
        {"\"name\":\"dog\"", "\"nam\":\"dog\"", "class 1: \"name\" is missing"},
        {"\"id\":17", "\"id\":17.5", "class 0: \"id\" is not an integer"},
        {"\"splits\":{", "\"splits\":{\"a/b\":{},", "not a valid split name"},
        {"\"splits\":{", "\"splits\":{\"..\":{},", "not a valid split name"},
        {"\"splits\":{", "\"splits\":{\".a\":{},", "not a valid split name"},
        {"\"splits\":{", "\"splits\":{\"\":{},", "not a valid split name"},
        {"\"splits\":{", "\"splits\":{\"train\":{},", "duplicate key"},
        {"\"splits\":{", "\"splits\":{\"val\":[],", "val: is not an object"},
        {"\"train-00001\"", "\"train-00002\"", "train-00001: its name"},
        {"\"train-00001\"", "\"../train-00001\"", "train-00001: its name"},
        {"\"train-00001\"", "\"test-00001\"", "train-00001: its name"},
        {"\"train-00001\"", "1", "\"name\" is not a string"},
        {"\"first\":3", "\"first\":2", "begins at sample 2"},
        {"\"first\":0", "\"first\":1", "begins at sample 1"},
        {"\"first\":0", "\"first\":-1", "negative"},
        {"\"samples\":5", "\"samples\":6", "sum"},
        {"\"images\":4", "\"images\":5", "sum"},
        {"\"bytes\":900", "\"bytes\":901", "sum"},
        {"\"samples\":3,\"images\":2", "\"samples\":3,\"images\":4", "more images than samples"},
        {"\"samples\":3,\"images\":2", "\"samples\":3,\"images\":0", "at least one image"},
        {"\"samples\":3,\"images\":2", "\"samples\":0,\"images\":0", "1 to 4294967295"},
        {"\"samples\":3,\"images\":2", "\"samples\":4294967296,\"images\":2", "1 to 4294967295"},
        {"\"samples\":3,\"images\":2", "\"samples\":99999999999999999999,\"images\":2", "big"},
        {"\"bytes\":8192", "\"bytes\":8191", "pages"},
        {"\"bytes\":8192", "\"bytes\":0", "pages"},
        {"\"bytes\":500", "\"bytes\":8193", "pages"},
        {"\"bytes\":256", "\"bytes\":320", "does not match 3 samples"},
        {"\"xxh3_128\":\"0", "\"xxh3_128\":\"", "\"xxh3_128\" is not 32 hexadecimal digits"},
        {"\"xxh3_128\":\"0", "\"xxh3_128\":\"g", "\"xxh3_128\" is not 32 hexadecimal digits"},
        {"\"sha256\":\"0", "\"sha256\":\"00", "train-00000.mdb: \"sha256\" is not 64 hexadecimal digits"},
        {"\"mdb\":{", "\"mdb\":{\"a\":[{}],\"bytes\":1,", "duplicate key"},
        {"\"mdb\":", "\"mbd\":", "\"mdb\" is missing"},
        {"\"idx\":", "\"idy\":", "\"idx\" is missing"},
        {"\"shards\":[]", "\"shards\":{}", "\"shards\" is not a list"},
        {"\"shards\":[]", "\"shards\":[null]", "test-00000: is not an object"},
        {"}}}", "}}", "line 1"},
        {"}}}", "}}} x", "line 1"},
        {"\"cat\"", "\"c\xff\"", "byte 0xff"},
    };
    for (size_t i = 0; i < MR_COUNT(trials); i++) {
        mr_manifest *m = NULL;
        mr_error err;
        char *text = replace(good, trials[i].from, trials[i].to);
        mr_status status = parse(text, &m, &err);
        if (status != MR_BAD_DATA || m || !strstr(err.text, trials[i].words) || !strstr(err.text, "manifest.json"))
            fail_msg("%s -> %s: status %d, \"%s\"", trials[i].from, trials[i].to, status, err.text);
        free(text);
    }
}

static void test_split_names(void **state)
{
    (void)state;
    char longest[65];
    memset(longest, 'a', sizeof longest);
    longest[63] = '\0';
    assert_true(mr_split_name_ok("train") && mr_split_name_ok("a.b-c_D9") && mr_split_name_ok(longest));
    longest[63] = 'a';
    longest[64] = '\0';
    static const char *const bad[] = {"", ".", "..", ".hidden", "a/b", "a b", "a\\b", "\xc3\xa9", "a\n"};
    assert_false(mr_split_name_ok(longest));
    for (size_t i = 0; i < MR_COUNT(bad); i++)
        assert_false(mr_split_name_ok(bad[i]));
}

/* Reading and writing again gives the same bytes; the form is fixed. */
static void test_write(void **state)
{
    (void)state;
    mr_manifest *m = NULL, *again = NULL;
    mr_buf first = {0}, second = {0};
    mr_error err;
    assert_int_equal(parse(good, &m, &err), MR_OK);
    assert_int_equal(mr_manifest_write(m, &first, &err), MR_OK);
    const char *text = mr_buf_text(&first);
    static const char begins[] = "{\n \"millrace\": \"dataset\",\n \"format\": 1,\n \"layout\": \"coco\",\n"
                                 " \"variant\": \"instances\",\n \"licence\": null,\n"
                                 " \"options\": {\n  \"shuffle\": 7\n },\n"
                                 " \"classes\": [\n  {\n   \"name\": \"cat\",\n   \"id\": 17\n  },\n";
    assert_int_equal(strncmp(text, begins, strlen(begins)), 0);
    assert_int_equal(text[first.len - 1], '\n');
    assert_int_equal(mr_manifest_check_seal(first.data, first.len, "m", &err), MR_OK);
    assert_int_equal(parse(text, &again, &err), MR_OK);
    assert_int_equal(mr_manifest_write(again, &second, &err), MR_OK);
    assert_string_equal(mr_buf_text(&second), text);
    snprintf(again->splits[1].name, sizeof again->splits[1].name, "train");
    assert_int_equal(mr_manifest_write(again, &second, &err), MR_MISUSE);
    mr_buf_free(&first);
    mr_buf_free(&second);
    mr_manifest_free(m);
    mr_manifest_free(again);
}

static void test_open(void **state)
{
    (void)state;
    char *dir = support_tmpdir(), *path = support_path("%s/manifest.json", dir), *none = support_path("%s/x", dir);
    mr_manifest *m = NULL;
    mr_error err;
    uint8_t digest[32], expected[32];
    assert_int_equal(mr_manifest_open(none, &m, digest, &err), MR_MISUSE);
    assert_int_equal(mr_manifest_open(dir, &m, digest, &err), MR_MISUSE);
    assert_non_null(strstr(err.text, "not a dataset (no manifest.json)"));
    char *results = support_path("%s/train_results.json", dir);
    support_write_text(results, "{}");
    assert_int_equal(mr_manifest_open(dir, &m, digest, &err), MR_MISUSE);
    assert_non_null(strstr(err.text, "a training run, not a dataset"));
    free(results);
    support_write_text(path, good);
    assert_int_equal(mr_manifest_open(path, &m, digest, &err), MR_MISUSE);
    assert_int_equal(mr_manifest_open(dir, &m, digest, &err), MR_BAD_DATA);
    assert_non_null(strstr(err.text, "does not end with its seal"));
    assert_int_equal(mr_manifest_open_edited(dir, &m, digest, &err), MR_OK);
    mr_sha256(good, sizeof good - 1, expected);
    assert_memory_equal(digest, expected, sizeof digest);
    mr_manifest_free(m);
    dataset_seal(dir);
    assert_int_equal(mr_manifest_open(dir, &m, digest, &err), MR_OK);
    assert_memory_not_equal(digest, expected, sizeof digest);
    size_t len;
    char *sealed = (char *)support_read(path, &len);
    mr_sha256(sealed, len, expected);
    assert_memory_equal(digest, expected, sizeof digest);
    char *edited = replace(sealed, "\"dog\"", "\"fox\"");
    support_write_text(path, edited);
    mr_manifest_free(m);
    m = NULL;
    assert_int_equal(mr_manifest_open(dir, &m, digest, &err), MR_BAD_DATA);
    assert_non_null(strstr(err.text, "its seal does not match its text"));
    assert_int_equal(mr_manifest_open_edited(dir, &m, digest, &err), MR_OK);
    free(sealed);
    free(edited);
    mr_manifest_free(m);
    m = NULL;
    assert_int_equal(truncate(path, ((off_t)256 << 20) + 1), 0);
    assert_int_equal(mr_manifest_open(dir, &m, NULL, &err), MR_BAD_DATA);
    assert_non_null(strstr(err.text, "limit"));
    unlink(path);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(mr_manifest_open(dir, &m, NULL, &err), MR_BAD_DATA);
    assert_null(m);
    free(none);
    free(path);
    support_tmpdir_remove(dir);
}

/* Bytes changed at random: never a crash, and what still parses still adds up. */
static void test_damage(void **state)
{
    (void)state;
    mr_random r = support_random();
    char text[sizeof good];
    size_t whole = 0, bad = 0;
    for (int trial = 0; trial < 3000; trial++) {
        mr_manifest *m = NULL;
        memcpy(text, good, sizeof good);
        size_t at = mr_random_below(&r, sizeof good - 1), from = mr_random_below(&r, sizeof good - 1);
        if (trial % 3 == 0)
            text[at] = (char)(1 + mr_random_below(&r, 255));
        else if (trial % 3 == 1)
            text[at] = text[from];
        else
            text[at] = '\0'; /* cut short */
        if (parse(text, &m, NULL) != MR_OK) {
            bad++;
            continue;
        }
        whole++;
        for (size_t i = 0; i < m->split_count; i++) {
            assert_true(mr_split_name_ok(m->splits[i].name));
            for (size_t k = 0; k < m->splits[i].shard_count; k++)
                assert_null(strchr(m->splits[i].shards[k].name, '/'));
        }
        mr_manifest_free(m);
    }
    assert_true(whole > 100 && bad > 1000); /* digits of digests may be others */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parse),    cmocka_unit_test(test_order_and_extras),
        cmocka_unit_test(test_refusals), cmocka_unit_test(test_split_names),
        cmocka_unit_test(test_write),    cmocka_unit_test(test_open),
        cmocka_unit_test(test_damage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
