/* names.c - classes, keypoints and task in data.yaml.
 * Source: "Dataset format" in Ultralytics' documentation: names is a list or a map of numbers, nc their count,
 * kpt_shape [keypoints, 2 or 3]; Roboflow adds a map roboflow with the licence. Invariant: class number n of the files
 * is class n of the plan. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/scope.h"
#include "base/text.h"
#include "ingest/layout/yolo/yolo.h"

enum { KEYPOINTS_MAX = 10000 };

static mr_status refuse(const mr_yolo_build *b, const mr_yaml_node *node, const char *why)
{
    return mr_fail(b->err, MR_BAD_DATA, "%s: line %" PRIu32 ": %s", b->settings.name, node->line, why);
}

/* Only digits, or an integral number (2.0); false: something else, or more than `most`. */
static bool whole(const mr_yolo_build *b, const mr_yaml_node *node, uint64_t most, uint64_t *out)
{
    const char *text = mr_yaml_text(&b->settings.yaml, node);
    size_t digits = strspn(text, "0123456789");
    char copy[24];
    if (!node || !digits || digits >= sizeof copy ||
        (text[digits] && (text[digits] != '.' || text[digits + 1 + strspn(text + digits + 1, "0")])))
        return false;
    memcpy(copy, text, digits);
    copy[digits] = '\0';
    return mr_text_parse_u64(copy, out) && *out <= most;
}

static mr_status add_class(const mr_yolo_build *b, const mr_yaml_node *node)
{
    const char *name = mr_yaml_text(&b->settings.yaml, node);
    if (node->kind != MR_YAML_TEXT)
        return refuse(b, node, "a class name is a list or a map, not a string");
    if (!*name)
        return refuse(b, node, "a class has no name");
    if (b->plan->class_count == MR_YOLO_CLASSES)
        return refuse(b, node, "more than 65,536 classes, the limit for a YOLO dataset");
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

/* {0: person, 2: car}: the numbers are in any order, and none may be missing, as the files' numbers would have no
 * name. */
static mr_status add_map(const mr_yolo_build *b, const mr_yaml_node *names)
{
    const mr_yaml *y = &b->settings.yaml;
    size_t count = 0, capacity = 0;
    MR_AUTO(mr_scope_free) named *list = NULL;
    for (const mr_yaml_node *key = mr_yaml_first(y, names); key; key = mr_yaml_next(y, mr_yaml_next(y, key))) {
        if (!MR_GROW(list, count, capacity))
            return mr_fail_memory(b->err, "reading data.yaml");
        list[count] = (named){.name = mr_yaml_next(y, key)};
        if (!whole(b, key, MR_YOLO_CLASSES - 1, &list[count].number))
            return refuse(b, key, "a key of names is not a class number");
        count++;
    }
    if (count)
        qsort(list, count, sizeof *list, by_number);
    for (size_t i = 0; i < count; i++) {
        if (list[i].number != i)
            return mr_fail(b->err, MR_BAD_DATA,
                           "%s: line %" PRIu32 ": names has class %" PRIu64 " %s: the numbers start at 0, each once",
                           b->settings.name, list[i].name->line, list[i].number,
                           list[i].number < i ? "twice" : "where one before it is missing");
        MR_TRY(add_class(b, list[i].name));
    }
    return MR_OK;
}

static mr_status add_names(const mr_yolo_build *b, const mr_yaml_node *names)
{
    if (names->kind == MR_YAML_MAP)
        return add_map(b, names);
    for (const mr_yaml_node *name = mr_yaml_first(&b->settings.yaml, names); name;
         name = mr_yaml_next(&b->settings.yaml, name))
        MR_TRY(add_class(b, name));
    return MR_OK;
}

static mr_status read_count(const mr_yolo_build *b, const mr_yaml_node *root)
{
    const mr_yaml_node *nc = mr_yaml_get(&b->settings.yaml, root, "nc");
    uint64_t count = 0;
    if (!nc)
        return MR_OK;
    if (!whole(b, nc, MR_YOLO_CLASSES, &count))
        return refuse(b, nc, "nc is not a number of classes from 0 to 65,536");
    if (b->plan->class_count && b->plan->class_count != count)
        return mr_fail(b->err, MR_BAD_DATA,
                       "%s: line %" PRIu32 ": nc is %" PRIu64 ", but names has %zu classes: correct one of them",
                       b->settings.name, nc->line, count, b->plan->class_count);
    for (uint64_t i = b->plan->class_count; i < count; i++) {
        char name[24];
        MR_TRY(
            mr_plan_class(b->plan, name, (size_t)snprintf(name, sizeof name, "%" PRIu64, i), true, (int64_t)i, b->err));
    }
    return MR_OK;
}

static mr_status read_keypoints(const mr_yolo_build *b, const mr_yaml_node *root)
{
    const mr_yaml_node *shape = mr_yaml_get(&b->settings.yaml, root, "kpt_shape"),
                       *first = mr_yaml_first(&b->settings.yaml, shape);
    uint64_t count, dims;
    if (!shape)
        return MR_OK;
    if (shape->kind != MR_YAML_LIST || !whole(b, first, KEYPOINTS_MAX, &count) ||
        !whole(b, mr_yaml_next(&b->settings.yaml, first), 3, &dims) || dims < 2 || !count)
        return refuse(b, shape, "kpt_shape is not [KEYPOINTS, 2] or [KEYPOINTS, 3]");
    b->st->keypoints = (unsigned)count;
    b->st->dims = (unsigned)dims;
    return MR_OK;
}

static mr_status read_licence(const mr_yolo_build *b, const mr_yaml_node *root)
{
    const mr_yaml_node *node =
        mr_yaml_get(&b->settings.yaml, mr_yaml_get(&b->settings.yaml, root, "roboflow"), "license");
    mr_buf text = {0};
    if (!node || !*mr_yaml_text(&b->settings.yaml, node))
        return MR_OK;
    mr_text_escape(&text, mr_yaml_text(&b->settings.yaml, node), strlen(mr_yaml_text(&b->settings.yaml, node)));
    mr_buf_text(&text);
    b->plan->licence = text.failed ? NULL : (char *)text.data;
    return text.failed ? mr_fail_memory(b->err, "reading data.yaml") : MR_OK;
}

static const char *const task_words[] = {
    [MR_YOLO_DETECT] = "detect", [MR_YOLO_SEGMENT] = "segment", [MR_YOLO_OBB] = "obb", [MR_YOLO_KEYPOINTS] = "pose"};

/* What export writes for lines that could be read in two ways. */
static mr_status read_task(const mr_yolo_build *b, const mr_yaml_node *root)
{
    const mr_yaml_node *task = mr_yaml_get(&b->settings.yaml, root, "task");
    for (size_t i = MR_YOLO_DETECT; i < MR_COUNT(task_words); i++)
        if (!strcmp(mr_yaml_text(&b->settings.yaml, task), task_words[i]))
            b->st->task = (mr_yolo_task)i;
    if (b->st->task == MR_YOLO_KEYPOINTS && !b->st->keypoints)
        return refuse(b, task, "task: pose needs kpt_shape: [KEYPOINTS, 2] or [KEYPOINTS, 3]");
    return MR_OK;
}

/* names: data/obj.names, as in Darknet. */
static mr_status add_named_file(mr_yolo_build *b, const mr_yaml_node *names)
{
    MR_AUTO(mr_buf_free) mr_buf path = {0};
    mr_yolo_resolve(b->tree, &b->settings.yaml, mr_yaml_text(&b->settings.yaml, names), &path);
    uint32_t entry = path.len ? mr_tree_find(b->tree, mr_buf_text(&path), path.len) : MR_NO_ENTRY;
    MR_TRY(mr_buf_status(&path, b->err, "reading the class names"));
    if (entry == MR_NO_ENTRY)
        return refuse(b, names, "names is neither a list nor a map of class names, nor a file that is there");
    b->chosen = true;
    return mr_yolo_name_list(b, entry);
}

mr_status mr_yolo_names(mr_yolo_build *b)
{
    const mr_yaml *yaml = &b->settings.yaml;
    const mr_yaml_node *root = mr_yaml_root(yaml), *names = mr_yaml_get(yaml, root, "names");
    if (root && root->kind != MR_YAML_MAP)
        return refuse(b, root, "not dataset settings (a map of names, train, val ...)");
    if (names && names->kind == MR_YAML_TEXT && *mr_yaml_text(yaml, names))
        MR_TRY(add_named_file(b, names));
    else if (names)
        MR_TRY(add_names(b, names));
    if (b->plan->class_count && !b->named_by)
        b->named_by = b->settings.name;
    MR_TRY(mr_yolo_name_lists(b));
    bool any = b->plan->class_count > 0;
    MR_TRY(read_count(b, root));
    MR_TRY(read_keypoints(b, root));
    MR_TRY(read_task(b, root));
    MR_TRY(read_licence(b, root));
    if (!any && b->settings.entry != MR_NO_ENTRY)
        mr_note_add(b->plan->notes, MR_NOTE_INFO, b->settings.name, strlen(b->settings.name), 0,
                    "it has no names: classes are named by their numbers");
    return mr_plan_classes_place(b->plan, b->err);
}
