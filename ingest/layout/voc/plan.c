/* plan.c - Pascal VOC: every image with its XML, which is read once for its classes.
 * Invariant: an image is a sample, a reject or in a note; an XML without an image is in a note. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/scope.h"
#include "base/text.h"
#include "format/format.h"
#include "layout/class_set.h"
#include "roboflow/roboflow.h"
#include "voc/voc.h"

typedef struct build {
    const mr_tree *tree;
    const mr_layout_options *options;
    mr_plan *plan;
    mr_voc_places places;
    mr_class_set classes;
    mr_voc_annotation annotation;  /* of the current image */
    uint64_t plain[MR_SPLITS_MAX]; /* images without an XML, per split */
    mr_error *err;
} build;

static void keep(build *b, uint32_t xml, const mr_buf *bytes)
{
    MR_AUTO(mr_buf_free) mr_buf packed = {0};
    mr_voc_state *st = b->plan->state;
    mr_texts_keep(&st->texts, xml, bytes->data, bytes->len);
    mr_voc_annotation_pack(&b->annotation, &packed);
    if (!packed.failed)
        mr_texts_keep(&st->parsed, xml, packed.data, packed.len);
}

/* Reads an XML; `why` is empty if it is good. */
static mr_status read_xml(build *b, uint32_t xml, mr_buf *why)
{
    MR_AUTO(mr_buf_free) mr_buf bytes = {0};
    mr_error err;
    size_t len;
    const char *name = mr_tree_path(b->tree, xml, &len);
    mr_status status = MR_BAD_DATA;
    if (mr_source_entry(b->tree->source, xml)->size <= MR_VOC_XML_MAX) {
        MR_TRY(mr_source_read(b->tree->source, xml, &bytes, b->err));
        status = mr_voc_parse(mr_buf_text(&bytes), bytes.len, &b->annotation, &err);
    } else {
        mr_fail(&err, MR_BAD_DATA, "longer than the 16 MiB that an annotation may have");
    }
    if (status == MR_SYSTEM)
        return mr_fail(b->err, status, "%s", err.text);
    if (status == MR_OK)
        keep(b, xml, &bytes);
    if (status != MR_OK) {
        mr_text_escape(why, name, len);
        mr_buf_printf(why, ": %s", err.text);
    }
    return mr_buf_status(why, b->err, "reading annotations");
}

static mr_status add_classes(build *b)
{
    const mr_voc_annotation *a = &b->annotation;
    for (size_t i = 0; i < a->count; i++)
        if (a->objects[i].name_len)
            MR_TRY(mr_class_set_add(&b->classes, b->plan, (const char *)a->names.data + a->objects[i].name_at,
                                    a->objects[i].name_len, b->err));
    return MR_OK;
}

static mr_status add_image(build *b, uint32_t entry, uint32_t split)
{
    MR_AUTO(mr_buf_free) mr_buf why = {0};
    uint32_t xml = mr_voc_xml_of(b->tree, &b->places, entry);
    mr_sample s = {.split = split, .entry = entry, .label = -1, .flags = MR_FLAG_UNANNOTATED, .aux = MR_VOC_NO_XML};
    b->plan->used[entry] = 1;
    if (xml == MR_NO_ENTRY)
        b->plain[split]++;
    else {
        uint64_t size = mr_source_entry(b->tree->source, xml)->size;
        b->plan->used[xml] = 1;
        s.aux = xml;
        MR_TRY(read_xml(b, xml, &why));
        s.flags = b->annotation.count ? 0 : MR_FLAG_UNANNOTATED;
        s.meta_bytes = size + size / 8 + 96 * b->annotation.count + 32;
    }
    if (why.len) {
        size_t len;
        const char *name = mr_tree_path(b->tree, entry, &len);
        mr_note_add(b->plan->notes, MR_NOTE_REJECT, name, len, mr_source_entry(b->tree->source, entry)->size, "%s",
                    mr_buf_text(&why));
        return MR_OK;
    }
    if (xml != MR_NO_ENTRY)
        MR_TRY(add_classes(b));
    mr_mask masks[MR_MASKS_MAX];
    for (size_t i = 0, count = mr_voc_masks(b->tree, b->plan, &s, masks); i < count; i++)
        s.meta_bytes += mr_plan_mask(b->plan, b->tree, &masks[i]);
    mr_rf_group(b->tree, &s);
    return mr_plan_add(b->plan, &s, b->err);
}

/* ---- images of each arrangement ------------------------------------------------------------------------------------
 */

static mr_status add_run(build *b, uint32_t begin, uint32_t end, size_t skip, uint32_t split)
{
    for (uint32_t e = begin; e < end; e++)
        if (mr_folder_image(b->tree, e, skip))
            MR_TRY(add_image(b, e, split));
    return MR_OK;
}

static mr_status plan_beside(build *b)
{
    mr_split_dirs *dirs = &b->places.dirs;
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

static void leave_out(const build *b, uint32_t entry)
{
    uint32_t xml = mr_voc_xml_of(b->tree, &b->places, entry);
    b->plan->used[entry] = MR_USE_LEFT_OUT;
    if (xml != MR_NO_ENTRY)
        b->plan->used[xml] = MR_USE_LEFT_OUT;
}

/* In no list, or in no split: left out, or taken as train. */
static mr_status add_unlisted(build *b, uint32_t entry, const char *why)
{
    size_t len;
    const char *path = mr_tree_path(b->tree, entry, &len);
    bool taken = b->options->keep_unlisted;
    uint32_t split;
    mr_note_add(b->plan->notes, MR_NOTE_UNLISTED, path, len, mr_source_entry(b->tree->source, entry)->size, "%s: %s",
                why, taken ? "taken as train (--keep-unlisted)" : "left out (--keep-unlisted takes it)");
    if (taken)
        MR_TRY(mr_plan_split_get(b->plan, b->options, "train", strlen("train"), &split, b->err));
    if (taken && split != MR_NO_ENTRY)
        return add_image(b, entry, split);
    leave_out(b, entry);
    return MR_OK;
}

static mr_status add_listed(build *b, const uint32_t *split_of, uint32_t begin, uint32_t end)
{
    for (uint32_t split = 0; split < b->plan->split_count; split++)
        for (uint32_t e = begin; e < end; e++)
            if (split_of[e - b->tree->begin] == split)
                MR_TRY(add_image(b, e, split));
    for (uint32_t e = begin; e < end; e++) {
        if (split_of[e - b->tree->begin] == MR_NO_ENTRY) {
            leave_out(b, e);
        } else if (split_of[e - b->tree->begin] == MR_VOC_IN_NO_SET && mr_folder_image(b->tree, e, 0)) {
            MR_TRY(add_unlisted(b, e, "in no list of ImageSets/"));
        }
    }
    return MR_OK;
}

static mr_status plan_apart(build *b)
{
    MR_AUTO(mr_scope_free) uint32_t *split_of = mr_alloc(b->tree->end - b->tree->begin, sizeof *split_of);
    char folder[32];
    if (!split_of)
        return mr_fail_memory(b->err, "listing the samples");
    MR_TRY(mr_voc_sets(b->tree, b->options, &b->places, b->plan, split_of, b->err));
    bool listed = b->plan->split_count > 0;
    uint32_t train = 0;
    if (!listed)
        MR_TRY(mr_plan_split_get(b->plan, b->options, "train", 5, &train, b->err));
    snprintf(folder, sizeof folder, "%s/", b->places.images);
    uint32_t begin = b->tree->begin;
    mr_child child = {0};
    while (mr_tree_next(b->tree, "", 0, &child))
        if (child.is_dir && child.name_len == strlen(b->places.images) &&
            !memcmp(child.name, b->places.images, child.name_len))
            begin = child.entry;
    uint32_t end = mr_tree_run_end(b->tree, begin, strlen(folder));
    if (listed)
        return add_listed(b, split_of, begin, end);
    mr_note_add(b->plan->notes, MR_NOTE_INFO, "", 0, 0, "no lists in ImageSets/: all images are split train");
    return train == MR_NO_ENTRY ? MR_OK : add_run(b, begin, end, strlen(folder), train);
}

/* ---- what is left -------------------------------------------------------------------------------------------------
 */

/* Images beside the folders of splits, each with its XML. */
static mr_status add_rest(build *b)
{
    for (uint32_t e = b->tree->begin; e < b->tree->end; e++)
        if (!b->plan->used[e] && mr_folder_image(b->tree, e, 0))
            MR_TRY(add_unlisted(b, e, "in no split"));
    return MR_OK;
}

static void note_rest(const build *b)
{
    uint64_t masks = 0;
    for (uint32_t e = b->tree->begin; e < b->tree->end; e++) {
        size_t len;
        const char *path = mr_tree_path(b->tree, e, &len);
        uint64_t size = mr_source_entry(b->tree->source, e)->size;
        bool image = mr_name_is_image(path, len), mask = image && mr_voc_is_mask(path);
        if (b->plan->used[e] || !(image || mr_name_ends(path, len, ".xml")))
            continue;
        b->plan->used[e] = mask ? MR_USE_LEFT_OUT : MR_USE_TAKEN;
        masks += mask;
        if (!mask)
            mr_note_add(b->plan->notes, image ? MR_NOTE_UNLISTED : MR_NOTE_MISSING, path, len, size, "%s",
                        image ? "in no split: left out (--keep-unlisted takes it)"
                              : "an annotation without an image of its name");
    }
    if (masks)
        mr_note_add(b->plan->notes, MR_NOTE_INFO, "SegmentationClass", strlen("SegmentationClass"), 0,
                    "%" PRIu64 " masks of segmentation left out: no sample has their names", masks);
    for (size_t i = 0; i < b->plan->split_count; i++)
        if (b->plain[i])
            mr_note_add(b->plan->notes, MR_NOTE_INFO, b->plan->splits[i].name, strlen(b->plan->splits[i].name), 0,
                        "%" PRIu64 " images have no XML: nothing is said of their objects", b->plain[i]);
}

static mr_status plan_all(build *b, mr_voc_state *st)
{
    MR_TRY(mr_voc_look(b->tree, b->options, &b->places, b->err));
    if (!b->places.kind)
        return mr_fail(b->err, MR_BAD_DATA, "no Pascal VOC annotations: needs %s", mr_layout_voc.needs);
    bool apart = b->places.kind == MR_VOC_APART;
    st->pixels = apart && !strcmp(b->places.images, "JPEGImages");
    st->images = apart ? strlen(b->places.images) + 1 : 0;
    b->plan->variant = apart ? "folders" : "beside";
    MR_TRY(mr_rf_readmes(b->tree, b->plan, b->err));
    MR_TRY(apart ? plan_apart(b) : plan_beside(b));
    if (!apart && b->options->keep_unlisted)
        MR_TRY(add_rest(b));
    mr_plan_classes_sort(b->plan);
    mr_texts_sort(&st->texts);
    mr_texts_sort(&st->parsed);
    note_rest(b);
    return MR_OK;
}

mr_status mr_voc_plan(const mr_tree *t, const mr_layout_options *o, mr_plan *plan, mr_error *err)
{
    mr_voc_state *st = mr_alloc(1, sizeof *st);
    build b = {.tree = t, .options = o, .plan = plan, .err = err};
    if (!st)
        return mr_fail_memory(err, "reading a Pascal VOC dataset");
    plan->state = st;
    mr_status status = plan_all(&b, st);
    mr_class_set_free(&b.classes);
    mr_voc_annotation_free(&b.annotation);
    return status;
}
