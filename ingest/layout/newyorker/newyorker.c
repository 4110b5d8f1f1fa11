/* newyorker.c - the New Yorker caption contest corpus as the hub's v1.0 files.
 * Invariant: a row's text goes into meta verbatim, so all its columns are kept as written.
 *
 *      all_contest_images/497.jpeg ...     matching/train.jsonl val.jsonl test.jsonl     ranking_1/train.jsonl ...
 *                                          a train.jsonl in the root itself is the config "default"                */
#include "ingest/layout/newyorker/newyorker.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

const char *const mr_newyorker_stems[MR_NEWYORKER_FILES] = {"train", "val", "validation", "test"};

/* ---- configs -------------------------------------------------------------------------------------------------- */

typedef struct configs {
    mr_newyorker_config *items;
    size_t count, room;
} configs;

static mr_status add_config(const mr_tree *t, const char *dir, size_t len, configs *list, mr_error *err)
{
    mr_newyorker_config c = {.name = "default"};
    bool any = false;
    char path[sizeof c.name + 32];
    if (len >= sizeof c.name)
        return MR_OK;
    if (len)
        snprintf(c.name, sizeof c.name, "%.*s", (int)len, dir);
    for (size_t i = 0; i < MR_NEWYORKER_FILES; i++) {
        int n = snprintf(path, sizeof path, "%s%s%s.jsonl", len ? c.name : "", len ? "/" : "", mr_newyorker_stems[i]);
        c.files[i] = mr_tree_find(t, path, (size_t)n);
        any = any || c.files[i] != MR_NO_ENTRY;
    }
    if (!any)
        return MR_OK;
    if (!MR_GROW(list->items, list->count, list->room))
        return mr_fail_memory(err, "listing the configs");
    list->items[list->count++] = c;
    return MR_OK;
}

static mr_status list_configs(const mr_tree *t, configs *list, mr_error *err)
{
    mr_child child = {0};
    mr_status status = add_config(t, "", 0, list, err);
    while (status == MR_OK && list->count < 1000 && mr_tree_next(t, "", 0, &child))
        if (child.is_dir)
            status = add_config(t, child.name, child.name_len, list, err);
    return status;
}

static void list_names(const configs *list, mr_buf *out)
{
    for (size_t i = 0; i < list->count; i++) {
        mr_buf_add_text(out, i ? ", " : "");
        mr_text_escape(out, list->items[i].name, strlen(list->items[i].name));
    }
}

mr_status mr_newyorker_choose(const mr_tree *t, const char *wanted, mr_newyorker_config *out, mr_error *err)
{
    configs list = {0};
    mr_buf names = {0};
    const mr_newyorker_config *found = NULL;
    mr_status status = list_configs(t, &list, err);
    list_names(&list, &names);
    for (size_t i = 0; i < list.count; i++)
        if (wanted ? !strcmp(list.items[i].name, wanted) : list.count == 1)
            found = &list.items[i];
    if (status == MR_OK && !list.count)
        status =
            mr_fail(err, MR_BAD_DATA, "no train.jsonl, val.jsonl or test.jsonl: needs %s", mr_layout_newyorker.needs);
    else if (status == MR_OK && !found && wanted)
        status = mr_fail(err, MR_MISUSE, "--config %s does not exist; choose one of: %s", wanted, mr_buf_text(&names));
    else if (status == MR_OK && !found)
        status = mr_fail(err, MR_MISUSE, "the source holds %zu configs; choose one with --config: %s", list.count,
                         mr_buf_text(&names));
    if (status == MR_OK)
        *out = *found;
    mr_buf_free(&names);
    free(list.items);
    return status;
}

/* ---- bid ------------------------------------------------------------------------------------------------------ */

static bool has_images(const mr_tree *t)
{
    mr_child child = {0};
    for (int i = 0; i < 64 && mr_tree_next(t, MR_NEWYORKER_IMAGES, strlen(MR_NEWYORKER_IMAGES), &child); i++)
        if (!child.is_dir && mr_name_is_image(child.name, child.name_len))
            return true;
    return false;
}

/* Whether the file's first row has "contest_number"; of a long row only the beginning is read. */
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
static mr_status any_contest(const mr_tree *t, const configs *list, bool *found, mr_error *err)
{
    mr_status status = MR_OK;
    for (size_t i = 0; i < list->count; i++)
        for (size_t k = 0; k < MR_NEWYORKER_FILES && status == MR_OK && !*found; k++)
            if (list->items[i].files[k] != MR_NO_ENTRY)
                status = is_contest(t, list->items[i].files[k], found, err);
    return status;
}

static void bid_with(const configs *list, bool rows, bool images, mr_bid *bid)
{
    mr_buf names = {0};
    list_names(list, &names);
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
    configs list = {0};
    bool images = has_images(t), rows = false;
    mr_status status = list_configs(t, &list, err);
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
    .needs = "all_contest_images/NUMBER.jpeg (or all_contest_images.zip) and train.jsonl, val.jsonl, test.jsonl in one "
             "folder per config (or matching.zip ...), rows with contest_number",
    .options = MR_OPTION_LABEL | MR_OPTION_CONFIG,
    .bid = newyorker_bid,
    .plan = mr_newyorker_plan,
    .meta = newyorker_meta,
    .free_state = free_state,
};
