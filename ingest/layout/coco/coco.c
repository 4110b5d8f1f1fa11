/* coco.c - COCO: annotations/KIND_SPLIT.json and a folder of images per split.
 * Invariant: meta holds the source's own text; no number passes through a double. */
#include "ingest/layout/coco/coco.h"
#include "base/scope.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "ingest/source/names.h"
#include "ingest/layout/common/coco_objects.h"
#include "ingest/layout/common/label_list.h"

/* ---- annotation files ----------------------------------------------------------------------------------------- */

static void free_state(void *state)
{
    mr_coco_state *st = state;
    if (!st)
        return;
    for (size_t i = 0; i < st->part_count; i++) {
        mr_coco_free(st->parts[i].file);
        free(st->parts[i].classes);
    }
    mr_coco_ids_free(&st->ids);
    free(st->parts);
    free(st->groups);
    free(st->where);
    mr_image_names_free(&st->images);
    free(st);
}

/* ---- bid ------------------------------------------------------------------------------------------------------ */

static bool has_image(const mr_tree *t, const char *dir)
{
    mr_child child = {0};
    for (int i = 0; i < 4096 && mr_tree_next(t, dir, strlen(dir), &child); i++)
        if (!child.is_dir && mr_name_is_image(child.name, child.name_len))
            return true;
    return false;
}

/* The folder of images that are in no split's folder, or NULL. */
static const char *flat_images(const mr_tree *t)
{
    static const char *const flat[] = {"images", "", "annotations", "data"};
    for (size_t i = 0; i < MR_COUNT(flat); i++)
        if (has_image(t, flat[i]))
            return *flat[i] ? flat[i] : "the same folder";
    return NULL;
}

/* File names of a JSON may have folders of their own. */
static bool has_image_anywhere(const mr_tree *t)
{
    for (uint32_t e = t->begin; e < t->end && e - t->begin < 65536; e++) {
        size_t len;
        const char *path = mr_tree_path(t, e, &len);
        if (mr_name_is_image(path, len))
            return true;
    }
    return false;
}

static void refuse_without_images(const mr_coco_part *part, const char *dir, const char *split, mr_bid *bid)
{
    snprintf(bid->refusal, sizeof bid->refusal,
             "COCO annotation files (%s_%.60s.json) without images: put the folder %.60s/ (or its zip) beside %s",
             mr_coco_kinds[part->kind], split, split, *dir ? "annotations/" : "them");
}

/* Files that are COCO's by what they hold, or that --annotations names. */
static void bid_signed(const mr_tree *t, const mr_layout_options *o, const mr_coco_state *st, mr_bid *bid)
{
    size_t len;
    const char *path = mr_tree_path(t, st->parts[0].entry, &len);
    mr_buf name = {0};
    mr_text_escape(&name, path, len);
    bid->score = o->annotation_count ? 100 : has_image_anywhere(t) ? 86 : 40;
    snprintf(bid->why, sizeof bid->why, "%.160s, %zu annotation file%s in total%s", mr_buf_text(&name), st->part_count,
             st->part_count == 1 ? "" : "s", o->annotation_count ? " (--annotations)" : "");
    mr_tree whole = mr_tree_at(t->source, "", 0);
    if (bid->score == 40 && has_image_anywhere(&whole)) {
        mr_buf_clear(&name);
        mr_source_quote(path - t->root_len, t->root_len + len, &name);
        snprintf(bid->refusal, sizeof bid->refusal,
                 "COCO annotation files without images in their folder: --annotations %.160s looks for the images in "
                 "all of the source",
                 mr_buf_text(&name));
    } else if (bid->score == 40) {
        snprintf(bid->refusal, sizeof bid->refusal,
                 "COCO annotation files (%.160s) without images: put the images beside them, in images/ or in the "
                 "folders that their file names begin with",
                 mr_buf_text(&name));
    }
    mr_buf_free(&name);
}

static void bid_parts(const mr_tree *t, const mr_coco_state *st, mr_bid *bid)
{
    char folder[300];
    const char *images = NULL, *flat = flat_images(t);
    const mr_coco_part *part = &st->parts[0];
    for (size_t i = 0; i < st->part_count && !images; i++) {
        part = &st->parts[i];
        images = mr_coco_folder(t, part->split, part->split_len, folder);
        if (!images)
            images = mr_coco_folder(t, part->split, mr_coco_without_year(part->split, part->split_len), folder);
        if (!images)
            images = flat;
    }
    if (!images && has_image_anywhere(t))
        images = "folders that its file names begin with";
    mr_buf name = {0};
    mr_text_escape(&name, part->split, part->split_len);
    bid->score = (images ? 90 : 60) - (*st->dir ? 0 : 5);
    snprintf(bid->why, sizeof bid->why, "%s%s%s_%.60s.json, %zu annotation file%s in total%s%.120s", st->dir,
             *st->dir ? "/" : "", mr_coco_kinds[part->kind], mr_buf_text(&name), st->part_count,
             st->part_count == 1 ? "" : "s", images ? ", images in " : ", no images", images ? images : "");
    if (!images)
        refuse_without_images(part, st->dir, mr_buf_text(&name), bid);
    mr_buf_free(&name);
}

static mr_status coco_bid(const mr_tree *t, const mr_layout_options *o, mr_bid *bid, mr_error *err)
{
    mr_coco_state *st = mr_alloc(1, sizeof *st);
    mr_status status = st ? mr_coco_list(t, o, st, err) : mr_fail_memory(err, "looking for annotation files");
    if (status != MR_OK) {
        free_state(st);
        return status;
    }
    if (st->named) {
        bid_parts(t, st, bid);
    } else if (st->part_count && !st->absent) {
        bid_signed(t, o, st, bid);
    } else if (st->results) {
        bid->score = 40;
        snprintf(bid->why, sizeof bid->why, "%zu COCO result files", st->results);
        snprintf(bid->refusal, sizeof bid->refusal,
                 "COCO result files (a model's predictions: bare lists, such as %.80s) hold neither images nor ground "
                 "truth; "
                 "ingest the annotation files and the images they were made from",
                 st->result);
    }
    free_state(st);
    return MR_OK;
}

/* ---- meta ----------------------------------------------------------------------------------------------------- */

static mr_status add_part(const mr_source *s, const mr_coco_part *part, uint32_t image, mr_buf *out, mr_error *err)
{
    mr_buf_printf(out, ",\"%s\":", mr_coco_kinds[part->kind]);
    if (image != MR_COCO_NONE)
        return mr_coco_annotations(s, part->file, image, out, err);
    mr_buf_add_text(out, "[]");
    return MR_OK;
}

static mr_status add_labels(const mr_plan *plan, const mr_sample *sample, mr_buf *out, mr_error *err)
{
    MR_AUTO(mr_buf_free) mr_buf list = {0};
    MR_TRY(mr_coco_labels(plan, sample->aux, &list, err));
    mr_label_list_write(plan, &list, out);
    return MR_OK;
}

static mr_status coco_meta(const mr_tree *t, const mr_plan *plan, const mr_sample *sample, mr_buf *out, mr_error *err)
{
    const mr_coco_state *st = plan->state;
    if (sample->aux == MR_COCO_UNLISTED)
        return MR_OK;
    const uint32_t *where = st->where + sample->aux;
    const mr_coco_group *g = &st->groups[*where++];
    const mr_coco_part *parts = &st->parts[g->first];
    size_t first = 0;
    while (first + 1 < g->count && where[first] == MR_COCO_NONE)
        first++;

    mr_buf_add_text(out, ",\"image\":");
    mr_status status = mr_coco_image_text(t->source, parts[first].file, where[first], out, err);
    for (size_t i = 0; i < g->count && status == MR_OK; i++)
        if (parts[i].kind != MR_COCO_IMAGE_INFO)
            status = add_part(t->source, &parts[i], where[i], out, err);
    if (status == MR_OK && sample->flags & MR_FLAG_MULTI_LABEL)
        status = add_labels(plan, sample, out, err);
    return status == MR_OK ? mr_buf_status(out, err, "writing COCO meta") : status;
}

/* A person's two annotations, in instances and in person_keypoints, become one object.  A segment of panoptic shows
 * what an object of instances or stuff shows, where these list the image and its category. */
static mr_status coco_objects(const mr_tree *t, const mr_plan *plan, const mr_sample *sample, const mr_stored *picture,
                              mr_objects *out, mr_error *err)
{
    const mr_coco_state *st = plan->state;
    (void)picture;
    if (sample->aux == MR_COCO_UNLISTED || st->labels)
        return MR_OK;
    const uint32_t *where = st->where + sample->aux;
    const mr_coco_group *g = &st->groups[*where++];
    const mr_coco_part *parts = &st->parts[g->first];
    const uint8_t *shown[MR_COCO_KINDS + 1] = {0};
    for (size_t i = 0, n = 0; i < g->count; i++)
        if (where[i] != MR_COCO_NONE && parts[i].classes)
            shown[n++] = parts[i].classes;
    for (size_t i = 0; i < g->count; i++)
        if (where[i] != MR_COCO_NONE && parts[i].kind != MR_COCO_CAPTIONS && parts[i].kind != MR_COCO_IMAGE_INFO)
            MR_TRY(mr_coco_objects(t->source, parts[i].file, where[i], plan,
                                   parts[i].kind == MR_COCO_PANOPTIC ? shown : NULL, out, err));
    return MR_OK;
}

const mr_layout mr_layout_coco = {
    .name = "coco",
    .title = "COCO: annotations/instances_SPLIT.json, captions_, person_keypoints_, panoptic_, stuff_, or any JSON of "
             "its form",
    .needs = MR_COCO_NEEDS,
    .options = MR_OPTION_UNLISTED | MR_OPTION_ANNOTATIONS,
    .bid = coco_bid,
    .plan = mr_coco_plan,
    .meta = coco_meta,
    .objects = coco_objects,
    .masks = mr_coco_masks,
    .free_state = free_state,
};
