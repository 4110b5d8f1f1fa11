/* plan.c - YOLO: every image of the splits with its label file, which is read once to check every line.
 * Invariant: an image is a sample, a reject or in a note; a label file without an image is in a note. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/scope.h"
#include "base/text.h"
#include "shards/manifest/format.h"
#include "ingest/source/names.h"
#include "ingest/layout/common/class_set.h"
#include "ingest/layout/common/roboflow_files.h"
#include "ingest/layout/yolo/yolo.h"

enum { LABEL_MAX = 16 << 20 };

static void count_line(mr_yolo_state *st, const mr_yolo_line *line, uint32_t label, uint64_t number)
{
    st->lines[line->kind]++;
    st->quads += line->kind == MR_YOLO_POLYGON && line->count == 8;
    if (line->kind == MR_YOLO_POLYGON)
        mr_yolo_shape_add(&st->shape, line->numbers, line->count, label, number);
    if (line->class >= st->classes)
        st->classes = line->class + 1;
}

/* Every line of a label file; `why` is empty if all are good. */
static mr_status check_label(mr_yolo_build *b, uint32_t label, bool *text, uint64_t *lines, mr_buf *why)
{
    MR_AUTO(mr_buf_free) mr_buf bytes = {0};
    size_t len;
    const char *name = mr_tree_path(b->tree, label, &len);
    if (mr_source_entry(b->tree->source, label)->size > LABEL_MAX) {
        mr_text_escape(why, name, len);
        mr_buf_add_text(why, ": longer than 16 MiB, the limit for a label file");
        return MR_OK;
    }
    MR_TRY(mr_source_read(b->tree->source, label, &bytes, b->err));
    MR_AUTO(mr_yolo_reader_free) mr_yolo_reader reader = {.lines = mr_lines_of(bytes.data, bytes.len)};
    *text = *text || mr_yolo_is_text((const char *)bytes.data, bytes.len);
    const mr_yolo_rules rules = {b->plan, b->st->keypoints, b->st->dims, *text, false};
    mr_yolo_line line;
    mr_status status;
    while ((status = mr_yolo_next(&reader, &rules, &line)) == MR_OK) {
        ++*lines;
        count_line(b->st, &line, label, reader.lines.number);
    }
    if (status == MR_END)
        mr_texts_keep(&b->st->texts, label, bytes.data, bytes.len);
    if (status == MR_SYSTEM)
        return mr_fail_memory(b->err, "reading labels");
    if (status == MR_BAD_DATA) {
        mr_text_escape(why, name, len);
        mr_buf_printf(why, ": line %" PRIu64 ": %s", reader.lines.number, reader.why);
    }
    return MR_OK;
}

static mr_status refuse_two(const mr_yolo_build *b, uint32_t image, const mr_yolo_claim *claim)
{
    MR_AUTO(mr_buf_free) mr_buf folder = {0};
    size_t len, label_len, second_len;
    const char *name = mr_tree_path(b->tree, image, &len);
    const char *label = mr_tree_path(b->tree, claim->label, &label_len);
    const char *second = mr_tree_path(b->tree, claim->second, &second_len), *slash = memrchr(second, '/', second_len);
    const mr_entry *e = mr_source_entry(b->tree->source, claim->second);
    mr_source_leave_out(e->path, e->path_len - second_len + (size_t)(slash - second), &folder);
    return mr_fail(b->err, MR_BAD_DATA, "%s: has two label files, %s and %s; %s leaves out the second one's folder",
                   name, label, second, mr_buf_text(&folder));
}

static mr_status add_image(mr_yolo_build *b, const mr_yolo_item *item, uint64_t *unlabelled)
{
    MR_AUTO(mr_buf_free) mr_buf path = {0}, why = {0};
    uint64_t lines = 0;
    mr_yolo_claim claim = mr_yolo_label_of(b->tree, item->entry, &path);
    mr_sample s = {.split = item->split, .entry = item->entry, .label = -1};
    MR_TRY(mr_buf_status(&path, b->err, "listing the samples"));
    if (claim.second != MR_NO_ENTRY)
        return refuse_two(b, item->entry, &claim);
    if (claim.label != MR_NO_ENTRY) {
        b->plan->used[claim.label] = MR_USE_TAKEN;
        b->st->known[item->split] = true;
        MR_TRY(check_label(b, claim.label, &claim.text, &lines, &why));
        s.meta_bytes = 2 * mr_source_entry(b->tree->source, claim.label)->size + 64 * lines + 32;
    }
    s.aux = mr_yolo_aux(claim.label, claim.text);
    if (why.len) {
        size_t len;
        const char *name = mr_tree_path(b->tree, item->entry, &len);
        b->plan->used[item->entry] = 1;
        mr_note_add(b->plan->notes, MR_NOTE_REJECT, name, len, mr_source_entry(b->tree->source, item->entry)->size,
                    "%s", mr_buf_text(&why));
        return mr_buf_status(&why, b->err, "reading labels");
    }
    mr_mask masks[MR_MASKS_MAX];
    size_t mask_count = mr_yolo_masks(b->tree, b->plan, &s, masks);
    for (size_t i = 0; i < mask_count; i++)
        s.meta_bytes += mr_plan_mask(b->plan, b->tree, &masks[i]);
    b->st->masks += mask_count > 0;
    *unlabelled += claim.label == MR_NO_ENTRY && !mask_count;
    s.flags = lines || mask_count ? 0 : MR_FLAG_UNANNOTATED;
    mr_rf_group(b->tree, &s);
    return mr_plan_add(b->plan, &s, b->err);
}

static mr_status add_images(mr_yolo_build *b)
{
    uint64_t *unlabelled = mr_alloc(b->plan->split_count, sizeof *unlabelled);
    mr_status status = unlabelled ? MR_OK : mr_fail_memory(b->err, "listing the samples");
    for (size_t i = 0; i < b->count && status == MR_OK; i++)
        status = add_image(b, &b->items[i], &unlabelled[b->items[i].split]);
    for (size_t i = 0; i < b->plan->split_count && status == MR_OK; i++)
        if (unlabelled[i])
            mr_note_add(b->plan->notes, MR_NOTE_INFO, b->plan->splits[i].name, strlen(b->plan->splits[i].name), 0,
                        "images without a label file: %" PRIu64 "; %s", unlabelled[i],
                        b->st->known[i] ? "they have no objects" : "the split has no labels");
    free(unlabelled);
    return status;
}

/* ---- what is left ------------------------------------------------------------------------------------------------ */

static bool is_label(const char *path, size_t len)
{
    const char *slash = memrchr(path, '/', len), *name = slash ? slash + 1 : path;
    return mr_name_ends(path, len, ".txt") && strcmp(name, "classes.txt") != 0 &&
           (!strncmp(path, "labels/", 7) || strstr(path, "/labels/") || !strncmp(path, "labelTxt/", 9) ||
            strstr(path, "/labelTxt/"));
}

static void note_rest(const mr_yolo_build *b)
{
    for (uint32_t e = b->tree->begin; e < b->tree->end; e++) {
        size_t len;
        const char *path = mr_tree_path(b->tree, e, &len);
        uint64_t size = mr_source_entry(b->tree->source, e)->size;
        if (b->plan->used[e])
            continue;
        if (mr_name_is_image(path, len))
            mr_note_add(b->plan->notes, MR_NOTE_UNLISTED, path, len, size,
                        "not in any split: left out (--keep-unlisted includes it)");
        else if (is_label(path, len))
            mr_note_add(b->plan->notes, MR_NOTE_MISSING, path, len, size,
                        "a label file without an image of the same name in a split");
    }
}

/* ---- classes and variant ----------------------------------------------------------------------------------------- */

static mr_status number_classes(mr_yolo_build *b)
{
    char name[24];
    for (uint32_t i = (uint32_t)b->plan->class_count; i < b->st->classes; i++)
        MR_TRY(mr_plan_class(b->plan, name, (size_t)snprintf(name, sizeof name, "%" PRIu32, i), true, i, b->err));
    return mr_plan_classes_place(b->plan, b->err);
}

static mr_status check_shape(const mr_yolo_build *b)
{
    const mr_yolo_state *st = b->st;
    size_t keypoints, len;
    unsigned dims;
    if (st->task != MR_YOLO_ANY || !mr_yolo_shape_is_pose(&st->shape, &keypoints, &dims))
        return MR_OK;
    return mr_fail(b->err, MR_BAD_DATA,
                   "%s: line %" PRIu64
                   ": %zu numbers after the class, as in every such line: a box with %zu keypoint%s "
                   "in it, or a polygon? For keypoints write \"kpt_shape: [%zu, %u]\" into data.yaml at the root, for "
                   "polygons \"task: segment\", for oriented boxes \"task: obb\"",
                   mr_tree_path(b->tree, st->shape.entry, &len), st->shape.line, st->shape.count, keypoints,
                   keypoints == 1 ? "" : "s", keypoints, dims);
}

/* Lines of four points are either polygons or oriented boxes, in all files alike. */
static void name_variant(mr_yolo_build *b)
{
    mr_yolo_state *st = b->st;
    st->oriented =
        st->task != MR_YOLO_SEGMENT && st->quads && st->quads == st->lines[MR_YOLO_POLYGON] && !st->lines[MR_YOLO_BOX];
    if (st->masks)
        mr_note_add(b->plan->notes, MR_NOTE_INFO, "", 0, 0,
                    "%" PRIu64 " image%s a mask, which is kept in %s meta and makes no object", st->masks,
                    st->masks == 1 ? " has" : "s have", st->masks == 1 ? "its" : "their");
    if (st->oriented && st->task != MR_YOLO_OBB)
        mr_note_add(b->plan->notes, MR_NOTE_INFO, b->settings.name, strlen(b->settings.name), 0,
                    "every label has four points: read as oriented boxes, not as polygons");
    b->plan->variant = st->lines[MR_YOLO_POSE]                   ? "pose"
                       : st->oriented || st->lines[MR_YOLO_TEXT] ? "oriented boxes"
                       : st->lines[MR_YOLO_POLYGON]              ? "segmentation"
                       : st->masks && !st->lines[MR_YOLO_BOX]    ? "masks"
                                                                 : "detection";
}

/* The classes that lines of labelTxt name, where no other file does. */
static mr_status collect_classes(mr_yolo_build *b)
{
    MR_AUTO(mr_class_set_free) mr_class_set set = {0};
    MR_AUTO(mr_buf_free) mr_buf path = {0}, bytes = {0};
    for (size_t i = 0; i < b->count; i++) {
        const mr_yolo_claim claim = mr_yolo_label_of(b->tree, b->items[i].entry, &path);
        MR_TRY(mr_buf_status(&path, b->err, "listing the classes"));
        if (claim.label == MR_NO_ENTRY || mr_source_entry(b->tree->source, claim.label)->size > LABEL_MAX)
            continue;
        MR_TRY(mr_source_read(b->tree->source, claim.label, &bytes, b->err));
        const char *text = mr_buf_text(&bytes);
        if (!claim.text && !mr_yolo_is_text(text, bytes.len))
            continue;
        const mr_yolo_rules rules = {.text = true};
        MR_AUTO(mr_yolo_reader_free) mr_yolo_reader reader = {.lines = mr_lines_of(text, bytes.len)};
        mr_yolo_line line;
        while (mr_yolo_next(&reader, &rules, &line) == MR_OK)
            MR_TRY(mr_class_set_add(&set, b->plan, line.name, line.name_len, b->err));
    }
    if (!b->plan->class_count)
        return MR_OK;
    mr_plan_classes_sort(b->plan);
    b->named_by = "the label files";
    return MR_OK;
}

static mr_status say_nameless(const mr_yolo_build *b)
{
    uint32_t above = mr_yolo_names_above(b->tree);
    if (above != MR_NO_ENTRY) {
        MR_AUTO(mr_buf_free) mr_buf root = {0};
        mr_text_show(&root, b->tree->root, b->tree->root_len);
        return mr_fail(
            b->err, MR_BAD_DATA,
            "%s: is not in the dataset's root, %s, so its classes and splits would be ignored; move it there, "
            "or leave it out with --exclude",
            mr_source_entry(b->tree->source, above)->path, mr_buf_text(&root));
    }
    mr_note_add(
        b->plan->notes, MR_NOTE_INFO, "", 0, 0,
        "there is no data.yaml or classes.txt at the root to name the classes: classes are named by their numbers");
    return MR_OK;
}

static mr_status plan_all(mr_yolo_build *b)
{
    MR_TRY(mr_yolo_settings_read(b->tree, &b->settings, b->err));
    if (b->settings.entry != MR_NO_ENTRY)
        b->plan->used[b->settings.entry] = MR_USE_TAKEN;
    mr_yolo_dirs_find(b->tree, &b->dirs);
    if (!b->dirs.count)
        mr_yolo_dirs_named(b->tree, &b->settings, &b->dirs);
    MR_TRY(mr_yolo_names(b));
    MR_TRY(mr_rf_readmes(b->tree, b->plan, b->err));
    MR_TRY(mr_yolo_splits(b));
    if (!b->plan->class_count)
        MR_TRY(collect_classes(b));
    MR_TRY(add_images(b));
    if (!b->plan->class_count && b->settings.entry == MR_NO_ENTRY && b->st->classes)
        MR_TRY(say_nameless(b));
    mr_texts_sort(&b->st->texts);
    MR_TRY(check_shape(b));
    MR_TRY(number_classes(b));
    name_variant(b);
    note_rest(b);
    return MR_OK;
}

mr_status mr_yolo_plan(const mr_tree *t, const mr_layout_options *o, mr_plan *plan, mr_error *err)
{
    mr_yolo_state *st = mr_alloc(1, sizeof *st);
    mr_yolo_build b = {.tree = t, .options = o, .plan = plan, .st = st, .err = err};
    if (!st)
        return mr_fail_memory(err, "reading a YOLO dataset");
    plan->state = st;
    mr_status status = plan_all(&b);
    mr_yaml_free(&b.settings.yaml);
    free(b.items);
    return status;
}
