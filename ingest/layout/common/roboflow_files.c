/* roboflow_files.c - which export of Roboflow is under a root, by the names of its files; what every export has.
 * Invariant: a supported form wins over others, and annotation files win over class folders. */
#include <stdio.h>
#include <string.h>

#include "ingest/layout/common/roboflow_files.h"

#include "base/scope.h"
#include "base/text.h"
#include "ingest/tables/lines.h"
#include "ingest/source/names.h"

enum { README_MAX = 1 << 20 };
enum { LOOK_AT = 256 }; /* entries of a folder that are checked for a kind of name */

typedef struct sign {
    const char *name; /* the name of a file in a split folder, or its end if it starts with '.' */
    mr_rf_kind kind;
    const char *format;
    const char *layout; /* that reads it; NULL: none */
} sign;

static const sign signs[] = {
    {MR_RF_COCO_JSON, MR_RF_COCO, NULL, NULL},
    {MR_RF_CLASSES_CSV, MR_RF_MULTI_CLASS, NULL, NULL},
    {MR_RF_TOKENS, MR_RF_CLIP, NULL, NULL},
    {MR_RF_CREATEML_JSON, MR_RF_FOREIGN, "CreateML", "createml"},
    {"_annotations.csv", MR_RF_FOREIGN, "object detection CSV", "table"},
    {"_annotations.txt", MR_RF_FOREIGN, "YOLO Keras", NULL},
    {"_annotations.jsonl", MR_RF_FOREIGN, "JSONL", NULL},
    {"_darknet.labels", MR_RF_FOREIGN, "YOLO Darknet", "yolo"},
    {".tfrecord", MR_RF_FOREIGN, "TFRecord", NULL},
};

uint32_t mr_rf_find(const mr_tree *t, const mr_split_dir *dir, const char *name, size_t len)
{
    char path[4200];
    if (len > 4096 || dir->len > sizeof path - 4096 - 2)
        return MR_NO_ENTRY;
    memcpy(path, dir->name, dir->len);
    path[dir->len] = '/';
    memcpy(path + dir->len + 1, name, len);
    return mr_tree_find(t, path, dir->len + 1 + len);
}

static bool has_dir(const mr_tree *t, const mr_split_dir *dir, const char *name)
{
    char path[128];
    int len = snprintf(path, sizeof path, "%.*s/%s", (int)dir->len, dir->name, name);
    return len > 0 && (size_t)len < sizeof path && mr_tree_has_dir(t, path, (size_t)len);
}

/* Whether a file directly in the folder has this ending; checks the first LOOK_AT entries. */
static bool has_ending(const mr_tree *t, const mr_split_dir *dir, const char *ending)
{
    mr_child child = {0};
    for (int n = 0; n < LOOK_AT && mr_tree_next(t, dir->name, dir->len, &child); n++)
        if (!child.is_dir && child.name[0] != '.' && mr_name_ends(child.name, child.name_len, ending))
            return true;
    return false;
}

static bool has_flat_image(const mr_tree *t, const mr_split_dir *dir)
{
    mr_child child = {0};
    for (int n = 0; n < LOOK_AT && mr_tree_next(t, dir->name, dir->len, &child); n++)
        if (!child.is_dir && mr_folder_image(t, child.entry, dir->len + 1))
            return true;
    return false;
}

static bool has_rf_name(const mr_tree *t, const mr_split_dir *dir)
{
    uint32_t end = dir->end - dir->begin > LOOK_AT ? dir->begin + LOOK_AT : dir->end;
    for (uint32_t e = dir->begin; e < end; e++) {
        mr_sample sample = {.entry = e};
        mr_rf_group(t, &sample);
        if (sample.group_len && mr_folder_image(t, e, dir->len + 1))
            return true;
    }
    return false;
}

static void set(mr_rf_marks *m, mr_rf_kind kind, const char *format, const mr_split_dir *dir, const char *what)
{
    m->kind = kind;
    m->format = format;
    snprintf(m->seen, sizeof m->seen, "%.*s/%s", (int)dir->len, dir->name, what);
}

static void look_for_signs(const mr_tree *t, mr_rf_marks *m)
{
    for (size_t s = 0; s < MR_COUNT(signs) && !m->kind; s++)
        for (size_t i = 0; i < m->dirs.count && !m->kind; i++) {
            const mr_split_dir *dir = &m->dirs.items[i];
            const char *name = signs[s].name;
            if (name[0] == '.' ? has_ending(t, dir, name) : mr_rf_find(t, dir, name, strlen(name)) != MR_NO_ENTRY) {
                set(m, signs[s].kind, signs[s].format, dir, name[0] == '.' ? "*.tfrecord" : name);
                m->layout = signs[s].layout;
            }
        }
}

static void look_for_pairs(const mr_tree *t, mr_rf_marks *m)
{
    for (size_t i = 0; i < m->dirs.count && !m->kind; i++) {
        const mr_split_dir *dir = &m->dirs.items[i];
        bool images = has_dir(t, dir, "images"), yaml = mr_tree_find(t, "data.yaml", 9) != MR_NO_ENTRY;
        if (images && has_dir(t, dir, "labelTxt"))
            set(m, MR_RF_FOREIGN, "YOLO OBB", dir, "labelTxt");
        else if (images && (yaml || has_dir(t, dir, "labels")))
            set(m, MR_RF_FOREIGN, "YOLO", dir, has_dir(t, dir, "labels") ? "labels" : "images with data.yaml");
        else if (has_ending(t, dir, ".xml") && has_flat_image(t, dir))
            set(m, MR_RF_FOREIGN, "Pascal VOC", dir, "*.xml");
        if (m->kind)
            m->layout = images ? "yolo" : "voc";
    }
}

static void look_for_folders(const mr_tree *t, mr_rf_marks *m)
{
    if (!m->readme && !m->names && !m->valid)
        return;
    for (size_t i = 0; i < m->dirs.count && !m->kind; i++)
        if (mr_folder_count(t, &m->dirs.items[i], LOOK_AT))
            set(m, MR_RF_FOLDER, NULL, &m->dirs.items[i], "CLASS/ with images");
}

void mr_rf_look(const mr_tree *t, const mr_layout_options *o, mr_rf_marks *marks)
{
    *marks = (mr_rf_marks){0};
    mr_split_dirs_find(t, o, &marks->dirs);
    if (!marks->dirs.count)
        return;
    bool roboflow = mr_tree_find(t, MR_RF_README, strlen(MR_RF_README)) != MR_NO_ENTRY;
    marks->readme = roboflow || mr_tree_find(t, MR_RF_README_DATA, strlen(MR_RF_README_DATA)) != MR_NO_ENTRY;
    marks->valid = mr_split_dirs_has(&marks->dirs, "valid");
    for (size_t i = 0; i < marks->dirs.count && !marks->names; i++)
        marks->names = has_rf_name(t, &marks->dirs.items[i]);
    look_for_signs(t, marks);
    look_for_pairs(t, marks);
    look_for_folders(t, marks);
    if (!marks->kind && roboflow)
        set(marks, MR_RF_FOREIGN, "unknown", &marks->dirs.items[0], "with no known annotations");
}

void mr_rf_group(const mr_tree *t, mr_sample *sample)
{
    const mr_entry *e = mr_source_entry(t->source, sample->entry);
    const char *slash = memrchr(e->path, '/', e->path_len);
    size_t at = slash ? (size_t)(slash - e->path) + 1 : 0;
    const char *mark = memmem(e->path + at, e->path_len - at, ".rf.", 4);
    sample->group_at = sample->group_len = 0;
    if (mark && (size_t)(mark - e->path) > at) {
        sample->group_at = (uint32_t)at;
        sample->group_len = (uint32_t)(mark - e->path - (ptrdiff_t)at);
    }
}

/* ---- READMEs -------------------------------------------------------------------------------------------------- */

/* "License: CC BY 4.0" on a line of its own; the first that is not empty. */
static mr_status find_licence(const mr_buf *text, mr_plan *plan, mr_error *err)
{
    static const char word[] = "License:";
    const size_t word_len = sizeof word - 1;
    mr_buf licence = {0};
    for (mr_lines l = mr_lines_of(text->data, text->len); !licence.len && mr_lines_next(&l);) {
        if (l.len <= word_len || memcmp(l.line, word, word_len))
            continue;
        const char *at = l.line + word_len, *end = l.line + l.len;
        at += strspn(at, " \t");
        mr_text_escape(&licence, at, (size_t)(end - at));
    }
    mr_buf_text(&licence);
    if (licence.failed || !licence.len) {
        mr_status status = mr_buf_status(&licence, err, "reading a licence");
        mr_buf_free(&licence);
        return status;
    }
    plan->licence = (char *)licence.data;
    return MR_OK;
}

mr_status mr_rf_readmes(const mr_tree *t, mr_plan *plan, mr_error *err)
{
    uint32_t export = mr_tree_find(t, MR_RF_README, strlen(MR_RF_README));
    uint32_t data = mr_tree_find(t, MR_RF_README_DATA, strlen(MR_RF_README_DATA));
    MR_AUTO(mr_buf_free) mr_buf text = {0};
    if (export != MR_NO_ENTRY)
        plan->used[export] = 1;
    if (data == MR_NO_ENTRY)
        return MR_OK;
    plan->used[data] = 1;
    if (mr_source_entry(t->source, data)->size > README_MAX) {
        mr_note_add(plan->notes, MR_NOTE_INFO, MR_RF_README_DATA, strlen(MR_RF_README_DATA),
                    mr_source_entry(t->source, data)->size, "too long to look for the licence in it");
        return MR_OK;
    }
    MR_TRY(mr_source_read(t->source, data, &text, err));
    if (text.len && !plan->licence)
        MR_TRY(find_licence(&text, plan, err));
    return MR_OK;
}
