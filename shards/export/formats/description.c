/* description.c - writes croissant.json of an export.
 * Source: Croissant Format Specification 1.1: FileSet, RecordSet, Field, subField, references.
 * Invariant: a field is described exactly if rows have it. */
#include "shards/export/formats/description.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/scope.h"
#include "shards/export/formats/croissant.h"

/* ---- files ------------------------------------------------------------------------------------------------------- */

mr_status mr_description_open(mr_export_run *run, mr_description *d, mr_error *err)
{
    return mr_out_text_scratch(&run->out, &d->files, err);
}

void mr_description_free(mr_description *d)
{
    mr_out_text_free(&d->files);
}

mr_buf *mr_description_item(mr_description *d)
{
    mr_buf_add_text(&d->files.text, d->any ? ",\n" : "\n");
    d->any = true;
    return &d->files.text;
}

mr_status mr_description_file(mr_export_run *run, mr_description *d, const char *path, const char *format,
                              mr_error *err)
{
    MR_AUTO(mr_scope_close) int fd = -1;
    uint64_t size;
    mr_digest digest;
    MR_TRY(mr_file_open(run->out.dirfd, path, false, &fd, &size, err));
    MR_TRY(mr_file_digest(fd, size, true, path, &digest, err));
    const mr_croissant_object object = {.path = path, .format = format, .sha256 = digest.sha256, .bytes = size};
    mr_croissant_add_object(&object, mr_description_item(d));
    return mr_out_text_push(&d->files, err);
}

/* ---- fields ------------------------------------------------------------------------------------------------------ */

typedef struct field {
    const char *name, *type, *shape; /* shape NULL: a single value */
    bool there, class;
} field;

typedef struct rows { /* the records of a split */
    const char *split;
    bool tar;
    mr_buf *out;
} rows;

static void add_field_head(const rows *r, const char *parent, const field *f)
{
    mr_buf_printf(r->out, "{\"@type\":\"cr:Field\",\"@id\":\"%s/%s%s\",\"name\":\"%s\",\"dataType\":\"%s\"", r->split,
                  parent, f->name, f->name, f->type);
    if (f->shape)
        mr_buf_printf(r->out, ",\"isArray\":true,\"arrayShape\":\"%s\"", f->shape);
    if (f->class)
        mr_buf_add_text(r->out, ",\"references\":{\"field\":{\"@id\":\"" MR_CROISSANT_CLASSES "/number\"}}");
}

/* `part`: a part of the column's value; NULL: all of it. */
static void add_column(const rows *r, const char *column, const char *part)
{
    if (r->tar)
        mr_buf_printf(r->out, "\"source\":{\"fileObject\":{\"@id\":\"__millrace__/%s.jsonl\"}", r->split);
    else
        mr_buf_printf(r->out, "\"source\":{\"fileSet\":{\"@id\":\"%s/files\"}", r->split);
    mr_buf_printf(r->out, ",\"extract\":{\"column\":\"%s\"}", column);
    if (part)
        mr_buf_printf(r->out, ",\"transform\":{\"jsonPath\":\"%s\"}", part);
    mr_buf_add_text(r->out, "}}");
}

static void add_picture(const rows *r)
{
    static const field image = {.name = "image", .type = "sc:ImageObject"},
                       name = {.name = "file_name", .type = "sc:Text"};
    mr_buf_add_text(r->out, "\n");
    add_field_head(r, "", &name);
    mr_buf_add_text(r->out, ",");
    if (r->tar) { /* the field that both sources have comes first: readers join them by it */
        mr_buf_printf(r->out,
                      "\"references\":{\"fileObject\":{\"@id\":\"__millrace__/%s.jsonl\"},"
                      "\"extract\":{\"column\":\"file_name\"}},",
                      r->split);
        mr_buf_printf(r->out,
                      "\"source\":{\"fileSet\":{\"@id\":\"%s/files\"},"
                      "\"extract\":{\"fileProperty\":\"filename\"}}},\n",
                      r->split);
        add_field_head(r, "", &image);
        mr_buf_printf(r->out,
                      ",\"source\":{\"fileSet\":{\"@id\":\"%s/files\"},\"extract\":{\"fileProperty\":\"content\"}}}",
                      r->split);
        return;
    }
    add_column(r, "image", "path");
    mr_buf_add_text(r->out, ",\n");
    add_field_head(r, "", &image);
    mr_buf_add_text(r->out, ",");
    add_column(r, "image", "bytes");
}

static void add_objects(const rows *r, mr_export_row_kind kind, bool classes)
{
    const field parts[] = {{"bbox", "sc:Float", "4", true, false},
                           {"categories", "sc:Integer", NULL, true, classes},
                           {"polygons", "sc:Float", "-1,-1", kind.polygons, false},
                           {"oriented", "sc:Float", "8", kind.oriented, false},
                           {"keypoints", "sc:Float", "-1", kind.keypoints, false},
                           {"crowd", "sc:Boolean", NULL, true, false}};
    const char *comma = "";
    mr_buf_printf(r->out,
                  ",\n{\"@type\":\"cr:Field\",\"@id\":\"%s/objects\",\"name\":\"objects\",\"isArray\":true,"
                  "\"arrayShape\":\"-1\",\"description\":\"bbox: x, y, width, height in pixels; empty: none\","
                  "\"subField\":[",
                  r->split);
    for (size_t i = 0; i < MR_COUNT(parts); i++) {
        if (!parts[i].there)
            continue;
        mr_buf_printf(r->out, "%s\n", comma);
        add_field_head(r, "objects/", &parts[i]);
        mr_buf_add_text(r->out, ",");
        add_column(r, "objects", parts[i].name);
        comma = ",";
    }
    mr_buf_add_text(r->out, "]}");
}

static void add_records(const rows *r, mr_export_row_kind kind, bool classes)
{
    const field fields[] = {{"label", "sc:Integer", NULL, kind.label, classes},
                            {"labels", "sc:Integer", "-1", kind.labels, false},
                            {"captions", "sc:Text", "-1", kind.captions, false},
                            {"columns", "sc:Text", NULL, kind.columns, false}};
    mr_buf_printf(r->out,
                  ",\n{\"@type\":\"cr:RecordSet\",\"@id\":\"%s\",\"name\":\"%s\",\"key\":{\"@id\":\"%s/file_name\"},"
                  "\"field\":[",
                  r->split, r->split, r->split);
    add_picture(r);
    mr_buf_printf(r->out,
                  ",\n{\"@type\":\"cr:Field\",\"@id\":\"%s/split\",\"name\":\"split\",\"dataType\":\"sc:Text\","
                  "\"value\":\"%s\",\"references\":{\"field\":{\"@id\":\"" MR_CROISSANT_SPLITS "/name\"}}}",
                  r->split, r->split);
    for (size_t i = 0; i < MR_COUNT(fields); i++) {
        if (!fields[i].there)
            continue;
        mr_buf_add_text(r->out, ",\n");
        add_field_head(r, "", &fields[i]);
        mr_buf_add_text(r->out, ",");
        add_column(r, fields[i].name, NULL);
    }
    if (kind.objects)
        add_objects(r, kind, classes);
    mr_buf_add_text(r->out, "]}");
}

mr_status mr_description_close(mr_export_run *run, mr_description *d, mr_export_row_kind kind, bool tar, mr_error *err)
{
    const mr_manifest *m = run->manifest;
    const mr_croissant_of of = {m, mr_dataset_digest(run->dataset), run->options->split};
    MR_AUTO(mr_out_text_free) mr_out_text text = {0};
    MR_TRY(mr_out_text_open(&run->out, MR_CROISSANT, &text, err));
    mr_croissant_add_head(&of, &text.text);
    MR_TRY(mr_out_text_copy(&text, &d->files, err));
    mr_croissant_add_lists(&of, &text.text);
    for (size_t i = 0; i < m->split_count; i++)
        if (mr_export_wants(run->options, &m->splits[i]) && m->splits[i].samples) {
            const rows r = {m->splits[i].name, tar, &text.text};
            add_records(&r, kind, m->class_count > 0);
            MR_TRY(mr_out_text_push(&text, err));
        }
    mr_croissant_add_end(&text.text);
    return mr_out_text_close(&text, err);
}
