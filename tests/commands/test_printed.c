/* test_printed.c - what is printed reaches its reader, and untrusted text cannot control a terminal.
 * Invariant tested: whatever classes, paths and captions a dataset has, the output of every command contains no
 * control characters but line ends and tabs; a result that could not be printed is a failure. */
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cli/term.h"
#include "base/text.h"
#include "tests/support/support.h"
#include "tests/support/shards/dataset_maker.h"
#include "tests/support/images/image.h"

/* A colour, a title, a C1 control sequence introducer and DEL: each does something to some terminal. */
#define EVIL                                                                                                           \
    "\033[31m\033]0;x\007\xC2\x9B"                                                                                     \
    "2J\x7F"
#define EVIL_JSON                                                                                                      \
    "\\u001b[31m\\u001b]0;x\\u0007\\u009b2J\\u007f\xC2\x9B"                                                            \
    "2J\x7F\\n"

static char *dir;

static int set_up(void **state)
{
    (void)state;
    dir = support_tmpdir();
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    support_tmpdir_remove(dir);
    return 0;
}

static void assert_harmless(const char *text, size_t len, const char *command)
{
    for (size_t i = 0; i < len;) {
        size_t n = text[i] == '\n' || text[i] == '\t' ? 1 : mr_text_printable(text + i, len - i);
        if (n == 0)
            fail_msg("%s prints the byte %02X: %.*s", command, (uint8_t)text[i], (int)len, text);
        i += n;
    }
}

/* Runs it, with this exit status and these words (NULL: any) in what it says. */
static void shows(int status, const char *words, const char *const *args)
{
    support_result r = support_millrace_under(args, &(support_limits){.directory = dir});
    support_assert_status(&r, status);
    assert_harmless(r.out, r.out_len, args[0]);
    assert_harmless(r.err, r.err_len, args[0]);
    if (words && !strstr(r.out, words) && !strstr(r.err, words))
        fail_msg("%s: no \"%s\" in: %s%s", args[0], words, r.out, r.err);
    support_result_free(&r);
}

#define SHOWS(status, words, ...) shows(status, words, (const char *const[]){__VA_ARGS__, NULL})

static void draw(const char *path, unsigned number)
{
    picture p = make_jpeg((jpeg_kind){.width = 20 + number, .height = 20, .components = 3});
    support_writef(p.bytes, p.len, "%s/%s", dir, path);
    picture_free(&p);
}

static void test_classes_and_paths(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 8; i++) {
        char *path = support_path("src/%s/%s" EVIL "/%u" EVIL ".jpg", i < 4 ? "train" : "val", i % 2 ? "b" : "a", i);
        draw(path, i);
        free(path);
    }
    support_write_textf("no picture", "%s/src/train/a" EVIL "/9" EVIL ".jpg", dir);
    SHOWS(0, "\\x9B", "ingest", "src", "ds", "--max-rejects", "20%");
    SHOWS(1, NULL, "ingest", "src", "none");
    SHOWS(0, "\\u009b", "ingest", "src", "ds", "--max-rejects", "20%", "--force", "--json");
    SHOWS(0, "\\x9B", "inspect", "ds");
    SHOWS(0, "\\x9B", "inspect", "--classes", "ds");
    SHOWS(0, "\\u009b", "inspect", "--json", "ds");
    SHOWS(0, "\\x9B", "show", "ds", "train", "0");
    SHOWS(0, "\\u009b", "show", "ds", "train", "0", "--json");
    SHOWS(0, "\\x9B", "replay", "ds", "--global-batch", "2", "--list");
    SHOWS(0, "\\u009b", "replay", "ds", "--global-batch", "2", "--list", "--json");
    SHOWS(0, NULL, "train", "ds", "--model", "vit", "--image-size", "16", "--patch", "8", "--hidden", "8", "--layers",
          "1", "--heads", "1", "--mlp", "8", "--batch", "2", "--steps", "1", "--output", "run");
    SHOWS(0, "\\x9B", "predict", "ds", "run");
    SHOWS(0, "\\u009b", "predict", "ds", "run", "--format", "json");
    SHOWS(0, NULL, "eval", "ds", "run");

    char *shard = support_path("%s/ds/train-00000.mdb", dir);
    uint8_t *bytes;
    size_t len;
    bytes = support_read(shard, &len);
    uint8_t *at = memmem(bytes, len, "\xFF\xD8\xFF", 3);
    assert_non_null(at);
    at[200] ^= 0x55;
    support_write(shard, bytes, len);
    SHOWS(1, "\\x9B", "verify", "ds");
    SHOWS(1, "\\u009b", "verify", "--json", "ds");
    SHOWS(1, NULL, "export", "ds", "out");
    free(bytes);
    free(shard);
}

static void test_words(void **state)
{
    (void)state;
    static const char *const files[] = {"instances", "captions"};
    for (unsigned i = 0; i < 4; i++) {
        char *path = support_path("coco/train2017/%u.jpg", i);
        draw(path, i);
        free(path);
    }
    for (size_t k = 0; k < 2; k++) {
        char *path = support_path("%s/coco/annotations/%s_train2017.json", dir, files[k]), *text = NULL;
        size_t len;
        FILE *f = open_memstream(&text, &len);
        fprintf(f, "{\"licenses\":[{\"id\":1,\"name\":\"" EVIL_JSON "\"}],\"info\":{\"description\":\"" EVIL_JSON "\"},"
                   "\"categories\":[{\"id\":1,\"name\":\"" EVIL_JSON "\"}],\"images\":[");
        for (int i = 0; i < 4; i++)
            fprintf(f, "%s{\"id\":%d,\"file_name\":\"%d.jpg\",\"license\":1}", i ? "," : "", i, i);
        fprintf(f, ",{\"id\":9,\"file_name\":\"" EVIL_JSON ".jpg\"}],\"annotations\":[");
        for (int i = 0; i < 4; i++)
            fprintf(f,
                    "%s{\"id\":%d,\"image_id\":%d,\"category_id\":1,\"bbox\":[0,0,5,5],\"caption\":\"" EVIL_JSON "\"}",
                    i ? "," : "", i, i);
        fprintf(f, "]}");
        fclose(f);
        support_write_text(path, text);
        free(text);
        free(path);
    }
    SHOWS(0, "\\x1B", "ingest", "coco", "words", "--max-rejects", "50%");
    SHOWS(0, "\\x1B", "inspect", "words");
    SHOWS(0, "\\x1B", "inspect", "--classes", "words");
    SHOWS(0, "\\u009b", "show", "words", "train", "0");
    SHOWS(0, "\\u009b", "show", "words", "train", "0", "--json");
    SHOWS(0, NULL, "tokenizer", "words", "--text-column", "captions", "--output", "tokenizer.json");
    SHOWS(1, NULL, "tokenizer", "words", "--text-column", "bbox", "--output", "other.json");
}

/* A manifest may say what no source could. */
static void test_manifest(void **state)
{
    (void)state;
    SHOWS(0, NULL, "sample", "drawn", "--layout", "imagenette", "--images", "10", "--quiet");
    SHOWS(0, NULL, "ingest", "drawn", "ds", "--quiet");
    char *path = support_path("%s/ds/manifest.json", dir), *text = (char *)support_read(path, NULL);
    char *at = strstr(text, "\"layout\": \"imagenette\"");
    assert_non_null(at);
    char *edited = support_path("%.*s\"layout\": \"" EVIL_JSON "\"%s", (int)(at - text), text,
                                at + strlen("\"layout\": \"imagenette\""));
    support_write_text(path, edited);
    SHOWS(1, "its seal does not match its text", "inspect", "ds");
    char *ds = support_path("%s/ds", dir);
    dataset_seal(ds);
    SHOWS(0, "\\x1B", "inspect", "ds");
    free(ds);
    free(edited);
    free(text);
    free(path);
}

#define TRAIN                                                                                                          \
    "train ds --output run --model vit --image-size 16 --patch 8 --hidden 8 --layers 1 --heads 1 --mlp 8 "             \
    "--steps 1"

/* Every command with its standard output there: exit code 3, and `words` on standard error; "": nothing there. */
static void each_command_into(const char *output, const char *words)
{
    static const char *const commands[] = {
        "--help",
        "--version",
        "ingest --help",
        "ingest --usage",
        "help seek",
        "sample more --layout coco --images 10",
        "ingest drawn ds",
        "ingest drawn ds2 --json",
        "ingest drawn ds3 --dry-run",
        "verify ds",
        "verify ds --json",
        "inspect ds",
        "inspect ds --json",
        "inspect ds --classes",
        "show ds train 0",
        "show ds train 0 --json",
        "show ds train 0 --image -",
        "export ds out",
        "export ds out2 --json",
        "export ds --to tar -",
        "reindex ds",
        "reindex ds --json",
        "seek ds",
        "seek ds --json",
        "plan ds --global-batch 4",
        "plan ds --global-batch 4 --json",
        "plan ds --global-batch 4000000000 --tail pad --batches 0", /* of which a few bytes are written */
        "plan ds --global-batch 4000000000 --tail pad --batches 0 --json",
        "replay ds --global-batch 4",
        "replay ds --global-batch 4 --json",
        "bench ds --seconds 0.1 --threads 1",
        TRAIN,
        "eval ds run",
        "eval ds run --json",
        "predict ds run",
        "predict ds run --format json",
    };
    SHOWS(0, NULL, "sample", "drawn", "--layout", "imagenette", "--images", "16", "--quiet");
    for (size_t i = 0; i < MR_COUNT(commands); i++) {
        char *line = support_path("exec '%s' %s %s", support_millrace_path(), commands[i], output);
        const char *const argv[] = {"/bin/sh", "-c", line, NULL};
        support_result r = support_run(argv, &(support_limits){.directory = dir});
        if (r.status != 3 || !strstr(r.err, words) || (!*words && r.err_len))
            fail_msg("%s: exit %d, %s", commands[i], r.status, r.err);
        support_result_free(&r);
        free(line);
    }
}

/* A device that is full, in place of standard output. */
static void test_full_output(void **state)
{
    (void)state;
    if (access("/dev/full", W_OK) != 0)
        skip();
    each_command_into("> /dev/full", "standard output: cannot write: No space left on device");
}

/* Who reads it has had enough: no word about that. */
static void test_closed_pipe(void **state)
{
    (void)state;
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    close(ends[0]);
    assert_int_equal(dup2(ends[1], 9), 9);
    close(ends[1]);
    each_command_into(">&9", "");
    close(9);
}

/* One JSON object per line, the last of a step with its final numbers; a reader that goes away stops nothing. */
static void test_progress_as_json(void **state)
{
    (void)state;
    int ends[2];
    char text[1024] = "";
    assert_int_equal(pipe(ends), 0);
    mr_progress *p = mr_progress_begin("checking", 1500, ends[1]);
    mr_progress_add(p, 128, 1000);
    mr_progress_add(p, 1372, 0);
    mr_progress_end(p);
    ssize_t len = read(ends[0], text, sizeof text - 1);
    assert_true(len > 0);
    assert_string_equal(text, "{\"step\": \"checking\", \"done\": 128, \"total\": 1500, \"bytes\": 1000}\n"
                              "{\"step\": \"checking\", \"done\": 1500, \"total\": 1500, \"bytes\": 1000}\n");
    close(ends[0]);
    void (*old)(int) = signal(SIGPIPE, SIG_IGN); /* as millrace.c does */
    mr_progress_end(mr_progress_begin("writing", 1, ends[1]));
    signal(SIGPIPE, old);
    close(ends[1]);
}

/* A terminal in place of standard error, where the last line drawn tells all, and no rate of nothing. */
static void test_progress(void **state)
{
    (void)state;
    char text[4096] = "";
    int master = posix_openpt(O_RDWR | O_NOCTTY), saved = dup(STDERR_FILENO);
    if (master < 0 || grantpt(master) != 0 || unlockpt(master) != 0)
        skip();
    int slave = open(ptsname(master), O_RDWR | O_NOCTTY);
    assert_true(slave >= 0 && saved >= 0);
    setenv("TERM", "xterm", 1);
    assert_int_equal(dup2(slave, STDERR_FILENO), STDERR_FILENO);
    for (uint64_t bytes = 0; bytes < 2; bytes++) {
        mr_progress *p = mr_progress_begin(bytes ? "verify" : "seek index", 1500, false);
        mr_progress_add(p, 128, bytes << 20);
        mr_progress_add(p, 1372, bytes << 20);
        mr_progress_end(p);
    }
    dup2(saved, STDERR_FILENO);
    close(slave); /* then reading ends, once all has come through */
    for (ssize_t n, len = 0; (n = read(master, text + len, sizeof text - 1 - (size_t)len)) > 0;)
        len += n;
    close(master);
    close(saved);
    char *end = strstr(text, "\r\033[Kseek index  1,500 / 1,500 (100 %)\r\033[K"), *rate = strstr(text, "/s");
    if (!end || !rate || rate < strstr(text, "verify  128 / 1,500 (8 %)  "))
        fail_msg("drawn was: %s", text);
}

/* What was asked for beside the dataset is part of what was asked for. */
static void test_report_that_fails(void **state)
{
    (void)state;
    SHOWS(0, NULL, "sample", "drawn", "--layout", "imagenette", "--images", "10", "--quiet");
    SHOWS(2, "no/report.json: its folder does not exist", "ingest", "drawn", "ds", "-q", "--report", "no/report.json");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_classes_and_paths), TEST(test_words),
        TEST(test_manifest),          TEST(test_full_output),
        TEST(test_closed_pipe),       TEST(test_report_that_fails),
        TEST(test_progress),          TEST(test_progress_as_json),
    };
    return cmocka_run_group_tests_name("printed", tests, NULL, NULL);
}
