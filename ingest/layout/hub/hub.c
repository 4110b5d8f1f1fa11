/* hub.c - datasets as the hub stores them today: folders of Parquet files with the images inside.
 * Invariant: a row's text goes into meta verbatim, as the program that read the file wrote it.
 *
 *      data/train-00000-of-00002.parquet       a program opens each file; in the tree it becomes a folder:
 *      data/train-00001-of-00002.parquet           .../schema.json                     columns, rows, class names
 *      data/validation-00000-of-00001.parquet      .../000000000.json                  row 0
 *      [CONFIG/ in place of data/]                 .../000000000/497.jpeg              its image */
#include "ingest/layout/hub/configs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/scope.h"
#include "base/text.h"
#include "shards/manifest/format.h"
#include "ingest/layout/captions.h"
#include "ingest/layout/common/hub_objects.h"
#include "ingest/layout/common/label_list.h"
#include "ingest/tables/jsonl.h"

/* ---- bid ------------------------------------------------------------------------------------------------------ */

/* Whether README.md says what the files are.  If it cannot be read, open() says so. */
static bool has_card(const mr_tree *t, const mr_hub_files *files)
{
    MR_AUTO(mr_hub_configs_free) mr_hub_configs card = {.count = 0};
    mr_error ignored;
    return files->count && mr_hub_configs_read(t, &card, &ignored) == MR_OK && mr_hub_configs_fits(&card, files);
}

/* A root is where the configs are: a file more than one folder down (not counting "data") belongs to a root below. */
static mr_status hub_bid(const mr_tree *t, const mr_layout_options *o, mr_bid *bid, mr_error *err)
{
    (void)o;
    mr_hub_files files = {0};
    size_t named = 0, near = 0;
    mr_status status = mr_hub_list(t, &files, err);
    for (size_t i = 0; status == MR_OK && i < files.count; i++) {
        const mr_hub_file *f = &files.items[i];
        bool here = f->config.len == 0 || !memchr(f->config.text, '/', f->config.len);
        near += here;
        named += here && f->split.len;
    }
    if (status == MR_OK && has_card(t, &files))
        near = named = files.count;
    if (near) {
        mr_buf name = {0};
        mr_text_escape(&name, files.items[0].path.text, files.items[0].path.len);
        bid->score = named ? 70 : 45;
        snprintf(bid->why, sizeof bid->why, "%zu Parquet file%s, first %.200s", files.count,
                 files.count == 1 ? "" : "s", mr_buf_text(&name));
        mr_buf_free(&name);
    }
    free(files.items);
    return status;
}

/* ---- open ----------------------------------------------------------------------------------------------------- */

/* Where git has not fetched a large file it leaves a small text that names it. */
static mr_status check_head(const mr_tree *t, const mr_hub_file *f, mr_error *err)
{
    char head[64];
    uint64_t size = mr_source_entry(t->source, f->entry)->size;
    if (size == 0)
        return mr_fail(err, MR_BAD_DATA, "%.*s: is empty, so the download was not finished; download it again",
                       (int)f->path.len, f->path.text);
    if (size < sizeof head)
        return MR_OK; /* for the program to say */
    mr_status status = mr_source_pread(t->source, f->entry, head, sizeof head, 0, err);
    if (status == MR_OK && mr_text_is_lfs_pointer(head, sizeof head))
        return mr_fail(err, MR_BAD_DATA, "%.*s: is a Git LFS pointer, not the file; fetch the file with: git lfs pull",
                       (int)f->path.len, f->path.text);
    return status;
}

/* Train, validation, test, others: the order that readers of the summary expect. */
static int place_of(const mr_hub_file *f)
{
    static const char *const first[] = {"train", "val", "valid", "validation", "test"};
    size_t i = 0;
    while (i < MR_COUNT(first) &&
           (strlen(first[i]) != f->split.len || memcmp(first[i], f->split.text, f->split.len) != 0))
        i++;
    return (int)i;
}

static int by_split_and_path(const void *a, const void *b)
{
    const mr_hub_file *x = a, *y = b;
    size_t len = x->path.len < y->path.len ? x->path.len : y->path.len;
    int order = place_of(x) - place_of(y);
    if (order == 0)
        order = memcmp(x->path.text, y->path.text, len);
    return order ? order : (x->path.len > y->path.len) - (x->path.len < y->path.len);
}

/* Leaves out, unread, the files of a split that --split-map leaves out. */
static mr_status drop_splits(const mr_layout_options *o, mr_plan *plan, mr_hub_files *files, mr_error *err)
{
    size_t kept = 0;
    for (size_t i = 0; i < files->count; i++) {
        mr_hub_file *f = &files->items[i];
        uint32_t split;
        if (!f->split.len)
            f->split = (mr_hub_part){"train", 5};
        mr_status status = mr_plan_split_get(plan, o, f->split.text, f->split.len, &split, err);
        if (status != MR_OK)
            return status;
        if (split != MR_NO_ENTRY)
            files->items[kept++] = *f;
        else
            mr_note_add(plan->notes, MR_NOTE_INFO, f->path.text, f->path.len, 0, "split left out by --split-map");
    }
    files->count = kept;
    plan->split_count = 0; /* plan() makes those that have rows */
    if (kept)
        qsort(files->items, kept, sizeof *files->items, by_split_and_path);
    return MR_OK;
}

static mr_status hub_open(const mr_tree *t, const mr_layout_options *o, mr_plan *plan, mr_layout_files *out,
                          mr_error *err)
{
    mr_hub_state *st = plan->state = mr_alloc(1, sizeof *st);
    if (!st)
        return mr_fail_memory(err, "listing Parquet files");
    if (o->text_column && !(st->text_column = strdup(o->text_column)))
        return mr_fail_memory(err, "listing Parquet files");
    mr_hub_files *files = &st->files;
    mr_status status = mr_hub_list(t, files, err);
    if (status == MR_OK && !(st->card = mr_alloc(1, sizeof *st->card)))
        status = mr_fail_memory(err, "listing Parquet files");
    if (status == MR_OK)
        status = mr_hub_configs_read(t, st->card, err);
    if (status == MR_OK)
        status = mr_hub_configs_apply(st->card, o->config, files, err);
    mr_hub_map_splits(files, o);
    if (status == MR_OK)
        status = mr_hub_choose(files, o->config, err);
    if (status == MR_OK)
        status = drop_splits(o, plan, files, err);
    if (status == MR_OK)
        status = mr_hub_complete(files, err);
    for (size_t i = 0; i < files->count && status == MR_OK; i++) {
        if (!MR_GROW(out->entries, out->count, out->capacity))
            return mr_fail_memory(err, "listing Parquet files");
        out->entries[out->count++] = files->items[i].entry;
        status = check_head(t, &files->items[i], err);
    }
    return status == MR_OK ? mr_hub_reader(o, out, err) : status;
}

/* ---- meta ----------------------------------------------------------------------------------------------------- */

static mr_status add_labels(const mr_tree *t, const mr_plan *plan, uint32_t entry, mr_buf *out, mr_error *err)
{
    MR_AUTO(mr_buf_free) mr_buf row = {0};
    MR_AUTO(mr_buf_free) mr_buf list = {0};
    const mr_hub_state *st = plan->state;
    MR_TRY(mr_source_read(t->source, entry, &row, err));
    mr_hub_list_read(&row, st->list, plan->class_count, &list);
    MR_TRY(mr_buf_status(&list, err, "writing a sample's labels"));
    mr_label_list_write(plan, &list, out);
    return mr_buf_status(out, err, "writing a sample's labels");
}

static mr_status hub_meta(const mr_tree *t, const mr_plan *plan, const mr_sample *sample, mr_buf *out, mr_error *err)
{
    const mr_hub_state *st = plan->state;
    uint32_t entry = (uint32_t)sample->aux;
    mr_buf_add_text(out, ",\"columns\":");
    size_t columns_at = out->len;
    MR_TRY(mr_jsonl_copy(t->source, entry, 0, mr_source_entry(t->source, entry)->size, out, err));
    if (st->text_column)
        MR_TRY(mr_captions_add(t, entry, st->text_column, columns_at, out, err));
    return sample->flags & MR_FLAG_MULTI_LABEL ? add_labels(t, plan, entry, out, err) : MR_OK;
}

static mr_status hub_objects(const mr_tree *t, const mr_plan *plan, const mr_sample *sample, const mr_stored *picture,
                             mr_objects *out, mr_error *err)
{
    MR_AUTO(mr_buf_free) mr_buf row = {0};
    const mr_hub_state *st = plan->state;
    const mr_entry *e = mr_source_entry(t->source, (uint32_t)sample->aux);
    (void)picture;
    MR_TRY(mr_jsonl_copy(t->source, (uint32_t)sample->aux, 0, e->size, &row, err));
    return mr_hub_objects_read(row.data, row.len, e->path, plan, st->numbered, out, err);
}

static void free_state(void *p)
{
    mr_hub_state *st = p;
    if (!st)
        return;
    if (st->card)
        mr_hub_configs_free(st->card);
    free(st->card);
    free(st->files.items);
    free(st->text_column);
    free(st->list);
    free(st);
}

const mr_layout mr_layout_hub = {
    .name = "hub",
    .title = "Parquet files of the hub: [CONFIG/]SPLIT-00000-of-00001.parquet, data/train-*.parquet, or one file",
    .needs = MR_HUB_NEEDS,
    .options = MR_OPTION_LABEL | MR_OPTION_CONFIG | MR_OPTION_IMAGE | MR_OPTION_TEXT,
    .bid = hub_bid,
    .open = hub_open,
    .plan = mr_hub_plan,
    .meta = hub_meta,
    .objects = hub_objects,
    .free_state = free_state,
};
