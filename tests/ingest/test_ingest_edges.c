/* test_ingest_edges.c - ingest where it could do harm or fail silently: a target inside its source, options that match
 * nothing, signals. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "tests/support/images/image.h"

static char *dir, *source;

static int set_up(void **state)
{
    (void)state;
    dir = support_tmpdir();
    source = support_path("%s/source", dir);
    support_expect(0, "sample", source, "--layout", "imagenette", "--images", "120", "--seed", "3", "--quiet",
                   (char *)NULL);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    free(source);
    support_tmpdir_remove(dir);
    return 0;
}

#define says(status, words, ...) SAYS(dir, status, NULL, words, __VA_ARGS__)

static void test_a_target_inside_the_source(void **state)
{
    (void)state;
    static const char *const places[] = {"source/out", "source", "source/train/a/b", "link/../source/out", "link/out"};
    char *link = support_path("%s/link", dir);
    assert_int_equal(symlink("source", link), 0);
    uint64_t before = support_tree_hash(source);
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        char *said =
            support_path("millrace: %s: is inside the source source; choose a DATASET outside it\n", places[i]);
        says(2, said, "ingest", "source", places[i]);
        free(said);
    }
    assert_true(support_tree_hash(source) == before);
    says(0, NULL, "ingest", "source", "source-2", "--quiet"); /* beside it, though the name begins alike */
    says(2,
         "millrace: source-2: is already a millrace dataset; `millrace inspect` shows what is in it, `millrace "
         "export` writes its files again\n",
         "ingest", "source-2", "out");
    free(link);
}

/* What is only looked at needs no DATASET. */
static void test_a_look_without_a_target(void **state)
{
    (void)state;
    says(0, NULL, "ingest", "source", "--dry-run");
    says(0, NULL, "ingest", "source", "out", "--dry-run");
    says(2,
         "millrace ingest: DATASET is missing, for example: millrace ingest source dataset\n"
         "Try 'millrace ingest --help'.\n",
         "ingest", "source");
    says(2,
         "millrace ingest: --layout imagnette: use imagenette, roboflow, coco, newyorker, hub, webdataset, yolo, voc, "
         "createml, ilsvrc, imagefolder, table or flat; did you mean imagenette?\nTry 'millrace ingest --help'.\n",
         "ingest", "source", "out", "--layout", "imagnette");
    char *list = support_list(dir);
    assert_null(strstr(list, "out"));
    free(list);
}

/* Interrupted while it waits for the rest of an archive, of which it has taken more than a pipe holds: by the signal,
 * with a word about DATASET by its name. */
static void test_interrupted(void **state)
{
    (void)state;
    static const char *const signals[] = {"INT 130", "TERM 143", "HUP 129", "USR1 138", "USR2 140"};
    const char *said = "millrace: interrupted; some\\x09target is unchanged; run the same command again to continue "
                       "with the shards that are finished\n";
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
        char *line = support_path("set -- %s; rm -f pipe; mkfifo pipe; head -c 400000 /dev/zero > big\n"
                                  "'%s' ingest - 'some\ttarget' < pipe & pid=$!; exec 3> pipe\n"
                                  "tar cf - big | head -c 300000 >&3; kill -$1 $pid; wait $pid; echo $? $2",
                                  signals[i], support_millrace_path());
        const char *const argv[] = {"/bin/bash", "-mc", line, NULL};
        support_result r = support_run(argv, &(support_limits){.directory = dir});
        char *codes = support_path("%1$s %1$s\n", strchr(signals[i], ' ') + 1);
        assert_string_equal(r.out, codes);
        if (!strstr(r.err, said))
            fail_msg("not \"%s\" but: %s", said, r.err);
        support_result_free(&r);
        free(codes);
        free(line);
    }
}

static void put(const char *name, const void *bytes, size_t len)
{
    support_writef(bytes, len, "%s/quiet/%s", dir, name);
}

/* Nothing that is lost goes unsaid. */
static void test_quiet(void **state)
{
    (void)state;
    static const char one[] = "file,label\n1.jpg,a\n3.jpg,b\n",
                      two[] = "file,label\n1.jpg,a\n2.jpg,a\n3.jpg,b\n4.jpg,b\n";
    picture p = make_jpeg((jpeg_kind){.width = 20, .height = 9, .components = 3});
    put("1.jpg", p.bytes, p.len);
    put("labels.csv", one, strlen(one));
    SAYS(dir, 0, "", "millrace: quiet: 1 annotated but missing\n", "ingest", "--quiet", "quiet", "quiet.mr");
    put("2.jpg", p.bytes, 40);
    put("labels.csv", two, strlen(two));
    SAYS(dir, 0, "", "millrace: quiet: 1 rejected, 2 annotated but missing\n", "ingest", "--quiet", "--force", "quiet",
         "quiet.mr", "--max-rejects", "1");
    picture_free(&p);
}

static void expect_words(int status, const char *words, const char *src, const char *option)
{
    char *target = support_path("%s/never", dir);
    support_result r = support_millrace("ingest", src, target, "--dry-run", option, (char *)NULL);
    support_assert_status(&r, status);
    if (!strstr(r.err, words) && !strstr(r.out, words))
        fail_msg("expected \"%s\" in: %s%s", words, r.out, r.err);
    support_result_free(&r);
    free(target);
}

static void test_options_that_miss_say_so(void **state)
{
    (void)state;
    static const char *const layouts[] = {"coco", "newyorker", "roboflow"};
    expect_words(2, "no split 'tset'", source, "--split-map=tset=val");
    for (size_t i = 0; i < 3; i++) {
        char *other = support_path("%s/%s", dir, layouts[i]);
        support_expect(0, "sample", other, "--layout", layouts[i], "--images", "40", "--quiet", (char *)NULL);
        expect_words(2, "no split 'tset'", other, "--split-map=tset=val");
        expect_words(0, "dev", other, i == 2 ? "--split-map=valid=dev" : "--split-map=val=dev");
        free(other);
    }
    /* the root of a forced layout is found as it is found for the others; this one does not read the table there */
    expect_words(1, "1 CSV file that names images in imagenette2-160/ would be left out", source, "--layout=roboflow");
}

static void test_split_maps(void **state)
{
    (void)state;
    expect_words(1, "holds no image for layout imagenette but in splits that --split-map leaves out", source,
                 "--split-map=train=,val=");
    expect_words(2, "--split-map: 'train' is given twice, to become 'val' and 'test'", source,
                 "--split-map=train=val,train=test");
    mr_buf many = {0};
    mr_buf_add_text(&many, "--split-map=");
    for (int i = 0; i < 33; i++)
        mr_buf_printf(&many, "%ss%d=val", i ? "," : "", i);
    expect_words(2, "--split-map s32=val: more than 32 splits", source, mr_buf_text(&many));
    mr_buf_free(&many);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_a_target_inside_the_source),
        TEST(test_options_that_miss_say_so),
        TEST(test_a_look_without_a_target),
        TEST(test_interrupted),
        TEST(test_split_maps),
        TEST(test_quiet),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
