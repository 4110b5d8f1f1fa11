/* test_archive_damage.c - ingest of archives that do not have their checksums.
 * Invariant tested: what a sample needs ends ingest with exit code 1, with archive and entry named and nothing written,
 * whatever --max-rejects allows; what nobody needs is a remark, and the dataset is that of the good archive. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/support/support.h"
#include "tests/support/sources/archive.h"
#include "tests/support/images/image.h"

enum { IMAGES = 4, FILES = IMAGES + 3 };

static char *dir, *dst;
static picture image;

/* Places in a stored archive, by words that occur there once. */
static const support_entry others[] = {
    {.path = "ds/README.md", .bytes = "# the readme", .len = 12},
    {.path = "ds/other.csv", .bytes = "not,the,table", .len = 13},
    {.path = "ds/noisy_imagenette.csv",
     .bytes = "path,noisy_labels_0,noisy_labels_1,noisy_labels_5,noisy_labels_25,noisy_labels_50,is_valid\n"
              "train/n01440764/0.jpg,n01440764,n01440764,n01440764,n01440764,n02102040,False\n",
     .len = 169},
};

static int set_up(void **state)
{
    (void)state;
    dir = support_tmpdir();
    dst = support_path("%s/dst", dir);
    image = make_jpeg((jpeg_kind){.width = 20, .height = 20, .components = 3});
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    picture_free(&image);
    free(dst);
    support_tmpdir_remove(dir);
    return 0;
}

static char *make_archive(const char *kind)
{
    static const char *const classes[] = {"n01440764", "n02102040"};
    support_entry entries[FILES];
    uint8_t *bytes[IMAGES];
    char *path = support_path("%s/x.%s", dir, kind);
    for (int i = 0; i < IMAGES; i++) { /* the words stand after the picture's end */
        bytes[i] = calloc(image.len + 8, 1);
        memcpy(bytes[i], image.bytes, image.len);
        sprintf((char *)bytes[i] + image.len, "image-%d", i);
        entries[i] = (support_entry){
            .path = support_path("ds/train/%s/%d.jpg", classes[i % 2], i), .bytes = bytes[i], .len = image.len + 8};
    }
    memcpy(entries + IMAGES, others, sizeof others);
    support_archive(path, kind, entries, FILES);
    for (int i = 0; i < IMAGES; i++) {
        free((void *)(uintptr_t)entries[i].path);
        free(bytes[i]);
    }
    return path;
}

static support_result ingest(const char *path)
{
    return support_millrace("ingest", path, dst, "--layout", "imagenette", "--max-rejects", "100%", (char *)NULL);
}

static void expect_nothing_written(void)
{
    char *partial = support_path("%s.partial", dst);
    assert_false(support_exists(dst));
    assert_false(support_exists(partial));
    free(partial);
}

static void expect_refused(const char *path, const char *entry, const char *words)
{
    char *said = support_path("%s: %s", path, entry);
    support_result r = ingest(path);
    support_assert_status(&r, 1);
    if (!strstr(r.err, said) || !strstr(r.err, words))
        fail_msg("expected \"%s ... %s\": %s", said, words, r.err);
    support_result_free(&r);
    expect_nothing_written();
    free(said);
}

static void test_what_a_sample_needs(void **state)
{
    (void)state;
    static const char *const kinds[] = {"zip", "7z-store"};
    static const char *const places[][2] = {{"image-0", "ds/train/n01440764/0.jpg"},
                                            {"image-3", "ds/train/n02102040/3.jpg"},
                                            {",False", "ds/noisy_imagenette.csv"}};
    for (size_t k = 0; k < MR_COUNT(kinds); k++) {
        char *path = make_archive(kinds[k]);
        for (size_t i = 0; i < MR_COUNT(places); i++) {
            size_t at = support_archive_flip(path, places[i][0], 1, 5);
            expect_refused(path, places[i][1], "checksum mismatch: ");
            support_archive_flip(path, "", at, 5);
        }
        support_result r = ingest(path);
        support_assert_status(&r, 0);
        support_result_free(&r);
        support_expect(0, "verify", dst, (char *)NULL);
        char *aside = support_path("%s-%zu", dst, k);
        assert_int_equal(rename(dst, aside), 0);
        free(aside);
        free(path);
    }
}

static void test_what_nobody_needs(void **state)
{
    (void)state;
    static const char *const kinds[] = {"zip", "7z-store"};
    static const char *const places[][2] = {{"# the readme", "ds/README.md"}, {"not,the,table", "ds/other.csv"}};
    uint64_t good = 0;
    for (size_t k = 0; k < MR_COUNT(kinds); k++) {
        char *path = make_archive(kinds[k]);
        for (size_t i = 0; i <= MR_COUNT(places); i++) {
            if (i)
                support_archive_flip(path, places[i - 1][0], 0, 0);
            support_result r = support_millrace("ingest", path, dst, "--layout", "imagenette", "--force", (char *)NULL);
            support_assert_status(&r, 0);
            char *said = i ? support_path("%s: checksum mismatch: ", places[i - 1][1]) : strdup("done in");
            if (!strstr(r.out, said) && !strstr(r.err, said))
                fail_msg("expected \"%s\": %s%s", said, r.out, r.err);
            free(said);
            support_result_free(&r);
            uint64_t hash = support_dataset_hash(dst);
            good = good ? good : hash;
            assert_int_equal(hash, good);
        }
        free(path);
    }
}

/* A layout looks into files to find out whether they are its own: one that cannot be looked at may be. */
static void test_what_a_layout_looks_at(void **state)
{
    (void)state;
    char *tree = support_path("%s/coco", dir), *path = support_path("%s/coco.zip", dir);
    support_expect(0, "sample", tree, "--layout", "coco", "--images", "20", "--quiet", (char *)NULL);
    support_archive_tree(path, "zip", tree, false);
    support_archive_flip(path, "{\"info\"", 0, 0);
    support_result r = support_millrace("ingest", path, dst, (char *)NULL);
    support_assert_status(&r, 1);
    if (!strstr(r.err, "coco.zip: annotations/captions_train2017.json: checksum mismatch: "))
        fail_msg("%s", r.err);
    support_result_free(&r);
    expect_nothing_written();
    free(tree);
    free(path);
}

/* A stream has one checksum for all, so nothing of it is taken. */
static void test_streams(void **state)
{
    (void)state;
    static const char *const kinds[] = {"tar.gz", "cpio.gz"};
    for (size_t k = 0; k < MR_COUNT(kinds); k++) {
        size_t len;
        char *path = make_archive(kinds[k]);
        uint8_t *bytes = support_read(path, &len);
        bytes[len - 8] ^= 1;
        support_write(path, bytes, len);
        expect_refused(path, "cannot be read to its end (7 entries read): ", "checksum mismatch: the unpacked data");
        support_result r = support_millrace_under((const char *const[]){"ingest", "-", dst, NULL},
                                                  &(support_limits){.input = bytes, .input_len = len});
        support_expect_refusal(r, "standard input: cannot be read to its end (7 entries read): checksum mismatch");
        expect_nothing_written();
        free(bytes);
        free(path);
    }
}

/* In one of several sources, from a pipe, in a folder of archives. */
static void test_wherever_it_lies(void **state)
{
    (void)state;
    size_t len;
    char *path = make_archive("zip"), *folder = support_path("%s/folder", dir),
         *inside = support_path("%s/y.zip", folder);
    support_archive_flip(path, "image-2", 1, 0);
    uint8_t *bytes = support_read(path, &len);
    support_write(inside, bytes, len);
    support_expect_refusal(support_millrace("ingest", folder, dst, (char *)NULL),
                           "y.zip: ds/train/n01440764/2.jpg: checksum mismatch: ");
    support_expect_refusal(
        support_millrace_under((const char *const[]){"ingest", "-", dst, "--layout", "imagenette", NULL},
                               &(support_limits){.input = bytes, .input_len = len}),
        "standard input: ds/train/n01440764/2.jpg: checksum mismatch: ");
    expect_nothing_written();
    free(bytes);
    free(inside);
    free(folder);
    free(path);
}

/* One rank reads the archive, all of them know. */
static void test_ranks(void **state)
{
    (void)state;
    char *path = make_archive("zip");
    support_archive_flip(path, "image-2", 1, 0);
    const char *argv[] = {support_millrace_path(), "ingest", path, dst, "--layout", "imagenette", "--quiet", NULL};
    support_result r = support_mpirun(2, argv);
    support_assert_status(&r, 1);
    if (!strstr(r.err, "x.zip: ds/train/n01440764/2.jpg: checksum mismatch: "))
        fail_msg("%s", r.err);
    support_result_free(&r);
    expect_nothing_written();
    free(path);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_what_a_sample_needs),    TEST(test_what_nobody_needs),
        TEST(test_what_a_layout_looks_at), TEST(test_streams),
        TEST(test_wherever_it_lies),       TEST(test_ranks),
    };
    return cmocka_run_group_tests_name("archive_damage", tests, NULL, NULL);
}
