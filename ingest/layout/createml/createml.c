/* createml.c - CreateML: a JSON file next to the images of each split.
 * Invariant: a meta holds the object of its image as the source wrote it, or a list of them where several name it. */
#include "ingest/layout/createml/createml.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/scope.h"
#include "ingest/source/names.h"
#include "ingest/layout/common/roboflow_files.h"

/* ---- bid --------------------------------------------------------------------------------------------------------- */

static mr_status createml_bid(const mr_tree *t, const mr_layout_options *o, mr_bid *bid, mr_error *err)
{
    MR_AUTO(mr_createml_jsons_free) mr_createml_jsons found = {0};
    mr_split_dirs dirs;
    size_t len = 0;
    mr_split_dirs_find(t, o, &dirs);
    for (size_t i = 0; i < dirs.count && !found.count; i++)
        MR_TRY(mr_createml_list(t, dirs.items[i].name, dirs.items[i].len, &found, err));
    bool in_splits = found.count > 0;
    if (!in_splits)
        MR_TRY(mr_createml_list(t, "", 0, &found, err));
    if (!found.count)
        return MR_OK;
    const char *path = mr_tree_path(t, found.entries[0], &len);
    bool known = mr_name_ends(path, len, MR_RF_CREATEML_JSON);
    bid->score = (known ? 83 : 73) + (in_splits ? 5 : 0);
    snprintf(bid->why, sizeof bid->why, "%.250s", path);
    return MR_OK;
}

/* ---- meta and objects -------------------------------------------------------------------------------------------- */

static mr_status createml_meta(const mr_tree *t, const mr_plan *plan, const mr_sample *sample, mr_buf *out,
                               mr_error *err)
{
    size_t count;
    const mr_createml_ref *refs = mr_createml_refs(plan->state, sample->aux, &count);
    if (!count)
        return MR_OK;
    mr_buf_add_text(out, ",\"createml\":");
    for (size_t i = 0; i < count; i++) {
        if (count > 1)
            mr_buf_add_text(out, i ? "," : "[");
        MR_TRY(mr_createml_ref_text(t->source, plan->state, &refs[i], out, err));
    }
    if (count > 1)
        mr_buf_add_text(out, "]");
    return mr_buf_status(out, err, "reading CreateML annotations");
}

static mr_status createml_objects(const mr_tree *t, const mr_plan *plan, const mr_sample *sample,
                                  const mr_stored *picture, mr_objects *out, mr_error *err)
{
    MR_AUTO(mr_buf_free) mr_buf text = {0};
    size_t count;
    const mr_createml_ref *refs = mr_createml_refs(plan->state, sample->aux, &count);
    (void)picture;
    out->known = count > 0;
    for (size_t i = 0; i < count; i++) {
        mr_buf_clear(&text);
        MR_TRY(mr_createml_ref_text(t->source, plan->state, &refs[i], &text, err));
        MR_TRY(mr_createml_objects(&text, plan, out, err));
    }
    return MR_OK;
}

static void free_state(void *state)
{
    mr_createml_state *st = state;
    if (!st)
        return;
    for (size_t i = 0; i < st->file_count; i++)
        mr_createml_free(st->files[i]);
    mr_texts_free(&st->texts);
    free(st->files);
    free(st->refs);
    free(st);
}

const mr_layout mr_layout_createml = {
    .name = "createml",
    .title = "CreateML: _annotations.createml.json beside the images",
    .needs = "_annotations.createml.json (or another json of that form) in train/, valid/, test/ or beside the images",
    .options = MR_OPTION_UNLISTED,
    .bid = createml_bid,
    .plan = mr_createml_plan,
    .meta = createml_meta,
    .objects = createml_objects,
    .free_state = free_state,
};
