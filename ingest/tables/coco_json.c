/* coco_json.c - COCO annotation files: reading one in chunks, its tables, and its text again.
 * Invariant: the tables of a parsed file are consistent (ids once, every range inside the annotations), and no text is
 * handed out that does not start and end as the object that was parsed. */
#include "tables/coco_json.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "json/json.h"
#include "json/json_oddity.h"
#include "tables/coco_parse.h"

enum {
    CHUNK = 256 << 10,
    QUIET_MAX = 64 << 20, /* bytes without a value: yajl would keep a longer one in memory */
    RUN_MAX = 1 << 20,    /* annotations that stand side by side are read at once, up to this */
    GAP_MAX = 64,
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

static mr_status check_categories(const mr_coco_file *f, const char *name, mr_error *err)
{
    int64_t *ids = mr_alloc(f->category_count, sizeof *ids);
    mr_status status = MR_OK;
    if (!ids)
        return mr_fail_memory(err, "sorting COCO categories");
    for (size_t i = 0; i < f->category_count; i++)
        ids[i] = f->categories[i].id;
    qsort(ids, f->category_count, sizeof *ids, by_value);
    for (size_t i = 1; i < f->category_count && status == MR_OK; i++)
        if (ids[i] == ids[i - 1])
            status = mr_fail(err, MR_BAD_DATA, "%s: category id %" PRId64 " twice", name, ids[i]);
    free(ids);
    return status;
}

/* Sorts, refuses ids that stand twice, and gives each image its run of annotations. */
static mr_status link_tables(mr_coco_file *f, const char *name, mr_error *err)
{
    if (f->image_count)
        qsort(f->images, f->image_count, sizeof *f->images, by_image_id);
    if (f->annotation_count)
        qsort(f->annotations, f->annotation_count, sizeof *f->annotations, by_image_and_place);

    size_t next = 0, linked = 0;
    for (size_t i = 0; i < f->image_count; i++) {
        mr_coco_image *image = &f->images[i];
        if (i && image->id == image[-1].id)
            return mr_fail(err, MR_BAD_DATA, "%s: image id %" PRId64 " twice, at bytes %" PRIu64 " and %" PRIu64, name,
                           image->id, image[-1].at, image->at);
        while (next < f->annotation_count && f->annotations[next].image_id < image->id)
            next++;
        image->first = (uint32_t)next;
        while (next < f->annotation_count && f->annotations[next].image_id == image->id)
            next++;
        image->count = (uint32_t)next - image->first;
        linked += image->count;
    }
    f->orphans = f->annotation_count - linked;
    return check_categories(f, name, err);
}

/* ---- the text again ------------------------------------------------------------------------------------------- */

static mr_status add_object(const mr_source *s, const mr_coco_file *f, const uint8_t *text, uint32_t len, uint64_t at,
                            mr_buf *out, mr_error *err)
{
    if (len < 2 || text[0] != '{' || text[len - 1] != '}')
        return mr_fail(err, MR_BAD_DATA, "%s: byte %" PRIu64 ": the file has changed since it was parsed; run again",
                       mr_source_entry(s, f->entry)->path, at);
    mr_buf_add(out, text, len);
    return mr_buf_status(out, err, "copying COCO text");
}

/* Annotations first to end-1 stand so close in the file that one read gets them all. */
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
    mr_buf text = {0};
    mr_status status = MR_OK;

    mr_buf_add_text(out, "[");
    while (i < last && status == MR_OK) {
        size_t end = run_end(f, i, last);
        uint64_t from = a[i].at, len = a[end - 1].at + a[end - 1].len - from;
        mr_buf_clear(&text);
        status = mr_buf_reserve(&text, len) ? mr_source_pread(s, f->entry, text.data, len, from, err)
                                            : mr_fail_memory(err, "reading COCO annotations");
        for (; i < end && status == MR_OK; i++) {
            status = add_object(s, f, text.data + (a[i].at - from), a[i].len, a[i].at, out, err);
            if (i + 1 < last)
                mr_buf_add_text(out, ",");
        }
    }
    mr_buf_add_text(out, "]");
    mr_buf_free(&text);
    return status == MR_OK ? mr_buf_status(out, err, "copying COCO text") : status;
}

mr_status mr_coco_image_text(const mr_source *s, const mr_coco_file *f, size_t n, mr_buf *out, mr_error *err)
{
    const mr_coco_image *image = &f->images[n];
    mr_buf text = {0};
    mr_status status = mr_buf_reserve(&text, image->len)
                           ? mr_source_pread(s, f->entry, text.data, image->len, image->at, err)
                           : mr_fail_memory(err, "reading COCO annotations");
    if (status == MR_OK)
        status = add_object(s, f, text.data, image->len, image->at, out, err);
    mr_buf_free(&text);
    return status;
}

/* ---- the file ------------------------------------------------------------------------------------------------- */

/* "byte 95", and where there are lines "byte 95 (line 3, column 17)"; of the byte at `at`, which is in the chunk. */
static const char *place_words(const mr_coco_parser *p, uint64_t at, char out[100])
{
    uint64_t lines = p->lines, line_at = p->line_at;
    const unsigned char *newline = p->chunk, *end = p->chunk + (at > p->base ? at - p->base : 0);
    while (newline && newline < end && (newline = memchr(newline, '\n', (size_t)(end - newline)))) {
        lines++;
        line_at = p->base + (uint64_t)(++newline - p->chunk);
    }
    int len = snprintf(out, 100, "byte %" PRIu64, at + 1);
    if (lines && at >= line_at)
        snprintf(out + len, 100 - (size_t)len, " (line %" PRIu64 ", column %" PRIu64 ")", lines + 1, at - line_at + 1);
    return out;
}

/* The bytes around the error once more: what stands there may go on in the next chunk. */
static bool find_oddity(const mr_source *s, mr_coco_parser *p, uint64_t *at, char odd[MR_JSON_ODDITY])
{
    char window[256];
    uint64_t here = mr_coco_here(p), size = mr_source_entry(s, p->file->entry)->size;
    uint64_t from = here > sizeof window / 2 ? here - sizeof window / 2 : 0;
    size_t len = size - from < sizeof window ? (size_t)(size - from) : sizeof window;
    mr_json_place place = {
        .text = window, .len = len, .at = (size_t)(here - from), .begins = !from, .ends = from + len == size};
    if (mr_source_pread(s, p->file->entry, window, len, from, NULL) != MR_OK || !mr_json_oddity(&place, odd))
        return false;
    *at = from + place.at;
    return true;
}

static mr_status check(const mr_source *s, mr_coco_parser *p, yajl_status status)
{
    char odd[MR_JSON_ODDITY], words[100];
    uint64_t at;
    if (p->memory.ran_out)
        return p->status = mr_fail_memory(p->err, "reading COCO annotations");
    if (status == yajl_status_ok)
        return MR_OK;
    if (p->status != MR_OK)
        return p->status;
    if (find_oddity(s, p, &at, odd))
        return p->status =
                   mr_fail(p->err, MR_BAD_DATA, "%s: %s: not JSON: %s", p->name, place_words(p, at, words), odd);
    at = mr_coco_here(p);
    unsigned char *text = yajl_get_error(p->yajl, 0, NULL, 0);
    size_t len = text ? strcspn((char *)text, "\n") : 0;
    p->status = mr_fail(p->err, MR_BAD_DATA, "%s: %s: not JSON: %.*s", p->name, place_words(p, at ? at - 1 : 0, words),
                        len > 200 ? 200 : (int)len, text ? (char *)text : "");
    yajl_free_error(p->yajl, text);
    return p->status;
}

static void count_lines(mr_coco_parser *p, size_t len)
{
    const unsigned char *at = p->chunk, *end = at + len;
    while (at < end && (at = memchr(at, '\n', (size_t)(end - at)))) {
        p->lines++;
        p->line_at = p->base + (uint64_t)(++at - p->chunk);
    }
}

/* A chunk that yajl took, of whole characters. */
static mr_status check_strictly(mr_coco_parser *p, size_t len)
{
    uint64_t end = !p->end || p->end > p->base + len ? len : p->end < p->base ? 0 : p->end - p->base;
    const char *beyond = mr_json_beyond(p->chunk, len, (size_t)end);
    return beyond ? mr_fail(p->err, MR_BAD_DATA, "%s: behind byte %" PRIu64 ": not JSON: %s", p->name, p->base, beyond)
                  : MR_OK;
}

static mr_status feed(const mr_source *s, mr_coco_parser *p, unsigned char *chunk)
{
    uint64_t size = mr_source_entry(s, p->file->entry)->size, at = 0, events = 0, quiet = 0;
    p->chunk = chunk;
    while (at < size) {
        size_t len = size - at < CHUNK ? (size_t)(size - at) : CHUNK;
        mr_status status = mr_source_pread(s, p->file->entry, chunk, len, at, p->err);
        if (status != MR_OK)
            return status;
        if (size - at > len)
            len -= mr_utf8_cut((const char *)chunk, len);
        size_t skip = at == 0 && len >= 3 && !memcmp(chunk, "\xEF\xBB\xBF", 3) ? 3 : 0; /* a byte order mark */
        p->base = at + skip;
        p->chunk = chunk + skip;
        status = check(s, p, yajl_parse(p->yajl, chunk + skip, len - skip));
        if (status == MR_OK)
            status = check_strictly(p, len - skip);
        if (status != MR_OK)
            return status;
        count_lines(p, len - skip);
        quiet = p->events == events ? quiet + len : 0;
        events = p->events;
        if (quiet > QUIET_MAX)
            return mr_fail(p->err, MR_BAD_DATA, "%s: byte %" PRIu64 ": 64 MiB without a value", p->name, at);
        at += len;
    }
    p->base = size ? size - 1 : 0; /* yajl feeds itself one blank behind the end */
    mr_status status = check(s, p, yajl_complete_parse(p->yajl));
    if (status == MR_OK && !(p->seen_sections & 1u << IMAGES))
        return mr_fail(p->err, MR_BAD_DATA, "%s: no COCO annotation file: it has no \"images\"", p->name);
    return status;
}

mr_status mr_coco_parse(const mr_source *s, uint32_t entry, mr_coco_file **out, mr_error *err)
{
    mr_buf name = {0};
    unsigned char *chunk = malloc(CHUNK);
    mr_coco_parser p = {.err = err, .file = mr_alloc(1, sizeof *p.file)};
    const mr_entry *e = mr_source_entry(s, entry);
    mr_status status = MR_SYSTEM;

    mr_text_escape(&name, e->path, e->path_len);
    p.name = mr_buf_text(&name);
    if (!chunk || !p.file || name.failed) {
        mr_fail_memory(err, "reading COCO annotations");
        goto done;
    }
    if (mr_yajl_open(&p.memory, &mr_coco_callbacks, &p, MR_YAJL_ROOM(CHUNK), "reading COCO annotations", err) != MR_OK)
        goto done;
    p.yajl = p.memory.parser;
    p.file->entry = entry;
    status = feed(s, &p, chunk);
    if (status == MR_OK)
        status = link_tables(p.file, p.name, err);
    if (status == MR_OK) {
        *out = p.file;
        p.file = NULL;
    }
done:
    mr_yajl_close(&p.memory);
    mr_coco_free(p.file);
    free(p.text);
    free(chunk);
    mr_buf_free(&name);
    return status;
}
