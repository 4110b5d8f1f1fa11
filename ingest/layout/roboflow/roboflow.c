/* roboflow.c - the exports of Roboflow, each recognised by its marks; those that are not supported are refused by name.
 * Invariant: however many times an image was augmented, all its copies are in one group (the stem before ".rf.").
 *
 *      README.roboflow.txt  README.dataset.txt         train/ valid/ test/, each optional
 *      folder: SPLIT/CLASS/IMAGE       multi-class: SPLIT/_classes.csv         coco: SPLIT/_annotations.coco.json
 *      clip: as folder, and SPLIT/_tokenization.txt with a caption per class                                         */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ingest/layout/roboflow/roboflow.h"
#include "base/scope.h"

/* ---- bids ----------------------------------------------------------------------------------------------------- */

static void refuse(const mr_rf_marks *m, mr_bid *bid)
{
    const char *format = m->format;
    bid->score = m->layout ? 10 : 80;
    if (m->layout)
        snprintf(bid->refusal, sizeof bid->refusal, "this is a Roboflow %s export (%s): --layout %s reads it", format,
                 m->seen, m->layout);
    else if (!strcmp(format, "unknown"))
        snprintf(bid->refusal, sizeof bid->refusal,
                 "this is a Roboflow export of an unknown kind (%s): export it again as 'COCO' "
                 "(boxes), or 'Folder Structure' / 'Multi-Label Classification' / 'OpenAI CLIP' (labels)",
                 m->seen);
    else
        snprintf(bid->refusal, sizeof bid->refusal,
                 "this is a Roboflow %s export (%s), which millrace does not read: export it again as 'COCO' (boxes), "
                 "or 'Folder Structure' / 'Multi-Label Classification' / 'OpenAI CLIP' (labels)",
                 format, m->seen);
    snprintf(bid->why, sizeof bid->why, "%s", m->seen);
}

static mr_status roboflow_bid(const mr_tree *t, const mr_layout_options *o, mr_bid *bid, mr_error *err)
{
    mr_rf_marks m;
    (void)err;
    mr_rf_look(t, o, &m);
    if (m.kind == MR_RF_NONE)
        return MR_OK;
    if (m.kind == MR_RF_FOREIGN) {
        refuse(&m, bid);
        return MR_OK;
    }
    if (m.kind == MR_RF_FOLDER)
        bid->score = m.readme || m.names ? 70 + 15 * m.readme + 10 * m.names : 60;
    else
        bid->score = 90 + 5 * (m.readme || m.names);
    snprintf(bid->why, sizeof bid->why, "%s%s%s%s", m.seen, m.readme ? ", a Roboflow README" : "",
             m.names ? ", names with .rf." : "", m.valid ? ", a split folder named valid" : "");
    return MR_OK;
}

/* ---- plan and meta -------------------------------------------------------------------------------------------- */

static mr_status folder_plan(const mr_tree *t, const mr_layout_options *o, mr_plan *plan, mr_split_dirs *dirs,
                             mr_rf_state *state, mr_error *err)
{
    (void)state;
    return mr_folder_plan(t, o, plan, dirs, mr_rf_group, err);
}

static const struct variant {
    const char *name;
    mr_rf_plan_fn *plan;
    mr_rf_meta_fn *meta; /* NULL: nothing to add */
} variants[] = {
    [MR_RF_FOLDER] = {"folder", folder_plan, NULL},
    [MR_RF_MULTI_CLASS] = {"multi-class", mr_rf_table_plan, mr_rf_table_meta},
    [MR_RF_COCO] = {"coco", mr_rf_coco_plan, mr_rf_coco_meta},
    [MR_RF_CLIP] = {"clip", mr_rf_clip_plan, mr_rf_clip_meta},
};

static mr_status roboflow_plan(const mr_tree *t, const mr_layout_options *o, mr_plan *plan, mr_error *err)
{
    mr_rf_marks m;
    mr_bid bid = {0};
    mr_rf_look(t, o, &m);
    if (m.kind == MR_RF_FOREIGN) {
        refuse(&m, &bid);
        return mr_fail(err, MR_BAD_DATA, "%s", bid.refusal);
    }
    if (m.kind == MR_RF_NONE && !m.dirs.count)
        return mr_fail(err, MR_BAD_DATA, "no folder train, valid or test found: this is not a Roboflow export");
    mr_rf_state *state = mr_alloc(1, sizeof *state);
    if (!state)
        return mr_fail_memory(err, "reading a Roboflow export");
    plan->state = state;
    state->kind = m.kind ? m.kind : MR_RF_FOLDER; /* forced by --layout: class folders are the default */
    plan->variant = variants[state->kind].name;
    MR_TRY(mr_split_dirs_open(t, o, plan, &m.dirs, err));
    MR_TRY(mr_rf_readmes(t, plan, err));
    return variants[state->kind].plan(t, o, plan, &m.dirs, state, err);
}

static mr_status roboflow_meta(const mr_tree *t, const mr_plan *plan, const mr_sample *sample, mr_buf *out,
                               mr_error *err)
{
    const mr_rf_state *state = plan->state;
    mr_rf_meta_fn *meta = variants[state->kind].meta;
    return meta ? meta(t, plan, sample, out, err) : MR_OK;
}

static mr_status roboflow_objects(const mr_tree *t, const mr_plan *plan, const mr_sample *sample,
                                  const mr_stored *picture, mr_objects *out, mr_error *err)
{
    const mr_rf_state *state = plan->state;
    (void)picture;
    return state->kind == MR_RF_COCO ? mr_rf_coco_objects(t, plan, sample, out, err) : MR_OK;
}

static void roboflow_free(void *p)
{
    mr_rf_state *state = p;
    if (!state)
        return;
    mr_rf_table_free(state->table);
    mr_rf_coco_free(state->coco);
    mr_rf_clip_free(state->clip);
    free(state);
}

const mr_layout mr_layout_roboflow = {
    .name = "roboflow",
    .title = "Roboflow exports: folder, multi-class, COCO, CLIP",
    .needs = "train/, valid/ or test/ with class folders, _classes.csv, _annotations.coco.json or _tokenization.txt",
    .options = MR_OPTION_UNLISTED | MR_OPTION_DEPTH,
    .bid = roboflow_bid,
    .plan = roboflow_plan,
    .meta = roboflow_meta,
    .objects = roboflow_objects,
    .free_state = roboflow_free,
};
