/* test_mat.c - meta.mat: the synsets of a MAT-file of version 5, and what damage makes of it.
 * Invariant tested: whatever the bytes, the outcome is lines of synsets or one sentence. */
#include <stdlib.h>
#include <string.h>

#include <zlib.h>

#include "ingest/layout/ilsvrc/mat.h"
#include "tests/support/sources/mat.h"
#include "tests/support/sources/objects.h"

static const support_synset some[] = {
    {1, "n02119789", "kit fox, Vulpes macrotis"}, {2, "n02100735", "English setter"}, {1001, "n00001740", ""}};
static size_t budget; /* of one call */
static const char lines[] = "n02119789\t1\tkit fox, Vulpes macrotis\nn02100735\t2\tEnglish setter\nn00001740\t1001\t\n";

static void reads(const mr_buf *file, const char *expected)
{
    mr_buf out = {0};
    mr_error err;
    budget = MR_MAT_UNPACKED_MAX;
    if (mr_mat_synsets(file->data, file->len, &budget, &out, &err) != MR_OK)
        fail_msg("%s", err.text);
    assert_string_equal(mr_buf_text(&out), expected);
    mr_buf_free(&out);
}

static void refuses(const void *bytes, size_t len, const char *words)
{
    mr_buf out = {0};
    mr_error err;
    budget = MR_MAT_UNPACKED_MAX;
    assert_int_equal(mr_mat_synsets(bytes, len, &budget, &out, &err), MR_BAD_DATA);
    if (!strstr(err.text, words))
        fail_msg("expected %s, got %s", words, err.text);
    mr_buf_free(&out);
}

static void test_good_files(void **state)
{
    mr_buf file = {0};
    (void)state;
    for (int i = 0; i < 4; i++) {
        support_mat_write(&(support_mat){.big = i & 1, .compressed = i & 2}, some, MR_COUNT(some), &file);
        reads(&file, lines);
    }
    support_mat_write(&(support_mat){0}, some, 0, &file);
    reads(&file, "");
    mr_buf_free(&file);
}

static void test_bad_files(void **state)
{
    static const support_synset odd[] = {{1, "n021197", "x"}, {0, "n02119789", "x"}, {1.5, "n02119789", "x"}};
    static uint8_t large[MR_MAT_MAX + 1];
    mr_buf file = {0};
    (void)state;
    support_mat_write(&(support_mat){.variable = "other"}, some, 1, &file);
    refuses(file.data, file.len, "has no variable synsets");
    support_mat_write(&(support_mat){.id_field = "ID"}, some, 1, &file);
    refuses(file.data, file.len, "have no ILSVRC2012_ID");
    for (size_t i = 0; i < MR_COUNT(odd); i++) {
        support_mat_write(&(support_mat){0}, &odd[i], 1, &file);
        refuses(file.data, file.len, "synset 1: its ILSVRC2012_ID is not a number, or its WNID not n and 8 digits");
    }
    refuses("text", 4, "not a MAT-file of version 5");
    refuses("MATLAB 7.3 MAT-file, Platform", 29, "version 7.3");
    refuses(large, sizeof large, "longer than 16 MiB, the limit");
    refuses(large, 128, "not a MAT-file of version 5");
    mr_buf_free(&file);
}

/* 80 MiB of zeros take 80 kB. */
static void test_a_bomb(void **state)
{
    enum { SIZE = 80 << 20 };
    mr_buf file = {0};
    (void)state;
    support_mat_write(&(support_mat){.compressed = true}, some, 1, &file);
    file.len = 128;
    uint8_t *zeros = calloc(1, SIZE);
    uLongf len = compressBound(SIZE);
    assert_non_null(zeros);
    assert_true(mr_buf_reserve(&file, len + 8));
    assert_int_equal(compress2(file.data + 136, &len, zeros, SIZE, 1), Z_OK);
    memcpy(file.data + 128, &(uint32_t[]){15, (uint32_t)len}, 8);
    refuses(file.data, 136 + len, "unpacks to more than 64 MiB, the limit for meta.mat");
    free(zeros);
    mr_buf_free(&file);
}

/* 200 variables of 1 MiB of zeros each: together they are a bomb. */
static void test_many_variables(void **state)
{
    enum { EACH = 1 << 20, VARIABLES = 200 };
    mr_buf file = {0}, other = {0};
    (void)state;
    support_mat_write(&(support_mat){.variable = "other"}, some, 1, &other);
    uint8_t *inner = calloc(1, EACH);
    uLongf capacity = compressBound(EACH), len;
    uint8_t *packed = malloc(capacity);
    assert_true(inner && packed);
    memcpy(inner, other.data + 128, other.len - 128);
    mr_buf_add(&file, other.data, 128);
    len = capacity;
    assert_int_equal(compress2(packed, &len, inner, EACH, 9), Z_OK);
    for (int i = 0; i < VARIABLES; i++) {
        mr_buf_add(&file, (uint32_t[]){15, (uint32_t)len}, 8);
        mr_buf_add(&file, packed, len);
        if (i == 31)
            refuses(file.data, file.len, "has no variable synsets");
    }
    refuses(file.data, file.len, "unpacks to more than 64 MiB, the limit for meta.mat");
    free(inner);
    free(packed);
    mr_buf_free(&file);
    mr_buf_free(&other);
}

/* Every truncation, and every byte changed. */
static void test_damage(void **state)
{
    mr_buf file = {0}, out = {0};
    mr_error err;
    (void)state;
    for (int i = 0; i < 4; i++) {
        support_mat_write(&(support_mat){.big = i & 1, .compressed = i & 2}, some, MR_COUNT(some), &file);
        for (size_t len = 0; len < file.len; len++) {
            uint8_t *exact = malloc(len ? len : 1);
            assert_non_null(exact);
            memcpy(exact, file.data, len);
            mr_buf_clear(&out);
            budget = MR_MAT_UNPACKED_MAX;
            assert_int_equal(mr_mat_synsets(exact, len, &budget, &out, &err), MR_BAD_DATA);
            free(exact);
        }
        for (size_t at = 0; at < file.len; at++)
            for (unsigned bit = 0; bit < 8; bit++) {
                file.data[at] ^= (uint8_t)(1u << bit);
                mr_buf_clear(&out);
                budget = MR_MAT_UNPACKED_MAX;
                mr_status status = mr_mat_synsets(file.data, file.len, &budget, &out, &err);
                assert_true(status == MR_OK || (status == MR_BAD_DATA && *err.text));
                file.data[at] ^= (uint8_t)(1u << bit);
            }
    }
    mr_buf_free(&file);
    mr_buf_free(&out);
}

/* The ids of meta.mat are those of the ground truth. */
static void test_in_a_tree(void **state)
{
    static const char at[] = "ILSVRC2012_devkit_t12/data/";
    char *dir = *state, *path = support_path("%s/%smeta.mat", dir, at);
    mr_buf file = {0};
    support_put(dir, "ILSVRC2012_val_00000001.JPEG", "");
    support_put(dir, "ILSVRC2012_val_00000002.JPEG", "");
    support_put(dir, "ILSVRC2012_devkit_t12/data/ILSVRC2012_validation_ground_truth.txt", "2\n1\n");
    support_mat_write(&(support_mat){.compressed = true}, some, MR_COUNT(some), &file);
    support_write(path, file.data, file.len);
    support_plan p = support_plan_ok(&mr_layout_ilsvrc, dir, NULL);
    support_assert_samples(&p, "val ILSVRC2012_val_00000001.JPEG 0 0\nval ILSVRC2012_val_00000002.JPEG 1 0\n");
    assert_string_equal(p.plan.classes[0].name, "n02100735");
    support_assert_meta(&p, 0, ",\"ilsvrc\":{\"words\":\"English setter\"}");
    support_plan_done(&p);
    support_put(dir, "map_clsloc.txt", "n02119789 1 kit_fox\nn02100735 3 English_setter\n");
    support_plan_fails(
        &mr_layout_ilsvrc, dir, NULL, MR_BAD_DATA,
        "ILSVRC2012_devkit_t12/data/meta.mat and map_clsloc.txt contradict each other: ILSVRC2012_ID 2 is "
        "of n02100735 in the first, 3 of n02100735 in the second");
    support_put(dir, "map_clsloc.txt", "n02119789 1 kit_fox\nn02100735 2 English_setter\n");
    char *second = support_path("%s/other/meta.mat", dir);
    const support_synset swapped[] = {{2, "n02119789", "kit fox"}};
    mr_buf wrong = {0};
    support_mat_write(&(support_mat){0}, swapped, 1, &wrong);
    support_write(second, file.data, file.len);
    p = support_plan_ok(&mr_layout_ilsvrc, dir, NULL);
    support_plan_done(&p);
    support_write(second, wrong.data, wrong.len);
    support_plan_fails(&mr_layout_ilsvrc, dir, NULL, MR_BAD_DATA, "other/meta.mat contradict each other");
    support_write(second, file.data, file.len);
    mr_buf_free(&wrong);
    free(second);
    support_write(path, file.data, file.len - 1);
    support_plan_fails(&mr_layout_ilsvrc, dir, NULL, MR_BAD_DATA,
                       "meta.mat: damaged or truncated: an element ends after the one that holds it; --exclude "
                       "ILSVRC2012_devkit_t12/data/meta.mat");
    mr_buf_free(&file);
    free(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_good_files), cmocka_unit_test(test_bad_files),
                                       cmocka_unit_test(test_a_bomb),     cmocka_unit_test(test_many_variables),
                                       cmocka_unit_test(test_damage),     IN_TMPDIR(test_in_a_tree)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
