/* plan.c - Pascal VOC: every image with its XML, which is read once for its classes.
 * Invariant: an image is a sample, a reject or in a note; an XML without an image is in a note. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/scope.h"
#include "shards/manifest/format.h"
#include "ingest/source/names.h"
#include "ingest/layout/common/class_set.h"
#include "ingest/layout/folder_names.h"
#include "ingest/layout/image_names.h"
#include "ingest/layout/common/roboflow_files.h"
#include "ingest/layout/voc/voc.h"

static mr_status add_classes(mr_voc_build *b)
{
    const mr_voc_annotation *a = &b->annotation;
    for (size_t i = 0; i < a->count; i++)
        if (a->objects[i].name_len)
            MR_TRY(mr_class_set_add(&b->classes, b->plan, (const char *)a->names.data + a->objects[i].name_at,
                                    a->objects[i].name_len, b->err));
    return MR_OK;
}

static mr_status add_image(mr_voc_build *b, uint32_t entry, uint32_t split)
{
    MR_AUTO(mr_buf_free) mr_buf why = {0};
    uint32_t xml;
    mr_sample s = {.split = split, .entry = entry, .label = -1, .flags = MR_FLAG_UNANNOTATED, .aux = MR_VOC_NO_XML};
    b->plan->used[entry] = MR_USE_TAKEN;
    MR_TRY(mr_voc_take_xml(b, entry, &xml, &why));
    if (why.len) {
        size_t len;
        const char *name = mr_tree_path(b->tree, entry, &len);
        mr_note_add(b->plan->notes, MR_NOTE_REJECT, name, len, mr_source_entry(b->tree->source, entry)->size, "%s",
                    mr_buf_text(&why));
        return MR_OK;
    }
    if (xml == MR_NO_ENTRY) {
        b->plain[split]++;
    } else {
        uint64_t size = mr_source_entry(b->tree->source, xml)->size;
        s.aux = xml;
        s.flags = b->annotation.count ? 0 : MR_FLAG_UNANNOTATED;
        s.meta_bytes = size + size / 8 + 96 * b->annotation.count + 32;
        MR_TRY(add_classes(b));
    }
    mr_mask masks[MR_MASKS_MAX];
    for (size_t i = 0, count = mr_voc_masks(b->tree, b->plan, &s, masks); i < count; i++)
        s.meta_bytes += mr_plan_mask(b->plan, b->tree, &masks[i]);
    mr_rf_group(b->tree, &s);
    return mr_plan_add(b->plan, &s, b->err);
}

/* ---- images of each arrangement ---------------------------------------------------------------------------------- */

static bool is_mask(const mr_voc_build *b, uint32_t entry)
{
    size_t len;
    const char *path = mr_tree_path(b->tree, entry, &len);
    return mr_voc_is_mask(path, len);
}

static mr_status add_run(mr_voc_build *b, uint32_t begin, uint32_t end, size_t skip, uint32_t split)
{
    for (uint32_t e = begin; e < end; e++)
        if (mr_folder_image(b->tree, e, skip) && !is_mask(b, e))
            MR_TRY(add_image(b, e, split));
    return MR_OK;
}

static mr_status plan_beside(mr_voc_build *b)
{
    mr_split_dirs *dirs = &b->st->places.dirs;
    if (!dirs->count) {
        dirs->items[0] = mr_split_dir_whole(b->tree, b->options);
        dirs->count = 1;
    }
    MR_TRY(mr_split_dirs_open(b->tree, b->options, b->plan, dirs, b->err));
    for (uint32_t split = 0; split < b->plan->split_count; split++)
        for (size_t i = 0; i < dirs->count; i++) {
            const mr_split_dir *d = &dirs->items[i];
            if (d->split == split)
                MR_TRY(add_run(b, d->begin, d->end, d->len ? d->len + 1 : 0, split));
        }
    return MR_OK;
}

/* On request. */
static void leave_out(const mr_voc_build *b, uint32_t entry)
{
    mr_voc_xmls found = mr_voc_xmls_of(b->tree, &b->st->places, entry);
    b->plan->used[entry] = MR_USE_LEFT_OUT;
    for (size_t i = 0; i < found.count; i++)
        b->plan->used[found.entries[i]] = MR_USE_LEFT_OUT;
}

/* Not in any list or split: left out, or added to train. */
static mr_status add_unlisted(mr_voc_build *b, uint32_t entry, const char *why)
{
    size_t len;
    const char *path = mr_tree_path(b->tree, entry, &len);
    bool taken = b->options->keep_unlisted;
    uint32_t split;
    mr_note_add(b->plan->notes, MR_NOTE_UNLISTED, path, len, mr_source_entry(b->tree->source, entry)->size, "%s: %s",
                why, taken ? "added to train (--keep-unlisted)" : "left out (--keep-unlisted includes it)");
    if (!taken)
        return MR_OK;
    MR_TRY(mr_plan_split_get(b->plan, b->options, "train", strlen("train"), &split, b->err));
    if (split != MR_NO_ENTRY)
        return add_image(b, entry, split);
    leave_out(b, entry);
    return MR_OK;
}

static mr_status add_listed(mr_voc_build *b, const mr_voc_lists *lists, uint32_t begin, uint32_t end)
{
    MR_AUTO(mr_scope_free) uint8_t *listed = mr_alloc(b->tree->end - b->tree->begin, 1);
    if (!listed)
        return mr_fail_memory(b->err, "listing the samples");
    for (size_t i = 0; i < lists->count; i++) {
        const mr_voc_listed *item = &lists->items[i];
        listed[item->entry - b->tree->begin] = 1;
        if (item->split != MR_NO_ENTRY)
            MR_TRY(add_image(b, item->entry, item->split));
        else
            leave_out(b, item->entry);
    }
    for (uint32_t e = begin; e < end; e++)
        if (!listed[e - b->tree->begin] && mr_folder_image(b->tree, e, 0))
            MR_TRY(add_unlisted(b, e, "not listed in ImageSets/"));
    b->noted[0] = begin;
    b->noted[1] = end;
    return MR_OK;
}

/* Without lists, folders of the images may name the splits: images/train/1.jpg.  False: some image is in no such
 * folder. */
static bool find_folder_splits(const mr_voc_build *b, const char *images, mr_split_dirs *dirs)
{
    mr_child child = {0};
    *dirs = (mr_split_dirs){0};
    while (mr_tree_next(b->tree, images, strlen(images), &child)) {
        size_t len;
        const char *path = mr_tree_path(b->tree, child.entry, &len);
        size_t called = (size_t)(child.name - path) + child.name_len;
        if (child.name[0] == '.')
            continue;
        if (!child.is_dir || dirs->count == MR_COUNT(dirs->items) || !mr_split_word(child.name, child.name_len))
            return false;
        dirs->items[dirs->count++] = (mr_split_dir){path, called, called, 1, child.entry, child.end, MR_NO_ENTRY};
    }
    return dirs->count > 0;
}

static mr_status plan_folder_splits(mr_voc_build *b, const mr_split_dirs *dirs, size_t skip)
{
    for (size_t i = 0; i < dirs->count; i++) {
        const mr_split_dir *d = &dirs->items[i];
        uint32_t split;
        MR_TRY(mr_plan_split_get(b->plan, b->options, d->name + skip, d->called - skip, &split, b->err));
        for (uint32_t e = d->begin; e < d->end && split == MR_NO_ENTRY; e++)
            leave_out(b, e);
        if (split != MR_NO_ENTRY)
            MR_TRY(add_run(b, d->begin, d->end, skip, split));
    }
    return MR_OK;
}

static mr_status plan_unlisted(mr_voc_build *b, const char *images, uint32_t begin, uint32_t end)
{
    mr_split_dirs dirs;
    uint32_t train;
    if (find_folder_splits(b, images, &dirs))
        return plan_folder_splits(b, &dirs, strlen(images) + 1);
    MR_TRY(mr_plan_split_get(b->plan, b->options, "train", strlen("train"), &train, b->err));
    mr_note_add(b->plan->notes, MR_NOTE_INFO, "", 0, 0, "no lists in ImageSets/: all images are split train");
    return train == MR_NO_ENTRY ? MR_OK : add_run(b, begin, end, strlen(images) + 1, train);
}

static mr_status plan_apart(mr_voc_build *b)
{
    MR_AUTO(mr_voc_lists_free) mr_voc_lists lists = {0};
    const char *images = b->st->places.spots[0].images;
    MR_TRY(mr_voc_sets(b->tree, b->options, &b->st->places, b->plan, &lists, b->err));
    uint32_t begin = b->tree->begin, end;
    mr_child child = {0};
    while (mr_tree_next(b->tree, "", 0, &child))
        if (child.is_dir && child.name_len == strlen(images) && !memcmp(child.name, images, child.name_len))
            begin = child.entry;
    end = mr_tree_run_end(b->tree, begin, strlen(images) + 1);
    return lists.any ? add_listed(b, &lists, begin, end) : plan_unlisted(b, images, begin, end);
}

/* ---- what is left ------------------------------------------------------------------------------------------------ */

/* Images beside the folders that were read, each with its XML. */
static mr_status add_rest(mr_voc_build *b)
{
    for (uint32_t e = b->tree->begin; e < b->tree->end; e++)
        if (!b->plan->used[e] && (e < b->noted[0] || e >= b->noted[1]) && mr_folder_image(b->tree, e, 0) &&
            !is_mask(b, e))
            MR_TRY(add_unlisted(b, e, "not in any split"));
    return MR_OK;
}

static void note_xml(const mr_voc_build *b, uint64_t count, uint32_t first, const char *what)
{
    size_t len;
    const char *path = count ? mr_tree_path(b->tree, first, &len) : NULL;
    if (count)
        mr_note_add(b->plan->notes, MR_NOTE_INFO, path, len, 0, "%" PRIu64 " XML file%s %s", count,
                    count == 1 ? ", this one," : "s, this one the first,", what);
}

static void note_rest(const mr_voc_build *b)
{
    uint64_t masks = 0;
    for (uint32_t e = b->tree->begin; e < b->tree->end; e++) {
        size_t len;
        const char *path = mr_tree_path(b->tree, e, &len);
        if (b->plan->used[e])
            continue;
        if (mr_name_is_image(path, len) && mr_voc_is_mask(path, len)) {
            b->plan->used[e] = MR_USE_LEFT_OUT;
            masks++;
        } else if (mr_name_ends(path, len, ".xml")) {
            mr_note_add(b->plan->notes, MR_NOTE_MISSING, path, len, mr_source_entry(b->tree->source, e)->size,
                        "an annotation without an image of the same name");
        }
    }
    if (masks)
        mr_note_add(b->plan->notes, MR_NOTE_INFO, "SegmentationClass", strlen("SegmentationClass"), 0,
                    "masks of segmentation left out, as no sample has their names: %" PRIu64, masks);
    for (size_t i = 0; i < b->plan->split_count; i++)
        if (b->plain[i])
            mr_note_add(b->plan->notes, MR_NOTE_INFO, b->plan->splits[i].name, strlen(b->plan->splits[i].name), 0,
                        "images without an XML, whose objects are unknown: %" PRIu64, b->plain[i]);
    note_xml(b, b->swapped, b->first_swapped,
             "with the <filename> of another image: the XML's own name decides, not its <filename>");
    note_xml(b, b->shared, b->first_shared, "of several images, whose names differ only in their extensions");
}

/* A tree of the development kit in which a folder has another name: its boxes move by a pixel. */
static void note_origin(const mr_voc_build *b)
{
    const mr_voc_places *places = &b->st->places;
    const mr_voc_spot *other = NULL;
    bool kit = places->sets;
    for (size_t i = 0; i < places->spot_count; i++)
        if (mr_voc_from_one(&places->spots[i]))
            kit = true;
        else if (!other)
            other = &places->spots[i];
    bool named = other && *other->images;
    if (kit && other)
        mr_note_add(b->plan->notes, MR_NOTE_INFO, named ? other->images : other->dir,
                    named ? strlen(other->images) : other->len, 0,
                    "coordinates are read as edges between pixels, from 0, unless the folder of images is called "
                    "JPEGImages, as in the development kit, which numbers pixels from 1");
}

static mr_status plan_all(mr_voc_build *b)
{
    mr_voc_state *st = b->st;
    MR_TRY(mr_voc_look(b->tree, b->options, &st->places, b->err));
    if (!st->places.kind)
        return mr_fail(b->err, MR_BAD_DATA, "no Pascal VOC annotations: needs " MR_VOC_NEEDS);
    bool apart = st->places.kind == MR_VOC_APART;
    b->plan->variant = *st->places.spots[0].annotations ? "folders" : "beside";
    MR_TRY(mr_rf_readmes(b->tree, b->plan, b->err));
    MR_TRY(apart ? plan_apart(b) : plan_beside(b));
    MR_TRY(add_rest(b));
    mr_plan_classes_sort(b->plan);
    mr_texts_sort(&st->texts);
    mr_texts_sort(&st->parsed);
    note_rest(b);
    note_origin(b);
    return MR_OK;
}

mr_status mr_voc_plan(const mr_tree *t, const mr_layout_options *o, mr_plan *plan, mr_error *err)
{
    mr_voc_state *st = mr_alloc(1, sizeof *st);
    mr_voc_build b = {.tree = t, .options = o, .plan = plan, .st = st, .err = err};
    plan->state = st;
    b.owners = mr_alloc(t->end - t->begin, sizeof *b.owners);
    mr_status status = st && b.owners ? plan_all(&b) : mr_fail_memory(err, "reading a Pascal VOC dataset");
    free(b.owners);
    mr_class_set_free(&b.classes);
    mr_image_names_free(&b.names);
    mr_voc_annotation_free(&b.annotation);
    return status;
}
