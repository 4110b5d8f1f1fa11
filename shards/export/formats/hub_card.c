/* hub_card.c - counts what the hub's dataset card says, and writes it.
 * Invariant: memory is a number for each split and each of at most CLASSES classes. */
#include "shards/export/formats/hub_card.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/scope.h"
#include "base/text.h"
#include "shards/export/formats/croissant.h"
#include "shards/export/formats/hub_yaml.h"

enum { CLASSES = 1000, COLUMNS = 8 }; /* in the table of classes: rows, and splits with a column of their own */

mr_status mr_hub_card_open(mr_export_run *run, bool tar, mr_hub_card *c, mr_error *err)
{
    const mr_manifest *m = run->manifest;
    c->tar = tar;
    c->split_count = m->split_count;
    c->shown = m->class_count < CLASSES ? m->class_count : CLASSES;
    c->splits = mr_alloc(m->split_count + 1, sizeof *c->splits);
    c->counts = mr_alloc(m->split_count * c->shown + 1, sizeof *c->counts);
    if (!c->splits || !c->counts)
        return mr_fail_memory(err, "exporting");
    return mr_class_names_make(run, !tar, &c->names, err);
}

void mr_hub_card_free(mr_hub_card *c)
{
    for (size_t i = 0; c->splits && i < c->split_count; i++)
        free(c->splits[i].files);
    free(c->splits);
    free(c->counts);
    mr_class_names_free(&c->names);
    *c = (mr_hub_card){0};
}

mr_hub_split *mr_hub_card_split(const mr_export_run *run, mr_hub_card *c, const mr_split *split)
{
    return &c->splits[split - run->manifest->splits];
}

/* ---- counting ---------------------------------------------------------------------------------------------------- */

/* Arrow has an offset of four bytes for a text, a list or an image, and eight for a number. */
enum { OFFSET = 4, NUMBER = 8 };

static uint64_t object_bytes(const mr_objects *all, const mr_object *o, mr_export_row_kind kind)
{
    uint64_t bytes = OFFSET + (o->has_box ? 4 * NUMBER : 0) + NUMBER;
    if (kind.polygons) {
        bytes += OFFSET;
        for (size_t i = 0; i < o->ring_count; i++)
            bytes += OFFSET + all->rings[o->ring + i].count * NUMBER;
    }
    if (kind.oriented)
        bytes += OFFSET + (o->oriented ? 8 * NUMBER : 0);
    return bytes + (kind.keypoints ? OFFSET + o->keypoint_count * 3 * NUMBER : 0);
}

static uint64_t row_bytes(const mr_export_sample *s, mr_export_row_kind kind, size_t name_len)
{
    const mr_export_facts *f = s->facts;
    uint64_t bytes = s->view->image_len + name_len + 2 * OFFSET;
    bytes += kind.label ? NUMBER : 0;
    bytes += kind.labels ? OFFSET + f->label_count * NUMBER : 0;
    bytes += kind.columns ? OFFSET + f->columns.len : 0;
    bytes += kind.captions ? OFFSET : 0;
    for (size_t i = 0; kind.captions && i < f->caption_count; i++)
        bytes += OFFSET + f->captions[i].len;
    if (kind.objects)
        bytes += OFFSET * (3u + kind.polygons + kind.oriented + kind.keypoints);
    for (size_t i = 0; kind.objects && i < s->objects->count; i++)
        bytes += object_bytes(s->objects, &s->objects->items[i], kind);
    return bytes;
}

static void count(const mr_hub_card *c, uint64_t *counts, int64_t label)
{
    if (label >= 0 && (uint64_t)label < c->shown)
        counts[label]++;
}

void mr_hub_card_take(const mr_export_run *run, mr_hub_card *c, const mr_export_sample *s, mr_export_row_kind kind,
                      size_t name_len)
{
    uint64_t *counts = c->counts + (size_t)(s->split - run->manifest->splits) * c->shown;
    mr_hub_card_split(run, c, s->split)->bytes += row_bytes(s, kind, name_len);
    count(c, counts, s->view->label);
    for (size_t i = 0; i < s->facts->label_count; i++)
        count(c, counts, s->facts->labels[i]);
    for (size_t i = 0; i < s->objects->count; i++)
        count(c, counts, s->objects->items[i].label);
}

/* ---- the text ---------------------------------------------------------------------------------------------------- */

/* As a code span, between more backticks than it has in a row; a bar would end the cell of a table. */
static void add_code(const char *text, size_t len, mr_buf *out)
{
    size_t run = 0, most = 0;
    for (size_t i = 0; i < len; i++) {
        run = text[i] == '`' ? run + 1 : 0;
        most = run > most ? run : most;
    }
    for (size_t i = 0; i <= most; i++)
        mr_buf_add_text(out, "`");
    mr_buf_add_text(out, most ? " " : "");
    MR_AUTO(mr_buf_free) mr_buf shown = {0};
    mr_text_show(&shown, text, len);
    for (size_t i = 0; i < shown.len; i++) {
        mr_buf_add_text(out, shown.data[i] == '|' ? "\\" : "");
        mr_buf_add(out, shown.data + i, 1);
    }
    mr_buf_add_text(out, most ? " " : "");
    for (size_t i = 0; i <= most; i++)
        mr_buf_add_text(out, "`");
    out->failed |= shown.failed;
}

static void add_split_table(const mr_export_run *run, const mr_hub_card *c, mr_buf *out)
{
    char samples[32], bytes[32];
    mr_buf_add_text(out, "| split | images | size |\n| --- | ---: | ---: |\n");
    for (size_t i = 0; i < run->manifest->split_count; i++)
        if (c->splits[i].files)
            mr_buf_printf(out, "| %s | %s | %s |\n", run->manifest->splits[i].name,
                          mr_text_count(run->manifest->splits[i].samples, samples),
                          mr_text_bytes(c->splits[i].file_bytes, bytes));
}

static void add_class_row(const mr_hub_card *c, size_t class, bool each, mr_buf *out)
{
    uint64_t sum = 0;
    char text[32];
    size_t len;
    const char *name = mr_class_name(&c->names, class, &len);
    mr_buf_printf(out, "| %zu | ", class);
    add_code(name, len, out);
    for (size_t i = 0; i < c->split_count; i++) {
        uint64_t n = c->counts[i * c->shown + class];
        sum += n;
        if (each && c->splits[i].files)
            mr_buf_printf(out, " | %s", mr_text_count(n, text));
    }
    if (!each)
        mr_buf_printf(out, " | %s", mr_text_count(sum, text));
    mr_buf_add_text(out, " |\n");
}

static void add_classes(const mr_export_run *run, const mr_hub_card *c, mr_export_row_kind kind, mr_buf *out)
{
    const char *what = kind.label || kind.labels
                           ? kind.objects ? "Labels of images, and objects, of each class" : "Images of each class"
                           : "Objects of each class";
    size_t with_files = 0;
    char text[32];
    if (!c->shown)
        return;
    for (size_t i = 0; i < c->split_count; i++)
        with_files += c->splits[i].files != NULL;
    bool each = with_files <= COLUMNS;
    mr_buf_printf(out, "\n## Classes\n\n%s:\n\n| number | class |", what);
    for (size_t i = 0; each && i < c->split_count; i++)
        if (c->splits[i].files)
            mr_buf_printf(out, " %s |", run->manifest->splits[i].name);
    mr_buf_add_text(out, each ? "\n| ---: | --- |" : " all splits |\n| ---: | --- | ---: |");
    for (size_t i = 0; each && i < with_files; i++)
        mr_buf_add_text(out, " ---: |");
    mr_buf_add_text(out, "\n");
    for (size_t i = 0; i < c->shown; i++)
        add_class_row(c, i, each, out);
    if (c->shown < run->manifest->class_count)
        mr_buf_printf(out, "\nand %s more, which `" MR_CROISSANT "` lists.\n",
                      mr_text_count(run->manifest->class_count - c->shown, text));
}

static void add_origin(const mr_export_run *run, const mr_hub_card *c, mr_buf *out)
{
    const mr_manifest *m = run->manifest;
    char hex[65];
    mr_hex(mr_dataset_digest(run->dataset), 32, hex);
    mr_buf_printf(out, "\n## How it was made\n\n`millrace export --to %s` wrote these files from a dataset of layout ",
                  c->tar ? "tar" : "parquet");
    add_code(m->layout, strlen(m->layout), out);
    mr_buf_printf(out,
                  " with the digest `sha256:%s`. The bytes of each image are those of the source: nothing was "
                  "decoded or encoded again. `" MR_CROISSANT "` has the SHA-256 of each file.\n",
                  hex);
    mr_buf_add_text(out, "\n## Licence\n\n");
    if (m->licence) {
        mr_buf_add_text(out, "The source states: ");
        add_code(m->licence, strlen(m->licence), out);
        mr_buf_add_text(out, "\n");
    } else {
        mr_buf_add_text(out, "The source states none.\n");
    }
}

mr_status mr_hub_card_write(mr_export_run *run, const mr_hub_card *c, mr_export_row_kind kind, mr_error *err)
{
    MR_AUTO(mr_buf_free) mr_buf text = {0};
    char samples[32];
    mr_hub_yaml_add(run, c, kind, &text);
    mr_buf_printf(&text, "\n# A dataset of %s image%s\n\n", mr_text_count(run->result->samples, samples),
                  run->result->samples == 1 ? "" : "s");
    mr_buf_add_text(&text, "<!-- Say here what the images show, who made them, and what they may be used for. -->\n\n");
    add_split_table(run, c, &text);
    add_classes(run, c, kind, &text);
    add_origin(run, c, &text);
    MR_TRY(mr_buf_status(&text, err, "exporting"));
    return mr_out_file(&run->out, "README.md", text.data, text.len, err);
}
