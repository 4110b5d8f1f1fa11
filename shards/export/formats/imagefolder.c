/* imagefolder.c - the export `imagefolder`: the hub's, SPLIT/CLASS/ folders of images with a metadata.jsonl in each
 * split.
 * Source: "Create an image dataset" in the documentation of the hub's library datasets: a line has file_name, relative
 * to the metadata file; boxes are {"bbox": [[x, y, width, height], ...], "categories": [...]}.
 *
 *      train/cat/1.jpg  train/metadata.jsonl
 *      {"file_name":"cat/1.jpg","label":"cat","objects":{"bbox":[[1,2,30,40]],"categories":["cat"]}}
 *
 * Invariant: every line of a split has the same members, so that a reader finds one type for each. */
#include <stdlib.h>
#include <string.h>

#include "base/scope.h"
#include "base/text.h"
#include "shards/export/formats/folders.h"
#include "shards/export/row.h"

typedef struct imagefolder {
    mr_export_folders folders; /* first: see folders.h */
    mr_export_row_kind kind;
    mr_out_text lines;
    mr_buf folder, name;
} imagefolder;

static mr_status begin(mr_export_run *run, mr_error *err)
{
    imagefolder *f = mr_alloc(1, sizeof *f);
    if (!f)
        return mr_fail_memory(err, "exporting");
    run->state = f;
    run->result->instead[MR_PART_CLASS_NUMBERS] = "names in metadata.jsonl";
    f->kind = mr_export_row_kind_of(run);
    f->folders.only_used = true;
    return mr_export_folders_begin(run, err);
}

static mr_status begin_split(mr_export_run *run, const mr_split *split, mr_error *err)
{
    imagefolder *f = run->state;
    MR_AUTO(mr_buf_free) mr_buf path = {0};
    bool changed;
    MR_TRY(mr_export_folders_split(run, split, err));
    mr_buf_printf(&path, "%s/metadata.jsonl", f->folders.split);
    const mr_name_request request = {.folder = f->folders.split, .wanted = "metadata.jsonl", .len = 14};
    MR_TRY(mr_names_take(&run->names, &request, &f->name, &changed, err));
    const char *text = mr_buf_text(&path);
    MR_TRY(mr_buf_status(&path, err, "exporting"));
    return mr_out_text_open(&run->out, text, &f->lines, err);
}

static mr_status end_split(mr_export_run *run, const mr_split *split, mr_error *err)
{
    imagefolder *f = run->state;
    (void)split;
    return mr_out_text_close(&f->lines, err);
}

static mr_status sample(mr_export_run *run, const mr_export_sample *s, mr_error *err)
{
    imagefolder *f = run->state;
    MR_AUTO(mr_buf_free) mr_buf path = {0};
    mr_buf *out = &f->lines.text;
    MR_TRY(mr_export_folders_picture(run, s, &f->folder, &f->name, err));
    mr_buf_printf(&path, "%s%s%s", mr_buf_text(&f->folder), f->folder.len ? "/" : "", mr_buf_text(&f->name));
    mr_buf_add_text(out, "{\"file_name\":");
    mr_json_add_string(out, mr_buf_text(&path), path.len);
    mr_export_row_add(run, s, f->kind, out);
    mr_buf_add_text(out, "}\n");
    MR_TRY(mr_buf_status(&path, err, "exporting"));
    return mr_out_text_push(&f->lines, err);
}

static void free_state(void *state)
{
    imagefolder *f = state;
    mr_out_text_free(&f->lines);
    mr_buf_free(&f->folder);
    mr_buf_free(&f->name);
    mr_export_folders_free(f); /* which is at the same address */
}

const mr_export_format mr_export_format_imagefolder = {
    .name = "imagefolder",
    .holds = MR_EXPORT_ROW_HOLDS,
    .surveyed = true,
    .begin = begin,
    .begin_split = begin_split,
    .sample = sample,
    .end_split = end_split,
    .free_state = free_state,
};
