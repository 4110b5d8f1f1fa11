/* roboflow_coco.c - the COCO export: _annotations.coco.json beside the images of each split.
 * Invariant: a class number is the place of the category's id among those of all splits that count; the pseudo category
 * with id 0, which names the project and which no annotation uses, counts in none. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "coco_json.h"
#include "format.h"
#include "roboflow.h"

struct mr_rf_coco {
    mr_coco_file *files[MR_COUNT(((mr_split_dirs *)0)->items)];         /* by split folder; NULL: it has no json */
};

typedef struct category {
    int64_t id;
    const char *name;
    size_t file;
} category;

void mr_rf_coco_free(struct mr_rf_coco *coco)
{
    if (!coco)
        return;
    for (size_t i = 0; i < MR_COUNT(coco->files); i++)
        mr_coco_free(coco->files[i]);
    free(coco);
}

/* ---- categories ----------------------------------------------------------------------------------------------- */

static int by_id(const void *a, const void *b)
{
    const category *x = a, *y = b;
    return x->id != y->id ? (x->id > y->id) - (x->id < y->id) : (x->file > y->file) - (x->file < y->file);
}

static bool uses(const mr_coco_file *f, int64_t id)
{
    for (size_t i = 0; i < f->annotation_count; i++)
        if (f->annotations[i].category_id == id)
            return true;
    return false;
}

static const char *json_name(const mr_tree *t, const mr_coco_file *f)
{
    size_t len;
    return mr_tree_path(t, f->entry, &len);
}

static mr_status merge(const mr_tree *t, const struct mr_rf_coco *coco, category *list, size_t count, mr_plan *plan,
                       mr_error *err)
{
    bool zero_used = false, others = false;
    for (size_t i = 0; i < MR_COUNT(coco->files); i++)
        zero_used = zero_used || (coco->files[i] && uses(coco->files[i], 0));
    for (size_t i = 0; i < count; i++)
        others = others || list[i].id != 0;
    for (size_t i = 0; i < count; i++) {
        const category *c = &list[i], *before = i ? c - 1 : NULL;
        if (before && before->id == c->id && strcmp(before->name, c->name))
            return mr_fail(err, MR_BAD_DATA, "category %" PRId64 " is \"%s\" in %s and \"%s\" in %s", c->id,
                           before->name, json_name(t, coco->files[before->file]), c->name,
                           json_name(t, coco->files[c->file]));
        if (before && before->id == c->id)
            continue;
        if (c->id == 0 && others && !zero_used) {
            const char *name = json_name(t, coco->files[c->file]);
            mr_note_add(plan->notes, MR_NOTE_INFO, name, strlen(name), 0,
                        "category 0 (%s) is used by no annotation: it takes no label", c->name);
            continue;
        }
        mr_status status = mr_plan_class(plan, c->name, strlen(c->name), true, c->id, err);
        if (status != MR_OK)
            return status;
    }
    return MR_OK;
}

static mr_status list_categories(const mr_tree *t, const struct mr_rf_coco *coco, mr_plan *plan, mr_error *err)
{
    size_t count = 0, room = 0;
    category *list = NULL;
    mr_status status = MR_OK;
    for (size_t i = 0; i < MR_COUNT(coco->files); i++)
        for (size_t c = 0; coco->files[i] && c < coco->files[i]->category_count; c++) {
            if (!MR_GROW(list, count, room)) {
                status = mr_fail_memory(err, "listing the categories");
                goto done;
            }
            list[count++] = (category){coco->files[i]->categories[c].id, coco->files[i]->categories[c].name, i};
        }
    if (count)
        qsort(list, count, sizeof *list, by_id);
    status = merge(t, coco, list, count, plan, err);
done:
    free(list);
    return status;
}

/* Annotations whose category no split lists: kept in the meta, but no class of the manifest explains them. */
static void note_unknown(const mr_tree *t, const mr_coco_file *f, const mr_plan *plan)
{
    uint64_t unknown = 0;
    int64_t example = 0;
    for (size_t i = 0; i < f->annotation_count; i++) {
        int64_t id = f->annotations[i].category_id;
        size_t low = 0, high = plan->class_count;
        while (low < high) {
            size_t mid = low + (high - low) / 2;
            if (plan->classes[mid].id < id)
                low = mid + 1;
            else
                high = mid;
        }
        if (id != INT64_MIN && (low == plan->class_count || plan->classes[low].id != id) && !unknown++)
            example = id;
    }
    const char *name = json_name(t, f);
    if (unknown)
        mr_note_add(plan->notes, MR_NOTE_INFO, name, strlen(name), 0,
                    "%" PRIu64 " annotations of a category that is not listed, such as %" PRId64, unknown, example);
    if (f->orphans)
        mr_note_add(plan->notes, MR_NOTE_INFO, name, strlen(name), 0,
                    "%" PRIu64 " annotations of images that are not listed", f->orphans);
}

/* ---- images --------------------------------------------------------------------------------------------------- */

/* image_of[entry - dir->begin]: the number of the json's image that names the entry, plus 1. */
static void place_images(const mr_tree *t, const mr_split_dir *dir, const mr_coco_file *f, mr_plan *plan,
                         uint32_t *image_of)
{
    mr_buf buf = {0};
    for (size_t n = 0; n < f->image_count; n++) {
        const mr_coco_image *image = &f->images[n];
        uint32_t entry = mr_rf_find(t, dir, image->file_name, strlen(image->file_name));
        if (entry != MR_NO_ENTRY && !image_of[entry - dir->begin]) {
            image_of[entry - dir->begin] = (uint32_t)n + 1;
            continue;
        }
        const char *path = mr_rf_path(dir, image->file_name, &buf);
        if (entry == MR_NO_ENTRY)
            mr_note_add(plan->notes, MR_NOTE_MISSING, path, strlen(path), 0,
                        "image %" PRId64 " of %s, with %u annotations", image->id, json_name(t, f), image->count);
        else
            mr_note_add(plan->notes, MR_NOTE_COLLISION, path, strlen(path), 0,
                        "image %" PRId64 " of %s has the file of image %" PRId64 ", which counts", image->id,
                        json_name(t, f), f->images[image_of[entry - dir->begin] - 1].id);
    }
    plan->notes->failed = plan->notes->failed || buf.failed;
    mr_buf_free(&buf);
}

static uint64_t meta_length(const mr_coco_file *f, const mr_coco_image *image)
{
    uint64_t bytes = 32 + (uint64_t)image->len;
    for (uint32_t a = 0; a < image->count; a++)
        bytes += (uint64_t)f->annotations[image->first + a].len + 1;
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
        place_images(t, dir, f, plan, image_of);
    for (uint32_t e = dir->begin; e < dir->end && status == MR_OK; e++) {
        uint32_t n = image_of[e - dir->begin];
        mr_sample s = {.split = dir->split, .entry = e, .label = -1, .aux = (uint64_t)number << 32 | n};
        if (f && n) {
            const mr_coco_image *image = &f->images[n - 1];
            s.flags = image->count ? 0 : MR_FLAG_UNANNOTATED;
            s.meta_bytes = meta_length(f, image);
            mr_rf_group(t, &s);
            status = mr_plan_add(plan, &s, err);
        } else if (mr_folder_image(t, e, dir->len + 1)) {
            status = mr_folder_unlisted(t, o, plan, dir->split, e, "not listed in _annotations.coco.json", mr_rf_group,
                                        err);
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
        status = mr_coco_parse(t->source, entry, &coco->files[i], err);
        plan->used[entry] = 1;
    }
    if (status == MR_OK)
        status = list_categories(t, coco, plan, err);
    for (size_t i = 0; i < dirs->count && status == MR_OK; i++) {
        if (coco->files[i])
            note_unknown(t, coco->files[i], plan);
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
