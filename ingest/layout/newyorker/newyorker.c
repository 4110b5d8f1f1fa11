/* newyorker.c - the New Yorker caption contest corpus as the hub's v1.0 files.
 * Invariant: a row's text goes into meta verbatim, so all its columns are kept as written.
 *
 *      all_contest_images/497.jpeg ...     matching/train.jsonl val.jsonl test.jsonl     ranking_1/train.jsonl ...
 *                                          a train.jsonl in the root itself is the config "default"                */
#include "ingest/layout/newyorker/newyorker.h"
#include "ingest/source/names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- bid ------------------------------------------------------------------------------------------------------ */

static bool has_images(const mr_tree *t)
{
    mr_child child = {0};
    for (int i = 0; i < 64 && mr_tree_next(t, MR_NEWYORKER_IMAGES, strlen(MR_NEWYORKER_IMAGES), &child); i++)
        if (!child.is_dir && mr_name_is_image(child.name, child.name_len))
            return true;
    return false;
}

/* Whether the file's first row has "contest_number"; only the beginning of a long row is read. */
static mr_status is_contest(const mr_tree *t, uint32_t file, bool *found, mr_error *err)
{
    static const char key[] = "\"contest_number\"";
    uint64_t size = mr_source_entry(t->source, file)->size;
    size_t len = size < 64 << 10 ? (size_t)size : 64 << 10;
    char *head = malloc(len + 1);
    mr_status status =
        head ? mr_source_pread(t->source, file, head, len, 0, err) : mr_fail_memory(err, "looking at rows");
    if (status == MR_OK) {
        const char *end = memchr(head, '\n', len);
        *found = memmem(head, end ? (size_t)(end - head) : len, key, sizeof key - 1) != NULL;
    }
    free(head);
    return status == MR_SYSTEM ? status : MR_OK;
}

/* In any config, in any split: the first may be empty. */
static mr_status any_contest(const mr_tree *t, const mr_newyorker_configs *list, bool *found, mr_error *err)
{
    mr_status status = MR_OK;
    for (size_t i = 0; i < list->count; i++)
        for (size_t k = 0; k < MR_NEWYORKER_FILES && status == MR_OK && !*found; k++)
            if (list->items[i].files[k] != MR_NO_ENTRY)
                status = is_contest(t, list->items[i].files[k], found, err);
    return status;
}

static void bid_with(const mr_newyorker_configs *list, bool rows, bool images, mr_bid *bid)
{
    mr_buf names = {0};
    mr_newyorker_list_names(list, &names);
    bid->score = rows && images ? 95 : 60;
    if (rows)
        snprintf(bid->why, sizeof bid->why, "rows with contest_number in %.200s%s", mr_buf_text(&names),
                 images ? ", " MR_NEWYORKER_IMAGES "/" : "");
    else
        snprintf(bid->why, sizeof bid->why, MR_NEWYORKER_IMAGES "/ with images");
    if (!images)
        snprintf(bid->refusal, sizeof bid->refusal,
                 "New Yorker caption contest rows (%.100s) without their images: " MR_NEWYORKER_IMAGES
                 ".zip is missing; put it (or its folder) beside them",
                 mr_buf_text(&names));
    else if (!rows && list->count)
        snprintf(bid->refusal, sizeof bid->refusal,
                 "New Yorker contest images without captions: the files of %.100s "
                 "hold no row with contest_number",
                 mr_buf_text(&names));
    else if (!rows)
        snprintf(bid->refusal, sizeof bid->refusal,
                 "New Yorker contest images without captions: matching.zip (or "
                 "ranking.zip, explanation.zip ...) is missing; put it beside " MR_NEWYORKER_IMAGES);
    mr_buf_free(&names);
}

static mr_status newyorker_bid(const mr_tree *t, const mr_layout_options *o, mr_bid *bid, mr_error *err)
{
    (void)o;
    mr_newyorker_configs list = {0};
    bool images = has_images(t), rows = false;
    mr_status status = mr_newyorker_list_configs(t, &list, err);
    if (status == MR_OK)
        status = any_contest(t, &list, &rows, err);
    if (status == MR_OK && (rows || images))
        bid_with(&list, rows, images, bid);
    free(list.items);
    return status;
}

/* ---- meta ----------------------------------------------------------------------------------------------------- */

static mr_status newyorker_meta(const mr_tree *t, const mr_plan *plan, const mr_sample *sample, mr_buf *out,
                                mr_error *err)
{
    const mr_newyorker_state *st = plan->state;
    const mr_newyorker_row *row = &st->rows[sample->aux];
    mr_buf_add_text(out, ",\"columns\":");
    return mr_jsonl_copy(t->source, row->file, row->at, row->len, out, err);
}

static void free_state(void *p)
{
    mr_newyorker_state *st = p;
    if (st)
        free(st->rows);
    free(st);
}

const mr_layout mr_layout_newyorker = {
    .name = "newyorker",
    .title = "New Yorker caption contest: all_contest_images/ and CONFIG/{train,val,test}.jsonl (--config CONFIG)",
    .needs = MR_NEWYORKER_NEEDS,
    .options = MR_OPTION_LABEL | MR_OPTION_CONFIG,
    .bid = newyorker_bid,
    .plan = mr_newyorker_plan,
    .meta = newyorker_meta,
    .free_state = free_state,
};
