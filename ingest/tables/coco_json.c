/* coco_json.c - COCO annotation files: reads one in chunks, sorts its tables, and reads objects again.
 * Invariant: the tables of a parsed file are consistent (unique ids, every range inside the annotations), and no text
 * is returned that does not start and end like the object that was parsed. */
#include "ingest/tables/coco_json.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/scope.h"
#include "base/text.h"
#include "ingest/tables/coco_parse.h"
#include "ingest/tables/json_file.h"

enum {
    RUN_MAX = 1 << 20, /* neighboring annotations are read at once, up to this */
    GAP_MAX = 64,
    CATEGORIES_MAX = 64, /* bad ones that are looked for in all annotations */
};

/* ---- tables --------------------------------------------------------------------------------------------------- */

void mr_coco_free(mr_coco_file *f)
{
    if (!f)
        return;
    for (size_t i = 0; i < f->image_count; i++)
        free(f->images[i].file_name);
    for (size_t i = 0; i < f->category_count; i++)
        free(f->categories[i].name);
    for (size_t i = 0; i < f->png_count; i++)
        free(f->pngs[i]);
    for (size_t i = 0; i < f->bad_count; i++)
        free(f->bads[i].why);
    free(f->bads);
    mr_buf_free(&f->licences);
    free(f->pngs);
    free(f->images);
    free(f->annotations);
    free(f->categories);
    free(f);
}

static int order(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

static int by_image_id(const void *a, const void *b)
{
    return order(((const mr_coco_image *)a)->id, ((const mr_coco_image *)b)->id);
}

static int by_image_and_place(const void *a, const void *b)
{
    const mr_coco_annotation *x = a, *y = b;
    return x->image_id != y->image_id ? order(x->image_id, y->image_id) : (x->at > y->at) - (x->at < y->at);
}

static int by_value(const void *a, const void *b)
{
    return order(*(const int64_t *)a, *(const int64_t *)b);
}

static void mark_image(mr_coco_file *f, mr_coco_image *image, size_t bad)
{
    if (image && !image->bad) {
        image->bad = (uint32_t)bad + 1;
        f->bads[bad].used = true;
    }
}

/* The images with an annotation of it. */
static void mark_category(mr_coco_file *f, size_t bad)
{
    for (size_t i = 0; i < f->image_count; i++)
        for (uint32_t a = 0; a < f->images[i].count; a++)
            if (f->annotations[f->images[i].first + a].category_id == f->bads[bad].category_id)
                mark_image(f, &f->images[i], bad);
}

/* Images are sorted by id. */
static void mark_bad(mr_coco_file *f)
{
    size_t categories = 0;
    for (size_t i = 0; i < f->bad_count && i < UINT32_MAX; i++) {
        const mr_coco_image key = {.id = f->bads[i].image_id};
        if (f->bads[i].category_id != MR_COCO_NO_ID && categories++ < CATEGORIES_MAX)
            mark_category(f, i);
        else if (f->image_count)
            mark_image(f, bsearch(&key, f->images, f->image_count, sizeof key, by_image_id), i);
    }
}

static mr_status check_categories(const mr_coco_file *f, const char *name, mr_error *err)
{
    MR_AUTO(mr_scope_free) int64_t *ids = mr_alloc(f->category_count, sizeof *ids);
    if (!ids)
        return mr_fail_memory(err, "sorting COCO categories");
    for (size_t i = 0; i < f->category_count; i++)
        ids[i] = f->categories[i].id;
    qsort(ids, f->category_count, sizeof *ids, by_value);
    char id[120];
    for (size_t i = 1; i < f->category_count; i++)
        if (ids[i] == ids[i - 1])
            return mr_fail(err, MR_BAD_DATA, "%s: has category id %s twice", name, mr_coco_id_show(f->ids, ids[i], id));
    return MR_OK;
}

/* Sorts, rejects duplicate ids, and assigns each image its run of annotations. */
static mr_status link_tables(mr_coco_file *f, const char *name, mr_error *err)
{
    if (f->image_count)
        qsort(f->images, f->image_count, sizeof *f->images, by_image_id);
    if (f->annotation_count)
        qsort(f->annotations, f->annotation_count, sizeof *f->annotations, by_image_and_place);

    size_t next = 0, linked = 0;
    char id[120];
    for (size_t i = 0; i < f->image_count; i++) {
        mr_coco_image *image = &f->images[i];
        if (i && image->id == image[-1].id)
            return mr_fail(err, MR_BAD_DATA, "%s: has image id %s twice, at bytes %" PRIu64 " and %" PRIu64, name,
                           mr_coco_id_show(f->ids, image->id, id), image[-1].at, image->at);
        while (next < f->annotation_count && f->annotations[next].image_id < image->id)
            next++;
        image->first = (uint32_t)next;
        while (next < f->annotation_count && f->annotations[next].image_id == image->id)
            next++;
        image->count = (uint32_t)next - image->first;
        linked += image->count;
    }
    f->orphans = f->annotation_count - linked;
    mark_bad(f);
    return check_categories(f, name, err);
}

/* ---- reading objects again ------------------------------------------------------------------------------------- */

static mr_status add_object(const mr_source *s, const mr_coco_file *f, const uint8_t *text, uint32_t len, uint64_t at,
                            mr_buf *out, mr_error *err)
{
    if (len < 2 || text[0] != '{' || text[len - 1] != '}')
        return mr_fail(err, MR_BAD_DATA, "%s: byte %" PRIu64 ": the file has changed since it was parsed; run again",
                       mr_source_entry(s, f->entry)->path, at);
    mr_buf_add(out, text, len);
    return mr_buf_status(out, err, "copying COCO text");
}

/* Annotations first to end-1 are so close in the file that one read gets them all. */
static size_t run_end(const mr_coco_file *f, size_t first, size_t last)
{
    const mr_coco_annotation *a = f->annotations;
    size_t end = first + 1;
    while (end < last && a[end].at - (a[end - 1].at + a[end - 1].len) <= GAP_MAX &&
           a[end].at + a[end].len - a[first].at <= RUN_MAX)
        end++;
    return end;
}

mr_status mr_coco_annotations(const mr_source *s, const mr_coco_file *f, size_t n, mr_buf *out, mr_error *err)
{
    size_t i = f->images[n].first, last = i + f->images[n].count;
    const mr_coco_annotation *a = f->annotations;
    MR_AUTO(mr_buf_free) mr_buf text = {0};

    mr_buf_add_text(out, "[");
    while (i < last) {
        size_t end = run_end(f, i, last);
        uint64_t from = a[i].at, len = a[end - 1].at + a[end - 1].len - from;
        mr_buf_clear(&text);
        if (!mr_buf_reserve(&text, len))
            return mr_fail_memory(err, "reading COCO annotations");
        MR_TRY(mr_source_pread(s, f->entry, text.data, len, from, err));
        for (; i < end; i++) {
            MR_TRY(add_object(s, f, text.data + (a[i].at - from), a[i].len, a[i].at, out, err));
            if (i + 1 < last)
                mr_buf_add_text(out, ",");
        }
    }
    mr_buf_add_text(out, "]");
    return mr_buf_status(out, err, "copying COCO text");
}

mr_status mr_coco_image_text(const mr_source *s, const mr_coco_file *f, size_t n, mr_buf *out, mr_error *err)
{
    const mr_coco_image *image = &f->images[n];
    MR_AUTO(mr_buf_free) mr_buf text = {0};
    if (!mr_buf_reserve(&text, image->len))
        return mr_fail_memory(err, "reading COCO annotations");
    MR_TRY(mr_source_pread(s, f->entry, text.data, image->len, image->at, err));
    return add_object(s, f, text.data, image->len, image->at, out, err);
}

/* ---- the file ------------------------------------------------------------------------------------------------- */

/* An empty file of the same source. */
static mr_coco_file *new_file(uint32_t entry, mr_coco_ids *ids)
{
    mr_coco_file *f = mr_alloc(1, sizeof *f);
    if (f) {
        f->entry = entry;
        f->ids = ids;
    }
    return f;
}

/* Only bytes that are not JSON have been found so far: the file is read once more. */
static void restart(void *ctx)
{
    mr_coco_parser *p = ctx;
    const uint32_t entry = p->file->entry;
    free(p->text);
    free(p->url);
    mr_coco_free(p->file);
    *p = (mr_coco_parser){.err = p->err, .ids = p->ids, .name = p->name, .file = new_file(entry, p->ids)};
}

static mr_status take(void *ctx, const mr_json_token *t)
{
    mr_coco_parser *p = ctx;
    return p->file ? mr_coco_take(p, t) : mr_fail_memory(p->err, "reading COCO annotations");
}

static mr_status parse(const mr_source *s, mr_coco_parser *p)
{
    const mr_json_rules rules = {.handler = take, .ctx = p, .levels = MR_COCO_LEVELS, .depth_max = MR_COCO_DEPTH_MAX};
    const mr_json_file file = {s, p->file->entry, p->name, "reading COCO annotations", &p->repair, restart};
    MR_TRY(mr_json_file_read(&file, &rules, &p->stream, p->err));
    p->file->repaired = p->repair.count > 0;
    if (!(p->seen_sections & 1u << IMAGES))
        return mr_fail(
            p->err, MR_BAD_DATA,
            "%s: not a COCO annotation file: it has no \"images\", which name the files; convert it to COCO or CSV",
            p->name);
    return link_tables(p->file, p->name, p->err);
}

mr_status mr_coco_parse(const mr_source *s, uint32_t entry, mr_coco_ids *ids, mr_coco_file **out, mr_error *err)
{
    const mr_entry *e = mr_source_entry(s, entry);
    MR_AUTO(mr_buf_free) mr_buf name = {0};
    mr_coco_parser p = {.err = err, .ids = ids, .file = new_file(entry, ids)};

    mr_text_escape(&name, e->path, e->path_len);
    p.name = mr_buf_text(&name);
    if (!p.file || name.failed) {
        mr_coco_free(p.file);
        return mr_fail_memory(err, "reading COCO annotations");
    }
    mr_status status = parse(s, &p);
    free(p.text);
    free(p.url);
    mr_json_repair_free(&p.repair);
    if (status == MR_OK)
        *out = p.file;
    else
        mr_coco_free(p.file);
    return status;
}
