/* coco_classes.c - the categories of a dataset's COCO annotation files as its classes.
 * Invariant: classes are sorted by id, so a class is found by binary search. */
#include "ingest/layout/common/coco_classes.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

typedef struct category {
    int64_t id;
    const char *name;
    const mr_coco_file *file;
    size_t order; /* order in the file */
} category;

static int by_id(const void *a, const void *b)
{
    const category *x = a, *y = b;
    return x->id != y->id ? (x->id > y->id) - (x->id < y->id) : (x->order > y->order) - (x->order < y->order);
}

static bool uses(const mr_coco_file *f, int64_t id)
{
    for (size_t i = 0; i < f->annotation_count; i++)
        if (f->annotations[i].category_id == id)
            return true;
    return false;
}

const char *mr_coco_name(const mr_tree *t, const mr_coco_file *f)
{
    size_t len;
    return mr_tree_path(t, f->entry, &len);
}

static mr_status add_classes(const mr_tree *t, const category *list, size_t count, bool no_zero, mr_plan *plan,
                             mr_error *err)
{
    for (size_t i = 0; i < count; i++) {
        const category *c = &list[i], *before = i ? c - 1 : NULL;
        char id[120];
        if (before && before->id == c->id && strcmp(before->name, c->name)) {
            mr_fail(err, MR_BAD_DATA,
                    "category id %s is \"%.100s\" in %s and \"%.100s\" in %s: the annotation "
                    "files do not belong together",
                    mr_coco_id_show(c->file->ids, c->id, id), before->name, mr_coco_name(t, before->file), c->name,
                    mr_coco_name(t, c->file));
            return mr_source_dispensable(t->source, c->file->entry, "ingests without it", MR_BAD_DATA, err);
        }
        if (before && before->id == c->id)
            continue;
        if (c->id == 0 && no_zero) {
            const char *name = mr_coco_name(t, c->file);
            mr_note_add(plan->notes, MR_NOTE_INFO, name, strlen(name), 0,
                        "category 0 (%s) is used by no annotation: it gets no label", c->name);
            continue;
        }
        mr_status status = mr_plan_class(plan, c->name, strlen(c->name), !mr_coco_id_is_text(c->id), c->id, err);
        if (status != MR_OK)
            return status;
    }
    return MR_OK;
}

mr_status mr_coco_classes(const mr_tree *t, mr_coco_file *const *files, size_t count, bool project, mr_plan *plan,
                          mr_error *err)
{
    size_t all = 0, n = 0;
    bool zero_used = false, others = false;
    for (size_t i = 0; i < count; i++)
        all += files[i] ? files[i]->category_count : 0;
    category *list = mr_alloc(all, sizeof *list);
    if (!list)
        return mr_fail_memory(err, "listing the categories");
    for (size_t i = 0; i < count; i++) {
        for (size_t k = 0; files[i] && k < files[i]->category_count; k++) {
            list[n++] = (category){files[i]->categories[k].id, files[i]->categories[k].name, files[i], i};
            others = others || files[i]->categories[k].id != 0;
        }
        zero_used = zero_used || (project && files[i] && uses(files[i], 0));
    }
    if (n)
        qsort(list, n, sizeof *list, by_id);
    mr_status status = add_classes(t, list, n, project && others && !zero_used, plan, err);
    free(list);
    return status;
}

int32_t mr_coco_label(const mr_plan *plan, int64_t id)
{
    size_t low = 0, high = plan->class_count;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (plan->classes[mid].id < id)
            low = mid + 1;
        else
            high = mid;
    }
    return low < plan->class_count && plan->classes[low].id == id ? (int32_t)low : -1;
}

/* Rejects the file for bad values of which it is unknown what image they belong to. */
static void reject_rest(const mr_tree *t, const mr_coco_file *f, mr_plan *plan)
{
    for (size_t i = 0; i < f->bad_count; i++)
        if (f->bads[i].image_id == MR_COCO_NO_ID && !f->bads[i].used)
            mr_coco_reject(t, f, &f->bads[i], MR_NO_ENTRY, plan);
}

void mr_coco_note_unknown(const mr_tree *t, const mr_coco_file *f, mr_plan *plan)
{
    uint64_t unknown = 0;
    int64_t example = 0;
    for (size_t i = 0; i < f->annotation_count; i++) {
        int64_t id = f->annotations[i].category_id;
        if (id != MR_COCO_NO_ID && mr_coco_label(plan, id) < 0 && !unknown++)
            example = id;
    }
    const char *name = mr_coco_name(t, f);
    char id[120];
    reject_rest(t, f, plan);
    if (unknown)
        mr_note_add(plan->notes, MR_NOTE_INFO, name, strlen(name), 0,
                    "annotations of a category that is not listed, such as %s: %" PRIu64,
                    mr_coco_id_show(f->ids, example, id), unknown);
    if (f->orphans)
        mr_note_add(plan->notes, MR_NOTE_INFO, name, strlen(name), 0,
                    "annotations left out, as their images are not listed: %" PRIu64, f->orphans);
}

void mr_coco_reject(const mr_tree *t, const mr_coco_file *f, const mr_coco_bad *bad, uint32_t entry, mr_plan *plan)
{
    char id[120] = "";
    size_t len = 0;
    const char *json = mr_coco_name(t, f);
    const char *path = entry == MR_NO_ENTRY ? json : mr_tree_path(t, entry, &len);
    uint64_t bytes = entry == MR_NO_ENTRY ? 0 : mr_source_entry(t->source, entry)->size;
    bool known = bad->image_id != MR_COCO_NO_ID;
    if (known)
        mr_coco_id_show(f->ids, bad->image_id, id);
    mr_note_add(plan->notes, MR_NOTE_REJECT, path, len ? len : strlen(path), bytes, "%s: byte %" PRIu64 ": %s%s%s%s",
                json, bad->at, bad->why, known ? " (image id " : "", id, known ? ")" : "");
    if (entry != MR_NO_ENTRY)
        plan->used[entry] = MR_USE_TAKEN;
}

mr_status mr_coco_licences(mr_coco_file *const *files, size_t count, mr_plan *plan, mr_error *err)
{
    mr_buf all = {0};
    for (size_t i = 0; i < count && !plan->licence; i++) {
        const mr_buf *names = files[i] ? &files[i]->licences : NULL;
        const char *at = names && names->len ? (const char *)names->data : NULL, *end = at ? at + names->len : NULL;
        for (const char *newline; at < end; at = newline + 1) {
            newline = memchr(at, '\n', (size_t)(end - at));
            size_t len = (size_t)(newline - at);
            if (all.len && memmem(all.data, all.len, at, len))
                continue;
            mr_buf_add_text(&all, all.len ? ", " : "");
            mr_buf_add(&all, at, len);
        }
    }
    mr_buf_text(&all);
    mr_status status = mr_buf_status(&all, err, "reading licences");
    if (status != MR_OK || !all.len) {
        mr_buf_free(&all);
        return status;
    }
    plan->licence = (char *)all.data;
    return MR_OK;
}
