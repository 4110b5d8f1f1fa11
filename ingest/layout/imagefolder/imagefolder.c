/* imagefolder.c - folders of images with metadata files, as the hub's ImageFolder reads them.
 * Source: the documents of the datasets library, "Create an image dataset": metadata.csv, .jsonl or .parquet in the
 * root or in the folder of a split, with file_name relative to it; the folders are classes where no column is.
 * Invariant: an image counts once, by its exact path from the metadata file's folder.
 *
 *      metadata.csv: file_name,text          train/metadata.jsonl: {"file_name":"1.png","label":"cat"}
 *      images/1.png                          train/1.png                                                             */
#include "ingest/layout/imagefolder/imagefolder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/scope.h"
#include "shards/manifest/format.h"
#include "ingest/layout/folder_names.h"
#include "ingest/layout/common/hub_objects.h"
#include "ingest/tables/jsonl.h"

/* ---- bid ------------------------------------------------------------------------------------------------------ */

static bool at_or_below_split(const mr_tree *t, uint32_t entry)
{
    size_t len;
    const char *path = mr_tree_path(t, entry, &len);
    const char *slash = memchr(path, '/', len);
    return !slash || mr_split_word(path, (size_t)(slash - path));
}

static bool has_picture(const mr_tree *t)
{
    for (uint32_t e = t->begin; e < t->end; e++)
        if (mr_folder_image(t, e, 0))
            return true;
    return false;
}

/* file_name must be in it: other tools write a metadata.csv, too. */
static mr_status names_files(const mr_tree *t, uint32_t entry, bool *found, mr_error *err)
{
    static const char word[] = "file_name";
    uint64_t size = mr_source_entry(t->source, entry)->size;
    size_t len = size < MR_SHEET_HEAD ? (size_t)size : MR_SHEET_HEAD;
    MR_AUTO(mr_scope_free) char *head = malloc(len + 1);
    if (!head)
        return mr_fail_memory(err, "looking at metadata");
    mr_status status = mr_source_pread(t->source, entry, head, len, 0, err);
    if (status == MR_SYSTEM)
        return status;
    const char *end = status == MR_OK ? memchr(head, '\n', len) : head;
    *found = memmem(head, end ? (size_t)(end - head) : len, word, sizeof word - 1) != NULL;
    return MR_OK;
}

static mr_status imagefolder_bid(const mr_tree *t, const mr_layout_options *o, mr_bid *bid, mr_error *err)
{
    size_t len;
    (void)o;
    for (uint32_t e = t->begin; e < t->end && !bid->score; e++) {
        bool found = false;
        if (!at_or_below_split(t, e))
            continue;
        if (mr_imagefolder_is(t, e, ".csv") || mr_imagefolder_is(t, e, ".jsonl"))
            MR_TRY(names_files(t, e, &found, err));
        else
            continue;
        if (!found || !has_picture(t))
            continue;
        const char *path = mr_tree_path(t, e, &len);
        bid->score = 85 - mr_root_is_split(t);
        snprintf(bid->why, sizeof bid->why, "%.*s with file_name", (int)(len < 200 ? len : 200), path);
    }
    return MR_OK;
}

/* ---- meta ----------------------------------------------------------------------------------------------------- */

/* A row as it is in the file, and its texts as the inside of a list. */
static mr_status add_row(const mr_tree *t, const mr_sheet *s, size_t row, mr_buf *out, mr_buf *texts, mr_error *err)
{
    size_t begin = out->len;
    MR_TRY(mr_jsonl_copy(t->source, s->entry, s->at[row], s->len[row], out, err));
    if (!s->text_name)
        return MR_OK;
    mr_jsonl file = {.source = t->source, .entry = s->entry};
    mr_jsonl_row line = {.text = (const char *)out->data + begin, .len = out->len - begin, .line = row + 1};
    mr_jsonl_field field = {.name = s->text_name, .texts = true};
    mr_status status = mr_jsonl_pick(&file, &line, &field, 1, NULL, err);
    if (status == MR_OK && field.kind == MR_JSONL_TEXTS && field.text.len) {
        mr_buf_add_text(texts, texts->len ? "," : "");
        mr_buf_add(texts, field.text.data, field.text.len);
    }
    mr_buf_free(&field.text);
    return status;
}

static mr_status imagefolder_meta(const mr_tree *t, const mr_plan *plan, const mr_sample *sample, mr_buf *out,
                                  mr_error *err)
{
    const mr_table_state *st = plan->state;
    const mr_sheet *s = sample->aux ? &st->sheets[sample->aux >> 32] : NULL;
    MR_AUTO(mr_buf_free) mr_buf texts = {0};
    if (!s || !s->at)
        return mr_table_meta(t, plan, sample, out, err);
    size_t first = (uint32_t)sample->aux;
    bool several = mr_sheet_next_row(s, first);
    if (sample->flags & MR_FLAG_MULTI_LABEL)
        MR_TRY(mr_table_add_labels(plan, s, first - 1, out, err));
    mr_buf_add_text(out, several ? ",\"columns\":[" : ",\"columns\":");
    for (size_t r = first; r; r = mr_sheet_next_row(s, r)) {
        mr_buf_add_text(out, r == first ? "" : ",");
        MR_TRY(add_row(t, s, r - 1, out, &texts, err));
    }
    mr_buf_add_text(out, several ? "]" : "");
    if (texts.len) {
        mr_buf_add_text(out, ",\"captions\":[");
        mr_buf_add(out, texts.data, texts.len);
        mr_buf_add_text(out, "]");
    }
    return mr_buf_status(out, err, "writing a sample's columns");
}

static mr_status imagefolder_objects(const mr_tree *t, const mr_plan *plan, const mr_sample *sample,
                                     const mr_stored *picture, mr_objects *out, mr_error *err)
{
    MR_AUTO(mr_buf_free) mr_buf row = {0};
    const mr_table_state *st = plan->state;
    const mr_sheet *s = sample->aux ? &st->sheets[sample->aux >> 32] : NULL;
    if (!s || !s->at)
        return mr_table_objects(t, plan, sample, picture, out, err);
    if (!s->objects)
        return MR_OK;
    size_t number = (uint32_t)sample->aux - 1;
    MR_TRY(mr_jsonl_copy(t->source, s->entry, s->at[number], s->len[number], &row, err));
    return mr_hub_objects_read(row.data, row.len, s->name, plan, false, out, err);
}

const mr_layout mr_layout_imagefolder = {
    .name = "imagefolder",
    .title = "the hub's ImageFolder: images with metadata.csv or metadata.jsonl, in the root or in each split's folder",
    .needs = "metadata.csv or metadata.jsonl with file_name, in the root or in train/, validation/, test/",
    .options = MR_OPTION_LABEL | MR_OPTION_TEXT | MR_OPTION_UNLISTED | MR_OPTION_SEPARATOR,
    .bid = imagefolder_bid,
    .plan = mr_imagefolder_plan,
    .meta = imagefolder_meta,
    .objects = imagefolder_objects,
    .free_state = mr_table_free,
};
