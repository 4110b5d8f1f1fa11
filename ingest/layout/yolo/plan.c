/* plan.c - YOLO: every image of the splits with its label file, which is read once to check every line.
 * Invariant: an image is a sample, a reject or in a note; a label file without an image is in a note. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/scope.h"
#include "base/text.h"
#include "format/format.h"
#include "roboflow/roboflow.h"
#include "yolo/yolo.h"

enum { LABEL_MAX = 16 << 20 };

static void count_line(mr_yolo_state *st, const mr_yolo_line *line)
{
    st->lines[line->kind]++;
    st->quads += line->kind == MR_YOLO_POLYGON && line->count == 8;
    if (line->class >= st->classes)
        st->classes = line->class + 1;
}

/* Every line of a label file; `why` is empty if all are good. */
static mr_status check_label(mr_yolo_build *b, uint32_t label, bool text, uint64_t *lines, mr_buf *why)
{
    MR_AUTO(mr_buf_free) mr_buf bytes = {0};
    size_t len;
    const char *name = mr_tree_path(b->tree, label, &len);
    if (mr_source_entry(b->tree->source, label)->size > LABEL_MAX) {
        mr_text_escape(why, name, len);
        mr_buf_add_text(why, ": longer than the 16 MiB that a label file may have");
        return MR_OK;
    }
    MR_TRY(mr_source_read(b->tree->source, label, &bytes, b->err));
    const mr_yolo_rules rules = {b->plan, b->st->keypoints, b->st->dims, text};
    MR_AUTO(mr_yolo_reader_free) mr_yolo_reader reader = {.at = mr_buf_text(&bytes)};
    reader.end = reader.at + bytes.len;
    mr_yolo_line line;
    mr_status status;
    while ((status = mr_yolo_next(&reader, &rules, &line)) == MR_OK) {
        ++*lines;
        count_line(b->st, &line);
    }
    if (status == MR_END)
        mr_texts_keep(&b->st->texts, label, bytes.data, bytes.len);
    if (status == MR_SYSTEM)
        return mr_fail_memory(b->err, "reading labels");
    if (status == MR_BAD_DATA) {
        mr_text_escape(why, name, len);
        mr_buf_printf(why, ": line %" PRIu64 ": %s", reader.line, reader.why);
    }
    return MR_OK;
}

static mr_status add_image(mr_yolo_build *b, const mr_yolo_item *item, uint64_t *unlabelled)
{
    MR_AUTO(mr_buf_free) mr_buf path = {0}, why = {0};
    bool text;
    uint64_t lines = 0;
    uint32_t label = mr_yolo_label_of(b->tree, item->entry, &text, &path);
    mr_sample s = {.split = item->split, .entry = item->entry, .label = -1, .aux = mr_yolo_aux(label, text)};
    MR_TRY(mr_buf_status(&path, b->err, "listing the samples"));
    if (label != MR_NO_ENTRY) {
        b->plan->used[label] = 1;
        b->st->told[item->split] = true;
        MR_TRY(check_label(b, label, text, &lines, &why));
        s.meta_bytes = 2 * mr_source_entry(b->tree->source, label)->size + 64 * lines + 32;
    }
    *unlabelled += label == MR_NO_ENTRY;
    if (why.len) {
        size_t len;
        const char *name = mr_tree_path(b->tree, item->entry, &len);
        b->plan->used[item->entry] = 1;
        mr_note_add(b->plan->notes, MR_NOTE_REJECT, name, len, mr_source_entry(b->tree->source, item->entry)->size,
                    "%s", mr_buf_text(&why));
        return mr_buf_status(&why, b->err, "reading labels");
    }
    s.flags = lines ? 0 : MR_FLAG_UNANNOTATED;
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
                        "%" PRIu64 " images have no label file: %s", unlabelled[i],
                        b->st->told[i] ? "pictures without objects" : "the split has no labels");
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
        b->plan->used[e] = mr_name_is_image(path, len) || is_label(path, len);
        if (mr_name_is_image(path, len))
            mr_note_add(b->plan->notes, MR_NOTE_UNLISTED, path, len, size,
                        "in no split: left out (--keep-unlisted takes it)");
        else if (is_label(path, len))
            mr_note_add(b->plan->notes, MR_NOTE_MISSING, path, len, size,
                        "a label file without an image of its name in a split");
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

/* Lines of four points are either polygons or oriented boxes, in all files alike. */
static void name_variant(mr_yolo_build *b)
{
    mr_yolo_state *st = b->st;
    st->oriented = st->quads && st->quads == st->lines[MR_YOLO_POLYGON] && !st->lines[MR_YOLO_BOX];
    if (st->oriented)
        mr_note_add(b->plan->notes, MR_NOTE_INFO, b->yaml_name, strlen(b->yaml_name), 0,
                    "every label has four points: taken as oriented boxes, not as polygons");
    b->plan->variant = st->lines[MR_YOLO_POSE]                   ? "pose"
                       : st->oriented || st->lines[MR_YOLO_TEXT] ? "oriented boxes"
                       : st->lines[MR_YOLO_POLYGON]              ? "segmentation"
                                                                 : "detection";
}

static mr_status plan_all(mr_yolo_build *b)
{
    uint32_t yaml = mr_yolo_find_yaml(b->tree);
    b->yaml_name = "";
    if (yaml != MR_NO_ENTRY) {
        size_t len;
        b->yaml_name = mr_tree_path(b->tree, yaml, &len);
        b->plan->used[yaml] = 1;
        MR_TRY(mr_yaml_read(b->tree->source, yaml, &b->yaml, b->err));
    }
    mr_yolo_dirs_find(b->tree, &b->dirs);
    MR_TRY(mr_yolo_names(b));
    MR_TRY(mr_rf_readmes(b->tree, b->plan, b->err));
    MR_TRY(mr_yolo_splits(b));
    MR_TRY(add_images(b));
    mr_texts_sort(&b->st->texts);
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
    mr_yaml_free(&b.yaml);
    free(b.items);
    return status;
}
