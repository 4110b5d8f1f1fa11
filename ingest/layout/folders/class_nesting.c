/* class_nesting.c - folders in class folders: classes one level deeper, copies of the classes, masks.
 * Invariant: a doubt is an error that names the folders and the options that settle it; nothing is corrected silently.
 *
 *      train/animals/cat/1.jpg             no image in "animals" itself, and no two folders of this level have one
 *                                          name: is the class "animals" or "cat"?
 *      cat/1.jpg  dog/1.jpg  all/cat/1.jpg  all/dog/1.jpg      "all" is a copy of the classes beside it
 *      cat/1.jpg  cat/masks/1.png                              masks are not images of a cat                         */
#include <stdlib.h>
#include <string.h>

#include "base/scope.h"
#include "base/text.h"
#include "ingest/layout/folder_names.h"
#include "ingest/layout/folders/class_checks.h"

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
    while (mr_tree_next(t, path, class_end, &child)) {
        *direct = *direct || (!child.is_dir && mr_folder_image(t, child.entry, class_end + 1));
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

static void add_names(const name *items, size_t count, mr_buf *out)
{
    for (size_t i = 0; i < count && i < MR_CLASSES_NAMED; i++) {
        mr_buf_add_text(out, i ? ", " : "");
        mr_text_escape(out, items[i].text, items[i].len);
    }
    mr_buf_add_text(out, count > MR_CLASSES_NAMED ? " ..." : "");
}

static mr_status refuse_nesting(const mr_tree *t, const mr_split_dir *dir, const mr_child *first, const names *inner,
                                mr_error *err)
{
    MR_AUTO(mr_buf_free) mr_buf place = {0};
    MR_AUTO(mr_buf_free) mr_buf below = {0};
    MR_AUTO(mr_buf_free) mr_buf outer = {0};
    mr_class_path(t, dir, first->name, first->name_len, &place);
    mr_text_escape(&outer, first->name, first->name_len);
    add_names(inner->items, inner->count, &below);
    if (place.failed || below.failed || outer.failed)
        return mr_fail_memory(err, "checking the classes");
    return mr_fail(err, MR_BAD_DATA,
                   "%s/: class folders hold no image themselves, only folders with other names (%s): "
                   "--class-depth 1 uses the outer folders (%s) as classes, --class-depth 2 the inner ones",
                   mr_buf_text(&place), mr_buf_text(&below), mr_buf_text(&outer));
}

/* Whether a folder in the class is named like another class of the split. */
static bool is_class_name(const mr_tree *t, const mr_split_dir *dir, const mr_child *class, const char *text,
                          size_t len)
{
    MR_AUTO(mr_buf_free) mr_buf path = {0};
    mr_buf_add(&path, dir->name, dir->len);
    mr_buf_add_text(&path, dir->len ? "/" : "");
    mr_buf_add(&path, text, len);
    bool own = len == class->name_len && !memcmp(text, class->name, len);
    return !own && !path.failed && mr_tree_has_dir(t, mr_buf_text(&path), path.len);
}

/* Whether all folders of a class are: yes/, no/, and brain/ with yes/ and no/ in it. */
static bool repeats_classes(const mr_tree *t, const mr_split_dir *dir, const mr_child *class, const name *inner,
                            size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!is_class_name(t, dir, class, inner[i].text, inner[i].len))
            return false;
    return true;
}

static mr_status refuse_repeat(const mr_tree *t, const mr_split_dir *dir, const mr_child *class, const name *inner,
                               size_t count, mr_error *err)
{
    MR_AUTO(mr_buf_free) mr_buf place = {0};
    MR_AUTO(mr_buf_free) mr_buf below = {0};
    MR_AUTO(mr_buf_free) mr_buf option = {0};
    size_t end = mr_child_at(t, class) + class->name_len, len;
    mr_class_path(t, dir, class->name, class->name_len, &place);
    add_names(inner, count, &below);
    mr_source_leave_out(mr_tree_path(t, class->entry, &len) - t->root_len, t->root_len + end, &option);
    if (place.failed || below.failed || option.failed)
        return mr_fail_memory(err, "checking the classes");
    return mr_fail(err, MR_BAD_DATA,
                   "%s/ holds folders named like the classes beside it (%s): is it a copy of them?  %s leaves it out, "
                   "--class-depth 1 makes it a class of its own",
                   mr_buf_text(&place), mr_buf_text(&below), mr_buf_text(&option));
}

typedef struct joined { /* classes of several folders, whose names are lost */
    mr_child first;
    name inner[2]; /* of the first */
    size_t count;
} joined;

typedef struct nested {
    joined empty; /* without an image of their own, beside others with some: church/indoor, church/outdoor and abbey in
                   * SUN397 */
    joined mixed; /* with images and folders, where most have no folders: one may have been moved there by mistake */
} nested;

static void join(joined *j, const mr_child *class, const name *inner, size_t count)
{
    if (j->count++)
        return;
    j->first = *class;
    j->inner[0] = inner[0];
    j->inner[1] = inner[count > 1];
}

/* Sets *found where classes differ in whether they hold images, or folders. */
static mr_status check_nesting(const mr_tree *t, const mr_split_dir *dir, nested *found, mr_error *err)
{
    names inner = {0};
    nested now = {0};
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
        size_t count = status == MR_OK ? inner.count - before : 0;
        if (!direct && count > 1 && repeats_classes(t, dir, &class, inner.items + before, count))
            status = refuse_repeat(t, dir, &class, inner.items + before, count, err);
        if (direct ? count > 0 : count > 1)
            join(direct ? &now.mixed : &now.empty, &class, inner.items + before, count);
    }
    if (status == MR_OK && !any && inner.count > classes && all_differ(&inner))
        status = refuse_nesting(t, dir, &first, &inner, err);
    if (any && now.empty.count && !found->empty.count)
        found->empty = now.empty;
    if (now.mixed.count * 2 < classes && now.mixed.count && !found->mixed.count)
        found->mixed = now.mixed;
    free(inner.items);
    return status;
}

/* ---- folders in class folders that hold something else ----------------------------------------------------------- */

/* `everywhere`: no folder of this name holds images of a class. */
static mr_status refuse_others(const mr_tree *t, const mr_child *class, const mr_child *inner, bool everywhere,
                               mr_error *err)
{
    MR_AUTO(mr_buf_free) mr_buf place = {0};
    MR_AUTO(mr_buf_free) mr_buf pattern = {0};
    MR_AUTO(mr_buf_free) mr_buf option = {0};
    size_t len;
    const char *path = mr_tree_path(t, inner->entry, &len);
    mr_text_escape(&place, path, mr_child_at(t, class) + class->name_len);
    if (everywhere)
        mr_buf_add_text(&pattern, "**/");
    else
        mr_buf_add(&pattern, path - t->root_len, t->root_len + mr_child_at(t, inner));
    mr_buf_add(&pattern, inner->name, inner->name_len);
    mr_source_leave_out(mr_buf_text(&pattern), pattern.len, &option);
    if (place.failed || pattern.failed || option.failed)
        return mr_fail_memory(err, "checking the classes");
    return mr_fail(err, MR_BAD_DATA,
                   "%s/ holds images and a folder %.*s, whose images would be of this class as well; %s leaves out %s, "
                   "--class-depth 1 takes all images below a class folder",
                   mr_buf_text(&place), (int)inner->name_len, inner->name, mr_buf_text(&option),
                   everywhere ? "such folders" : "that folder");
}

/* train/cat/1.png and train/cat/masks/1.png: the latter are masks, labels or thumbnails of the former.  A folder in
 * train/cat/ that is called val, or dog, where train/dog/ is a class, was probably moved there by mistake. */
static mr_status check_others(const mr_tree *t, const mr_split_dir *dir, mr_error *err)
{
    mr_child class = {0};
    while (mr_class_next(t, dir, 0, &class)) {
        size_t len, end = mr_child_at(t, &class) + class.name_len;
        const char *path = mr_tree_path(t, class.entry, &len);
        mr_child child = {0}, others = {0};
        bool direct = false, everywhere = false;
        while (mr_tree_next(t, path, end, &child)) {
            direct = direct || (!child.is_dir && mr_folder_image(t, child.entry, end + 1));
            if (others.name || !mr_folder_is_class(t, &child, 0))
                continue;
            everywhere = mr_folder_of_others(child.name, child.name_len);
            if (everywhere || mr_split_word(child.name, child.name_len) ||
                is_class_name(t, dir, &class, child.name, child.name_len))
                others = child;
        }
        if (direct && others.name)
            return refuse_others(t, &class, &others, everywhere, err);
    }
    return MR_OK;
}

static void note_joined(const joined *j, const char *which, mr_notes *notes)
{
    MR_AUTO(mr_buf_free) mr_buf folders = {0};
    bool two = j->inner[0].text != j->inner[1].text;
    if (!j->count)
        return;
    mr_text_show(&folders, j->inner[0].text, j->inner[0].len);
    mr_buf_add_text(&folders, two ? " and " : "");
    mr_text_show(&folders, j->inner[1].text, two ? j->inner[1].len : 0);
    mr_note_add(notes, MR_NOTE_INFO, j->first.name, j->first.name_len, 0,
                "the images of its folders (such as %s) are %s this class; such classes: %zu", mr_buf_text(&folders),
                which, j->count);
    notes->failed = notes->failed || folders.failed;
}

mr_status mr_class_check_nesting(const mr_tree *t, const mr_split_dirs *dirs, mr_notes *notes, mr_error *err)
{
    nested found = {0};
    for (size_t i = 0; i < dirs->count; i++)
        MR_TRY(check_others(t, &dirs->items[i], err));
    for (size_t i = 0; i < dirs->count; i++)
        MR_TRY(check_nesting(t, &dirs->items[i], &found, err));
    note_joined(&found.empty, "all of", notes);
    note_joined(&found.mixed, "also of", notes);
    return MR_OK;
}
