/* test_special_files.c - a FIFO, a folder, a device, an empty file or nothing instead of a file: in a dataset, a
 * checkpoint, a source, as the value of an option, and as a target.
 * Invariant tested: no command waits for input that will not come or reads without end; each reports what is wrong,
 * or works without the file. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/cost.h"
#include "tests/support/images/image.h"

static char *root, *source, *ds;

static int set_up(void **state)
{
    (void)state;
    root = support_tmpdir();
    source = support_path("%s/source", root);
    ds = support_path("%s/ds", root);
    support_expect(0, "sample", source, "--layout", "roboflow", "--images", "40", "--seed", "4", "--quiet",
                   (char *)NULL);
    support_expect(0, "ingest", source, ds, "--quiet", (char *)NULL);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    free(source);
    free(ds);
    support_tmpdir_remove(root);
    return 0;
}

static support_result run(const char *const *args)
{
    return support_millrace_under(args, &(support_limits){.directory = root});
}

#define ARGS(...) ((const char *const[]){__VA_ARGS__, NULL})

typedef enum thing { FIFO, FOLDER, DEVICE, NOTHING, EMPTY, THINGS } thing;

static void put_thing(thing kind, const char *path)
{
    int fd, failed = kind == FIFO     ? mkfifo(path, 0666)
                     : kind == FOLDER ? mkdir(path, 0777)
                     : kind == DEVICE ? symlink("/dev/zero", path)
                                      : 0;
    if (kind == EMPTY && (fd = creat(path, 0666)) >= 0)
        close(fd);
    if (failed)
        fail_msg("%s: %s", path, strerror(errno));
}

static const char *file_of(const char *path)
{
    return strrchr(path, '/') + 1;
}

/* Each thing in place of the file `path`, before each command: what is not named in `without` says that it cannot be
 * done, and for want of which file.  bench works through this many bytes whatever there is, and may. */
static void expect_things(const char *path, const char *const *const *commands, size_t count, const char *without)
{
    support_result bench = {0};
    char *away = support_path("%s/away", root);
    for (size_t i = 0; i < count; i++)
        if (strcmp(commands[i][0], "bench") == 0)
            bench = run(commands[i]);
    for (thing kind = 0; kind < THINGS; kind++) {
        assert_int_equal(rename(path, away), 0);
        for (size_t i = 0; i < count; i++) {
            remove(path); /* what the last one has made of it */
            put_thing(kind, path);
            support_result r = run(commands[i]);
            support_assert_cheap_like(&r, strcmp(commands[i][0], "bench") == 0 ? &bench : NULL);
            bool named = strstr(r.err, file_of(path)) || strstr(r.out, file_of(path));
            if (r.status ? kind <= DEVICE && !named : !strstr(without, commands[i][0]))
                fail_msg("%s without %s (%d): status %d: %s%s", commands[i][0], path, (int)kind, r.status, r.out,
                         r.err);
            support_result_free(&r);
        }
        remove(path); /* a folder would not make room */
        assert_int_equal(rename(away, path), 0);
    }
    support_result_free(&bench);
    free(away);
}

static void test_things_in_a_dataset(void **state)
{
    (void)state;
    static const struct {
        const char *file, *without;
    } files[] = {
        {"manifest.json", ""},
        {"train-00000.mdb", "inspect reindex seek"},
        {"train-00000.idx", "inspect reindex"},
        {"train-00000.seek", "inspect reindex seek verify show export replay bench"}, /* verify: where there is none */
    };
    char *out = support_path("%s/out", root);
    const char *const *const commands[] = {
        ARGS("inspect", ds),
        ARGS("verify", ds),
        ARGS("show", ds, "train", "0"),
        ARGS("export", ds, out, "--force"),
        ARGS("replay", ds, "--global-batch", "8", "--threads", "2", "--size", "16"),
        ARGS("bench", ds, "--stage", "read", "--seconds", "0.02", "--threads", "1"),
        ARGS("seek", ds),
        ARGS("reindex", ds),
    };
    for (size_t f = 0; f < sizeof files / sizeof *files; f++) {
        char *path = support_path("%s/%s", ds, files[f].file);
        expect_things(path, commands, sizeof commands / sizeof *commands, files[f].without);
        assert_true(support_exists(out) == !!strstr(files[f].without, "export"));
        free(path);
    }
    support_expect(0, "verify", ds, "-q", (char *)NULL);
    free(out);
}

/* ---- checkpoints and options ------------------------------------------------------------------------------------- */

static void test_things_in_a_checkpoint(void **state)
{
    (void)state;
    static const char *const files[] = {"state.json", "weights.npz", "optimizer.npz"};
    char *vit = support_path("%s/vit", root);
    support_expect(0, "train", ds, "--model", "vit", "--image-size", "24", "--patch", "8", "--hidden", "16", "--layers",
                   "1", "--heads", "2", "--mlp", "32", "--batch", "8", "--steps", "1", "--threads", "1", "--quiet",
                   "--output", vit, (char *)NULL);
    const char *const *const commands[] = {
        ARGS("train", ds, "--output", vit, "--resume", "--quiet"),
        ARGS("eval", ds, vit, "--threads", "1"),
        ARGS("predict", ds, vit, "--threads", "1"),
    };
    for (size_t i = 0; i < 3; i++) {
        char *path = support_path("%s/step-00000001/%s", vit, files[i]);
        expect_things(path, commands, 3, i == 2 ? "eval predict" : "");
        free(path);
    }
    support_expect(0, "eval", ds, vit, "--threads", "1", (char *)NULL);
    free(vit);
}

static void test_things_in_a_checkpoint_of_pairs(void **state)
{
    (void)state;
    static const char *const files[] = {"model.safetensors", "config.json", "tokenizer.json"};
    char *cartoons = support_path("%s/cartoons", root), *pairs = support_path("%s/pairs", root),
         *words = support_path("%s/words.json", root), *run_of = support_path("%s/bt", root);
    support_expect(0, "sample", cartoons, "--layout", "newyorker", "--images", "10", "--quiet", (char *)NULL);
    support_expect(0, "ingest", cartoons, pairs, "--quiet", (char *)NULL);
    support_expect(0, "tokenizer", pairs, "--size", "280", "--output", words, (char *)NULL);
    support_expect(0, "train", pairs, "--model", "bridgetower", "--tokenizer", words, "--image-size", "16", "--patch",
                   "8", "--hidden", "64", "--layers", "1", "--cross-layers", "1", "--heads", "1", "--mlp", "32",
                   "--embed", "8", "--max-text", "12", "--batch", "2", "--steps", "1", "--threads", "1", "--quiet",
                   "--output", run_of, (char *)NULL);
    char *shape = support_path("%s/step-00000001/config.json", run_of), *config = support_path("%s/shape.json", root);
    size_t len;
    uint8_t *bytes = support_read(shape, &len);
    support_write(config, bytes, len);
    const char *const *const readers[] = {
        ARGS("train", pairs, "--output", run_of, "--resume", "--quiet"),
        ARGS("eval", pairs, run_of, "--threads", "1"),
    };
    const char *const *const options[] = {
        ARGS("train", pairs, "--model", "bridgetower", "--config", config, "--tokenizer", words, "--steps", "1",
             "--plan"),
    };
    for (size_t i = 0; i < 3; i++) {
        char *path = support_path("%s/step-00000001/%s", run_of, files[i]);
        expect_things(path, readers, 2, "");
        free(path);
    }
    expect_things(config, options, 1, "");
    expect_things(words, options, 1, "");
    support_result r = run(options[0]);
    support_assert_status(&r, 0);
    support_result_free(&r);
    free(bytes);
    free(shape);
    free(config);
    free(run_of);
    free(words);
    free(pairs);
    free(cartoons);
}

/* ---- sources ----------------------------------------------------------------------------------------------------- */

/* A source has a table of its own.  Without it there may be a dataset, but whatever is there instead is in the report,
 * unless it is a folder: that holds nothing. */
static void expect_tables(const char *tree, const char *table)
{
    char *path = support_path("%s/%s", tree, table), *away = support_path("%s/away", root),
         *dst = support_path("%s/dst", root), *report = support_path("%s/report.json", root);
    for (thing kind = 0; kind < THINGS; kind++) {
        assert_int_equal(rename(path, away), 0);
        put_thing(kind, path);
        support_result r = run(ARGS("ingest", tree, dst, "--force", "--quiet", "--report", report));
        support_assert_cheap(&r);
        char *text = r.status == 0 ? (char *)support_read(report, NULL) : NULL;
        if (text && (kind == FIFO || kind == DEVICE || kind == EMPTY) && !strstr(text, table))
            fail_msg("%s (%d) is not in the report: %s", table, (int)kind, text);
        free(text);
        support_result_free(&r);
        remove(path);
        assert_int_equal(rename(away, path), 0);
    }
    free(report);
    free(dst);
    free(away);
    free(path);
}

static void test_things_in_a_source(void **state)
{
    (void)state;
    static const struct {
        const char *layout, *variant, *top, *table;
    } kinds[] = {
        {"coco", NULL, "", "annotations/instances_train2017.json"},
        {"roboflow", "multi-class", "", "train/_classes.csv"},
        {"roboflow", "coco", "", "train/_annotations.coco.json"},
        {"imagenette", NULL, "/imagenette2-160", "noisy_imagenette.csv"},
        {"newyorker", NULL, "", "matching.zip"},
    };
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        char *made = support_path("%s/source-%zu", root, i), *tree = support_path("%s%s", made, kinds[i].top);
        support_expect(0, "sample", made, "--layout", kinds[i].layout, "--images", "20", "--quiet",
                       kinds[i].variant ? "--variant" : NULL, kinds[i].variant, (char *)NULL);
        expect_tables(tree, kinds[i].table);
        free(tree);
        free(made);
    }
}

/* Lines of JSON in a folder, as somebody unpacked them. */
static void test_things_for_lines(void **state)
{
    (void)state;
    static const char rows[] = "{\"contest_number\":1,\"label\":\"A\"}\n{\"contest_number\":2,\"label\":\"B\"}\n";
    char *tree = support_path("%s/lines", root);
    picture p = make_jpeg((jpeg_kind){.width = 16, .height = 16, .components = 3});
    for (int i = 1; i <= 2; i++) {
        char *image = support_path("%s/all_contest_images/%d.jpeg", tree, i),
             *lines = support_path("%s/matching/%s.jsonl", tree, i == 1 ? "train" : "val");
        support_write(image, p.bytes, p.len);
        support_write_text(lines, rows);
        free(lines);
        free(image);
    }
    expect_tables(tree, "matching/train.jsonl");
    picture_free(&p);
    free(tree);
}

/* ---- the way ----------------------------------------------------------------------------------------------------- */

/* Things where a command writes: under its temporary names, too. */
static void test_things_in_the_way(void **state)
{
    (void)state;
    char *idx = support_path("%s/train-00000.idx", ds), *temporary = support_path("%s.tmp", idx);
    char *dst = support_path("%s/way", root), *partial = support_path("%s.partial", dst);
    for (thing kind = FIFO; kind <= FOLDER; kind++) {
        assert_int_equal(unlink(idx), 0);
        put_thing(kind, temporary);
        support_result r = run(ARGS("reindex", ds));
        support_assert_cheap(&r);
        assert_int_equal(r.status, kind == FIFO ? 0 : 3);
        support_result_free(&r);
        remove(temporary);
        support_expect(0, "reindex", ds, "-q", (char *)NULL);
        put_thing(kind, partial);
        r = run(ARGS("ingest", source, dst, "-q"));
        support_assert_cheap(&r);
        assert_int_equal(r.status, kind == FIFO ? 2 : 0); /* an empty folder is taken over */
        support_result_free(&r);
        remove(partial);
    }
    put_thing(FIFO, partial);
    support_expect_refusal(run(ARGS("ingest", source, partial)), "reserved for unfinished datasets");
    support_expect_refusal(run(ARGS("ingest", partial, "x")), "not a regular file");
    support_expect_refusal(run(ARGS("ingest", "/dev/zero", "x")), "not a regular file");
    support_expect_refusal(run(ARGS("export", ds, partial)), "");
    char *link = support_path("%s/link.tar", root);
    assert_int_equal(symlink("nothing.tar", link), 0);
    static const char no_file[] = "is not a regular file; name the file to write";
    support_expect_refusal(run(ARGS("export", ds, partial, "--to", "tar", "--force")), no_file);
    support_expect_refusal(run(ARGS("export", ds, link, "--to", "tar", "--force")), no_file);
    struct stat st;
    assert_true(lstat(partial, &st) == 0 && S_ISFIFO(st.st_mode));
    assert_true(lstat(link, &st) == 0 && S_ISLNK(st.st_mode));
    support_expect_refusal(run(ARGS("verify", partial)), "no such folder");
    support_expect_refusal(run(ARGS("eval", ds, partial)), "");
    support_expect_refusal(run(ARGS("train", ds, "--pretrained", partial)), "");
    free(link);
    free(idx);
    free(temporary);
    free(dst);
    free(partial);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_things_in_a_dataset),
        cmocka_unit_test(test_things_in_a_checkpoint),
        cmocka_unit_test(test_things_in_a_checkpoint_of_pairs),
        cmocka_unit_test(test_things_in_a_source),
        cmocka_unit_test(test_things_for_lines),
        cmocka_unit_test(test_things_in_the_way),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
