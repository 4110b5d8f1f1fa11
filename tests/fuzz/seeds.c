/* seeds.c - the first inputs of every fuzz target: fuzz_seeds OUT.
 *
 *      OUT/TARGET/NAME, for each fuzz_TARGET.c
 *
 * Invariant: all are small (a fuzzer gets nowhere with large ones), and each kind has some without the folder of real
 * samples (MILLRACE_DATA): millrace draws and ingests datasets of its own. */
#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <archive.h>
#include <archive_entry.h>

#include "tests/fuzz/seeds.h"
#include "base/files/file.h"
#include "tests/support/shards/dataset_maker.h"
#include "ingest/source/source.h"
#include "tests/support/support.h"
#include "tests/support/images/image.h"

static const char *out;

void seed(const char *target, const char *name, const void *bytes, size_t len)
{
    support_writef(bytes, len, "%s/%s/%s", out, target, name);
}

void seed_file(const char *target, const char *name, const char *path)
{
    size_t len;
    uint8_t *bytes = support_read(path, &len);
    seed(target, name, bytes, len);
    free(bytes);
}

/* ---- drawn and written by the suite's own makers ----------------------------------------------------------------- */

/* Shards of a few pages, one of them with a branch page. */
static void seed_shards(const char *tmp)
{
    picture small = make_jpeg((jpeg_kind){.width = 8, .height = 8, .components = 1});
    picture big = make_png(40, 40, 2, 8, false);
    made few[4] = {{.source = "a.jpg", .image = small, .more = ",\"label\":1"},
                   {.source = "b.png", .image = big},
                   {.source = "c.jpg", .shares = true},
                   {.source = "d.jpg", .image = small, .more = ",\"labels\":[0,2]"}};
    made many[160];
    for (size_t i = 0; i < 160; i++)
        many[i] = (made){.source = "x.jpg", .image = small, .shares = i > 0};
    const made_split splits[] = {{"train", few, 4, 4}, {"val", many, 160, 160}};
    char *dir = support_path("%s/made", tmp);
    if (mkdir(dir, 0755) != 0)
        fail_msg("cannot make %s", dir);
    dataset_make(dir, splits, 2);
    support_expect(0, "seek", "-q", "--every=1", dir, (char *)NULL);
    for (size_t i = 0; i < 2; i++) {
        char *mdb = support_path("%s/%s-00000.mdb", dir, splits[i].name);
        char *idx = support_path("%s/%s-00000.idx", dir, splits[i].name);
        char *seek = support_path("%s/%s-00000.seek", dir, splits[i].name);
        seed_file("walk", splits[i].name, mdb);
        seed_file("index", splits[i].name, idx);
        seed_file("seek", splits[i].name, seek);
        free(mdb);
        free(idx);
        free(seek);
    }
    picture_free(&small);
    picture_free(&big);
    free(dir);
}

static void seed_words(const char *target, const char *const *words, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        char name[32];
        snprintf(name, sizeof name, "text-%zu", i);
        seed(target, name, words[i], strlen(words[i]));
    }
}

static void seed_texts(void)
{
    static const char *const texts[] = {"256MiB",
                                        "64k",
                                        "1.5GB",
                                        "18446744073709551615",
                                        "18446744073709551616",
                                        "1e400",
                                        "a\\x41\\\\b",
                                        "caf\xC3\xA9/\xFF\x01.jpg",
                                        "verfy",
                                        "train-2017",
                                        "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"};
    static const char *const lists[] = {"test=val,old=", "a=b,c=d", "10",   "0.5%",        "1e2%",
                                        "0:10",          ":10",     "10:",  ":",           "7",
                                        "32:40",         "4096",    "full", "window:1GiB", "window:64k"};
    static const char *const settings[] = {"0.05",
                                           "1e-300",
                                           "10",
                                           "9223372036854775807",
                                           "adamw",
                                           "both",
                                           "apply",
                                           "mask",
                                           "10%",
                                           "runs/\xC3\xA9\x01",
                                           "9223372036854775808",
                                           "bf16"};
    seed_words("text", texts, MR_COUNT(texts));
    seed_words("lists", lists, MR_COUNT(lists));
    seed_words("settings", settings, MR_COUNT(settings));
}

/* ---- datasets drawn by millrace ---------------------------------------------------------------------------------- */

static bool ends(const char *name, const char *end)
{
    size_t n = strlen(name), m = strlen(end);
    return n >= m && strcasecmp(name + n - m, end) == 0;
}

/* The target that reads such a file alone; NULL: none. */
static const char *target_of(const char *name)
{
    static const char *const table[][2] = {
        {".csv", "csv"},     {".jsonl", "jsonl"}, {".json", "coco_json"}, {".jpg", "image"},   {".jpeg", "image"},
        {".png", "image"},   {".webp", "image"},  {".gif", "image"},      {".zip", "archive"}, {".tar", "archive"},
        {".tgz", "archive"}, {".gz", "archive"},  {".zst", "archive"},    {".jar", "archive"}, {".bz2", "archive"}};
    for (size_t i = 0; i < MR_COUNT(table); i++)
        if (ends(name, table[i][0]))
            return table[i][1];
    return NULL;
}

/* The tree as ingest sees it, archives in it opened, in the words of trees.h, pictures without their bytes; the
 * text files are seeds of their own. */
static void seed_tree(char *dir, const char *name)
{
    mr_source *source = NULL;
    mr_notes notes = {0};
    mr_error err;
    mr_buf tree = {0}, bytes = {0};
    if (mr_source_open(&dir, 1, -1, &(mr_source_options){.quiet = true}, &notes, &source, &err) != MR_OK)
        fail_msg("%s", err.text);
    mr_buf_add(&tree, ",,,", 4);
    for (uint32_t i = 0; i < mr_source_count(source); i++) {
        const mr_entry *e = mr_source_entry(source, i);
        const char *target = target_of(e->path), *slash = strrchr(e->path, '/');
        mr_buf_add(&tree, e->path, e->path_len + 1);
        if (!target || strcmp(target, "image") != 0) {
            char *flat = support_path("%s-%s", name, slash ? slash + 1 : e->path);
            if (mr_source_read(source, i, &bytes, &err) != MR_OK)
                fail_msg("%s", err.text);
            mr_buf_add_text(&tree, mr_buf_text(&bytes));
            if (target)
                seed(target, flat, bytes.data, bytes.len);
            free(flat);
        }
        mr_buf_add(&tree, "", 1);
    }
    seed("layouts", name, tree.data, tree.len);
    mr_buf_free(&tree);
    mr_buf_free(&bytes);
    mr_source_free(source);
    mr_notes_free(&notes);
}

/* The drawn ones of these are long for a fuzzer. */
static void seed_small_trees(void)
{
    static const char coco[] =
        ",,val2017=,x\0annotations/instances_train2017.json\0{\"images\":[{\"id\":7,\"file_name\":\"7.jpg\"}],"
        "\"annotations\":[{\"id\":1,\"image_id\":7,\"category_id\":3,\"bbox\":[0,1,2.5,3]}],"
        "\"categories\":[{\"id\":3,\"name\":\"cat\"}]}\0annotations/captions_train2017.json\0"
        "{\"images\":[{\"id\":7,\"file_name\":\"7.jpg\"}],"
        "\"annotations\":[{\"id\":1,\"image_id\":7,\"caption\":\"a\"}]}\0"
        "train2017/7.jpg\0\0train2017/8.jpg\0";
    static const char newyorker[] = ",matching,,\0all_contest_images/5.jpeg\0\0matching/train.jsonl\0"
                                    "{\"contest_number\":5,\"label\":\"B\",\"caption_choices\":[\"a\",\"b\"]}\n\0"
                                    "matching/validation.jsonl\0{\"contest_number\":6}\n\0all_contest_images/6.jpeg\0";
    static const char imagenette[] =
        "noisy_labels_5,,,\0train/n01440764/a.JPEG\0\0val/n01440764/b.JPEG\0\0noisy_imagenette.csv\0"
        "path,noisy_labels_0,noisy_labels_5,is_valid\ntrain/n01440764/a.JPEG,n01440764,n02102040,False\n";
    static const char hub[] =
        "label,,validation=dev,\0data/train-00000-of-00001.parquet\0PAR1\0data/"
        "validation-00000-of-00001.parquet\0PAR1\0"
        "data/pic.jpg\0\0data/train-00000-of-00001.parquet/schema.json\0{\"rows\":3,\"columns\":[\"label\"],\"label\":"
        "{\"column\":\"label\",\"kind\":\"names\",\"names\":[\"a\",\"b\"]}}\0"
        "data/train-00000-of-00001.parquet/000000000.json\0{\"label\":1}\0"
        "data/train-00000-of-00001.parquet/000000000/5.jpeg\0x\0"
        "data/train-00000-of-00001.parquet/000000001.json\0{\"label\":-1}\0"
        "data/train-00000-of-00001.parquet/000000001.path\0pic.jpg\0"
        "data/train-00000-of-00001.parquet/000000002.json\0{\"label\":null}\0"
        "data/validation-00000-of-00001.parquet/schema.json\0{\"rows\":1,\"label\":{\"column\":\"label\","
        "\"kind\":\"names\",\"names\":[\"a\",\"b\"]}}\0data/validation-00000-of-00001.parquet/000000000.json\0"
        "{\"label\":0,\"t\":[\"x\"]}\0data/validation-00000-of-00001.parquet/000000000/6.jpeg\0y";
    static const char hub_texts[] =
        ",,,\0train.parquet\0PAR1\0train.parquet/schema.json\0{\"rows\":2,\"label\":{\"column\":\"l\",\"kind\":"
        "\"texts\"}}\0train.parquet/000000000.json\0{\"l\":\"A\"}\0train.parquet/000000000/a\0x\0"
        "train.parquet/000000001.json\0{\"l\":\"B\"}\0train.parquet/000000001/b\0x";
    static const char hub_numbers[] =
        ",,,\0train/0.parquet\0PAR1\0train/0.parquet/schema.json\0{\"rows\":1,\"label\":{\"column\":\"l\",\"kind\":"
        "\"numbers\"}}\0train/0.parquet/000000000.json\0{\"l\":12}\0train/0.parquet/000000000/a\0x";
    static const char webdataset[] = ",,,\0train-00000.tar/1.jpg\0\0train-00000.tar/1.cls\0"
                                     "7\0train-00000.tar/1.json\0{\"a\":1}\0"
                                     "train-00000.tar/1.txt\0text\0val-00000.tar/1.png\0\0val-00000.tar/1.cls\0"
                                     "cat\0";
    static const char exported[] =
        ",,,\0train/00000000.jpg\0\0train/00000000.json\0{\"source\":\"a/b.jpg\",\"label\":1,\"class\":\"b\","
        "\"columns\":{\"x\":[1]}}\0train/00000000.cls\0"
        "1\0train/00000001.jpg\0\0train/00000001.json\0"
        "{\"source\":\"c.jpg\",\"labels\":[0,2]}\0";
    seed("layouts", "small-webdataset", webdataset, sizeof webdataset);
    seed("layouts", "small-exported", exported, sizeof exported);
    seed("layouts", "small-hub", hub, sizeof hub);
    seed("layouts", "small-hub-texts", hub_texts, sizeof hub_texts);
    seed("layouts", "small-hub-numbers", hub_numbers, sizeof hub_numbers);
    seed("layouts", "small-coco", coco, sizeof coco);
    seed("layouts", "small-newyorker", newyorker, sizeof newyorker);
    seed("layouts", "small-imagenette", imagenette, sizeof imagenette);
}

static void seed_view(const char *dir, const char *name)
{
    char *view = support_path("%s.view", dir);
    support_expect(0, "view", view, dir, "--fraction", "0.9", "--fold=-1/9", "--samples", "0-3,5", "--first", "4",
                   (char *)NULL);
    seed_file("view", name, view);
    char *again = support_path("%s-twice", name), *twice = support_path("%s.twice.view", dir);
    char *weight = support_path("%s=0.5", dir);
    support_expect(0, "view", twice, dir, dir, "--objects", "0..", "--weight", weight, "--repeat", "3", (char *)NULL);
    seed_file("view", again, twice);
    free(again);
    free(twice);
    free(weight);
    free(view);
}

/* A dataset's own files: manifest, indexes, metas. */
static void seed_dataset(const char *dir, const char *name)
{
    static const char *const splits[] = {"train", "val", "test"};
    char *path = support_path("%s/manifest.json", dir);
    mr_dataset *ds = NULL;
    mr_sample_view view = {0};
    mr_error err;
    seed_file("manifest", name, path);
    seed_view(dir, name);
    if (mr_dataset_open(dir, &ds, &err) != MR_OK)
        fail_msg("%s", err.text);
    for (size_t i = 0; i < MR_COUNT(splits); i++) {
        char *meta = support_path("%s-%s", name, splits[i]), *idx = support_path("%s/%s-00000.idx", dir, splits[i]);
        if (mr_dataset_samples(ds, splits[i]) && mr_dataset_read(ds, splits[i], 0, &view, &err) == MR_OK) {
            seed("meta", meta, view.meta, view.meta_len);
            seed("captions", meta, view.meta, view.meta_len);
            seed("export", meta, view.meta, view.meta_len);
        }
        if (support_exists(idx))
            seed_file("index", meta, idx);
        free(meta);
        free(idx);
    }
    mr_sample_view_free(&view);
    mr_dataset_free(ds);
    free(path);
}

/* `streamed`: lengths follow the data where the format has them twice, and a link is a symbolic one. */
static void seed_archive(const char *name, int format, int filter, bool streamed)
{
    char *path = support_path("%s/archive/%s", out, name);
    struct archive *a = archive_write_new();
    struct archive_entry *e = archive_entry_new();
    static const char *const names[] = {"train/a/1.txt", "train/b/2.txt", "\xFF/3.txt", "link.txt"};
    int ok = archive_write_set_format(a, format) | archive_write_add_filter(a, filter) |
             archive_write_open_filename(a, path);
    for (size_t i = 0; i < MR_COUNT(names); i++) {
        archive_entry_clear(e);
        archive_entry_set_pathname(e, names[i]);
        archive_entry_set_filetype(e, AE_IFREG);
        archive_entry_set_perm(e, 0644);
        if (!streamed || i == 3)
            archive_entry_set_size(e, i < 3 ? 5 : 0);
        if (i == 3 && streamed) {
            archive_entry_set_filetype(e, AE_IFLNK);
            archive_entry_set_symlink(e, names[0]);
        } else if (i == 3) {
            archive_entry_set_hardlink(e, names[0]);
        }
        if (archive_write_header(a, e) == ARCHIVE_OK && i < 3)
            ok |= archive_write_data(a, "hello", 5) == 5 ? 0 : -1;
    }
    archive_entry_free(e);
    if (archive_write_close(a) != ARCHIVE_OK || ok < ARCHIVE_WARN)
        fail_msg("%s: %s", name, archive_error_string(a));
    archive_write_free(a);
    free(path);
}

static void seed_layouts(const char *tmp)
{
    static const char *const kinds[][2] = {
        {"imagenette", NULL},        {"coco", NULL},       {"newyorker", NULL}, {"roboflow", "folder"},
        {"roboflow", "multi-class"}, {"roboflow", "coco"}, {"roboflow", "clip"}};
    for (size_t i = 0; i < MR_COUNT(kinds); i++) {
        const char *variant = kinds[i][1];
        char *name = support_path("%s%s%s", kinds[i][0], variant ? "-" : "", variant ? variant : "");
        char *tree = support_path("%s/%s", tmp, name), *set = support_path("%s.mr", tree);
        const char *images = variant && strcmp(variant, "clip") == 0 ? "--images=120" : "--images=10";
        support_expect(0, "sample", tree, "-q", images, "--size=32:40", "--layout", kinds[i][0],
                       variant ? "--variant" : (char *)NULL, variant, (char *)NULL);
        support_expect(0, "ingest", "-q", tree, set, (char *)NULL);
        seed_tree(tree, name);
        seed_dataset(set, name);
        free(name);
        free(tree);
        free(set);
    }
}

/* ---- real samples ------------------------------------------------------------------------------------------------ */

static void seed_real(const char *data)
{
    char *list = support_list(data), *rest = list, *line;
    unsigned n = 0;
    while ((line = strsep(&rest, "\n")) && *line) {
        const char *target = target_of(line);
        char *path = support_path("%s/%s", data, line), name[300];
        uint64_t most = target && strcmp(target, "image") == 0 ? 6000 : 24000;
        snprintf(name, sizeof name, "real-%05u-%.100s", ++n, strrchr(line, '/') ? strrchr(line, '/') + 1 : line);
        if (target && support_size(path) <= most) {
            seed_file(target, name, path);
            if (strcmp(target, "image") == 0)
                seed_file("pixels", name, path);
        }
        free(path);
    }
    free(list);
}

int main(int argc, char **argv)
{
    mr_error err;
    if (argc != 2) {
        fprintf(stderr, "use: fuzz_seeds OUT\n");
        return 2;
    }
    out = argv[1];
    if (mr_dir_remove(AT_FDCWD, out, &err) != MR_OK && support_exists(out)) {
        fprintf(stderr, "%s\n", err.text);
        return 3;
    }
    char *tmp = support_tmpdir();
    seed_pictures();
    seed_shards(tmp);
    seed_texts();
    seed_small_trees();
    seed_objects();
    seed_imagenet(tmp);
    seed_layouts(tmp);
    seed_train(tmp);
    seed_tokenizer();
    char *archives = support_path("%s/archive", out);
    if (mr_dir_make(archives, &err) != MR_OK)
        fail_msg("%s", err.text);
    seed_archive("tar", ARCHIVE_FORMAT_TAR_USTAR, ARCHIVE_FILTER_NONE, false);
    seed_archive("pax", ARCHIVE_FORMAT_TAR_PAX_RESTRICTED, ARCHIVE_FILTER_GZIP, false);
    seed_archive("zip", ARCHIVE_FORMAT_ZIP, ARCHIVE_FILTER_NONE, false);
    seed_archive("zip-streamed", ARCHIVE_FORMAT_ZIP, ARCHIVE_FILTER_NONE, true);
    seed_archive("cpio", ARCHIVE_FORMAT_CPIO_POSIX, ARCHIVE_FILTER_NONE, false);
    seed_archive("7zip", ARCHIVE_FORMAT_7ZIP, ARCHIVE_FILTER_NONE, false);
    char *data = support_data(".");
    if (data)
        seed_real(data);
    free(data);
    support_tmpdir_remove(tmp);
    free(archives);
    return 0;
}
