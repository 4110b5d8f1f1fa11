/* test_safetensors_hostile.c - .safetensors files and indexes that are damaged or made to mislead.
 * Invariant tested: every rejection is MR_BAD_DATA and names the file; the bytes of what is accepted are inside the
 * file. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "train/files/safetensors.h"
#include "tests/support/support.h"

/* The bytes of a file with this header and this many zeros after it; heap. */
static uint8_t *make_file(const char *header, size_t words, size_t data, size_t *len)
{
    *len = 8 + words + data;
    uint8_t *all = calloc(1, *len);
    assert_non_null(all);
    for (int i = 0; i < 8; i++)
        all[i] = (uint8_t)((uint64_t)words >> (8 * i));
    memcpy(all + 8, header, words);
    return all;
}

/* Opens these bytes as a file and takes all that can be taken; MR_OK or the refusal, its form checked. */
static mr_status try(const void *bytes, size_t len, mr_error *err)
{
    mr_safetensors *s = NULL;
    int fd = memfd_create("tensors", MFD_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, len), len);
    mr_status status = mr_safetensors_open_fd(fd, "in.safetensors", &s, err);
    for (size_t i = 0; status == MR_OK && i < mr_safetensors_count(s); i++) {
        const mr_tensor *t = mr_safetensors_at(s, i);
        assert_true(t->count <= len);
        float *values = malloc(t->count * sizeof *values + 1);
        assert_non_null(values);
        assert_int_equal(mr_safetensors_take(s, t, values, NULL), t->type == MR_TENSOR_OTHER ? MR_BAD_DATA : MR_OK);
        free(values);
    }
    if (status != MR_OK) {
        assert_null(s);
        assert_int_equal(status, MR_BAD_DATA);
        assert_int_equal(err->status, MR_BAD_DATA);
        assert_non_null(strstr(err->text, "in.safetensors"));
    }
    mr_safetensors_free(s);
    close(fd);
    return status;
}

#define T(name, type, shape, from, to)                                                                                 \
    "\"" name "\":{\"dtype\":\"" type "\",\"shape\":[" shape "],\"data_offsets\":[" #from "," #to "]}"

static void test_headers(void **state)
{
    static const struct {
        const char *header;
        size_t data;
        const char *why; /* NULL: it is read */
    } cases[] = {
        {"{" T("a", "F32", "2,3", 0, 24) "}", 24, NULL},
        {"{" T("a", "F32", "2,3", 0, 24) "}     ", 24, NULL},
        {"{}", 0, NULL},
        {"{" T("a", "F32", "", 0, 4) "}", 4, NULL},
        {"{" T("a", "F32", "0,3", 0, 0) "," T("b", "U8", "3", 0, 3) "," T("c", "U8", "0", 3, 3) "}", 3, NULL},
        {"{" T("b", "U8", "3", 0, 3) "," T("a", "F32", "0,3", 0, 0) "}", 3, NULL},
        {"{" T("a", "F32", "0", 2, 2) "," T("b", "U8", "3", 0, 3) "}", 3, "starts at byte 2"},
        {"{" T("b", "U8", "3", 2, 5) "," T("a", "F16", "1", 0, 2) "}", 5, NULL},
        {"{" T("a", "F32", "1,1,1,1,1,1,1,2", 0, 8) "}", 8, NULL},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1],\"more\":{}}}", 1, NULL},
        {"{\"__metadata__\":{\"format\":\"pt\",\"x\":\"\"}," T("a", "U8", "1", 0, 1) "}", 1, NULL},
        {"{" T("", "U8", "1", 0, 1) "}", 1, NULL},
        {"{" T("a", "F32", "2,3", 0, 24) "}", 23, "truncated"},
        {"{" T("a", "F32", "2,3", 0, 24) "}", 0, "truncated"},
        {"{" T("a", "F32", "2,3", 0, 24) "}", 25, "belong to no tensor"},
        {"{}", 1, "belong to no tensor"},
        {"{" T("a", "F32", "2,3", 4, 28) "}", 28, "starts at byte 4"},
        {"{" T("a", "U8", "4", 0, 4) "," T("b", "U8", "4", 5, 9) "}", 9, "starts at byte 5"},
        {"{" T("a", "U8", "4", 0, 4) "," T("b", "U8", "4", 3, 7) "}", 7, "starts at byte 3"},
        {"{" T("a", "U8", "4", 0, 4) "," T("b", "U8", "4", 0, 4) "}", 4, "starts at byte 0"},
        {"{" T("a", "U8", "4", 0, 4) "," T("b", "U8", "2", 1, 3) "}", 4, "starts at byte 1"},
        {"{" T("a", "F32", "2,3", 0, 23) "}", 23, "asks for 24"},
        {"{" T("a", "F32", "2,3", 24, 0) "}", 24, "not a start and an end"},
        {"{" T("a", "F32", "2,3", -24, 0) "}", 24, "not a start and an end"},
        {"{" T("a", "F32", "2,3", 0, 2.4e1) "}", 24, "not a start and an end"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0]}}", 1, "not a start and an end"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1,2]}}", 1, "not a start and an end"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"offsets\":[0,1]}}", 1, "not a start and an end"},
        {"{\"a\":{\"dtype\":\"U8\",\"data_offsets\":[0,1]}}", 1, "\"shape\""},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":1,\"data_offsets\":[0,1]}}", 1, "\"shape\""},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[\"1\"],\"data_offsets\":[0,1]}}", 1, "\"shape\""},
        {"{\"a\":{\"shape\":[1],\"data_offsets\":[0,1]}}", 1, "\"dtype\" (none)"},
        {"{" T("a", "F4", "2", 0, 1) "}", 1, "\"dtype\" F4, which"},
        {"{" T("a", "f32", "1", 0, 4) "}", 4, "\"dtype\" f32, which"},
        {"{" T("a", "F32", "-1", 0, 4) "}", 4, "\"shape\""},
        {"{" T("a", "F32", "1,1,1,1,1,1,1,1,1", 0, 4) "}", 4, "at most 8"},
        {"{" T("a", "F32", "4294967296,4294967296", 0, 0) "}", 0, "more elements"},
        {"{" T("a", "F32", "4611686018427387904", 0, 0) "}", 0, "more elements"},
        {"{" T("a", "F32", "9223372036854775807,2,0", 0, 0) "}", 0, NULL},
        {"{" T("a", "F32", "9223372036854775807,9223372036854775807,0", 0, 0) "}", 0, "more elements"},
        {"{" T("a", "F32", "18446744073709551617", 0, 4) "}", 4, "too big"},
        {"{" T("a", "F32", "2", 0, 9223372036854775807) "}", 8, "asks for 8"},
        {"{" T("a", "U8", "9223372036854775807", 0, 9223372036854775807) "}", 8, "truncated"},
        {"{" T("a", "U8", "9223372036854775807", 0, 9223372036854775807) "," T(
             "b", "U8", "9223372036854775807", 9223372036854775807, 9223372036854775807) "}",
         8, "asks for"},
        {"{" T("a", "U8", "1", 0, 1) "," T("a", "U8", "1", 1, 2) "}", 2, "duplicate key"},
        {"{\"a\":{\"dtype\":\"U8\",\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}", 1, "duplicate key"},
        {"{\"a\":[]}", 0, "is not an object"},
        {"{\"a\\u0000b\":1}", 0, "line"},
        {"{\"a\\n\\u001b[2J\":1}", 0, "a\\x0A\\x1B[2J"},
        {"{\"\xFF\":1}", 0, "line"},
        {"{\"__metadata__\":[]}", 0, "__metadata__"},
        {"{\"__metadata__\":{\"a\":1}}", 0, "__metadata__"},
        {" {}", 0, "does not start with a JSON object"},
        {"[]", 0, "does not start with a JSON object"},
        {"", 0, "does not start with a JSON object"},
        {"{} {}", 0, "line"},
        {"{", 0, "line"},
        {"{\"a\":", 0, "line"},
    };
    (void)state;
    for (size_t i = 0; i < MR_COUNT(cases); i++) {
        size_t len;
        mr_error err = {0};
        uint8_t *all = make_file(cases[i].header, strlen(cases[i].header), cases[i].data, &len);
        mr_status status = try(all, len, &err);
        if ((status == MR_OK) != !cases[i].why || (cases[i].why && !strstr(err.text, cases[i].why)))
            fail_msg("%s: %d: %s", cases[i].header, status, err.text);
        for (const char *p = err.text; *p; p++)
            assert_true(*p >= 0x20 || (uint8_t)*p >= 0x80);
        free(all);
    }
}

static void test_lengths(void **state)
{
    static const uint64_t lengths[] = {0,
                                       1,
                                       71,
                                       73,
                                       96,
                                       97,
                                       98,
                                       1000,
                                       100000000,
                                       100000001,
                                       UINT32_MAX,
                                       INT64_MAX,
                                       UINT64_MAX - 8,
                                       UINT64_MAX - 7,
                                       UINT64_MAX};
    static const char header[] = "{" T("a", "F32", "2,3", 0, 24) "}";
    size_t len;
    mr_error err;
    (void)state;
    uint8_t *all = make_file(header, strlen(header), 24, &len);
    assert_int_equal(try(all, len, &err), MR_OK);
    for (size_t i = 0; i < MR_COUNT(lengths); i++) {
        for (int k = 0; k < 8; k++)
            all[k] = (uint8_t)(lengths[i] >> (8 * k));
        assert_int_equal(lengths[i] == strlen(header), false);
        assert_int_equal(try(all, len, &err), MR_BAD_DATA);
    }
    free(all);
}

/* Each truncation and each byte of the header changed in some ways: refused, or read inside of the file. */
static void test_damage(void **state)
{
    static const char header[] =
        "{\"__metadata__\":{\"format\":\"pt\"}," T("one", "F16", "2,3", 0, 12) "," T("two", "F32", "5", 12, 32) "}";
    static const uint8_t flips[] = {0x01, 0x02, 0x04, 0x08, 0x10, 0x20, 0x40, 0x80, 0xFF, 0x55};
    size_t len, read = 0;
    mr_error err;
    (void)state;
    uint8_t *all = make_file(header, strlen(header), 32, &len);
    assert_int_equal(try(all, len, &err), MR_OK);
    for (size_t cut = 0; cut < len; cut++)
        assert_int_equal(try(all, cut, &err), MR_BAD_DATA);
    for (size_t at = 0; at < len - 32; at++)
        for (size_t k = 0; k < MR_COUNT(flips); k++) {
            all[at] ^= flips[k];
            read += try(all, len, &err) == MR_OK;
            all[at] ^= flips[k];
        }
    print_message("of %zu changes of a header %zu are read (names, metadata)\n", (len - 32) * MR_COUNT(flips), read);
    assert_true(read < (len - 32) * MR_COUNT(flips) / 4);
    free(all);
}

/* Headers that are small on disk and would be large in memory. */
static void test_memory(void **state)
{
    static const char *const pieces[] = {"[],", "{},", "[[],[]],", "0,"};
    const size_t words = 8 << 20;
    char *header = malloc(words);
    (void)state;
    assert_non_null(header);
    for (size_t i = 0; i < MR_COUNT(pieces); i++) {
        size_t len, n = strlen(pieces[i]), at = 6;
        mr_error err;
        memcpy(header, "{\"a\":[", at);
        for (; at + n + 3 <= words; at += n)
            memcpy(header + at, pieces[i], n);
        memcpy(header + at, "0]}", 3);
        uint8_t *all = make_file(header, at + 3, 0, &len);
        assert_int_equal(try(all, len, &err), MR_BAD_DATA);
        assert_non_null(strstr(err.text, "of memory"));
        free(all);
    }
    memset(header, '[', words);
    memcpy(header, "{\"a\":", 5);
    size_t len;
    mr_error err;
    uint8_t *all = make_file(header, 100000, 0, &len);
    assert_int_equal(try(all, len, &err), MR_BAD_DATA);
    free(all);
    free(header);
}

static void test_names(void **state)
{
    char header[600], name[301];
    mr_error err;
    (void)state;
    for (size_t n = 254; n < 300; n += n == 256 ? 43 : 1) {
        size_t len;
        memset(name, 'x', n);
        name[n] = '\0';
        snprintf(header, sizeof header, "{\"%s\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}", name);
        uint8_t *all = make_file(header, strlen(header), 1, &len);
        assert_int_equal(try(all, len, &err), n < MR_TENSOR_NAME ? MR_OK : MR_BAD_DATA);
        free(all);
    }
}

/* A file that loses its end while it is open. */
static void test_shrinking(void **state)
{
    static const char header[] = "{" T("a", "F32", "3000", 0, 12000) "," T("b", "F16", "3000", 12000, 18000) "}";
    char *path = support_path("%s/a", (char *)*state);
    float values[3000];
    size_t len;
    mr_safetensors *s;
    mr_error err = {0};
    uint8_t *all = make_file(header, strlen(header), 18000, &len);
    support_write(path, all, len);
    assert_int_equal(mr_safetensors_open(path, &s, &err), MR_OK);
    assert_int_equal(mr_safetensors_take(s, mr_safetensors_find(s, "b"), values, &err), MR_OK);
    assert_int_equal(truncate(path, 5000), 0);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(mr_safetensors_take(s, mr_safetensors_at(s, i), values, &err), MR_BAD_DATA);
        assert_non_null(strstr(err.text, path));
    }
    mr_safetensors_free(s);
    free(all);
    free(path);
}

/* ---- indexes ----------------------------------------------------------------------------------------------------- */

static void refuse(const char *path, const char *why)
{
    mr_safetensors *s = NULL;
    mr_error err = {0};
    mr_status status = mr_safetensors_open(path, &s, &err);
    if (status != MR_BAD_DATA || err.status != MR_BAD_DATA || !strstr(err.text, why))
        fail_msg("%s: %d: %s", why, status, err.text);
    assert_null(s);
}

static void test_indexes(void **state)
{
    static const struct {
        const char *text, *why;
    } cases[] = {
        {"{\"weight_map\":{\"a\":\"../one\"}}", "not a plain file name"},
        {"{\"weight_map\":{\"a\":\"/etc/passwd\"}}", "not a plain file name"},
        {"{\"weight_map\":{\"a\":\"sub/one\"}}", "not a plain file name"},
        {"{\"weight_map\":{\"a\":\"..\"}}", "not a plain file name"},
        {"{\"weight_map\":{\"a\":\".\"}}", "not a plain file name"},
        {"{\"weight_map\":{\"a\":\"\"}}", "not a plain file name"},
        {"{\"weight_map\":{\"a\":1}}", "not a plain file name"},
        {"{\"weight_map\":{\"a\":\"one\\u0000\"}}", "line"},
        {"{\"weight_map\":{\"a\":\"one\",\"a\":\"one\"}}", "duplicate key"},
        {"{\"weight_map\":[]}", "\"weight_map\""},
        {"{}", "\"weight_map\""},
        {"[]", "does not start with a JSON object"},
        {"", "does not start with a JSON object"},
        {"{\"weight_map\":{\"a\":\"none\"}}", "'none', which is missing"},
        {"{\"weight_map\":{\"a\":\"fifo\"}}", "not a regular file"},
        {"{\"weight_map\":{\"a\":\"folder\"}}", "not a regular file"},
        {"{\"weight_map\":{\"a\":\"one\",\"b\":\"one\"}}", "'b' is not in 'one'"},
        {"{\"weight_map\":{\"a\":\"damaged\"}}", "damaged"},
        {"{\"weight_map\":{\"a\":\"m.index.json\"}}", "m.index.json"}, /* of itself */
    };
    static const char header[] = "{" T("a", "U8", "4", 0, 4) "}";
    char *dir = *state, *index = support_path("%s/m.index.json", dir), *one = support_path("%s/one", dir);
    char *damaged = support_path("%s/damaged", dir), *fifo = support_path("%s/fifo", dir);
    char *folder = support_path("%s/folder", dir);
    size_t len;
    mr_safetensors *s;
    mr_error err;
    uint8_t *all = make_file(header, strlen(header), 4, &len);
    support_write(one, all, len);
    support_write(damaged, all, len - 1);
    assert_int_equal(mkfifo(fifo, 0666), 0);
    assert_int_equal(mkdir(folder, 0755), 0);
    support_write_text(index, "{\"weight_map\":{\"a\":\"one\"}}");
    assert_int_equal(mr_safetensors_open(index, &s, &err), MR_OK);
    mr_safetensors_free(s);
    for (size_t i = 0; i < MR_COUNT(cases); i++) {
        support_write_text(index, cases[i].text);
        refuse(index, cases[i].why);
    }
    refuse(dir, "has neither model.safetensors nor");
    refuse(fifo, "not a regular file");
    free(all);
    free(folder);
    free(fifo);
    free(damaged);
    free(one);
    free(index);
}

/* As many files as an index may name, and one more. */
static void test_many_files(void **state)
{
    enum { MAX = 512 };
    char *dir = *state, *index = support_path("%s/m.index.json", dir);
    mr_safetensors *s;
    mr_error err;
    for (size_t count = MAX; count <= MAX + 1; count++) {
        char *text = malloc(64 * count + 64);
        assert_non_null(text);
        size_t at = (size_t)sprintf(text, "{\"weight_map\":{");
        for (size_t i = 0; i < count; i++) {
            char header[100], *path = support_path("%s/%zu", dir, i);
            size_t len;
            snprintf(header, sizeof header, "{\"t%zu\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}", i);
            uint8_t *all = make_file(header, strlen(header), 1, &len);
            support_write(path, all, len);
            at += (size_t)sprintf(text + at, "%s\"t%zu\":\"%zu\"", i ? "," : "", i, i);
            free(all);
            free(path);
        }
        strcpy(text + at, "}}");
        support_write_text(index, text);
        if (count > MAX)
            refuse(index, "more than 512 files");
        else if (mr_safetensors_open(index, &s, &err) != MR_OK)
            fail_msg("%s", err.text);
        else
            mr_safetensors_free(s);
        free(text);
    }
    free(index);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_headers), cmocka_unit_test(test_lengths), cmocka_unit_test(test_damage),
        cmocka_unit_test(test_memory),  cmocka_unit_test(test_names),   IN_TMPDIR(test_shrinking),
        IN_TMPDIR(test_indexes),        IN_TMPDIR(test_many_files),
    };
    return cmocka_run_group_tests_name("safetensors_hostile", tests, NULL, NULL);
}
