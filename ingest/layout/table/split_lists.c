/* split_lists.c - gives samples the splits whose lists name them.
 *
 *      Food-101   meta/train.txt      apple_pie/1005649            images/apple_pie/1005649.jpg
 *      DTD        labels/train1.txt   banded/banded_0002.jpg       images/banded/banded_0002.jpg
 *      Places365  places365_val.txt   Places365_val_00000001.jpg 165 */
#include "ingest/layout/table/split_lists.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/scope.h"
#include "base/text.h"
#include "ingest/layout/folder_names.h"
#include "ingest/layout/table/table.h"
#include "ingest/tables/lines.h"

#define NOT_LISTED 0U
#define LEFT_OUT   UINT32_MAX

enum { LIST_MAX = 1 << 30 };

typedef struct lister {
    const mr_tree *tree;
    const mr_layout_options *options;
    mr_plan *plan;
    mr_picture_index index;
    uint32_t *split_of; /* by place in the index: 1 + the split, NOT_LISTED or LEFT_OUT */
    uint32_t *list_of;  /* by place in the index: the list that named it first */
    size_t *sample_of;  /* by place in the index: 1 + its first sample; 0: none so far */
    mr_plan_split *old; /* the splits of the layout */
    mr_buf cell;
    mr_error *err;
} lister;

static void free_lister(lister *l)
{
    mr_picture_index_free(&l->index);
    free(l->split_of);
    free(l->list_of);
    free(l->sample_of);
    free(l->old);
    mr_buf_free(&l->cell);
}

/* ---- lines ----------------------------------------------------------------------------------------------------- */

static mr_picture_match find(lister *l, const char *text, size_t len, uint32_t found[2])
{
    mr_buf_clear(&l->cell);
    mr_buf_add(&l->cell, text, len);
    const char *cell = mr_buf_text(&l->cell);
    return l->cell.failed || strlen(cell) != len ? MR_PICTURE_NONE : mr_picture_find(&l->index, cell, NULL, found);
}

/* Names may contain spaces, so the whole line comes first. */
static mr_picture_match find_line(lister *l, const mr_lines *line, uint32_t found[2])
{
    size_t first = mr_lines_word(line);
    mr_picture_match match = find(l, line->line, line->len, found);
    return match == MR_PICTURE_NONE && first && first < line->len ? find(l, line->line, first, found) : match;
}

static mr_status take_image(lister *l, uint32_t list, uint32_t split, const mr_lines *line, uint32_t image)
{
    const mr_split_map *lists = l->options->lists;
    if (l->split_of[image] == NOT_LISTED) {
        l->split_of[image] = split;
        l->list_of[image] = list;
    }
    if (l->split_of[image] == split)
        return MR_OK;
    const char *path = mr_source_entry(l->tree->source, l->index.entries[image])->path;
    return mr_fail(l->err, MR_BAD_DATA,
                   "%s: line %" PRIu64 ": %.300s is in %s too; an image has one split: give lists that share no image",
                   lists[list].from, line->number, path, lists[l->list_of[image]].from);
}

static mr_status several(const lister *l, const char *list, const mr_lines *line, const uint32_t found[2])
{
    const mr_source *s = l->tree->source;
    return mr_fail(l->err, MR_BAD_DATA, "%s: line %" PRIu64 ": %.*s may be %.300s or %.300s; write the path there",
                   list, line->number, line->len > 200 ? 200 : (int)line->len, line->line,
                   mr_source_entry(s, l->index.entries[found[0]])->path,
                   mr_source_entry(s, l->index.entries[found[1]])->path);
}

static mr_status take_lines(lister *l, uint32_t list, uint32_t split, const mr_buf *text)
{
    const char *name = l->options->lists[list].from;
    size_t images = 0;
    uint32_t found[2];
    for (mr_lines line = mr_lines_of(text->data, text->len); mr_lines_next(&line);) {
        mr_picture_match match = find_line(l, &line, found);
        if (match == MR_PICTURE_SEVERAL)
            return several(l, name, &line, found);
        if (match == MR_PICTURE_ONE)
            MR_TRY(take_image(l, list, split, &line, found[0]));
        else
            mr_note_add(l->plan->notes, MR_NOTE_MISSING, line.line, line.len, 0,
                        "line %" PRIu64 " of %s: no such image", line.number, name);
        images += match == MR_PICTURE_ONE;
    }
    if (!images)
        return mr_fail(l->err, MR_BAD_DATA, "--split-list %s: it names none of the images of the dataset", name);
    return mr_buf_status(&l->cell, l->err, "reading lists of splits");
}

static mr_status read_list(lister *l, uint32_t list)
{
    const mr_split_map *map = &l->options->lists[list];
    const mr_tree whole = mr_tree_at(l->tree->source, "", 0);
    MR_AUTO(mr_buf_free) mr_buf text = {0};
    uint32_t entry = mr_tree_find(&whole, map->from, strlen(map->from)), split = LEFT_OUT;
    if (entry == MR_NO_ENTRY)
        return mr_fail(l->err, MR_MISUSE, "--split-list %s=%s: the source has no such file", map->from, map->to);
    if (mr_source_entry(whole.source, entry)->size > LIST_MAX)
        return mr_fail(l->err, MR_BAD_DATA, "%s: longer than 1 GiB, the limit for an image list", map->from);
    MR_TRY(mr_source_read(whole.source, entry, &text, l->err));
    if (*map->to) {
        MR_TRY(mr_plan_split_named(l->plan, map->to, map->from, &split, l->err));
        split++;
    }
    l->plan->used[entry] = 1;
    return take_lines(l, list, split, &text);
}

/* ---- splits ---------------------------------------------------------------------------------------------------- */

static mr_status read_lists(lister *l)
{
    for (size_t rank = 0; rank <= 3; rank++)
        for (size_t i = 0; i < l->options->list_count; i++)
            if (mr_split_rank(l->options->lists[i].to) == rank)
                MR_TRY(read_list(l, (uint32_t)i));
    return MR_OK;
}

/* A sample that no list names. */
static mr_status settle_unlisted(lister *l, mr_sample *s, bool *kept)
{
    size_t len;
    const char *path = mr_tree_path(l->tree, s->entry, &len);
    const char *name = l->old[s->split].name;
    *kept = l->options->keep_unlisted;
    mr_note_add(l->plan->notes, MR_NOTE_UNLISTED, path, len, mr_source_entry(l->tree->source, s->entry)->size,
                *kept ? "in none of the lists: kept in split %s" : "in none of the lists: left out of split %s", name);
    if (!*kept) {
        l->plan->used[s->entry] = MR_USE_NONE;
        return MR_OK;
    }
    return mr_plan_split_named(l->plan, name, NULL, &s->split, l->err);
}

/* Whether the layout had the sample in two of its splits, as lists of VOC may; `count`: where it would be. */
static bool is_again(lister *l, size_t place, const mr_sample *s, size_t count)
{
    size_t first = l->sample_of[place];
    if (!first)
        l->sample_of[place] = count + 1;
    return first && l->plan->samples[first - 1].aux == s->aux;
}

static mr_status settle_samples(lister *l)
{
    mr_plan *plan = l->plan;
    size_t count = 0;
    for (size_t i = 0; i < plan->sample_count; i++) {
        mr_sample s = plan->samples[i];
        size_t place = mr_picture_place(&l->index, s.entry);
        uint32_t split = place < l->index.count ? l->split_of[place] : NOT_LISTED;
        bool kept = split != LEFT_OUT && (split == NOT_LISTED || !is_again(l, place, &s, count));
        if (split == LEFT_OUT)
            plan->used[s.entry] = MR_USE_LEFT_OUT;
        else if (split == NOT_LISTED)
            MR_TRY(settle_unlisted(l, &s, &kept));
        else
            s.split = split - 1;
        if (kept)
            plan->samples[count++] = s;
    }
    plan->sample_count = count;
    return MR_OK;
}

mr_status mr_split_lists_apply(const mr_tree *t, const mr_layout_options *o, mr_plan *plan, mr_error *err)
{
    MR_AUTO(free_lister) lister l = {.tree = t, .options = o, .plan = plan, .err = err};
    if (!o->list_count)
        return MR_OK;
    MR_TRY(mr_picture_index_make(t, &l.index, err));
    l.split_of = mr_alloc(l.index.count, sizeof *l.split_of);
    l.list_of = mr_alloc(l.index.count, sizeof *l.list_of);
    l.sample_of = mr_alloc(l.index.count, sizeof *l.sample_of);
    l.old = mr_alloc(plan->split_count, sizeof *l.old);
    if (!l.split_of || !l.list_of || !l.sample_of || !l.old)
        return mr_fail_memory(err, "reading lists of splits");
    for (size_t i = 0; i < plan->split_count; i++)
        l.old[i] = plan->splits[i];
    plan->split_count = 0;
    MR_TRY(read_lists(&l));
    return settle_samples(&l);
}
