/* class_names.c - checks that the class folders of a plan look like classes.
 * Invariant: a doubt is an error that names the folders and the options that settle it; nothing is corrected silently.
 *
 *      val/images/1.jpg                    "images" describes the files, not what they show
 *      cars_train/1.jpg  cars_test/1.jpg   names that differ in the split alone
 *      train/animals/cat/1.jpg             no image in "animals" itself, and no two folders of this level have one
 *                                          name: is the class "animals" or "cat"? */
#include <stdlib.h>
#include <string.h>

#include "base/scope.h"
#include "base/text.h"
#include "ingest/source/names.h"
#include "ingest/layout/folder_names.h"
#include "ingest/layout/common/folders.h"

enum { NAMED = 4, SPLITS_SEEN = 32 }; /* folders that a message names, that are compared */

/* "data/train/masks", as --exclude wants it. */
static void add_path(const mr_tree *t, const mr_split_dir *dir, const char *name, size_t len, mr_buf *out)
{
    mr_text_escape(out, t->root, t->root_len);
    mr_text_escape(out, dir->name, dir->len);
    if (dir->len && len)
        mr_buf_add_text(out, "/");
    mr_text_escape(out, name, len);
}

static const char *last_part(const mr_child *class, size_t *len)
{
    const char *slash = memrchr(class->name, '/', class->name_len), *at = slash ? slash + 1 : class->name;
    *len = (size_t)(class->name + class->name_len - at);
    return at;
}

/* ---- names of containers -------------------------------------------------------------------------------------- */

typedef struct doubt { /* class folders whose names are not those of classes, as text for one message */
    mr_buf places, names, tables, folders, maps;
    size_t splits, named;
} doubt;

/* A file beside the class folders that seems to hold their labels, as Tiny ImageNet's val_annotations.txt. */
static void add_table(const mr_tree *t, const mr_split_dir *dir, mr_buf *out)
{
    mr_child child = {0};
    while (mr_tree_next(t, dir->name, dir->len, &child))
        if (!child.is_dir && mr_name_ends(child.name, child.name_len, "_annotations.txt")) {
            mr_buf_add_text(out, out->len ? ", " : "; their labels seem to be in ");
            add_path(t, dir, child.name, child.name_len, out);
            return;
        }
}

static void add_doubt(const mr_tree *t, const mr_split_dir *dir, mr_container worst, doubt *d)
{
    mr_child class = {0};
    mr_buf_add_text(&d->places, d->splits ? ", " : "");
    if (dir->len) {
        add_path(t, dir, "", 0, &d->places);
        mr_buf_add_text(&d->places, "/");
        mr_buf_add_text(&d->maps, d->splits ? "," : " or --split-map ");
        mr_text_escape(&d->maps, dir->name, dir->called);
        mr_buf_add_text(&d->maps, "=");
    }
    d->splits++;
    while (mr_class_next(t, dir, 0, &class)) {
        size_t len;
        const char *name = last_part(&class, &len);
        if (mr_folder_container(name, len) != worst)
            continue;
        mr_buf_add_text(&d->folders, " --exclude ");
        add_path(t, dir, class.name, class.name_len, &d->folders);
        if (d->named < NAMED && (!d->names.len || !memmem(d->names.data, d->names.len, class.name, class.name_len))) {
            mr_buf_add_text(&d->names, d->named++ ? ", " : "");
            mr_text_escape(&d->names, class.name, class.name_len);
        }
    }
    add_table(t, dir, &d->tables);
}

/* A name that only containers have is wrong anywhere in a split; one that a class may have is wrong only if it is
 * alone. */
static void look_for_containers(const mr_tree *t, const mr_split_dir *dir, doubt *d)
{
    size_t counts[3] = {0}, classes = 0;
    mr_child class = {0};
    while (mr_class_next(t, dir, 0, &class)) {
        size_t len;
        const char *name = last_part(&class, &len);
        counts[mr_folder_container(name, len)]++;
        classes++;
    }
    if (counts[MR_CONTAINER_SURE])
        add_doubt(t, dir, MR_CONTAINER_SURE, d);
    else if (classes == 1 && counts[MR_CONTAINER_PERHAPS])
        add_doubt(t, dir, MR_CONTAINER_PERHAPS, d);
}

static mr_status refuse_containers(doubt *d, mr_error *err)
{
    if (d->places.failed || d->names.failed || d->tables.failed || d->folders.failed || d->maps.failed)
        return mr_fail_memory(err, "checking the classes");
    return mr_fail(err, MR_BAD_DATA,
                   "%s%sthe classes would be called %s, which are not class names%s%s. Arrange the images as "
                   "CLASS/IMAGE, store them without classes by --layout flat, or leave them out:%s%s",
                   mr_buf_text(&d->places), d->places.len ? ": " : "", mr_buf_text(&d->names), mr_buf_text(&d->tables),
                   d->tables.len ? ", which --layout ilsvrc reads" : "", mr_buf_text(&d->folders),
                   mr_buf_text(&d->maps));
}

static void free_doubt(doubt *d)
{
    mr_buf_free(&d->places);
    mr_buf_free(&d->names);
    mr_buf_free(&d->tables);
    mr_buf_free(&d->folders);
    mr_buf_free(&d->maps);
}

/* ---- splits in the place of classes ----------------------------------------------------------------------------- */

typedef struct split_like { /* the name of a class folder with a word for a split in it */
    const char *name;
    size_t len;
    mr_split_token token;
} split_like;

/* Whether the names differ in the split alone: "bounding_box_test", "bounding_box_train". */
static bool are_splits(const split_like *a, const split_like *b)
{
    size_t end_a = a->token.at + a->token.len, end_b = b->token.at + b->token.len;
    return strcmp(a->token.split, b->token.split) && a->token.at == b->token.at &&
           !memcmp(a->name, b->name, a->token.at) && a->len - end_a == b->len - end_b &&
           !memcmp(a->name + end_a, b->name + end_b, a->len - end_a);
}

static mr_status refuse_splits(const split_like *a, const split_like *b, mr_error *err)
{
    MR_AUTO(mr_buf_free) mr_buf names = {0};
    mr_text_show(&names, a->name, a->len);
    mr_buf_add_text(&names, " and ");
    mr_text_show(&names, b->name, b->len);
    return mr_fail(err, MR_BAD_DATA,
                   "%s are named like splits, and would become classes: arrange the images as "
                   "SPLIT/CLASS/IMAGE; --layout flat stores them without classes, --class-depth 1 makes each "
                   "folder a class",
                   mr_buf_text(&names));
}

static mr_status check_splits(const mr_tree *t, const mr_split_dir *dir, mr_error *err)
{
    split_like seen[SPLITS_SEEN];
    size_t count = 0;
    mr_child class = {0};
    while (count < SPLITS_SEEN && mr_class_next(t, dir, 0, &class)) {
        split_like now = {0};
        now.name = last_part(&class, &now.len);
        now.token = mr_split_token_of(now.name, now.len);
        if (!now.token.split || now.token.several)
            continue;
        for (size_t i = 0; i < count; i++)
            if (are_splits(&seen[i], &now))
                return refuse_splits(&seen[i], &now, err);
        seen[count++] = now;
    }
    return MR_OK;
}

/* ---- classes one level deeper --------------------------------------------------------------------------------- */

typedef struct name {
    const char *text;
    size_t len;
} name;

typedef struct names {
    name *items;
    size_t count, capacity;
} names;

static int by_text(const void *a, const void *b)
{
    const name *x = a, *y = b;
    int order = memcmp(x->text, y->text, x->len < y->len ? x->len : y->len);
    return order ? order : (x->len > y->len) - (x->len < y->len);
}

/* The folders with images in a class folder; *direct: it holds an image itself. */
static mr_status list_inner(const mr_tree *t, const mr_child *class, names *inner, bool *direct, mr_error *err)
{
    size_t len;
    const char *path = mr_tree_path(t, class->entry, &len);
    size_t class_end = (size_t)(class->name - path) + class->name_len;
    mr_child child = {0};
    while (!*direct && mr_tree_next(t, path, class_end, &child)) {
        *direct = !child.is_dir && mr_folder_image(t, child.entry, class_end + 1);
        if (!mr_folder_is_class(t, &child, 0))
            continue;
        if (!MR_GROW(inner->items, inner->count, inner->capacity))
            return mr_fail_memory(err, "checking the classes");
        inner->items[inner->count++] = (name){child.name, child.name_len};
    }
    return MR_OK;
}

static bool all_differ(names *n)
{
    if (n->count)
        qsort(n->items, n->count, sizeof *n->items, by_text);
    for (size_t i = 1; i < n->count; i++)
        if (by_text(&n->items[i - 1], &n->items[i]) == 0)
            return false;
    return true;
}

static mr_status refuse_nesting(const mr_tree *t, const mr_split_dir *dir, const mr_child *first, const names *inner,
                                mr_error *err)
{
    mr_buf place = {0}, below = {0}, outer = {0};
    add_path(t, dir, first->name, first->name_len, &place);
    mr_text_escape(&outer, first->name, first->name_len);
    for (size_t i = 0; i < inner->count && i < NAMED; i++) {
        mr_buf_add_text(&below, i ? ", " : "");
        mr_text_escape(&below, inner->items[i].text, inner->items[i].len);
    }
    mr_buf_add_text(&below, inner->count > NAMED ? " ..." : "");
    bool failed = place.failed || below.failed || outer.failed;
    if (failed)
        mr_fail_memory(err, "checking the classes");
    else
        mr_fail(err, MR_BAD_DATA,
                "%s/: class folders hold no image themselves, only folders with other names (%s): "
                "--class-depth 1 uses the outer folders (%s) as classes, --class-depth 2 the inner ones",
                mr_buf_text(&place), mr_buf_text(&below), mr_buf_text(&outer));
    mr_buf_free(&place);
    mr_buf_free(&below);
    mr_buf_free(&outer);
    return failed ? MR_SYSTEM : MR_BAD_DATA;
}

/* Classes without an image of their own, beside others that have some, as church/indoor and church/outdoor beside abbey
 * in SUN397: the names of their folders are lost. */
typedef struct joined {
    mr_child first;
    name inner[2]; /* of the first */
    size_t count;
} joined;

/* Sets *found where some class holds an image and others do not. */
static mr_status check_nesting(const mr_tree *t, const mr_split_dir *dir, joined *found, mr_error *err)
{
    names inner = {0};
    joined now = {0};
    size_t classes = 0;
    bool any = false;
    mr_child class = {0}, first = {0};
    mr_status status = MR_OK;
    while (status == MR_OK && mr_class_next(t, dir, 0, &class)) {
        bool direct = false;
        size_t before = inner.count;
        first = classes++ ? first : class;
        status = list_inner(t, &class, &inner, &direct, err);
        any = any || direct;
        if (!direct && inner.count > before + 1 && !now.count++) {
            now.first = class;
            now.inner[0] = inner.items[before];
            now.inner[1] = inner.items[before + 1];
        }
    }
    if (status == MR_OK && !any && inner.count > classes && all_differ(&inner))
        status = refuse_nesting(t, dir, &first, &inner, err);
    if (any && now.count && !found->count)
        *found = now;
    free(inner.items);
    return status;
}

/* ---- folders in class folders that hold something else ----------------------------------------------------------- */

static mr_status refuse_others(const char *path, size_t class_len, const char *inner, size_t len, mr_error *err)
{
    MR_AUTO(mr_buf_free) mr_buf place = {0};
    MR_AUTO(mr_buf_free) mr_buf pattern = {0};
    MR_AUTO(mr_buf_free) mr_buf option = {0};
    mr_text_escape(&place, path, class_len);
    mr_buf_add_text(&pattern, "**/");
    mr_buf_add(&pattern, inner, len);
    mr_source_leave_out(mr_buf_text(&pattern), pattern.len, &option);
    if (place.failed || pattern.failed || option.failed)
        return mr_fail_memory(err, "checking the classes");
    return mr_fail(
        err, MR_BAD_DATA,
        "%s/ holds images and a folder %.*s, whose images would be of this class as well; %s leaves out such "
        "folders, --class-depth 1 takes all images below a class folder",
        mr_buf_text(&place), (int)len, inner, mr_buf_text(&option));
}

/* train/cat/1.png and train/cat/masks/1.png: the latter are masks, labels or thumbnails of the former. */
static mr_status check_others(const mr_tree *t, const mr_split_dir *dir, mr_error *err)
{
    mr_child class = {0};
    while (mr_class_next(t, dir, 0, &class)) {
        size_t len, end = mr_child_at(t, &class) + class.name_len;
        const char *path = mr_tree_path(t, class.entry, &len);
        mr_child child = {0}, others = {0};
        bool direct = false;
        while (mr_tree_next(t, path, end, &child)) {
            direct = direct || (!child.is_dir && mr_folder_image(t, child.entry, end + 1));
            if (!others.name && mr_folder_of_others(child.name, child.name_len) && mr_folder_is_class(t, &child, 0))
                others = child;
        }
        if (direct && others.name)
            return refuse_others(path, end, others.name, others.name_len, err);
    }
    return MR_OK;
}

mr_status mr_folder_check_classes(const mr_tree *t, const mr_layout_options *o, const mr_split_dirs *dirs,
                                  mr_notes *notes, mr_error *err)
{
    doubt d = {0};
    joined found = {0};
    for (size_t i = 0; i < dirs->count; i++)
        look_for_containers(t, &dirs->items[i], &d);
    mr_status status = d.splits ? refuse_containers(&d, err) : MR_OK;
    free_doubt(&d);
    for (size_t i = 0; i < dirs->count && status == MR_OK && !o->class_depth; i++)
        status = check_splits(t, &dirs->items[i], err);
    for (size_t i = 0; i < dirs->count && status == MR_OK && !o->class_depth; i++)
        status = check_others(t, &dirs->items[i], err);
    for (size_t i = 0; i < dirs->count && status == MR_OK && !o->class_depth; i++)
        status = check_nesting(t, &dirs->items[i], &found, err);
    if (status == MR_OK && found.count)
        mr_note_add(notes, MR_NOTE_INFO, found.first.name, found.first.name_len, 0,
                    "the images of its folders (such as %.*s and %.*s) are all of this class; such classes: %zu",
                    (int)found.inner[0].len, found.inner[0].text, (int)found.inner[1].len, found.inner[1].text,
                    found.count);
    return status;
}
