/* coco.c - the COCO export: _annotations.coco.json beside the images of each split.
 * Invariant: a class number is the rank of the category's id among those of all splits; the pseudo category with id 0,
 * which names the project and which no annotation uses, does not count. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/scope.h"
#include "shards/manifest/format.h"
#include "ingest/layout/common/coco_classes.h"
#include "ingest/layout/common/coco_objects.h"
#include "ingest/layout/roboflow/roboflow.h"

struct mr_rf_coco {
    mr_coco_ids ids;
    mr_coco_file *files[MR_COUNT(((mr_split_dirs *)0)->items)]; /* by split folder; NULL: it has no JSON */
};

void mr_rf_coco_free(struct mr_rf_coco *coco)
{
    if (!coco)
        return;
    for (size_t i = 0; i < MR_COUNT(coco->files); i++)
        mr_coco_free(coco->files[i]);
    mr_coco_ids_free(&coco->ids);
    free(coco);
}

/* ---- images --------------------------------------------------------------------------------------------------- */

static void note_unplaced(const mr_tree *t, const mr_split_dir *dir, const mr_coco_file *f, size_t n,
                          const mr_name_match *found, const uint32_t *image_of, mr_plan *plan)
{
    MR_AUTO(mr_buf_free) mr_buf buf = {0};
    const mr_coco_image *image = &f->images[n];
    const char *path = mr_rf_path(dir, image->file_name, &buf), *json = mr_coco_name(t, f);
    char id[120], other[120];
    size_t len;
    mr_coco_id_show(f->ids, image->id, id);
    if (found->entry == MR_NO_ENTRY)
        mr_note_add(plan->notes, MR_NOTE_MISSING, path, strlen(path), 0, "image %s of %s (annotations: %u)", id, json,
                    image->count);
    else if (found->rival != MR_NO_ENTRY)
        mr_note_add(plan->notes, MR_NOTE_MISSING, path, strlen(path), 0, "image %s of %s may be %s or %s", id, json,
                    mr_tree_path(t, found->entry, &len), mr_tree_path(t, found->rival, &len));
    else
        mr_note_add(plan->notes, MR_NOTE_COLLISION, path, strlen(path), 0,
                    "image %s of %s has the same file as image %s, which is used", id, json,
                    mr_coco_id_show(f->ids, f->images[image_of[found->entry - dir->begin] - 1].id, other));
    plan->notes->failed = plan->notes->failed || buf.failed;
}

/* image_of[entry - dir->begin]: the number of the listed image that names the entry, plus 1. */
static mr_status place_images(const mr_tree *t, const mr_split_dir *dir, const mr_coco_file *f, mr_plan *plan,
                              uint32_t *image_of, mr_error *err)
{
    MR_AUTO(mr_image_names_free) mr_image_names names = {0};
    for (size_t n = 0; n < f->image_count; n++) {
        const mr_coco_image *image = &f->images[n];
        mr_name_match found;
        MR_TRY(mr_rf_image(t, dir, image->file_name, image->name_len, &names, &found, err));
        bool one = found.entry != MR_NO_ENTRY && found.rival == MR_NO_ENTRY;
        const mr_coco_bad *why = image->bad ? &f->bads[image->bad - 1] : NULL;
        bool own = why && why->at > image->at && why->at <= image->at + image->len; /* its name may be what is bad */
        if (why && (one || own))
            mr_coco_reject(t, f, why, one ? found.entry : MR_NO_ENTRY, plan);
        else if (one && !image_of[found.entry - dir->begin])
            image_of[found.entry - dir->begin] = (uint32_t)n + 1;
        else
            note_unplaced(t, dir, f, n, &found, image_of, plan);
    }
    return MR_OK;
}

static uint64_t meta_length(const mr_coco_file *f, const mr_coco_image *image)
{
    uint64_t bytes = 32 + (uint64_t)image->len;
    for (uint32_t a = 0; a < image->count; a++)
        bytes += 2 * (uint64_t)f->annotations[image->first + a].len + 1; /* and in "objects" again */
    return bytes;
}

static mr_status add_samples(const mr_tree *t, const mr_layout_options *o, mr_plan *plan, const mr_split_dir *dir,
                             const mr_coco_file *f, size_t number, mr_error *err)
{
    mr_status status = MR_OK;
    uint32_t *image_of = mr_alloc(dir->end - dir->begin, sizeof *image_of);
    if (!image_of)
        return mr_fail_memory(err, "listing the samples");
    if (f)
        status = place_images(t, dir, f, plan, image_of, err);
    for (uint32_t e = dir->begin; e < dir->end && status == MR_OK; e++) {
        uint32_t n = image_of[e - dir->begin];
        mr_sample s = {.split = dir->split, .entry = e, .label = -1, .aux = (uint64_t)number << 32 | n};
        if (f && n) {
            const mr_coco_image *image = &f->images[n - 1];
            s.flags = image->count ? 0 : MR_FLAG_UNANNOTATED;
            s.meta_bytes = meta_length(f, image);
            mr_rf_group(t, &s);
            status = mr_plan_add(plan, &s, err);
        } else if (!plan->used[e] && mr_folder_image(t, e, dir->len + 1)) {
            status =
                mr_folder_unlisted(t, o, plan, dir->split, e, "not listed in _annotations.coco.json", mr_rf_group, err);
        }
    }
    free(image_of);
    return status;
}

mr_status mr_rf_coco_plan(const mr_tree *t, const mr_layout_options *o, mr_plan *plan, mr_split_dirs *dirs,
                          mr_rf_state *state, mr_error *err)
{
    struct mr_rf_coco *coco = state->coco = mr_alloc(1, sizeof *coco);
    mr_status status = coco ? MR_OK : mr_fail_memory(err, "reading annotations");
    for (size_t i = 0; i < dirs->count && status == MR_OK; i++) {
        uint32_t entry = mr_rf_find(t, &dirs->items[i], MR_RF_COCO_JSON, strlen(MR_RF_COCO_JSON));
        if (entry == MR_NO_ENTRY)
            continue;
        status = mr_coco_parse(t->source, entry, &coco->ids, &coco->files[i], err);
        if (dirs->count > 1)
            status = mr_source_dispensable(t->source, entry, "ingests without the images that it lists", status, err);
        plan->used[entry] = 1;
    }
    if (status == MR_OK)
        status = mr_coco_classes(t, coco->files, MR_COUNT(coco->files), true, plan, err);
    if (status == MR_OK)
        status = mr_coco_licences(coco->files, MR_COUNT(coco->files), plan, err);
    for (size_t i = 0; i < dirs->count && status == MR_OK; i++) {
        if (coco->files[i])
            mr_coco_note_unknown(t, coco->files[i], plan);
        status = add_samples(t, o, plan, &dirs->items[i], coco->files[i], i, err);
    }
    return status;
}

/* ---- meta ----------------------------------------------------------------------------------------------------- */

mr_status mr_rf_coco_meta(const mr_tree *t, const mr_plan *plan, const mr_sample *sample, mr_buf *out, mr_error *err)
{
    const struct mr_rf_coco *coco = ((const mr_rf_state *)plan->state)->coco;
    const mr_coco_file *f = coco->files[sample->aux >> 32];
    uint32_t n = (uint32_t)sample->aux;
    if (!n)
        return MR_OK;
    mr_buf_add_text(out, ",\"image\":");
    mr_status status = mr_coco_image_text(t->source, f, n - 1, out, err);
    mr_buf_add_text(out, ",\"annotations\":");
    return status == MR_OK ? mr_coco_annotations(t->source, f, n - 1, out, err) : status;
}

mr_status mr_rf_coco_objects(const mr_tree *t, const mr_plan *plan, const mr_sample *sample, mr_objects *out,
                             mr_error *err)
{
    const struct mr_rf_coco *coco = ((const mr_rf_state *)plan->state)->coco;
    uint32_t n = (uint32_t)sample->aux;
    return n ? mr_coco_objects(t->source, coco->files[sample->aux >> 32], n - 1, plan, NULL, out, err) : MR_OK;
}
