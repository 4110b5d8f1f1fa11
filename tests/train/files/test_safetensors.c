/* test_safetensors.c - .safetensors files: round trips, widening, several files, exchange with the library both ways.
 * Invariant tested: values are compared as bits, so a changed NaN or -0 is seen. */
#include "train/files/safetensors.h"

#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json/json.h"
#include "base/files/file.h"
#include "tests/support/support.h"
#include "tests/support/training/npz.h"

static mr_safetensors *open_tensors(const char *path)
{
    mr_safetensors *s;
    mr_error err;
    if (mr_safetensors_open(path, &s, &err) != MR_OK)
        fail_msg("%s", err.text);
    return s;
}

static float *take(const mr_safetensors *s, const mr_tensor *t)
{
    mr_error err;
    float *values = malloc(t->count * sizeof *values + 1);
    assert_non_null(values);
    if (mr_safetensors_take(s, t, values, &err) != MR_OK)
        fail_msg("%s", err.text);
    return values;
}

static void expect_values(const mr_safetensors *s, const char *name, const float *want, size_t count)
{
    const mr_tensor *t = mr_safetensors_find(s, name);
    if (!t || t->count != count)
        fail_msg("%s: %s", name, t ? "another number of elements" : "is not there");
    float *have = take(s, t);
    assert_memory_equal(have, want, count * sizeof *want);
    free(have);
}

static mr_digest write_tensors(const char *path, const mr_tensor_source *tensors, size_t count)
{
    mr_digest digest;
    mr_error err;
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    assert_true(fd >= 0);
    if (mr_safetensors_write(fd, path, tensors, count, &digest, &err) != MR_OK)
        fail_msg("%s", err.text);
    close(fd);
    return digest;
}

/* A file with this header and these bytes after it. */
static void write_raw(const char *path, const char *header, const void *bytes, size_t len)
{
    size_t words = strlen(header);
    uint8_t *all = calloc(1, 8 + words + len);
    assert_non_null(all);
    for (int i = 0; i < 8; i++)
        all[i] = (uint8_t)((uint64_t)words >> (8 * i));
    memcpy(all + 8, header, words);
    memcpy(all + 8 + words, bytes, len);
    support_write(path, all, 8 + words + len);
    free(all);
}

/* ---- ours -------------------------------------------------------------------------------------------------------- */

enum { DRAWN = 40 };

typedef struct drawn {
    mr_tensor_source sources[DRAWN];
    char names[DRAWN][64];
    size_t counts[DRAWN];
} drawn;

/* Any shape of up to 8 sides, sides of 0 sometimes, up to some 100,000 elements; names in no order. */
static void draw(drawn *d, mr_random *r)
{
    static const char *const words[] = {"weight", "bi\"as\\", "caf\xC3\xA9", "a\nb\x01", ""};
    for (size_t i = 0; i < DRAWN; i++) {
        mr_tensor_source *t = &d->sources[i];
        uint64_t most = mr_random_below(r, 4) ? 200 : 70000;
        snprintf(d->names[i], sizeof d->names[i], "%zu.%s", (i * 7 + 3) % DRAWN, words[mr_random_below(r, 5)]);
        *t = (mr_tensor_source){.name = d->names[i], .dims = (unsigned)mr_random_below(r, 9)};
        d->counts[i] = 1;
        for (unsigned k = 0; k < t->dims; k++) {
            t->shape[k] = mr_random_below(r, 60) == 0 ? 0 : mr_random_between(r, 1, t->dims < 2 ? most : 4);
            d->counts[i] *= t->shape[k];
        }
        float *values = malloc(d->counts[i] * sizeof *values + 1);
        assert_non_null(values);
        mr_random_bytes(r, values, d->counts[i] * sizeof *values);
        t->values = values;
    }
}

static void drawn_free(drawn *d)
{
    for (size_t i = 0; i < DRAWN; i++)
        free((void *)(uintptr_t)d->sources[i].values);
}

static void test_round_trip(void **state)
{
    char *path = support_path("%s/a.safetensors", (char *)*state), *again = support_path("%s/b", (char *)*state);
    mr_random rnd = support_random();
    mr_safetensors *by_fd;
    mr_digest seen;
    drawn d;
    draw(&d, &rnd);
    mr_digest said = write_tensors(path, d.sources, DRAWN);
    mr_safetensors *s = open_tensors(path);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_int_equal(mr_safetensors_open_fd(fd, path, &by_fd, NULL), MR_OK);
    assert_int_equal(mr_safetensors_count(s), DRAWN);
    for (size_t i = 0; i < DRAWN; i++) {
        const mr_tensor *t = mr_safetensors_find(s, d.names[i]);
        assert_non_null(t);
        assert_string_equal(t->name, d.names[i]);
        assert_int_equal(t->type, MR_TENSOR_F32);
        assert_int_equal(t->dims, d.sources[i].dims);
        assert_memory_equal(t->shape, d.sources[i].shape, t->dims * sizeof *t->shape);
        expect_values(s, d.names[i], d.sources[i].values, d.counts[i]);
        expect_values(by_fd, d.names[i], d.sources[i].values, d.counts[i]);
        if (i)
            assert_true(strcmp(mr_safetensors_at(s, i - 1)->name, mr_safetensors_at(s, i)->name) < 0);
    }
    assert_null(mr_safetensors_at(s, DRAWN));
    assert_null(mr_safetensors_find(s, "none"));
    mr_safetensors_free(s);
    mr_safetensors_free(by_fd);
    assert_int_equal(mr_file_digest(fd, support_size(path), false, path, &seen, NULL), MR_OK);
    assert_int_equal(said.bytes, support_size(path));
    assert_memory_equal(said.xxh3_128, seen.xxh3_128, sizeof seen.xxh3_128);
    uint8_t low; /* of the header's length: the values begin at a multiple of 8 bytes */
    assert_int_equal(pread(fd, &low, 1, 0), 1);
    assert_int_equal(low % 8, 0);
    close(fd);
    write_tensors(again, d.sources, DRAWN);
    support_assert_same_file(path, again);
    drawn_free(&d);
    free(path);
    free(again);
}

static void test_none(void **state)
{
    char *path = support_path("%s/a.safetensors", (char *)*state);
    write_tensors(path, NULL, 0);
    mr_safetensors *s = open_tensors(path);
    assert_int_equal(mr_safetensors_count(s), 0);
    assert_null(mr_safetensors_find(s, ""));
    mr_safetensors_free(s);
    mr_safetensors_free(NULL);
    free(path);
}

static void test_misuse(void **state)
{
    char *path = support_path("%s/a", (char *)*state), longest[MR_TENSOR_NAME + 1];
    float values[6] = {0};
    const mr_tensor_source good = {.name = "a", .dims = 2, .shape = {2, 3}, .values = values};
    mr_tensor_source bad[6] = {good, good, good, good, good, good};
    mr_safetensors *s;
    mr_error err;
    memset(longest, 'x', sizeof longest);
    longest[MR_TENSOR_NAME] = '\0';
    bad[0].name = "__metadata__";
    bad[1].name = "\xFF";
    bad[2].name = longest;
    bad[3].dims = MR_TENSOR_DIMS + 1;
    bad[4].shape[0] = UINT64_MAX / 2;
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    for (size_t i = 0; i < 6; i++) { /* the last one has the name of the first */
        const mr_tensor_source pair[] = {good, bad[i]};
        assert_int_equal(mr_safetensors_write(fd, path, pair, 2, NULL, &err), MR_MISUSE);
        assert_int_equal(err.status, MR_MISUSE);
        assert_non_null(strstr(err.text, path));
    }
    assert_int_equal(support_size(path), 0);
    longest[MR_TENSOR_NAME - 1] = '\0';
    const mr_tensor_source pair[] = {good, {.name = longest, .values = values}};
    assert_int_equal(mr_safetensors_write(fd, path, pair, 2, NULL, &err), MR_OK);
    close(fd);
    s = open_tensors(path);
    assert_non_null(mr_safetensors_find(s, longest));
    mr_tensor other = *mr_safetensors_at(s, 0);
    strcpy(other.name, "other");
    assert_int_equal(mr_safetensors_take(s, &other, values, &err), MR_MISUSE);
    mr_safetensors_free(s);
    fd = open(path, O_RDONLY | O_CLOEXEC); /* cannot be written to */
    assert_int_equal(mr_safetensors_write(fd, path, pair, 2, NULL, &err), MR_SYSTEM);
    close(fd);
    assert_int_equal(mr_safetensors_open("/nonexistent/a.safetensors", &s, &err), MR_SYSTEM);
    free(path);
}

/* ---- types ------------------------------------------------------------------------------------------------------- */

/* What IEEE 754 says about a half, in words of numbers; NaNs aside. */
static float half_value(uint16_t half)
{
    int exponent = half >> 10 & 31, digits = half & 1023;
    double value = exponent == 31 ? INFINITY : exponent ? ldexp(1024 + digits, exponent - 25) : ldexp(digits, -24);
    return (float)(half & 0x8000 ? -value : value);
}

static void test_all_halves(void **state)
{
    enum { COUNT = 3 * 65536 }; /* each of them more than once, and more than are widened at a time */
    char *path = support_path("%s/a", (char *)*state);
    uint16_t *bits = malloc(2 * COUNT * sizeof *bits);
    assert_non_null(bits);
    for (size_t i = 0; i < 2 * COUNT; i++)
        bits[i] = (uint16_t)(i + i / 65536); /* no two slices alike */
    write_raw(path,
              "{\"half\":{\"dtype\":\"F16\",\"shape\":[196608],\"data_offsets\":[0,393216]},"
              "\"brain\":{\"dtype\":\"BF16\",\"shape\":[3,256,256],\"data_offsets\":[393216,786432]}}",
              bits, 2 * COUNT * sizeof *bits);
    mr_safetensors *s = open_tensors(path);
    assert_int_equal(mr_safetensors_find(s, "half")->type, MR_TENSOR_F16);
    assert_int_equal(mr_safetensors_find(s, "brain")->type, MR_TENSOR_BF16);
    float *half = take(s, mr_safetensors_find(s, "half")), *brain = take(s, mr_safetensors_find(s, "brain"));
    for (uint32_t i = 0; i < COUNT; i++) {
        uint32_t have, wide, want, half_bits = bits[i];
        float value = half_value(bits[i]);
        memcpy(&have, &half[i], 4);
        memcpy(&wide, &brain[i], 4);
        memcpy(&want, &value, 4);
        if ((half_bits & 0x7FFF) > 0x7C00) /* a NaN: its sign and digits stay */
            want = (half_bits & 0x8000) << 16 | 0x7F800000 | (half_bits & 1023) << 13;
        if (have != want || wide != (uint32_t)bits[COUNT + i] << 16)
            fail_msg("%04x: %08x, not %08x; %08x", half_bits, have, want, wide);
    }
    mr_safetensors_free(s);
    free(half);
    free(brain);
    free(bits);
    free(path);
}

static void test_other_types(void **state)
{
    static const struct {
        const char *word;
        unsigned size;
    } types[] = {{"F64", 8}, {"I64", 8}, {"U64", 8}, {"I32", 4},  {"U32", 4},     {"I16", 2},
                 {"U16", 2}, {"I8", 1},  {"U8", 1},  {"BOOL", 1}, {"F8_E4M3", 1}, {"F8_E5M2", 1}};
    char *path = support_path("%s/a", (char *)*state);
    const uint8_t bytes[24] = {1};
    float values[3];
    mr_error err;
    for (size_t i = 0; i < MR_COUNT(types); i++) {
        char header[200];
        snprintf(header, sizeof header, "{\"position_ids\":{\"dtype\":\"%s\",\"shape\":[1,3],\"data_offsets\":[0,%u]}}",
                 types[i].word, 3 * types[i].size);
        write_raw(path, header, bytes, 3 * types[i].size);
        mr_safetensors *s = open_tensors(path);
        const mr_tensor *t = mr_safetensors_at(s, 0);
        assert_int_equal(t->type, MR_TENSOR_OTHER);
        assert_int_equal(t->count, 3);
        assert_int_equal(mr_safetensors_take(s, t, values, &err), MR_BAD_DATA);
        assert_non_null(strstr(err.text, "position_ids"));
        mr_safetensors_free(s);
    }
    free(path);
}

/* ---- several files ----------------------------------------------------------------------------------------------- */

static void test_parts(void **state)
{
    const float a[2] = {1, 2}, b[3] = {3, 4, 5}, other[1] = {6};
    const mr_tensor_source one[] = {{.name = "a", .dims = 1, .shape = {2}, .values = a},
                                    {.name = "b", .dims = 1, .shape = {1}, .values = other}};
    const mr_tensor_source two[] = {{.name = "unnamed", .dims = 0, .values = other},
                                    {.name = "b", .dims = 1, .shape = {3}, .values = b}};
    char *dir = *state, *first = support_path("%s/1.safetensors", dir), *second = support_path("%s/blob", dir);
    char *link = support_path("%s/2.safetensors", dir), *index = support_path("%s/model.safetensors.index.json", dir);
    char *single = support_path("%s/model.safetensors", dir);
    write_tensors(first, one, 2);
    write_tensors(second, two, 2);
    assert_int_equal(symlink("blob", link), 0); /* as in the hub's cache */
    support_write_text(index, "{\"metadata\": {\"total_size\": 20}, \"weight_map\": "
                              "{\"b\": \"2.safetensors\", \"a\": \"1.safetensors\"}}");
    const char *const paths[] = {dir, index};
    for (size_t i = 0; i < 2; i++) {
        mr_safetensors *s = open_tensors(paths[i]);
        assert_int_equal(mr_safetensors_count(s), 2);
        assert_string_equal(mr_safetensors_at(s, 0)->name, "a");
        expect_values(s, "a", a, 2);
        expect_values(s, "b", b, 3); /* the one that the index means */
        assert_null(mr_safetensors_find(s, "unnamed"));
        mr_safetensors_free(s);
    }
    write_tensors(single, one, 1); /* comes before an index */
    mr_safetensors *s = open_tensors(dir);
    assert_int_equal(mr_safetensors_count(s), 1);
    mr_safetensors_free(s);
    free(single);
    free(index);
    free(link);
    free(second);
    free(first);
}

/* ---- the library ------------------------------------------------------------------------------------------------- */

static bool python(const char *mode, const char *a, const char *b)
{
    return support_python_ran("train/files/safetensors_python.py", (const char *[]){mode, a, b, NULL}, NULL);
}

/* Every tensor that DIR/PREFIXindex names, against DIR/PREFIXN.bin; how many there are. */
static size_t expect_dump(const mr_safetensors *s, const char *dir, const char *prefix)
{
    char *path = support_path("%s/%sindex", dir, prefix), *index = (char *)support_read(path, NULL), *rest = index;
    size_t n = 0;
    for (char *line; (line = strsep(&rest, "\n")) && *line; n++) {
        char *raw_path = support_path("%s/%s%zu.bin", dir, prefix, n), *name = strsep(&line, " "), *side;
        const mr_tensor *t = mr_safetensors_find(s, name);
        size_t len;
        uint8_t *raw = support_read(raw_path, &len);
        unsigned dims = 0;
        if (!t)
            fail_msg("%s is not there", name);
        assert_string_equal(strsep(&line, " "), "<f4");
        while (line && *line != '-' && (side = strsep(&line, "x"))) {
            assert_true(dims < t->dims);
            assert_int_equal(strtoull(side, NULL, 10), t->shape[dims++]);
        }
        assert_int_equal(dims, t->dims);
        expect_values(s, name, (const float *)(const void *)raw, len / sizeof(float));
        free(raw);
        free(raw_path);
    }
    free(index);
    free(path);
    return n;
}

static void test_ours_read_by_python(void **state)
{
    const float values[12] = {1, -0.0f, INFINITY, 1e-42f};
    /* In the library's order: it sorts by name, and so gets the same bytes again. */
    const mr_tensor_source tensors[] = {
        {.name = "a.weight", .dims = 2, .shape = {3, 4}, .values = values},
        {.name = "b.bias", .dims = 1, .shape = {5}, .values = values + 1},
        {.name = "caf\xC3\xA9 \"q\" \\ \t", .dims = 3, .shape = {1, 2, 1}, .values = values},
        {.name = "empty", .dims = 2, .shape = {0, 7}, .values = values},
        {.name = "scalar", .values = values + 3},
    };
    char *dir = *state, *path = support_path("%s/a.safetensors", dir), *unpacked = support_path("%s/u", dir);
    char *again = support_path("%s/again.safetensors", unpacked);
    write_tensors(path, tensors, MR_COUNT(tensors));
    assert_int_equal(mkdir(unpacked, 0755), 0);
    bool ran = python("unpack", path, unpacked);
    if (ran)
        support_assert_same_file(path, again);
    for (size_t i = 0; ran && i < MR_COUNT(tensors); i++) {
        static const size_t counts[] = {12, 5, 2, 0, 1};
        char *raw_path = support_path("%s/%zu.bin", unpacked, i);
        size_t len;
        uint8_t *raw = support_read(raw_path, &len);
        assert_int_equal(len, counts[i] * sizeof(float));
        assert_memory_equal(raw, tensors[i].values, len);
        free(raw);
        free(raw_path);
    }
    free(again);
    free(unpacked);
    free(path);
    if (!ran)
        skip();
}

static void test_pythons_read_by_us(void **state)
{
    static const struct {
        const char *file, *prefix;
        size_t count, more;
    } cases[] = {
        {"whole.safetensors", "whole-", 6, 1}, {"brain.safetensors", "brain-", 1, 0}, {"parts", "parts-", 6, 0}};
    char *dir = *state;
    if (!python("pack", dir, NULL))
        skip();
    for (size_t i = 0; i < MR_COUNT(cases); i++) {
        char *path = support_path("%s/%s", dir, cases[i].file);
        mr_safetensors *s = open_tensors(path);
        assert_int_equal(expect_dump(s, dir, cases[i].prefix), cases[i].count);
        assert_int_equal(mr_safetensors_count(s), cases[i].count + cases[i].more);
        mr_safetensors_free(s);
        free(path);
    }
}

/* A file of the real library and model, its header read a second time by plain means. */
static void test_parity_file(void **state)
{
    char *path = support_parity("bt_a_weights.safetensors"), *again = support_path("%s/again", (char *)*state);
    if (!path) {
        print_message("skipped: no parity fixture bt_a_weights.safetensors (MILLRACE_PARITY)\n");
        free(again);
        skip();
    }
    size_t len, n = 0;
    uint8_t *all = support_read(path, &len);
    size_t header = (size_t)(all[0] | all[1] << 8 | all[2] << 16);
    json_t *doc = json_loadb((char *)all + 8, header, 0, NULL), *entry;
    mr_tensor_source sources[400];
    const char *key;
    mr_safetensors *s = open_tensors(path);
    json_object_foreach(doc, key, entry)
    {
        if (strcmp(key, "__metadata__") == 0)
            continue;
        const mr_tensor *t = mr_safetensors_find(s, key);
        assert_true(t && n < MR_COUNT(sources));
        size_t from = (size_t)json_integer_value(json_array_get(json_object_get(entry, "data_offsets"), 0));
        size_t to = (size_t)json_integer_value(json_array_get(json_object_get(entry, "data_offsets"), 1));
        assert_int_equal(t->count * sizeof(float), to - from);
        expect_values(s, key, (const float *)(const void *)(all + 8 + header + from), t->count);
        sources[n] = (mr_tensor_source){.name = t->name, .dims = t->dims, .values = take(s, t)};
        memcpy(sources[n++].shape, t->shape, sizeof t->shape);
    }
    assert_int_equal(mr_safetensors_count(s), n);
    assert_true(n > 100);
    write_tensors(again, sources, n); /* its order is the file's */
    support_assert_same_file(path, again);
    for (size_t i = 0; i < n; i++)
        free((void *)(uintptr_t)sources[i].values);
    json_decref(doc);
    mr_safetensors_free(s);
    free(all);
    free(again);
    free(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_TMPDIR(test_round_trip),
        IN_TMPDIR(test_none),
        IN_TMPDIR(test_misuse),
        IN_TMPDIR(test_all_halves),
        IN_TMPDIR(test_other_types),
        IN_TMPDIR(test_parts),
        IN_TMPDIR(test_ours_read_by_python),
        IN_TMPDIR(test_pythons_read_by_us),
        IN_TMPDIR(test_parity_file),
    };
    return cmocka_run_group_tests_name("safetensors", tests, NULL, NULL);
}
