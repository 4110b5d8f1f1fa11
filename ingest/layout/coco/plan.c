/* plan.c - COCO: classes, the order of samples, and files that no annotation file mentions.
 * Invariant: every image file in the folders of the splits ends up as a sample or in a note. */
#include <stdlib.h>
#include <string.h>

#include "ingest/layout/coco/coco.h"
#include "base/scope.h"
#include "ingest/source/names.h"
#include "ingest/layout/common/coco_classes.h"

/* ---- classes -------------------------------------------------------------------------------------------------- */

static bool has_panoptic(const mr_coco_build *b, const mr_coco_group *g)
{
    for (size_t i = 0; i < g->count; i++)
        if (b->st->parts[g->first + i].kind == MR_COCO_PANOPTIC)
            return true;
    return false;
}

/* Which classes instances and stuff have, where there are panoptic annotations of the same images. */
static mr_status mark_classes(const mr_coco_build *b)
{
    for (size_t i = 0; i < b->st->group_count; i++) {
        const mr_coco_group *g = &b->st->groups[i];
        for (size_t k = g->first; k < g->first + g->count && has_panoptic(b, g); k++) {
            mr_coco_part *part = &b->st->parts[k];
            if (!part->file || (part->kind != MR_COCO_INSTANCES && part->kind != MR_COCO_STUFF))
                continue;
            part->classes = mr_alloc(b->plan->class_count + 1, 1);
            if (!part->classes)
                return mr_fail_memory(b->err, "listing the categories");
            for (size_t c = 0; c < part->file->category_count; c++) {
                int32_t label = mr_coco_label(b->plan, part->file->categories[c].id);
                part->classes[label >= 0 ? (size_t)label : b->plan->class_count] = 1;
            }
        }
    }
    return MR_OK;
}

/* The classes of all that was parsed. */
static mr_status plan_classes(const mr_coco_build *b)
{
    const mr_coco_state *st = b->st;
    mr_coco_file **files = mr_alloc(st->part_count, sizeof *files);
    if (!files)
        return mr_fail_memory(b->err, "listing the categories");
    for (size_t i = 0; i < st->part_count; i++)
        files[i] = st->parts[i].file;
    mr_status status = mr_coco_classes(b->tree, files, st->part_count, false, b->plan, b->err);
    if (status == MR_OK)
        status = mr_coco_licences(files, st->part_count, b->plan, b->err);
    for (size_t i = 0; i < st->part_count && status == MR_OK; i++)
        if (files[i])
            mr_coco_note_unknown(b->tree, files[i], b->plan);
    free(files);
    return status == MR_OK ? mark_classes(b) : status;
}

/* ---- images not in any annotation file ------------------------------------------------------------------------ */

static const char *const flat_dirs[] = {"", "images/", "annotations/", "data/"};

typedef struct owners {
    mr_coco_group **by_folder; /* sorted */
    size_t count;
    mr_coco_group *flat[MR_COUNT(flat_dirs)]; /* the only one with existing images; NULL: none or several */
} owners;

static int by_folder(const void *a, const void *b)
{
    return strcmp((*(mr_coco_group *const *)a)->folder, (*(mr_coco_group *const *)b)->folder);
}

static mr_status find_owners(const mr_coco_build *b, owners *o)
{
    mr_coco_state *st = b->st;
    o->by_folder = mr_alloc(st->group_count, sizeof *o->by_folder);
    if (!o->by_folder)
        return mr_fail_memory(b->err, "listing COCO images");
    for (; o->count < st->group_count; o->count++)
        o->by_folder[o->count] = &st->groups[o->count];
    qsort(o->by_folder, o->count, sizeof *o->by_folder, by_folder);
    for (size_t k = 0; k < MR_COUNT(flat_dirs); k++)
        for (size_t i = 0, users = 0; i < st->group_count; i++)
            if (st->groups[i].flat[k])
                o->flat[k] = users++ ? NULL : &st->groups[i];
    return MR_OK;
}

/* The group in whose folder the path begins. */
static mr_coco_group *in_folder(const owners *o, const char *path, size_t len)
{
    const char *slash = memchr(path, '/', len);
    mr_coco_group key, *wanted = &key;
    size_t n = slash ? (size_t)(slash - path) : sizeof key.folder;
    if (n >= sizeof key.folder)
        return NULL;
    memcpy(key.folder, path, n);
    key.folder[n] = '\0';
    mr_coco_group **found = bsearch(&wanted, o->by_folder, o->count, sizeof *o->by_folder, by_folder);
    if (!found || (found > o->by_folder && !by_folder(found - 1, found)) ||
        (found + 1 < o->by_folder + o->count && !by_folder(found, found + 1)))
        return NULL; /* train2014 and train2017 may both have train/ */
    return *found;
}

/* The group in whose folder, or next to whose images, the file is, if that is unambiguous. */
static mr_coco_group *owner_of(const owners *o, const char *path, size_t len)
{
    bool images = len > 7 && !memcmp(path, "images/", 7);
    mr_coco_group *own = in_folder(o, path, len), *under = images ? in_folder(o, path + 7, len - 7) : NULL;
    if (own || under)
        return own && (!under || own < under) ? own : under;
    const char *slash = memrchr(path, '/', len);
    size_t dir = slash ? (size_t)(slash - path) + 1 : 0;
    for (size_t k = 0; k < MR_COUNT(flat_dirs); k++)
        if (dir == strlen(flat_dirs[k]) && !memcmp(path, flat_dirs[k], dir))
            return o->flat[k];
    return NULL;
}

static mr_status add_unlisted(const mr_coco_build *b, mr_coco_group *g, uint32_t entry)
{
    mr_sample sample = {.entry = entry, .label = -1, .flags = MR_FLAG_UNANNOTATED, .aux = MR_COCO_UNLISTED};
    MR_TRY(mr_coco_image_split(b, g, entry, &sample.split));
    return sample.split == MR_NO_ENTRY ? MR_OK : mr_plan_add(b->plan, &sample, b->err);
}

static mr_status plan_unlisted(const mr_coco_build *b)
{
    owners o = {0};
    mr_status status = find_owners(b, &o);
    for (uint32_t n = b->tree->begin; n < b->tree->end && status == MR_OK; n++) {
        size_t len;
        const char *path = mr_tree_path(b->tree, n, &len);
        if (b->plan->used[n] || !mr_name_is_image(path, len))
            continue;
        mr_coco_group *g = owner_of(&o, path, len);
        if (g && g->left_out)
            b->plan->used[n] = MR_USE_LEFT_OUT;
        if (!g || g->left_out) /* in no split: the ledger accounts for it */
            continue;
        bool keep = b->options->keep_unlisted;
        mr_note_add(b->plan->notes, MR_NOTE_UNLISTED, path, len, mr_source_entry(b->tree->source, n)->size, "%s",
                    keep ? "included without annotations (--keep-unlisted)"
                         : "not in any annotation file of its split: left out (--keep-unlisted includes it)");
        if (keep)
            status = add_unlisted(b, g, n);
    }
    free(o.by_folder);
    return status;
}

/* ---- the order ------------------------------------------------------------------------------------------------ */

/* Entries are sorted bytewise by path, so their numbers are that order. */
static int by_split_and_path(const void *a, const void *b)
{
    const mr_sample *x = a, *y = b;
    if (x->split != y->split)
        return x->split < y->split ? -1 : 1;
    if (x->entry != y->entry)
        return x->entry < y->entry ? -1 : 1;
    return (x->aux > y->aux) - (x->aux < y->aux);
}

static void sort_samples(const mr_coco_build *b)
{
    mr_plan *plan = b->plan;
    size_t kept = 0;
    if (plan->sample_count)
        qsort(plan->samples, plan->sample_count, sizeof *plan->samples, by_split_and_path);
    for (size_t i = 0; i < plan->sample_count; i++) {
        const mr_sample *s = &plan->samples[i];
        if (kept && s->split == plan->samples[kept - 1].split && s->entry == plan->samples[kept - 1].entry) {
            size_t len;
            const char *path = mr_tree_path(b->tree, s->entry, &len);
            mr_note_add(plan->notes, MR_NOTE_COLLISION, path, len, 0,
                        "listed twice in the annotation files of its split: the first is kept");
            continue;
        }
        plan->samples[kept++] = *s;
    }
    plan->sample_count = kept;
}

static mr_status name_variant(const mr_coco_build *b)
{
    mr_buf name = {0};
    for (int kind = 0; kind < MR_COCO_KINDS; kind++)
        for (size_t i = 0; i < b->st->part_count; i++)
            if (b->st->parts[i].file && b->st->parts[i].kind == kind) {
                mr_buf_printf(&name, "%s%s", name.len ? "+" : "",
                              b->st->labels && kind == MR_COCO_INSTANCES ? "labels" : mr_coco_kinds[kind]);
                break;
            }
    return mr_plan_variant_set(b->plan, &name, b->err);
}

static bool has_kind(const mr_coco_build *b, const mr_coco_group *g, int kind)
{
    for (size_t i = 0; i < g->count; i++)
        if (b->st->parts[g->first + i].kind == kind)
            return true;
    return false;
}

/* As after a download that lacks a file.  image_info alone is a test split, whose annotations are not published. */
static void note_kinds(const mr_coco_build *b)
{
    const mr_coco_state *st = b->st;
    for (int kind = 0; kind < MR_COCO_KINDS; kind++) {
        const mr_coco_group *with = NULL;
        for (size_t i = 0; i < st->group_count && !with && kind != MR_COCO_IMAGE_INFO; i++)
            with = st->groups[i].any && has_kind(b, &st->groups[i], kind) ? &st->groups[i] : NULL;
        for (size_t i = 0; i < st->group_count && with; i++) {
            const mr_coco_group *g = &st->groups[i];
            if (g->any && !has_kind(b, g, kind) && (g->count > 1 || !has_kind(b, g, MR_COCO_IMAGE_INFO)))
                mr_note_add(b->plan->notes, MR_NOTE_INFO, g->folder, strlen(g->folder), 0,
                            "no file of %s for this split, where %s has one: is it missing?", mr_coco_kinds[kind],
                            with->folder);
        }
    }
}

static mr_status plan_samples(mr_coco_build *b)
{
    mr_coco_state *st = b->st;
    mr_status status = mr_coco_make_groups(b);
    for (size_t i = 0; i < st->group_count && status == MR_OK; i++)
        if (!st->groups[i].left_out)
            status = mr_coco_open_group(b, &st->groups[i]);
    if (status == MR_OK)
        note_kinds(b);
    for (size_t i = 0; i < st->group_count && status == MR_OK; i++)
        if (!st->groups[i].left_out)
            status = mr_coco_plan_group(b, i);
    for (size_t i = 0; i < st->group_count && status == MR_OK; i++)
        if (st->groups[i].left_out)
            status = mr_coco_leave_out(b, &st->groups[i]);
    if (status == MR_OK)
        status = plan_classes(b);
    if (status == MR_OK)
        status = mr_coco_label_samples(b);
    return status == MR_OK ? plan_unlisted(b) : status;
}

mr_status mr_coco_plan(const mr_tree *t, const mr_layout_options *o, mr_plan *plan, mr_error *err)
{
    mr_coco_state *st = mr_alloc(1, sizeof *st);
    mr_coco_build b = {.tree = t, .options = o, .plan = plan, .st = st, .err = err};
    if (!st)
        return mr_fail_memory(err, "listing annotation files");
    plan->state = st;
    mr_status status = mr_coco_list(t, o, st, err);
    if (status == MR_OK && st->absent)
        return mr_fail(err, MR_MISUSE, "--annotations %s: %s", st->absent,
                       t->root_len ? "not a file under the root of the dataset" : "the source has no such file");
    if (status == MR_OK && !st->part_count)
        return mr_fail(err, MR_BAD_DATA, "no COCO annotation files: needs " MR_COCO_NEEDS);
    if (status == MR_OK)
        status = plan_samples(&b);
    mr_buf_free(&b.name);
    if (status != MR_OK)
        return status;
    sort_samples(&b);
    return name_variant(&b);
}
