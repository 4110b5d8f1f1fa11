/* test_ledger.c - in every layout, a file that would be lost is an error whose advice works as it is written.
 * Covers pipeline/leftovers.c, pipeline/advice.c, pipeline/ledger_notes.c
 * Invariant tested: the numbers of all fates add up to the number of files, whatever the tree. */
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/buf.h"
#include "base/random.h"
#include "ingest/layout/layout.h"
#include "tests/support/sources/archive.h"
#include "tests/support/sources/hub.h"
#include "tests/support/images/image.h"
#include "tests/support/support.h"

#define COCO(name)                                                                                                     \
    "{\"images\":[{\"id\":1,\"file_name\":\"" name "\",\"width\":8,\"height\":8}],\"annotations\":[{\"id\":1,"         \
    "\"image_id\":1,\"category_id\":1,\"bbox\":[0,0,2,2]}],\"categories\":[{\"id\":1,\"name\":\"cat\"}]}"
#define CREATEML(name)                                                                                                 \
    "[{\"image\":\"" name "\",\"annotations\":[{\"label\":\"cat\",\"coordinates\":{\"x\":2,\"y\":2,\"width\":2,"       \
    "\"height\":2}}]}]"
#define VOC(name)                                                                                                      \
    "<annotation><filename>" name "</filename><size><width>8</width><height>8</height><depth>3</depth></size>"         \
    "<object><name>cat</name><bndbox><xmin>1</xmin><ymin>1</ymin><xmax>4</xmax><ymax>4</ymax></bndbox></object>"       \
    "</annotation>"
#define KITTI "Car 0.00 0 -1.57 599.41 156.40 629.75 189.25 2.85 2.63 12.34 0.47 1.49 69.44 -1.56\n"

typedef struct file {
    const char *path, *text; /* text NULL: a JPEG */
} file;

typedef struct family { /* a small tree of each layout */
    const char *layout;
    file files[6];
    unsigned samples;
    const char *split; /* a folder with its images, with a slash; "": the top */
    file own;          /* an annotation of its own format too many; path NULL: it has none */
    bool any;          /* an image is a sample wherever it is */
    bool bare;         /* ... in a split */
} family;

static const family families[] = {
    {.layout = "imagenette",
     .files = {{"train/cat/1.jpg", NULL}, {"train/dog/2.jpg", NULL}, {"val/cat/3.jpg", NULL}},
     .samples = 3,
     .split = "train/"},
    {.layout = "roboflow",
     .files = {{"train/1.jpg", NULL},
               {"train/2.jpg", NULL},
               {"train/_classes.csv", "filename,cat\n1.jpg,1\n2.jpg,0\n"}},
     .samples = 2,
     .split = "train/",
     .own = {"train/more.csv", "filename,dog\n1.jpg,1\n"}},
    {.layout = "coco",
     .files = {{"train/1.jpg", NULL}, {"annotations/instances_train.json", COCO("1.jpg")}},
     .samples = 1,
     .split = "train/",
     .own = {"old/boxes.json", COCO("1.jpg")}},
    {.layout = "webdataset",
     .files = {{"a.jpg", NULL}, {"a.cls", "0"}, {"b.jpg", NULL}, {"b.cls", "1"}},
     .samples = 2,
     .split = "",
     .any = true},
    {.layout = "yolo",
     .files = {{"images/train/1.jpg", NULL},
               {"labels/train/1.txt", "0 0.5 0.5 0.2 0.2\n"},
               {"data.yaml", "names: [cat]\n"}},
     .samples = 1,
     .split = "images/train/",
     .bare = true,
     .own = {"labels/train/z.txt", "0 0.5 0.5 0.2 0.2\n"}},
    {.layout = "voc",
     .files = {{"JPEGImages/1.jpg", NULL}, {"Annotations/1.xml", VOC("1.jpg")}, {"ImageSets/Main/train.txt", "1\n"}},
     .samples = 1,
     .split = "JPEGImages/",
     .own = {"Annotations/z.xml", VOC("z.jpg")}},
    {.layout = "createml",
     .files = {{"train/1.jpg", NULL}, {"train/_annotations.createml.json", CREATEML("1.jpg")}},
     .samples = 1,
     .split = "train/",
     .own = {"old/more.json", CREATEML("1.jpg")}},
    {.layout = "ilsvrc",
     .files = {{"train/n01440764/1.JPEG", NULL},
               {"val/ILSVRC2012_val_00000001.JPEG", NULL},
               {"LOC_val_solution.csv", "ImageId,PredictionString\nILSVRC2012_val_00000001,n01440764 1 2 3 4\n"}},
     .samples = 2,
     .split = "train/"},
    {.layout = "imagefolder",
     .files = {{"train/1.jpg", NULL}, {"train/metadata.csv", "file_name,text\n1.jpg,a cat\n"}},
     .samples = 1,
     .split = "train/",
     .own = {"old/rows.csv", "file_name,text\n1.jpg,a dog\n"}},
    {.layout = "table",
     .files = {{"images/1.jpg", NULL}, {"images/2.jpg", NULL}, {"labels.csv", "image,label\n1.jpg,cat\n2.jpg,dog\n"}},
     .samples = 2,
     .split = "images/"},
    {.layout = "roboflow",
     .files = {{"train/1.jpg", NULL}, {"train/_annotations.coco.json", COCO("1.jpg")}},
     .samples = 1,
     .split = "train/",
     .own = {"train/more.json", COCO("1.jpg")}},
    {.layout = "yolo",
     .files = {{"train/images/1.jpg", NULL},
               {"train/labels/1.txt", "0 0.5 0.5 0.2 0.2\n"},
               {"data.yaml", "names: [cat]\n"}},
     .samples = 1,
     .split = "train/images/",
     .bare = true,
     .own = {"train/labels/z.txt", "0 0.5 0.5 0.2 0.2\n"}},
    {.layout = "voc",
     .files = {{"train/1.jpg", NULL}, {"train/1.xml", VOC("1.jpg")}},
     .samples = 1,
     .split = "train/",
     .bare = true,
     .own = {"train/z.xml", VOC("z.jpg")}},
    {.layout = "imagefolder",
     .files = {{"train/1.jpg", NULL}, {"train/metadata.jsonl", "{\"file_name\": \"1.jpg\", \"text\": \"a cat\"}\n"}},
     .samples = 1,
     .split = "train/",
     .own = {"old/rows.jsonl", "{\"file_name\": \"1.jpg\"}\n"}},
    {.layout = "table",
     .files = {{"1.jpg", NULL}, {"1.txt", "a cat"}, {"2.jpg", NULL}, {"2.txt", "a dog"}},
     .samples = 2,
     .split = ""},
};

/* ---- trees ------------------------------------------------------------------------------------------------------- */

static unsigned pictures; /* made so far: each is a picture of its own */

static void put(const char *dir, file f)
{
    char *path = support_path("%s/%s", dir, f.path);
    if (f.text) {
        support_write_text(path, f.text);
    } else {
        picture p = make_jpeg((jpeg_kind){.width = 8 + pictures++ % 200, .height = 8, .components = 3});
        support_write(path, p.bytes, p.len);
        picture_free(&p);
    }
    free(path);
}

static char *tree_of(const char *dir, const family *l)
{
    char *tree = support_path("%s/%s-%zu", dir, l->layout, (size_t)(l - families));
    for (size_t i = 0; i < MR_COUNT(l->files) && l->files[i].path; i++)
        put(tree, l->files[i]);
    return tree;
}

typedef struct verdict {
    int status;
    long long samples, files, fates, unaccounted, companions;
    char error[2000], layout[32];
} verdict;

static verdict ingest(const char *tree, const char *const *options)
{
    const char *args[16] = {"ingest", tree, "--dry-run", "--json"};
    verdict v = {0};
    for (size_t i = 0; options && options[i]; i++)
        args[4 + i] = options[i];
    support_result r = support_millrace_under(args, NULL);
    json_t *doc = json_loads(r.out, 0, NULL), *ledger = json_object_get(doc, "ledger"), *value;
    const char *key, *error = json_string_value(json_object_get(doc, "error"));
    const char *layout = json_string_value(json_object_get(doc, "layout"));
    if (!doc)
        fail_msg("%s: no JSON\n%s", tree, r.err);
    v.status = r.status;
    v.files = json_integer_value(json_object_get(doc, "files"));
    json_object_foreach(json_object_get(doc, "splits"), key, value) v.samples +=
        json_integer_value(json_object_get(value, "samples"));
    json_object_foreach(ledger, key, value) v.fates += json_integer_value(value);
    v.unaccounted = json_integer_value(json_object_get(ledger, "unaccounted"));
    v.companions = json_integer_value(json_object_get(ledger, "companions"));
    snprintf(v.error, sizeof v.error, "%s", error ? error : "");
    snprintf(v.layout, sizeof v.layout, "%s", layout ? layout : "");
    json_decref(doc);
    support_result_free(&r);
    return v;
}

/* ---- advice ------------------------------------------------------------------------------------------------------ */

/* The next word of a shell's line; 'a b' is one. */
static const char *take_word(const char *at, char out[300])
{
    size_t n = 0;
    bool quoted = false;
    while (*at && (quoted || (*at != ' ' && *at != ',' && *at != ';'))) {
        if (*at == '\'')
            quoted = !quoted;
        else if (n < 299)
            out[n++] = *at;
        at++;
    }
    out[n] = '\0';
    return at;
}

/* Runs ingest with the options of the clause at `at`; returns its end. */
static const char *follow(const char *tree, const char *at, unsigned samples)
{
    static const char *const with_value[] = {"--exclude", "--root", "--split-map", "--class-depth"};
    char words[12][300];
    const char *options[13] = {0};
    size_t count = 0;
    bool keeps = false;
    while (!strncmp(at, "--", 2)) {
        assert_true(count + 2 < MR_COUNT(words));
        at = take_word(at, words[count]);
        options[count] = words[count];
        keeps = keeps || !strcmp(words[count], "--keep-unlisted");
        for (size_t i = 0; i < MR_COUNT(with_value); i++)
            if (!strcmp(words[count], with_value[i])) {
                at = take_word(at + 1, words[++count]);
                options[count] = words[count];
                break;
            }
        count++;
        at += *at == ' ';
    }
    verdict v = ingest(tree, options);
    if (v.status || v.samples < samples || v.samples > samples + keeps)
        fail_msg("%s: following '%s %s %s': exit code %d, %lld samples instead of %u\n%s", tree, options[0],
                 options[1] ? options[1] : "", options[2] ? options[2] : "", v.status, v.samples, samples, v.error);
    assert_int_equal(v.fates, v.files);
    return at;
}

/* The tree must be refused, and each of the options that are advised must settle it. */
static void refused(const char *tree, const char *words, unsigned samples)
{
    verdict v = ingest(tree, NULL);
    size_t followed = 0;
    if (v.status != 1 || !strstr(v.error, words) || !strstr(v.error, "would be left out"))
        fail_msg("%s: exit code %d, %lld samples, no \"%s\" in: %s", tree, v.status, v.samples, words, v.error);
    assert_int_equal(v.fates, v.files);
    assert_true(v.unaccounted > 0);
    const char *at = strstr(v.error, "would be left out");
    while ((at = strstr(at, "--"))) {
        bool clause = at[-2] == ';' || at[-2] == ',';
        at = clause && !strstr(at, "=NAME makes") ? follow(tree, at, samples) : at + 2;
        followed += clause;
    }
    if (!followed)
        fail_msg("%s: no option in: %s", tree, v.error);
}

/* ---- every layout ------------------------------------------------------------------------------------------------ */

static void one_more(const char *dir, const family *l, const char *folder, file f, const char *words)
{
    char *place = support_path("%s/%s", dir, folder), *tree = tree_of(place, l);
    put(tree, f);
    refused(tree, words, l->samples);
    free(tree);
    free(place);
}

static void nothing_is_lost(void **state)
{
    for (size_t i = 0; i < MR_COUNT(families); i++) {
        const family *l = &families[i];
        char *plain = support_path("%s/plain", (char *)*state), *tree = tree_of(plain, l);
        char *image = support_path("%sz.jpg", l->split), *odd = support_path("%sodd.jpg_large", l->split);
        verdict v = ingest(tree, NULL);
        if (v.status || v.samples != l->samples || strcmp(v.layout, l->layout) != 0)
            fail_msg("%s: exit code %d, %lld samples of %s\n%s", tree, v.status, v.samples, v.layout, v.error);
        assert_int_equal(v.fates, v.files);
        one_more(*state, l, "odd", (file){odd, NULL}, "1 image ");
        one_more(*state, l, "other", (file){"label_2/000001.txt", KITTI}, "1 KITTI label file in label_2/");
        if (!l->any)
            one_more(*state, l, "beside", (file){"extra/deep/z.jpg", NULL}, "1 image in extra/");
        if (!l->any && !l->bare)
            one_more(*state, l, "inside", (file){image, NULL}, "1 image ");
        if (l->own.path)
            one_more(*state, l, "own", l->own, "would be left out");
        free(odd);
        free(image);
        free(tree);
        free(plain);
    }
}

static void companions_are_counted(void **state)
{
    static const file companions[] = {
        {"README.md", "# cats\n"},
        {"LICENSE", "CC BY 4.0\n"},
        {".DS_Store", "x"},
        {"Thumbs.db", "x"},
        {"SHA256SUMS", "00  train/1.jpg\n"},
        {"scripts/convert.py", "import os\n"},
        {"__MACOSX/train/._1", "x"},
        {"CITATION.cff", "title: cats.jpg\n"},
    };
    for (size_t i = 0; i < MR_COUNT(families); i++) {
        char *tree = tree_of(*state, &families[i]);
        for (size_t k = 0; k < MR_COUNT(companions); k++)
            put(tree, companions[k]);
        verdict v = ingest(tree, NULL);
        if (v.status || v.samples != families[i].samples)
            fail_msg("%s: exit code %d, %lld samples\n%s", tree, v.status, v.samples, v.error);
        assert_int_equal(v.fates, v.files);
        assert_in_range(v.companions, MR_COUNT(companions) - 1, MR_COUNT(companions)); /* one README may be read */
        free(tree);
    }
}

/* ---- any tree ---------------------------------------------------------------------------------------------------- */

static void put_random(const char *tree, mr_random *random)
{
    static const char *const folders[] = {"",        "train/",  "train/cat/", "val/dog/",
                                          "images/", "labels/", "x/y/",       "masks/"};
    static const file kinds[] = {
        {"jpg", NULL},
        {"jpg", NULL},
        {"jpg", NULL},
        {"jpg_large", NULL},
        {"xml", VOC("1.jpg")},
        {"txt", KITTI},
        {"txt", "0 0.5 0.5 0.1 0.1\n"},
        {"json", COCO("1.jpg")},
        {"csv", "image,label\n1.jpg,cat\n"},
        {"md", "text"},
        {"dat", "text"},
    };
    for (uint64_t n = mr_random_between(random, 1, 14); n; n--) {
        file f = kinds[mr_random_below(random, MR_COUNT(kinds))];
        char *path = support_path("%s%u.%s", folders[mr_random_below(random, MR_COUNT(folders))],
                                  (unsigned)mr_random_below(random, 4), f.path);
        put(tree, (file){path, f.text});
        free(path);
    }
}

static void fates_add_up(void **state)
{
    mr_random random = support_random();
    size_t settled = 0;
    for (unsigned i = 0; i < 60; i++) {
        char *tree = support_path("%s/random-%u", (char *)*state, i);
        put_random(tree, &random);
        for (int skip = 0; skip < 2; skip++) {
            verdict v = ingest(tree, skip ? (const char *const[]){"--skip-unmatched", NULL} : NULL);
            if (v.fates && v.fates != v.files)
                fail_msg("%s: %lld fates of %lld files", tree, v.fates, v.files);
            settled += v.fates > 0;
        }
        free(tree);
    }
    assert_true(settled > 10);
}

/* An image whose name leads out of the archive is lost: ".." is not a hidden folder. */
static void unsafe_names_are_rejects(void **state)
{
    picture p = make_jpeg((jpeg_kind){.width = 8, .height = 8, .components = 3});
    const support_entry entries[] = {{.path = "train/a/1.jpg", .bytes = p.bytes, .len = p.len},
                                     {.path = "train/b/2.jpg", .bytes = p.bytes, .len = p.len},
                                     {.path = "../3.jpg", .bytes = p.bytes, .len = p.len},
                                     {.path = "../.cache/4.jpg", .bytes = p.bytes, .len = p.len}};
    char *tar = support_path("%s/x.tar", (char *)*state);
    support_archive(tar, "tar", entries, MR_COUNT(entries));
    support_result r = support_millrace("ingest", tar, "--dry-run", (char *)NULL);
    support_assert_status(&r, 1);
    if (!strstr(r.err, "1 of 3 images are rejected"))
        fail_msg("%s", r.err);
    support_result_free(&r);
    free(tar);
    picture_free(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {IN_TMPDIR(nothing_is_lost), IN_TMPDIR(companions_are_counted),
                                       IN_TMPDIR(fates_add_up), IN_TMPDIR(unsafe_names_are_rejects)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
