/* class_names.c - checks that the class folders of a plan look like classes.
 * Invariant: a doubt is an error that names the folders and the options that settle it; nothing is corrected silently.
 *
 *      val/images/1.jpg                    "images" describes the files, not what they show
 *      cars_train/1.jpg  cars_test/1.jpg   names that differ in the split alone
 *      cat/1.jpg  dog/1.jpg  test/1.jpg    a split's name */
#include <stdlib.h>
#include <string.h>

#include "base/scope.h"
#include "base/text.h"
#include "ingest/source/names.h"
#include "ingest/layout/folder_names.h"
#include "ingest/layout/folders/class_checks.h"

enum { NAMED = MR_CLASSES_NAMED, SPLITS_SEEN = 32 }; /* folders that a message names, that are compared */

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
            mr_class_path(t, dir, child.name, child.name_len, out);
            return;
        }
}

static void add_doubt(const mr_tree *t, const mr_split_dir *dir, mr_container worst, doubt *d)
{
    mr_child class = {0};
    mr_buf_add_text(&d->places, d->splits ? ", " : "");
    if (dir->len) {
        mr_class_path(t, dir, "", 0, &d->places);
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
        mr_class_path(t, dir, class.name, class.name_len, &d->folders);
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

/* cat/, dog/ and test/: trains are classes of some datasets, so that name alone is a remark. */
static mr_status check_split_name(const mr_tree *t, const mr_split_dir *dir, const mr_child *class,
                                  const split_like *like, mr_notes *notes, mr_error *err)
{
    MR_AUTO(mr_buf_free) mr_buf place = {0};
    MR_AUTO(mr_buf_free) mr_buf option = {0};
    size_t len, end = mr_child_at(t, class) + class->name_len;
    if (!mr_split_word(like->name, like->len))
        return MR_OK;
    if (like->len == strlen("train") && !strncasecmp(like->name, "train", like->len)) {
        mr_note_add(notes, MR_NOTE_INFO, class->name, class->name_len, 0, "a class that is named like a split");
        return MR_OK;
    }
    mr_class_path(t, dir, class->name, class->name_len, &place);
    mr_source_leave_out(mr_tree_path(t, class->entry, &len) - t->root_len, t->root_len + end, &option);
    if (place.failed || option.failed)
        return mr_fail_memory(err, "checking the classes");
    return mr_fail(
        err, MR_BAD_DATA,
        "%s/ is named like a split, and would be a class: %s leaves it out, --class-depth 1 makes it a class",
        mr_buf_text(&place), mr_buf_text(&option));
}

static mr_status check_splits(const mr_tree *t, const mr_split_dir *dir, mr_notes *notes, mr_error *err)
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
        MR_TRY(check_split_name(t, dir, &class, &now, notes, err));
        seen[count++] = now;
    }
    return MR_OK;
}

mr_status mr_folder_check_classes(const mr_tree *t, const mr_layout_options *o, const mr_split_dirs *dirs,
                                  mr_notes *notes, mr_error *err)
{
    doubt d = {0};
    for (size_t i = 0; i < dirs->count; i++)
        look_for_containers(t, &dirs->items[i], &d);
    mr_status status = d.splits ? refuse_containers(&d, err) : MR_OK;
    free_doubt(&d);
    for (size_t i = 0; i < dirs->count && status == MR_OK && !o->class_depth; i++)
        status = check_splits(t, &dirs->items[i], notes, err);
    return status == MR_OK && !o->class_depth ? mr_class_check_nesting(t, dirs, notes, err) : status;
}
