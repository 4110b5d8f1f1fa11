/* test_hostile_source.c - archives, tables and manifests made to do harm.
 * Invariant tested: each is rejected with a reason, cheaply and within 256 MiB, and nothing outside the target
 * changes. (Pictures: test_hostile_images.c; equal hashes: test_forgery.c.) */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "tests/support/sources/archive.h"
#include "tests/support/cost.h"
#include "tests/support/images/image.h"

static char *dir, *dst;
static picture good;

static int set_up(void **state)
{
    (void)state;
    dir = support_tmpdir();
    dst = support_path("%s/dst", dir);
    good = make_jpeg((jpeg_kind){.width = 20, .height = 20, .components = 3});
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    picture_free(&good);
    free(dst);
    support_tmpdir_remove(dir);
    return 0;
}

#define RUN(...) support_millrace_under((const char *const[]){__VA_ARGS__, NULL}, &(support_limits){.directory = dir})

static char *archive(const char *kind, const support_entry *entries, size_t count)
{
    char *path = support_path("%s/x.%s", dir, kind);
    support_archive(path, kind, entries, count);
    return path;
}

/* ---- archives ---------------------------------------------------------------------------------------------------- */

/* 110 KB that say 110 MiB, as an image, as text, and as something that nobody asked for. */
static void test_bombs(void **state)
{
    (void)state;
    static const char *const kinds[] = {"tar.gz", "tar.zst", "zip-deflate"}, *const names[] = {"ds/train/a/0.jpg",
                                                                                               "ds/x.json", "ds/x.bin"};
    size_t len = (size_t)110 << 20;
    void *zeros = calloc(len, 1);
    for (size_t i = 0; i < 3; i++) {
        const support_entry entries[] = {{.path = "ds/train/a/1.jpg", .bytes = good.bytes, .len = good.len},
                                         {.path = "ds/train/b/2.jpg", .bytes = good.bytes, .len = good.len},
                                         {.path = names[i], .bytes = zeros, .len = len}};
        char *path = archive(kinds[i], entries, 3);
        assert_true(support_size(path) < 1 << 20);
        support_expect_refusal(RUN("ingest", path, dst), "unpacks to more than 100 times its size");
        support_limits input = {.directory = dir};
        uint8_t *bytes = support_read(path, &input.input_len);
        input.input = bytes;
        const char *argv[] = {support_millrace_path(), "ingest", "-", dst, NULL};
        support_expect_refusal(support_run(argv, &input), "unpacks to more than 100 times its size");
        free(bytes);
        if (i) {
            free(path);
            continue;
        }
        support_result r = RUN("ingest", path, dst, "--max-ratio", "100000", "--max-rejects", "1", "--quiet");
        support_assert_status(&r, 0); /* the limit is an option */
        support_tmpdir_remove(strdup(dst));
        support_result_free(&r);
        free(path);
    }
    free(zeros);
}

/* A bomb in a bomb in a bomb: one layer is opened, and no archive inside another. */
static void test_archives_in_archives(void **state)
{
    (void)state;
    support_entry inner = {.path = "train/a/1.jpg", .bytes = good.bytes, .len = good.len};
    for (int depth = 0; depth < 10; depth++) {
        char *path = archive(depth % 2 ? "zip-deflate" : "tar.gz", &inner, 1);
        size_t len;
        if (depth)
            free((void *)(uintptr_t)inner.bytes);
        inner = (support_entry){.path = depth % 2 ? "train.zip" : "train.tgz", .bytes = support_read(path, &len)};
        inner.len = len;
        if (depth)
            support_expect_refusal(RUN("ingest", path, dst), "is an archive inside the source");
        if (depth == 0) {
            char *command = support_path("gzip -c '%s' >'%s.gz'", path, path), *twice = support_path("%s.gz", path);
            assert_int_equal(system(command), 0);
            support_expect_refusal(RUN("ingest", twice, dst), "not a readable archive");
            free(twice);
            free(command);
        }
        free(path);
    }
    free((void *)(uintptr_t)inner.bytes);
}

static void free_entries(support_entry *entries, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        free((char *)(uintptr_t)entries[i].path);
        free((char *)(uintptr_t)entries[i].link);
    }
    free(entries);
}

/* Names of one kind: HEAD and a number.  Each a file or, where there is a link, a link to the next. */
typedef struct names {
    const char *head, *link;
    bool limited;      /* by --max-files, which lets in all but one */
    const char *words; /* that refuse them */
} names;

static double cost_of_names(size_t count, void *ctx)
{
    const names *k = ctx;
    support_entry *entries = calloc(count, sizeof *entries);
    for (size_t i = 0; i < count; i++)
        entries[i] = (support_entry){.path = support_path("%s%zu.jpg", k->head, i),
                                     .bytes = k->link ? NULL : "x",
                                     .len = k->link ? 0 : 1,
                                     .link = k->link ? support_path("%s%zu", k->link, i + 1) : NULL};
    char *path = archive("tar.gz", entries, count), *most = support_path("%zu", count - 1);
    support_result r =
        k->limited ? RUN("ingest", path, dst, "--max-files", most) : RUN("ingest", path, dst, "--jobs", "2");
    double cpu = support_refusal_cost(r, k->words);
    free_entries(entries, count);
    free(most);
    free(path);
    return cpu;
}

/* 100,000 names in a few KB of tar.gz. */
static void test_many_entries(void **state)
{
    (void)state;
    names kinds[] = {
        {"ds/train/a/", NULL, true, "entries; --max-files N raises the limit"},
        {"../", NULL, false, "holds no files"},
        {"ds/train/a/", "", false, "holds no files"},
        {"ds/train/", NULL, false, "no layout fits"},
    };
    for (size_t i = 0; i < (support_sanitized() ? 1 : 4); i++)
        support_assert_linear(kinds[i].head, cost_of_names, &kinds[i], 100000);
}

/* 5,000 names of 4 KB, so many folders deep. */
static double cost_of_depth(size_t depth, void *ctx)
{
    enum { COUNT = 5000, LEN = 4080 };
    (void)ctx;
    support_entry *entries = calloc(COUNT, sizeof *entries);
    char deep[LEN + 1];
    memset(deep, 'a', LEN);
    deep[LEN] = '\0';
    for (size_t i = 1; i <= depth; i++)
        deep[i * (LEN / depth) - 1] = '/';
    deep[LEN - 1] = '/';
    for (size_t i = 0; i < COUNT; i++)
        entries[i] = (support_entry){.path = support_path("%s%zu", deep, i), .bytes = "x", .len = 1};
    char *path = archive("tar.gz", entries, COUNT);
    double cpu = support_refusal_cost(RUN("ingest", path, dst), "no layout fits");
    free_entries(entries, COUNT);
    free(path);
    return cpu;
}

/* A folder every other byte: the work must not grow with the product of names and depth. */
static void test_deep_names(void **state)
{
    (void)state;
    support_assert_ratio("names of 4 KB, by their depth", cost_of_depth, NULL, 2040, 17, 4);
}

/* A stored file of a zip becomes something else: its mode stands in the directory at the zip's end. */
static void zip_as(const char *path, const char *name, mode_t type)
{
    size_t len, n = strlen(name);
    uint8_t *bytes = support_read(path, &len), *at = bytes;
    while ((at = memmem(at, len - (size_t)(at - bytes), "PK\1\2", 4)) && memcmp(at + 46, name, n) != 0)
        at += 4;
    assert_non_null(at);
    at[40] = 0644 & 0xff;
    at[41] = (uint8_t)((type | 0644) >> 8);
    support_write(path, bytes, len);
    free(bytes);
}

/* All there is under the test's folder, folders, links and devices too, and what is in the file nobody may touch. */
static char *everything(void)
{
    const char *argv[] = {"sh", "-c",
                          "find . ! -path './x.*' ! -path './in/deep/dst*' ! -path './in/deep/out*' | "
                          "sort; cat victim",
                          NULL};
    support_result r = support_run(argv, &(support_limits){.directory = dir});
    support_assert_status(&r, 0);
    free(r.err);
    return r.out;
}

typedef struct left_out {
    const char *name, *reason;
} left_out;

/* Each of them is in the report, for its reason. */
static void expect_reported(const left_out *files, size_t count)
{
    char *path = support_path("%s/in/deep/dst/report.json", dir), *report = (char *)support_read(path, NULL);
    for (size_t i = 0; i < count; i++) {
        const char *reason = NULL;
        for (const char *at = report; !reason && (at = strstr(at, files[i].name)); at++) {
            reason = strstr(at, files[i].reason);
            if (reason && reason > strchr(at, '}'))
                reason = NULL;
        }
        if (!reason)
            fail_msg("%s is not in the report as \"%s\": %s", files[i].name, files[i].reason, report);
    }
    free(report);
    free(path);
}

/* Everything that has led out of an unpacker before: only DATASET appears. */
static void test_nothing_outside(void **state)
{
    (void)state;
    static const char *const kinds[] = {"tar", "tar.gz", "zip", "7z"};
    static const left_out specials[] = {
        {"as-null.jpg", "is marked as a device"}, {"as-disk.jpg", "is marked as a device"},
        {"/null.jpg", "a device or FIFO"},        {"/disk.jpg", "a device or FIFO"},
        {"/pipe.jpg", "a device or FIFO"},
    };
    char *absolute = support_path("%s/evil-absolute.jpg", dir), *victim = support_path("%s/victim", dir),
         *folder = support_path("%s/evil-folder/", dir), *place = support_path("%s/in/deep/", dir);
    support_write_text(victim, "mine");
    char *between = support_path("%s/in", dir);
    assert_true(mkdir(between, 0777) == 0 && mkdir(place, 0777) == 0);
    char *before = everything();
    for (size_t k = 0; k < 4; k++) {
        const support_entry entries[] = {
            {.path = "ds/train/a/1.jpg", .bytes = good.bytes, .len = good.len},
            {.path = "ds/train/b/1.jpg", .bytes = good.bytes, .len = good.len},
            {.path = absolute, .bytes = good.bytes, .len = good.len},
            {.path = "../evil-up.jpg", .bytes = good.bytes, .len = good.len},
            {.path = "ds/train/../../../evil-middle.jpg", .bytes = good.bytes, .len = good.len},
            {.path = "..\\evil-windows.jpg", .bytes = good.bytes, .len = good.len},
            {.path = "../evil-folder/"},
            {.path = "ds/train/../../../evil-folder/"},
            {.path = folder},
            {.path = "ds/train/c", .link = ".."},
            {.path = "ds/train/c/evil-link.jpg", .bytes = good.bytes, .len = good.len},
            {.path = "ds/train/a/passwd.jpg", .link = "/etc/passwd"},
            {.path = "ds/train/a/victim.jpg", .link = victim},
            {.path = "as-null.jpg", .bytes = good.bytes, .len = good.len},
            {.path = "as-disk.jpg", .bytes = good.bytes, .len = good.len},
            /* What only a tar can say. */
            {.path = "ds/train/a/null.jpg", .device = S_IFCHR},
            {.path = "ds/train/a/disk.jpg", .device = S_IFBLK},
            {.path = "ds/train/a/pipe.jpg", .device = S_IFIFO},
            {.path = "../evil-pipe.jpg", .device = S_IFIFO},
            {.path = "ds/train/a/hard-abs.jpg", .hard_link = victim},
            {.path = "ds/train/a/hard-up.jpg", .hard_link = "../../victim"},
            {.path = "ds/train/a/hard-pipe.jpg", .hard_link = "ds/train/a/pipe.jpg"},
            {.path = victim, .hard_link = "ds/train/a/1.jpg"},
        };
        enum { ALL = sizeof entries / sizeof *entries, PLAIN = ALL - 8 };
        char *path = archive(kinds[k], entries, k < 2 ? ALL : PLAIN);
        if (k == 2) {
            zip_as(path, "as-null.jpg", S_IFCHR);
            zip_as(path, "as-disk.jpg", S_IFBLK);
        }
        support_limits limits = {.directory = place};
        const char *inside = dir + 1; /* an absolute name is one below the root of the tree */
        const char *lost[] = {support_millrace_path(),
                              "ingest",
                              path,
                              "dst",
                              "--max-rejects",
                              "5",
                              "--force",
                              "--quiet",
                              "--exclude",
                              inside,
                              NULL};
        const char *in[] = {support_millrace_path(),
                            "ingest",
                            path,
                            "dst",
                            "--max-rejects",
                            "5",
                            "--force",
                            "--quiet",
                            "--root",
                            "ds",
                            "--exclude",
                            inside,
                            "--exclude",
                            "ds/train/a/[pv][ai][sc]*.jpg",
                            "--exclude",
                            "ds/train/c",
                            k < 2 ? "--exclude" : NULL,
                            "ds/train/a/hard-*.jpg",
                            NULL};
        const char *out[] = {support_millrace_path(), "export", "dst", "out", "--force", "--quiet", NULL};
        support_expect_refusal(support_run(lost, &limits), "is a link that is not followed, so what it leads to");
        support_result r = support_run(in, &limits);
        support_assert_status(&r, 0);
        support_result_free(&r);
        r = support_run(out, &limits);
        support_assert_status(&r, 0);
        support_result_free(&r);
        if (k < 2)
            expect_reported(specials + 2, 3);
        else if (k == 2)
            expect_reported(specials, 2);
        char *after = everything();
        if (strcmp(before, after) != 0)
            fail_msg("%s: before\n%safter\n%s", kinds[k], before, after);
        free(after);
        free(path);
    }
    free(before);
    free(between);
    free(place);
    free(folder);
    free(victim);
    free(absolute);
}

/* ---- tables ------------------------------------------------------------------------------------------------------ */

static char *repeat(const char *head, const char *part, size_t times, const char *tail)
{
    size_t n = strlen(part), at = strlen(head);
    char *text = malloc(at + n * times + strlen(tail) + 1);
    memcpy(text, head, at + 1);
    for (size_t i = 0; i < times; i++, at += n)
        memcpy(text + at, part, n);
    strcpy(text + at, tail);
    return text;
}

/* The table of a drawn source replaced by this one.  `harmless`: what it says is only left out, with a note. */
static void expect_table(const char *layout, const char *file, bool harmless, char *text)
{
    char *source = support_path("%s/%s", dir, layout), *path = support_path("%s/%s", source, file);
    if (!support_exists(source))
        support_expect(0, "sample", source, "--layout", layout, "--images", "30", "--quiet", (char *)NULL);
    if (strcmp(layout, "newyorker") == 0) {
        const support_entry entry = {.path = file, .bytes = text, .len = strlen(text)};
        char *zip = support_path("%s/matching.zip", source);
        support_archive(zip, "zip-deflate", &entry, 1);
        free(zip);
    } else {
        support_write_text(path, text);
    }
    support_result r = RUN("ingest", source, dst, "--layout", layout, "--quiet");
    support_assert_cheap(&r);
    if (!r.status != harmless)
        fail_msg("%.80s: status %d: %s", text, r.status, r.err);
    support_result_free(&r);
    if (harmless)
        support_tmpdir_remove(strdup(dst));
    assert_false(support_exists(dst));
    free(path);
    free(source);
    free(text);
}

static void test_tables(void **state)
{
    (void)state;
    static const char coco[] = "annotations/instances_val2017.json", row[] = "matching/train.jsonl";
    expect_table("coco", coco, false, repeat("{\"images\":", "[", 1000000, ""));
    expect_table("coco", coco, false, repeat("{\"annotations\":[{\"segmentation\":", "{\"a\":", 1000000, ""));
    expect_table("coco", coco, false,
                 repeat("{\"images\":[{\"id\":1,\"id\":2,\"file_name\":\"a\"}],\"images\":[]", "", 0, "}"));
    expect_table("coco", coco, false, repeat("{\"images\":[{\"id\":1", "0", 1000000, ",\"file_name\":\"a.jpg\"}]}"));
    expect_table("coco", coco, true,
                 repeat("{\"images\":[{\"id\":1,\"file_name\":\"", "../", 300000, "etc/passwd\"}]}"));
    expect_table("coco", coco, false, repeat("{\"images\":[", "{},", 1000000, "{}]}"));
    expect_table("newyorker", row, false, repeat("", "[", 1000000, "\n"));
    expect_table("newyorker", row, false, repeat("{\"a\":\"", "a", (size_t)65 << 20, "\"}\n"));
    expect_table("roboflow", "train/_annotations.coco.json", false, repeat("", "{\"a\":", 1000000, ""));
}

/* ---- many names -------------------------------------------------------------------------------------------------- */

/* head 0, head 1 ... */
static void add_numbered(mr_buf *out, const char *head, size_t count)
{
    for (size_t i = 0; i < count; i++)
        mr_buf_printf(out, "%s%zu", head, i);
}

/* A class of a long name, in the meta of each of its samples: 1 MiB that would become 400. */
static void test_repeated_name(void **state)
{
    (void)state;
    enum { COUNT = 400 };
    support_entry entries[COUNT + 1];
    mr_buf table = {0};
    mr_buf_add_text(&table, "filename,");
    for (size_t i = 0; i < 1 << 20; i++)
        mr_buf_add(&table, "n", 1);
    for (size_t i = 0; i < COUNT; i++) {
        mr_buf_printf(&table, "\n%zu.jpg,1", i);
        entries[i] = (support_entry){.path = support_path("ds/train/%zu.jpg", i), .bytes = good.bytes, .len = good.len};
    }
    entries[COUNT] = (support_entry){.path = "ds/train/_classes.csv", .bytes = mr_buf_text(&table), .len = table.len};
    char *path = archive("tar.gz", entries, COUNT + 1);
    support_expect_refusal(RUN("ingest", path, dst), "like an archive bomb; --max-ratio N raises the limit");
    support_result r = RUN("ingest", path, dst, "--dry-run", "--max-ratio", "1000", "--quiet");
    support_assert_status(&r, 0); /* the limit is an option */
    support_result_free(&r);
    for (size_t i = 0; i < COUNT; i++)
        free((char *)(uintptr_t)entries[i].path);
    mr_buf_free(&table);
    free(path);
}

/* Numbered files of one content and, where `more` adds them, others that hold tables of as many names. */
typedef struct many {
    const char *head, *tail, *content;
    size_t (*more)(size_t size, support_entry *others, mr_buf *tables); /* how many others */
    const char *option, *words;                                         /* that refuse them */
    bool one; /* numbered file; the size is that of the tables */
} many;

enum { MOST_OTHERS = 3 };

static double cost_of_many(size_t size, void *ctx)
{
    const many *k = ctx;
    size_t count = k->one ? 1 : size;
    support_entry *entries = calloc(count + MOST_OTHERS, sizeof *entries);
    mr_buf tables[MOST_OTHERS] = {{0}};
    for (size_t i = 0; i < count; i++)
        entries[i] = (support_entry){
            .path = support_path("%s%zu%s", k->head, i, k->tail), .bytes = k->content, .len = strlen(k->content)};
    char *path = archive("tar.gz", entries, count + (k->more ? k->more(size, entries + count, tables) : 0));
    double cpu = support_refusal_cost(RUN("ingest", path, dst, "--jobs", "1", k->option), k->words);
    free_entries(entries, count);
    for (size_t i = 0; i < MOST_OTHERS; i++)
        mr_buf_free(&tables[i]);
    free(path);
    return cpu;
}

/* Three sheets, each with classes of its own. */
static size_t add_sheets(size_t size, support_entry *others, mr_buf *tables)
{
    static const char *const sheets[] = {"ds/train/_classes.csv", "ds/valid/_classes.csv", "ds/test/_classes.csv"},
                             *const heads[] = {",a", ",b", ",c"};
    for (size_t i = 0; i < 3; i++) {
        mr_buf_add_text(&tables[i], "filename");
        add_numbered(&tables[i], heads[i], size);
        mr_buf_add_text(&tables[i], "\n");
        others[i] = (support_entry){.path = sheets[i], .bytes = mr_buf_text(&tables[i]), .len = tables[i].len};
    }
    return 3;
}

/* A table of labels that gives each file a class of its own. */
static size_t add_noisy(size_t size, support_entry *others, mr_buf *tables)
{
    mr_buf_add_text(tables, "path,noisy\nval/b/1.jpg,b\n");
    for (size_t i = 0; i < size; i++)
        mr_buf_printf(tables, "train/a/%zu.jpg,c%zu\n", i, i);
    others[0] = (support_entry){.path = "ds/noisy_imagenette.csv", .bytes = mr_buf_text(tables), .len = tables->len};
    others[1] = (support_entry){.path = "ds/val/b/1.jpg", .bytes = "x", .len = 1};
    return 2;
}

static size_t add_image(size_t size, support_entry *others, mr_buf *tables)
{
    (void)size;
    (void)tables;
    others[0] = (support_entry){.path = "ds/images/1.jpg", .bytes = "x", .len = 1};
    return 1;
}

/* Tens of thousands of classes, configs and annotation files, each under a name of its own, in a few hundred KB: none
 * is looked for among all others. */
static void test_many_names(void **state)
{
    (void)state;
    static const char coco[] = "{\"images\":[],\"annotations\":[],\"categories\":[]}",
                      captions[] = "ds/annotations/captions_s", dev[] = "-dev2017.json";
    const size_t part = support_sanitized() ? 4 : 1;
    struct {
        size_t size;
        many kind;
    } cases[] = {
        {32000, {"ds/train/", ".jpg", "x", add_sheets, "--quiet", "holds no image for layout roboflow", true}},
        {40000, {"ds/train/a/", ".jpg", "x", add_noisy, "--label-column=noisy", "images are rejected", false}},
        {50000, {"ds/c", "/train-00000-of-00001.parquet", "", NULL, "--quiet", "choose one with --config", false}},
        {20000, {captions, dev, coco, NULL, "--quiet", "without images", false}},
        {20000, {captions, dev, coco, add_image, "--quiet", "more than 1000 splits, the limit for a dataset", false}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        support_assert_linear(cases[i].kind.words, cost_of_many, &cases[i].kind, cases[i].size / part);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_bombs),      TEST(test_archives_in_archives), TEST(test_many_entries),
        TEST(test_deep_names), TEST(test_nothing_outside),      TEST(test_tables),
        TEST(test_many_names), TEST(test_repeated_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
