/* name_lists.c - files with a class in each line, and Label Studio's notes.json.
 * Source: LabelImg writes classes.txt beside its label files, Label Studio beside its folders, with notes.json; Darknet
 * has obj.names; Roboflow's exports for Darknet have _darknet.labels in each split.
 * Invariant: all files that name classes agree on the classes that they share; one that does not is an error that names
 * both. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/scope.h"
#include "base/text.h"
#include "base/json/json.h"
#include "ingest/tables/lines.h"
#include "ingest/source/names.h"
#include "ingest/layout/yolo/yolo.h"

enum { LIST_MAX = 1 << 20 };

static mr_status differ(const mr_yolo_build *b, const char *name, uint64_t line, size_t number, const char *text,
                        size_t len)
{
    MR_AUTO(mr_buf_free) mr_buf shown = {0};
    char place[40] = "";
    mr_text_show(&shown, text, len < 100 ? len : 100);
    if (line)
        snprintf(place, sizeof place, "line %" PRIu64 ": ", line);
    return mr_fail(b->err, MR_BAD_DATA,
                   "%s: %sclass %zu is \"%s\", in %s it is \"%s\": correct one of them, or leave it out with --exclude",
                   name, place, number, mr_buf_text(&shown), b->named_by, b->plan->classes[number].name);
}

/* Class `number` of a file: a further class, or the same as that of the files before. */
static mr_status take_name(mr_yolo_build *b, const char *name, uint64_t line, size_t number, const char *text,
                           size_t len)
{
    MR_AUTO(mr_buf_free) mr_buf path_text = {0};
    if (number == MR_YOLO_CLASSES)
        return mr_fail(b->err, MR_BAD_DATA, "%s: more than 65,536 classes, the limit for a YOLO dataset", name);
    mr_text_escape(&path_text, text, len);
    const char *escaped = mr_buf_text(&path_text);
    MR_TRY(mr_buf_status(&path_text, b->err, "reading the class names"));
    if (number < b->plan->class_count)
        return strcmp(b->plan->classes[number].name, escaped) != 0 ? differ(b, name, line, number, text, len) : MR_OK;
    if (b->named_by == b->settings.name)
        return MR_OK; /* data.yaml says how many there are */
    return mr_plan_class(b->plan, text, len, true, (int64_t)number, b->err);
}

mr_status mr_yolo_name_list(mr_yolo_build *b, uint32_t entry)
{
    MR_AUTO(mr_buf_free) mr_buf text = {0};
    size_t name_len, number = 0;
    const char *name = mr_tree_path(b->tree, entry, &name_len);
    if (mr_source_entry(b->tree->source, entry)->size > LIST_MAX)
        return mr_fail(b->err, MR_BAD_DATA, "%s: longer than 1 MiB, the limit for a class list", name);
    MR_TRY(mr_source_read(b->tree->source, entry, &text, b->err));
    for (mr_lines l = mr_lines_of(text.data, text.len); mr_lines_next(&l);) {
        if (l.number != number + 1)
            return mr_fail(b->err, MR_BAD_DATA,
                           "%s: has a blank line before the last class, whose number is therefore unknown", name);
        MR_TRY(take_name(b, name, l.number, number++, l.line, l.len));
    }
    b->plan->used[entry] = MR_USE_TAKEN;
    if (number && !b->named_by)
        b->named_by = name;
    return MR_OK;
}

/* ---- notes.json -------------------------------------------------------------------------------------------------- */

/* {"categories": [{"id": 0, "name": "cat"}, ...], "info": ...}; in any order of the ids. */
static mr_status take_categories(mr_yolo_build *b, const char *name, const json_t *categories)
{
    size_t count = json_array_size(categories);
    for (size_t id = 0; id < count; id++) {
        const json_t *text = NULL;
        for (size_t i = 0; i < count && !text; i++) {
            const json_t *category = json_array_get(categories, (id + i) % count);
            const json_t *number = json_object_get(category, "id");
            if (json_is_integer(number) && json_integer_value(number) == (json_int_t)id)
                text = json_object_get(category, "name");
        }
        if (!json_is_string(text))
            return mr_fail(b->err, MR_BAD_DATA, "%s: has %zu categories, but none with \"id\" %zu and a \"name\"", name,
                           count, id);
        MR_TRY(take_name(b, name, 0, id, json_string_value(text), json_string_length(text)));
    }
    if (count && !b->named_by)
        b->named_by = name;
    return MR_OK;
}

static mr_status read_notes(mr_yolo_build *b)
{
    MR_AUTO(mr_buf_free) mr_buf text = {0};
    uint32_t entry = mr_tree_find(b->tree, "notes.json", 10);
    size_t len;
    json_t *doc = NULL;
    if (entry == MR_NO_ENTRY || mr_source_entry(b->tree->source, entry)->size > LIST_MAX)
        return MR_OK;
    const char *name = mr_tree_path(b->tree, entry, &len);
    MR_TRY(mr_source_read(b->tree->source, entry, &text, b->err));
    MR_TRY(mr_json_bounded(mr_buf_text(&text), text.len, 64 << 20, name, b->err));
    MR_TRY(mr_json_parse(mr_buf_text(&text), text.len, name, &doc, b->err));
    const json_t *categories = json_object_get(doc, "categories");
    mr_status status = MR_OK;
    if (json_is_array(categories) && json_array_size(categories) <= MR_YOLO_CLASSES) {
        b->plan->used[entry] = MR_USE_TAKEN;
        status = take_categories(b, name, categories);
    }
    json_decref(doc);
    return status;
}

/* ---- where they are ---------------------------------------------------------------------------------------------- */

static bool is_list(const mr_child *child)
{
    static const char *const names[] = {"classes.txt", MR_YOLO_DARKNET};
    if (child->is_dir || child->name[0] == '.')
        return false;
    for (size_t i = 0; i < MR_COUNT(names); i++)
        if (child->name_len == strlen(names[i]) && !strncasecmp(child->name, names[i], child->name_len))
            return true;
    return mr_name_ends(child->name, child->name_len, ".names");
}

static mr_status read_folder(mr_yolo_build *b, const char *dir, size_t len)
{
    mr_child child = {0};
    while (mr_tree_next(b->tree, dir, len, &child))
        if (is_list(&child) && b->plan->used[child.entry] == MR_USE_NONE &&
            !(b->chosen && mr_name_ends(child.name, child.name_len, ".names")))
            MR_TRY(mr_yolo_name_list(b, child.entry));
    return MR_OK;
}

/* The folders of labels that stand for a folder of images. */
static mr_status read_label_folders(mr_yolo_build *b, const mr_yolo_dir *d)
{
    static const char images[] = "images";
    MR_AUTO(mr_buf_free) mr_buf path = {0};
    const char *found = NULL;
    for (size_t i = 0; i + strlen(images) <= d->len && !found; i++)
        found = strncasecmp(d->path + i, images, strlen(images)) == 0 ? d->path + i : NULL;
    for (size_t i = 0; found && mr_yolo_label_folders[i]; i++) {
        mr_buf_clear(&path);
        mr_buf_add(&path, d->path, (size_t)(found - d->path));
        mr_yolo_add_folder(&path, mr_yolo_label_folders[i], found);
        mr_buf_add(&path, found + strlen(images), d->len - (size_t)(found - d->path) - strlen(images));
        const char *dir = mr_buf_text(&path);
        MR_TRY(mr_buf_status(&path, b->err, "reading the class names"));
        MR_TRY(read_folder(b, dir, path.len));
    }
    return MR_OK;
}

/* Whether no line of it is the name of an image, as it is in a table of labels. */
static bool names_no_image(const mr_yolo_build *b, uint32_t entry)
{
    char head[4096];
    uint64_t size = mr_source_entry(b->tree->source, entry)->size;
    size_t len = size < sizeof head ? (size_t)size : sizeof head;
    mr_lines l = mr_lines_of(head, len);
    if (mr_source_pread(b->tree->source, entry, head, len, 0, NULL) != MR_OK || memchr(head, '\0', len))
        return false;
    while (mr_lines_next(&l)) {
        const char *space = memchr(l.line, ' ', l.len);
        if (mr_name_is_image(l.line, l.len) || (space && mr_name_is_image(l.line, (size_t)(space - l.line))))
            return false;
    }
    return l.number > 0;
}

/* Other names that such a list has, where no file with a sure one is there. */
static mr_status read_likely_list(mr_yolo_build *b)
{
    static const char *const names[] = {"names.txt", "labels.txt", "class_names.txt", "predefined_classes.txt",
                                        "data/predefined_classes.txt"};
    for (size_t i = 0; i < MR_COUNT(names) && !b->plan->class_count; i++) {
        uint32_t entry = mr_tree_find(b->tree, names[i], strlen(names[i]));
        if (entry != MR_NO_ENTRY && names_no_image(b, entry))
            MR_TRY(mr_yolo_name_list(b, entry));
    }
    return MR_OK;
}

mr_status mr_yolo_name_lists(mr_yolo_build *b)
{
    MR_TRY(read_folder(b, "", 0));
    MR_TRY(read_notes(b));
    MR_TRY(read_folder(b, "labels", 6));
    for (size_t i = 0; i < b->dirs.count; i++) {
        const mr_yolo_dir *d = &b->dirs.items[i];
        if (d->len)
            MR_TRY(read_folder(b, d->path, d->len));
        MR_TRY(read_label_folders(b, d));
    }
    return read_likely_list(b);
}

uint32_t mr_yolo_names_above(const mr_tree *t)
{
    for (size_t len = t->root_len; len;) {
        for (len--; len && t->root[len - 1] != '/';)
            len--;
        mr_tree above = mr_tree_at(t->source, t->root, len);
        mr_child child = {0};
        const char *name;
        size_t name_len;
        if (mr_yolo_settings_found(&above, &name, &name_len))
            return mr_tree_find(&above, name, name_len);
        while (mr_tree_next(&above, "", 0, &child))
            if (is_list(&child))
                return child.entry;
    }
    return MR_NO_ENTRY;
}
