/* test_limits.c - the limits of docs/limits.md that have no test elsewhere. (Pictures: test_limits_images.c.)
 * Invariant tested: what is at a limit is accepted, one more is rejected, and the reason names the limit. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "train/files/npz_header.h"
#include "train/files/safetensors.h"
#include "shards/dataset/class_counts.h"
#include "shards/dataset/parts.h"
#include "shards/manifest/manifest.h"
#include "ingest/source/source.h"
#include "tests/support/support.h"
#include "tests/support/sources/archive.h"
#include "ingest/tables/csv.h"

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

/* ---- sources ----------------------------------------------------------------------------------------------------- */

/* MR_OK if this source has this many files; else the reason, in an error or in the first note. */
static mr_status expect_files(char *path, uint64_t files, mr_error *err)
{
    mr_source *s = NULL;
    mr_notes notes = {0};
    mr_source_options o = {.quiet = true};
    mr_status status = mr_source_open(&path, 1, -1, &o, &notes, &s, err);
    if (status == MR_OK && mr_source_count(s) != files)
        status = mr_fail(err, MR_BAD_DATA, "%s", notes.count ? notes.items[0].detail : "and no word");
    mr_source_free(s);
    mr_notes_free(&notes);
    return status;
}

static mr_status folder_depth(uint64_t n, mr_error *err)
{
    char *top = support_path("%s/deep", dir), *path = support_path("%s", top);
    for (uint64_t i = 0; i < n; i++) {
        char *deeper = support_path("%s/d", path);
        free(path);
        path = deeper;
    }
    char *file = support_path("%s/a.jpg", path);
    support_write(file, "x", 1);
    mr_status status = expect_files(top, 1, err);
    support_tmpdir_remove(top);
    free(file);
    free(path);
    return status;
}

static mr_status link_chain(uint64_t n, mr_error *err)
{
    support_entry entries[64] = {{.path = "000", .bytes = "x", .len = 1}};
    char names[64][4] = {"000"}, *path = support_path("%s/links.tar", dir);
    for (uint64_t i = 1; i <= n; i++) {
        snprintf(names[i], sizeof names[i], "%03u", (unsigned)i);
        entries[i] = (support_entry){.path = names[i], .link = names[i - 1]};
    }
    support_archive(path, "tar", entries, n + 1);
    mr_status status = expect_files(path, n + 1, err);
    free(path);
    return status;
}

/* One file whose name has n bytes, in parts of so many. */
static mr_status name_of(uint64_t n, size_t part, mr_error *err)
{
    char *name = malloc(n + 1), *path = support_path("%s/name.tar", dir);
    for (uint64_t i = 0; i < n; i++)
        name[i] = (i + 1) % (part + 1) ? 'n' : '/';
    name[n - 1] = 'n';
    name[n] = '\0';
    support_archive(path, "tar", &(support_entry){.path = name, .bytes = "x", .len = 1}, 1);
    mr_status status = expect_files(path, 1, err);
    free(path);
    free(name);
    return status;
}

static mr_status name_bytes(uint64_t n, mr_error *err)
{
    return name_of(n, 100, err);
}

static mr_status part_bytes(uint64_t n, mr_error *err)
{
    return name_of(n, n, err);
}

static mr_status csv_columns(uint64_t n, mr_error *err)
{
    mr_buf text = {0};
    mr_csv csv = {0};
    for (uint64_t i = 0; i < n; i++)
        mr_buf_printf(&text, "%s%u", i ? "," : "", (unsigned)i);
    mr_status status = mr_csv_parse(&text, "t.csv", &csv, err);
    mr_csv_free(&csv);
    return status;
}

/* ---- manifests --------------------------------------------------------------------------------------------------- */

#define HEX32          "000102030405060708090a0b0c0d0e0f"
#define FILE_OF(bytes) "{\"bytes\":" bytes ",\"xxh3_128\":\"" HEX32 "\",\"sha256\":\"" HEX32 HEX32 "\"}"
#define HEAD                                                                                                           \
    "{\"millrace\":\"dataset\",\"format\":1,\"layout\":\"coco\",\"variant\":\"instances\",\"licence\":null,"           \
    "\"options\":"

static mr_status parse(mr_buf *text, mr_error *err)
{
    mr_manifest *m = NULL;
    assert_false(text->failed);
    mr_status status = mr_manifest_parse(text->data, text->len, "manifest.json", &m, err);
    mr_manifest_free(m);
    mr_buf_free(text);
    return status;
}

static mr_status splits(uint64_t n, mr_error *err)
{
    mr_buf b = {0};
    mr_buf_add_text(&b, HEAD "{},\"classes\":[],\"splits\":{");
    for (uint64_t i = 0; i < n; i++)
        mr_buf_printf(&b, "%s\"s%u\":{\"samples\":0,\"images\":0,\"bytes\":0,\"shards\":[]}", i ? "," : "",
                      (unsigned)i);
    mr_buf_add_text(&b, "}}");
    return parse(&b, err);
}

static mr_status shards(uint64_t n, mr_error *err)
{
    unsigned count = (unsigned)n;
    mr_buf b = {0};
    mr_buf_printf(&b,
                  HEAD "{},\"classes\":[],\"splits\":{\"train\":{\"samples\":%u,\"images\":%u,\"bytes\":%u,"
                       "\"shards\":[",
                  count, count, count);
    for (unsigned i = 0; i < count; i++)
        mr_buf_printf(&b,
                      "%s{\"name\":\"train-%05u\",\"first\":%u,\"samples\":1,\"images\":1,\"bytes\":1,\"mdb\":" FILE_OF(
                          "4096") ",\"idx\":" FILE_OF("128") "}",
                      i ? "," : "", i, i);
    mr_buf_add_text(&b, "]}}}");
    return parse(&b, err);
}

static mr_status json_depth(uint64_t n, mr_error *err)
{
    mr_buf b = {0};
    mr_buf_add_text(&b, HEAD "{\"a\":");
    for (uint64_t i = 2; i < n; i++)
        mr_buf_add_text(&b, "[");
    for (uint64_t i = 2; i < n; i++)
        mr_buf_add_text(&b, "]");
    mr_buf_add_text(&b, "},\"classes\":[],\"splits\":{}}");
    return parse(&b, err);
}

/* Nothing but holes: a file is refused by its size, before it is read. */
static mr_status manifest_bytes(uint64_t n, mr_error *err)
{
    char *path = support_path("%s/manifest.json", dir);
    mr_manifest *m = NULL;
    uint8_t digest[32];
    support_write(path, "", 0);
    assert_int_equal(truncate(path, (off_t)n), 0);
    mr_status status = mr_manifest_open(dir, &m, digest, err);
    mr_manifest_free(m);
    free(path);
    return status;
}

/* A split without samples: what counts is the number of classes. */
static mr_status class_counts(uint64_t n, mr_error *err)
{
    mr_split split = {.name = "train"};
    mr_manifest m = {.splits = &split, .split_count = 1, .class_count = (size_t)n};
    const mr_dataset ds = {.manifest = &m};
    mr_class_counts counts = {0};
    mr_status status = mr_class_counts_read(&ds, &counts, err);
    free(counts.counts);
    return status;
}

/* ---- weights ----------------------------------------------------------------------------------------------------- */

static mr_status npz_arrays(uint64_t n, mr_error *err)
{
    mr_npz_names names = {0};
    mr_status status = MR_OK;
    for (uint64_t i = 0; i < n && status == MR_OK; i++) {
        char name[24];
        snprintf(name, sizeof name, "a%u", (unsigned)i);
        status = mr_npz_names_add(&names, name, "a.npz", err);
    }
    free(names.items);
    return status;
}

static mr_status open_tensors(const char *path, mr_error *err)
{
    mr_safetensors *s = NULL;
    mr_status status = mr_safetensors_open(path, &s, err);
    mr_safetensors_free(s);
    return status;
}

static mr_status index_tensors(uint64_t n, mr_error *err)
{
    mr_buf b = {0};
    char *path = support_path("%s/m.index.json", dir);
    mr_buf_add_text(&b, "{\"weight_map\":{");
    for (uint64_t i = 0; i < n; i++)
        mr_buf_printf(&b, "%s\"%u\":\"a\"", i ? "," : "", (unsigned)i);
    mr_buf_add_text(&b, "}}");
    support_write(path, b.data, b.len);
    mr_buf_free(&b);
    mr_status status = open_tensors(path, err);
    free(path);
    return status;
}

static mr_status tensors_header(uint64_t n, mr_error *err)
{
    char *path = support_path("%s/m.safetensors", dir);
    uint8_t head[9] = {0, 0, 0, 0, 0, 0, 0, 0, 'x'};
    for (int i = 0; i < 8; i++)
        head[i] = (uint8_t)(n >> 8 * i);
    support_write(path, head, sizeof head);
    assert_int_equal(truncate(path, (off_t)(n + 8)), 0);
    mr_status status = open_tensors(path, err);
    free(path);
    return status;
}

/* ---- the table --------------------------------------------------------------------------------------------------- */

typedef struct bound {
    const char *what;
    uint64_t most;
    mr_status (*make)(uint64_t n, mr_error *err);
    const char *words; /* of the refusal of one more */
    const char *other; /* at the limit something else is wrong, for a whole one would cost too much */
    bool large;        /* not for sanitizers */
} bound;

static const bound bounds[] = {
    {"depth of folders", 64, folder_depth, "folders nest deeper than 64", NULL, false},
    {"links to links", 40, link_chain, "more than 40 links", NULL, false},
    {"bytes of a name", 4096, name_bytes, "longer than 4,096 bytes", NULL, false},
    {"bytes of a part", 255, part_bytes, "longer than 255 bytes", NULL, false},
    {"columns of a CSV", 32768, csv_columns, "32769 columns, more than 32768", NULL, false},
    {"depth of JSON", 2048, json_depth, "maximum parsing depth", NULL, false},
    {"splits", 1000, splits, "1001 splits are more than 1000", NULL, false},
    {"shards", 100000, shards, "100001 shards are more than 100000", NULL, true},
    {"counts of classes", 4194304, class_counts, "the limit of 4194304 counts", NULL, false},
    {"bytes of a manifest", 256 << 20, manifest_bytes, "more than the limit of 268435456", "manifest.json: ", true},
    {"arrays of an .npz", 65536, npz_arrays, "more than 65536 arrays", NULL, true},
    {"tensors of an index", 262144, index_tensors, "the limit is 262144", "'a', which is missing", true},
    {"header of a .safetensors", 100000000, tensors_header, "100000001 bytes", "a JSON object", true},
};

static void test_bounds(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof bounds / sizeof *bounds; i++) {
        const bound *b = &bounds[i];
        mr_error err = {0};
        if (b->large && support_sanitized())
            continue;
        mr_status status = b->make(b->most, &err);
        if (b->other ? !strstr(err.text, b->other) || strstr(err.text, b->words) : status != MR_OK)
            fail_msg("%s, %llu: %s", b->what, (unsigned long long)b->most, err.text);
        status = b->make(b->most + 1, &err);
        if (status == MR_OK || !strstr(err.text, b->words))
            fail_msg("%s, %llu + 1: %d: %s", b->what, (unsigned long long)b->most, status, err.text);
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {TEST(test_bounds)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
