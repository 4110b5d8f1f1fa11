/* names.c - classes and keypoints in data.yaml.
 * Source: "Dataset format" in Ultralytics' documentation: names is a list or a map of numbers, nc their count,
 * kpt_shape [keypoints, 2 or 3]; Roboflow adds a map roboflow with the licence. Invariant: class number n of the files
 * is class n of the plan. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/scope.h"
#include "base/text.h"
#include "yolo/yolo.h"

enum { KEYPOINTS_MAX = 10000, DARKNET_MAX = 1 << 20 };

static mr_status refuse(const mr_yolo_build *b, const mr_yaml_node *node, const char *why)
{
    return mr_fail(b->err, MR_BAD_DATA, "%s: line %" PRIu32 ": %s", b->yaml_name, node->line, why);
}

/* Only digits; false: something else, or more than `most`. */
static bool whole(const mr_yolo_build *b, const mr_yaml_node *node, uint64_t most, uint64_t *out)
{
    const char *text = mr_yaml_text(&b->yaml, node);
    return node && *text && strspn(text, "0123456789") == strlen(text) && mr_text_parse_u64(text, out) && *out <= most;
}

static mr_status add_class(const mr_yolo_build *b, const mr_yaml_node *node)
{
    const char *name = mr_yaml_text(&b->yaml, node);
    if (node->kind != MR_YAML_TEXT)
        return refuse(b, node, "the name of a class is a list or a map, not a text");
    if (b->plan->class_count == MR_YOLO_CLASSES)
        return refuse(b, node, "more than the 65,536 classes that a YOLO dataset may have");
    return mr_plan_class(b->plan, name, strlen(name), true, (int64_t)b->plan->class_count, b->err);
}

typedef struct named {
    uint64_t number;
    const mr_yaml_node *name;
} named;

static int by_number(const void *a, const void *b)
{
    const named *x = a, *y = b;
    return (x->number > y->number) - (x->number < y->number);
}

/* {0: person, 2: car}: the numbers are in any order, and none may be missing, as the files' numbers would have no name.
 */
static mr_status add_map(const mr_yolo_build *b, const mr_yaml_node *names)
{
    const mr_yaml *y = &b->yaml;
    size_t count = 0, room = 0;
    MR_AUTO(mr_scope_free) named *list = NULL;
    for (const mr_yaml_node *key = mr_yaml_first(y, names); key; key = mr_yaml_next(y, mr_yaml_next(y, key))) {
        if (!MR_GROW(list, count, room))
            return mr_fail_memory(b->err, "reading data.yaml");
        list[count] = (named){.name = mr_yaml_next(y, key)};
        if (!whole(b, key, MR_YOLO_CLASSES - 1, &list[count].number))
            return refuse(b, key, "a key of names is not the number of a class");
        count++;
    }
    if (count)
        qsort(list, count, sizeof *list, by_number);
    for (size_t i = 0; i < count; i++) {
        if (list[i].number != i)
            return mr_fail(b->err, MR_BAD_DATA,
                           "%s: line %" PRIu32 ": names has class %" PRIu64 " %s: the numbers go from 0 on, each once",
                           b->yaml_name, list[i].name->line, list[i].number,
                           list[i].number < i ? "twice" : "where one before it is missing");
        MR_TRY(add_class(b, list[i].name));
    }
    return MR_OK;
}

static mr_status add_names(const mr_yolo_build *b, const mr_yaml_node *names)
{
    if (names->kind == MR_YAML_MAP)
        return add_map(b, names);
    if (names->kind == MR_YAML_TEXT && *mr_yaml_text(&b->yaml, names))
        return refuse(b, names, "names is neither a list nor a map of class names");
    for (const mr_yaml_node *name = mr_yaml_first(&b->yaml, names); name; name = mr_yaml_next(&b->yaml, name))
        MR_TRY(add_class(b, name));
    return MR_OK;
}

static mr_status read_count(const mr_yolo_build *b, const mr_yaml_node *root)
{
    const mr_yaml_node *nc = mr_yaml_get(&b->yaml, root, "nc");
    uint64_t count = 0;
    if (!nc)
        return MR_OK;
    if (!whole(b, nc, MR_YOLO_CLASSES, &count))
        return refuse(b, nc, "nc is not a number of classes from 0 to 65,536");
    if (b->plan->class_count && b->plan->class_count != count)
        return mr_fail(b->err, MR_BAD_DATA,
                       "%s: line %" PRIu32 ": nc is %" PRIu64 ", but names has %zu classes: correct one of them",
                       b->yaml_name, nc->line, count, b->plan->class_count);
    for (uint64_t i = b->plan->class_count; i < count; i++) {
        char name[24];
        MR_TRY(
            mr_plan_class(b->plan, name, (size_t)snprintf(name, sizeof name, "%" PRIu64, i), true, (int64_t)i, b->err));
    }
    return MR_OK;
}

static mr_status read_keypoints(const mr_yolo_build *b, const mr_yaml_node *root)
{
    const mr_yaml_node *shape = mr_yaml_get(&b->yaml, root, "kpt_shape"), *first = mr_yaml_first(&b->yaml, shape);
    uint64_t count, dims;
    if (!shape)
        return MR_OK;
    if (shape->kind != MR_YAML_LIST || !whole(b, first, KEYPOINTS_MAX, &count) ||
        !whole(b, mr_yaml_next(&b->yaml, first), 3, &dims) || dims < 2 || !count)
        return refuse(b, shape, "kpt_shape is not [KEYPOINTS, 2] or [KEYPOINTS, 3]");
    b->st->keypoints = (unsigned)count;
    b->st->dims = (unsigned)dims;
    return MR_OK;
}

static mr_status read_licence(const mr_yolo_build *b, const mr_yaml_node *root)
{
    const mr_yaml_node *node = mr_yaml_get(&b->yaml, mr_yaml_get(&b->yaml, root, "roboflow"), "license");
    mr_buf text = {0};
    if (!node || !*mr_yaml_text(&b->yaml, node))
        return MR_OK;
    mr_text_escape(&text, mr_yaml_text(&b->yaml, node), strlen(mr_yaml_text(&b->yaml, node)));
    mr_buf_text(&text);
    b->plan->licence = text.failed ? NULL : (char *)text.data;
    return text.failed ? mr_fail_memory(b->err, "reading data.yaml") : MR_OK;
}

static mr_status add_lines(const mr_yolo_build *b, const mr_buf *text, const char *name)
{
    bool blank = false;
    for (const char *at = (const char *)text->data, *end = at + text->len; at < end;) {
        const char *newline = memchr(at, '\n', (size_t)(end - at)), *stop = newline ? newline : end, *line = at;
        at = newline ? newline + 1 : end;
        while (stop > line && strchr(" \t\r", stop[-1]) && stop[-1])
            stop--;
        if (b->plan->class_count == MR_YOLO_CLASSES)
            return mr_fail(b->err, MR_BAD_DATA, "%s: more than the 65,536 classes that a YOLO dataset may have", name);
        if (stop > line && blank)
            return mr_fail(b->err, MR_BAD_DATA,
                           "%s: has a blank line before the last class: which number it has is unknown", name);
        blank = stop == line;
        if (!blank)
            MR_TRY(mr_plan_class(b->plan, line, (size_t)(stop - line), true, (int64_t)b->plan->class_count, b->err));
    }
    return MR_OK;
}

/* Each split's folder has the same list. */
static mr_status read_darknet(const mr_yolo_build *b)
{
    MR_AUTO(mr_buf_free) mr_buf first = {0}, text = {0}, path = {0};
    for (size_t i = 0; i < b->dirs.count; i++) {
        const mr_yolo_dir *d = &b->dirs.items[i];
        mr_buf_clear(&path);
        mr_buf_add(&path, d->path, d->len);
        mr_buf_add_text(&path, "/" MR_YOLO_DARKNET);
        const char *name = mr_buf_text(&path);
        uint32_t entry = mr_tree_find(b->tree, name, path.len);
        MR_TRY(mr_buf_status(&path, b->err, "reading the names of classes"));
        if (entry == MR_NO_ENTRY)
            continue;
        b->plan->used[entry] = 1;
        if (mr_source_entry(b->tree->source, entry)->size > DARKNET_MAX)
            return mr_fail(b->err, MR_BAD_DATA, "%s: longer than the 1 MiB that a list of classes may have", name);
        MR_TRY(mr_source_read(b->tree->source, entry, i ? &text : &first, b->err));
        if (!i)
            MR_TRY(add_lines(b, &first, name));
        else if (text.len != first.len || (text.len && memcmp(text.data, first.data, text.len) != 0))
            return mr_fail(b->err, MR_BAD_DATA,
                           "%s: has other classes than %.*s/" MR_YOLO_DARKNET ": correct one of them", name,
                           (int)b->dirs.items[0].len, b->dirs.items[0].path);
    }
    return MR_OK;
}

mr_status mr_yolo_names(mr_yolo_build *b)
{
    const mr_yaml_node *root = mr_yaml_root(&b->yaml), *names = mr_yaml_get(&b->yaml, root, "names");
    if (root && root->kind != MR_YAML_MAP)
        return refuse(b, root, "not the settings of a dataset (a map of names, train, val ...)");
    if (names)
        MR_TRY(add_names(b, names));
    else if (b->dirs.darknet)
        MR_TRY(read_darknet(b));
    bool any = b->plan->class_count > 0;
    MR_TRY(read_count(b, root));
    MR_TRY(read_keypoints(b, root));
    MR_TRY(read_licence(b, root));
    if (!any)
        mr_note_add(b->plan->notes, MR_NOTE_INFO, b->yaml_name, strlen(b->yaml_name), 0,
                    "%s: classes are called by their numbers",
                    *b->yaml_name ? "it has no names" : "there is no data.yaml at the root to name the classes");
    return mr_plan_classes_place(b->plan, b->err);
}
