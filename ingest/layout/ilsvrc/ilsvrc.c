/* ilsvrc.c - ImageNet as it is distributed: ILSVRC2012 from image-net.org and Kaggle, and Tiny ImageNet.
 * Invariant: a tree with class folders in all of its splits, and without ImageNet's tables, is left to imagenette,
 * which gives the same samples. */
#include "ingest/layout/ilsvrc/ilsvrc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/scope.h"
#include "base/text.h"

/* SCORE_NAMES: names alone, which other annotations may list, such as an export to COCO. */
enum { SCORE_TABLES = 92, SCORE_NAMES = 41, SCORE_FOLDERS = 25, FORCED = 50 };

/* "ILSVRC/Data/CLS-LOC/: 1000 class folders named by synset, LOC_val_solution.csv" */
static void say(const mr_ilsvrc_places *p, mr_bid *bid)
{
    size_t classes = p->classes > p->split_classes ? p->classes : p->split_classes;
    MR_AUTO(mr_buf_free) mr_buf text = {0};
    if (*p->data)
        mr_buf_printf(&text, "%s: ", p->data);
    size_t from = text.len;
    if (classes)
        mr_buf_printf(&text, "%zu class folder%s named by synset", classes, classes == 1 ? "" : "s");
    if (p->tiny || p->flat)
        mr_buf_printf(&text, "%s%s", text.len > from ? ", " : "",
                      p->tiny ? "the tables of Tiny ImageNet" : "images named ILSVRC2012_val_ or ILSVRC2012_test_");
    if (p->table)
        mr_buf_printf(&text, "%s%s", text.len > from ? ", " : "", p->table);
    snprintf(bid->why, sizeof bid->why, "%s", mr_buf_text(&text));
}

static mr_status ilsvrc_bid(const mr_tree *t, const mr_layout_options *o, mr_bid *bid, mr_error *err)
{
    mr_ilsvrc_places p;
    (void)err;
    mr_ilsvrc_look(t, o, &p);
    if (!p.classes && !p.split_classes && !p.flat)
        return MR_OK;
    bool certain = (p.flat && (p.classes || p.split_classes)) || (p.tiny && p.split_classes) || p.table;
    bid->forced = FORCED;
    if (certain)
        bid->score = SCORE_TABLES;
    else if (p.flat)
        bid->score = SCORE_NAMES;
    else if (p.classes && p.own_names && !p.others && !p.split_classes)
        bid->score = SCORE_FOLDERS;
    say(&p, bid);
    return MR_OK;
}

static void add_text(mr_buf *out, const char *text, size_t len)
{
    if (mr_utf8_valid(text, len))
        mr_json_add_string(out, text, len);
    else
        mr_json_add_path(out, text, len);
}

static mr_status ilsvrc_meta(const mr_tree *t, const mr_plan *plan, const mr_sample *sample, mr_buf *out, mr_error *err)
{
    const mr_ilsvrc_state *st = plan->state;
    const char *synset = sample->label < 0 ? "" : plan->classes[sample->label].name;
    const mr_ilsvrc_synset *words = mr_ilsvrc_words(st, synset, strlen(synset));
    const mr_ilsvrc_row *row = sample->aux ? &st->rows[sample->aux - 1] : NULL;
    bool has_words = words && words->words_len, has_boxes = row && row->boxes_len;
    (void)t;
    if (!has_words && !has_boxes)
        return MR_OK;
    mr_buf_add_text(out, ",\"ilsvrc\":{");
    if (has_words) {
        mr_buf_add_text(out, "\"words\":");
        add_text(out, words->words, words->words_len);
    }
    if (has_boxes) {
        mr_buf_add_text(out, has_words ? ",\"boxes\":" : "\"boxes\":");
        add_text(out, row->boxes, row->boxes_len);
    }
    mr_buf_add_text(out, "}");
    return mr_buf_status(out, err, "writing a sample's meta");
}

static mr_status ilsvrc_objects(const mr_tree *t, const mr_plan *plan, const mr_sample *sample,
                                const mr_stored *picture, mr_objects *out, mr_error *err)
{
    const mr_ilsvrc_state *st = plan->state;
    const mr_ilsvrc_row *row = sample->aux ? &st->rows[sample->aux - 1] : NULL;
    (void)t, (void)picture;
    if (!row || !row->boxes_len)
        return MR_OK;
    out->known = true;
    mr_ilsvrc_boxes(row, plan, sample->label, out);
    return out->failed ? mr_fail_memory(err, "reading boxes") : MR_OK;
}

static void free_state(void *state)
{
    mr_ilsvrc_state *st = state;
    for (size_t i = 0; i < st->text_count; i++)
        mr_buf_free(&st->texts[i]);
    free(st->texts);
    free(st->rows);
    free(st->synsets);
    free(st->by_id);
    free(st);
}

const mr_layout mr_layout_ilsvrc = {
    .name = "ilsvrc",
    .title = "ImageNet: ILSVRC2012 of image-net.org and Kaggle, and Tiny ImageNet",
    .needs = MR_ILSVRC_NEEDS,
    .options = MR_OPTION_UNLISTED,
    .bid = ilsvrc_bid,
    .plan = mr_ilsvrc_plan,
    .meta = ilsvrc_meta,
    .objects = ilsvrc_objects,
    .free_state = free_state,
};
