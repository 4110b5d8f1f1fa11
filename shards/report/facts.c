/* facts.c - the numbers of a report: index rows of all samples, metas of some.
 * Invariant: every sample is counted once in each of the bins that index rows fill. */
#include "shards/report/facts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/files/file.h"
#include "base/files/supply.h"
#include "base/random.h"
#include "base/scope.h"
#include "shards/format/index.h"
#include "shards/format/objects.h"
#include "shards/dataset/captions.h"

const mr_bins mr_bins_of[MR_BINS_KINDS] = {
    [MR_BINS_SIDE] = {"Longer side in pixels",
                      {"up to 64", "65 to 128", "129 to 256", "257 to 512", "513 to 1,024", "1,025 to 2,048",
                       "2,049 to 4,096", "above 4,096", NULL}},
    [MR_BINS_ASPECT] = {"Width to height",
                        {"below 1:2", "1:2 to 3:4", "3:4 to 1:1", "1:1", "1:1 to 4:3", "4:3 to 2:1", "above 2:1",
                         NULL}},
    [MR_BINS_BYTES] = {"Size of a file",
                       {"up to 4 KiB", "up to 16 KiB", "up to 64 KiB", "up to 256 KiB", "up to 1 MiB", "up to 4 MiB",
                        "above 4 MiB", NULL}},
    [MR_BINS_FORMAT] = {"Format", {"other", "JPEG", "PNG", "WebP", NULL}},
    [MR_BINS_EXIF] = {"EXIF orientation", {"as stored", "rotated or flipped", NULL}},
    [MR_BINS_OBJECTS] = {"Objects per image", {"none", "1", "2", "3 to 5", "6 to 10", "11 to 20", "above 20", NULL}},
    [MR_BINS_BOX] = {"Size of a box", {"below 32 x 32 pixels", "below 96 x 96", "larger", NULL}},
    [MR_BINS_LENGTH] = {"Words per caption",
                        {"none", "1 to 5", "6 to 10", "11 to 15", "16 to 25", "26 to 50", "above 50", NULL}},
};

/* The first bin whose limit is not below the value; the one after the limits otherwise. */
static size_t bin_of(uint64_t value, const uint64_t *limits, size_t count)
{
    size_t i = 0;
    while (i < count && value > limits[i])
        i++;
    return i;
}

#define BIN(value, ...)                                                                                                \
    bin_of(value, (const uint64_t[]){__VA_ARGS__}, sizeof((const uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t))

static size_t aspect_bin(uint64_t w, uint64_t h)
{
    if (w == h)
        return 3;
    if (w < h)
        return 2 * w < h ? 0 : 4 * w < 3 * h ? 1 : 2;
    return w > 2 * h ? 6 : 3 * w > 4 * h ? 5 : 4;
}

/* ---- of every sample --------------------------------------------------------------------------------------------- */

/* A thumbnail of a baseline JPEG takes a part of the work of decoding it; of other images, all of it. */
static void add_work(const mr_row *row, mr_report_facts *f)
{
    bool fast = row->codec == MR_CODEC_JPEG && !(row->flags & MR_FLAG_PROGRESSIVE);
    uint64_t pixels = (uint64_t)row->width * row->height, left = UINT64_MAX - f->decoding;
    uint64_t work = fast ? pixels : pixels < UINT64_MAX / 4 ? 4 * pixels : UINT64_MAX;
    f->decoding += work < left ? work : left;
}

static void count_row(const mr_row *row, mr_report_facts *f)
{
    bool turned = row->orientation >= 5;
    uint64_t w = turned ? row->height : row->width, h = turned ? row->width : row->height;
    add_work(row, f);
    f->bins[MR_BINS_SIDE][BIN(w > h ? w : h, 64, 128, 256, 512, 1024, 2048, 4096)]++;
    f->bins[MR_BINS_ASPECT][aspect_bin(w, h)]++;
    f->bins[MR_BINS_BYTES][BIN(row->image_len, 4096, 16384, 65536, 262144, 1 << 20, 4 << 20)]++;
    f->bins[MR_BINS_FORMAT][row->codec <= MR_CODEC_WEBP ? row->codec : 0]++;
    f->bins[MR_BINS_EXIF][row->orientation > 1]++;
}

static mr_status count_one(void *ctx, uint64_t number, const mr_row *row, mr_error *err)
{
    (void)number;
    (void)err;
    count_row(row, ctx);
    return MR_OK;
}

static mr_status count_rows(mr_report_facts *f, mr_error *err)
{
    for (size_t i = 0; i < f->m->split_count; i++) {
        MR_TRY(mr_dataset_each_row(f->ds, &f->m->splits[i], count_one, f, err));
        f->samples += f->m->splits[i].samples;
    }
    return MR_OK;
}

/* ---- of the samples looked at ------------------------------------------------------------------------------------ */

static void count_objects(const mr_objects *found, mr_report_facts *f)
{
    f->bins[MR_BINS_OBJECTS][BIN(found->count, 0, 1, 2, 5, 10, 20)]++;
    f->object_count += found->count;
    for (size_t i = 0; i < found->count; i++) {
        const mr_object *o = &found->items[i];
        size_t class = o->label < 0 || (size_t)o->label >= f->m->class_count ? f->m->class_count : (size_t)o->label;
        f->objects[class]++;
        if (o->has_box) {
            double area = (double)o->box[2] / 1000 * ((double)o->box[3] / 1000);
            f->bins[MR_BINS_BOX][area < 32 * 32 ? 0 : area < 96 * 96 ? 1 : 2]++;
        }
    }
}

static mr_status count_list(const mr_sample_view *v, mr_report_facts *f, mr_error *err)
{
    json_t *meta = NULL;
    size_t i;
    const json_t *item;
    MR_TRY(mr_json_parse(v->meta, v->meta_len, "a sample's meta", &meta, err));
    json_array_foreach(json_object_get(meta, "labels"), i, item)
    {
        json_int_t label = json_integer_value(item);
        if (label >= 0 && (size_t)label < f->m->class_count)
            f->listed[label]++;
    }
    f->lists++;
    json_decref(meta);
    return MR_OK;
}

static mr_status count_captions(const mr_sample_view *v, mr_buf *text, mr_report_facts *f, mr_error *err)
{
    mr_captions captions;
    uint64_t words;
    mr_buf_clear(text);
    const char *column = mr_captions_guess(v->meta, v->meta_len, text);
    if (!column)
        return MR_OK;
    MR_TRY(mr_captions_find(column, v->meta, v->meta_len, &captions, err));
    for (size_t i = 0; i < captions.count; i++) {
        mr_buf_clear(text);
        MR_TRY(mr_captions_read(&captions, i, text, err));
        MR_TRY(mr_words_add(&f->words, mr_buf_text(text), text->len, &words, err));
        f->bins[MR_BINS_LENGTH][BIN(words, 0, 5, 10, 15, 25, 50)]++;
        f->captions++;
    }
    return MR_OK;
}

const mr_split *mr_report_sample(const mr_manifest *m, uint64_t n, uint64_t *number)
{
    size_t i = 0;
    while (i + 1 < m->split_count && n >= m->splits[i].samples)
        n -= m->splits[i++].samples;
    *number = n;
    return &m->splits[i];
}

/* Looks at one sample in each of as many equal parts of the dataset: all samples, or a choice. */
static mr_status look(mr_report_facts *f, uint64_t seed, mr_error *err)
{
    MR_AUTO(mr_sample_view_free) mr_sample_view view = {0};
    MR_AUTO(mr_objects_free) mr_objects found = {0};
    MR_AUTO(mr_buf_free) mr_buf text = {0};
    mr_random random;
    mr_random_seed(&random, seed);
    f->looked = f->samples < MR_METAS_MOST ? f->samples : MR_METAS_MOST;
    for (uint64_t i = 0; i < f->looked; i++) {
        uint64_t from = f->samples / f->looked * i + f->samples % f->looked * i / f->looked, number;
        uint64_t to = f->samples / f->looked * (i + 1) + f->samples % f->looked * (i + 1) / f->looked;
        const mr_split *split = mr_report_sample(f->m, from + mr_random_below(&random, to - from), &number);
        MR_TRY(mr_dataset_read_meta(f->ds, split->name, number, &view, err));
        MR_TRY(mr_objects_parse(view.meta, view.meta_len, &found, err));
        if (found.known)
            count_objects(&found, f);
        if (view.flags & MR_FLAG_MULTI_LABEL)
            MR_TRY(count_list(&view, f, err));
        MR_TRY(count_captions(&view, &text, f, err));
    }
    mr_words_sort(&f->words);
    return MR_OK;
}

static void read_report(const char *dir, mr_report_facts *f)
{
    MR_AUTO(mr_buf_free) mr_buf path = {0}, bytes = {0};
    mr_error ignored;
    mr_buf_printf(&path, "%s/report.json", dir);
    if (mr_file_read_all(AT_FDCWD, mr_buf_text(&path), MR_MANIFEST_MAX, &bytes, &ignored) == MR_OK)
        (void)!mr_json_parse(bytes.data, bytes.len, "report.json", &f->report, &ignored);
}

mr_status mr_report_facts_read(const char *dir, const mr_dataset *ds, uint64_t seed, mr_report_facts *out,
                               mr_error *err)
{
    *out = (mr_report_facts){.ds = ds, .m = mr_dataset_manifest(ds)};
    out->objects = mr_alloc(out->m->class_count + 1, sizeof *out->objects);
    out->listed = mr_alloc(out->m->class_count + 1, sizeof *out->listed);
    if (!out->objects || !out->listed)
        return mr_fail_memory(err, "reading a dataset");
    MR_TRY(mr_class_counts_read(ds, &out->labels, err));
    MR_TRY(count_rows(out, err));
    read_report(dir, out);
    return out->samples ? look(out, seed, err) : MR_OK;
}

void mr_report_facts_free(mr_report_facts *f)
{
    free(f->objects);
    free(f->listed);
    free(f->labels.counts);
    mr_words_free(&f->words);
    json_decref(f->report);
    *f = (mr_report_facts){0};
}
