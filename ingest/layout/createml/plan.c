/* plan.c - CreateML: the images of each JSON file, in the order of their paths.
 * Invariant: every image that a JSON file lists, and every image next to it, ends up as a sample or in a note. */
#include <stdlib.h>
#include <string.h>

#include "base/scope.h"
#include "createml/createml.h"
#include "format/format.h"
#include "layout/class_set.h"
#include "roboflow/roboflow.h"

typedef struct build {
    const mr_tree *tree;
    const mr_layout_options *options;
    mr_plan *plan;
    mr_createml_state *st;
    mr_split_dirs dirs;
    mr_class_set classes;
    mr_error *err;
} build;

static mr_status take_label(void *ctx, const char *text, size_t len, mr_error *err)
{
    build *b = ctx;
    return mr_class_set_add(&b->classes, b->plan, text, len, err);
}

/* The image's entry in the folder of its JSON file; MR_NO_ENTRY: missing. */
static uint32_t find_image(const build *b, const mr_split_dir *dir, uint32_t json, const mr_createml_image *image,
                           mr_buf *path)
{
    size_t len;
    const char *name = mr_tree_path(b->tree, json, &len);
    if (memchr(image->name, '\0', image->name_len) || !mr_path_beside(name, len, image->name, path))
        return MR_NO_ENTRY;
    uint32_t entry = mr_tree_find(b->tree, mr_buf_text(path), path->len);
    return entry >= dir->begin && entry < dir->end && entry != json ? entry : MR_NO_ENTRY;
}

/* image_of[entry - dir->begin]: the number of the listed image that names the entry, plus 1. */
static void place_images(const build *b, const mr_split_dir *dir, const mr_createml_file *f, uint32_t *image_of)
{
    MR_AUTO(mr_buf_free) mr_buf path = {0};
    size_t len;
    const char *json = mr_tree_path(b->tree, f->entry, &len);
    for (size_t n = 0; n < f->count; n++) {
        const mr_createml_image *image = &f->images[n];
        uint32_t entry = find_image(b, dir, f->entry, image, &path);
        if (entry == MR_NO_ENTRY)
            mr_note_add(b->plan->notes, MR_NOTE_MISSING, image->name, image->name_len, 0,
                        "%s names it, with %u annotations", json, image->objects);
        else if (image_of[entry - dir->begin])
            mr_note_add(b->plan->notes, MR_NOTE_COLLISION, image->name, image->name_len, 0,
                        "%s names it twice: the first counts", json);
        else
            image_of[entry - dir->begin] = (uint32_t)n + 1;
    }
    b->plan->notes->failed = b->plan->notes->failed || path.failed;
}

static mr_status add_samples(build *b, size_t number)
{
    const mr_split_dir *dir = &b->dirs.items[number];
    const mr_createml_file *f = b->st->files[number];
    MR_AUTO(mr_scope_free) uint32_t *image_of = mr_alloc(dir->end - dir->begin, sizeof *image_of);
    if (!image_of)
        return mr_fail_memory(b->err, "listing the samples");
    if (f)
        place_images(b, dir, f, image_of);
    for (uint32_t e = dir->begin; e < dir->end; e++) {
        uint32_t n = image_of[e - dir->begin];
        if (!n && mr_folder_image(b->tree, e, dir->len ? dir->len + 1 : 0))
            MR_TRY(mr_folder_unlisted(b->tree, b->options, b->plan, dir->split, e,
                                      f ? "not listed in the annotations beside it" : "no annotations are beside it",
                                      mr_rf_group, b->err));
        if (!n || !f)
            continue;
        const mr_createml_image *image = &f->images[n - 1];
        mr_sample s = {.split = dir->split,
                       .entry = e,
                       .label = -1,
                       .flags = image->objects ? 0 : MR_FLAG_UNANNOTATED,
                       .aux = mr_createml_aux(number, n - 1),
                       .meta_bytes = 2 * (uint64_t)image->len + 32};
        mr_rf_group(b->tree, &s);
        MR_TRY(mr_plan_add(b->plan, &s, b->err));
    }
    return MR_OK;
}

static mr_status keep_text(build *b, uint32_t json)
{
    MR_AUTO(mr_buf_free) mr_buf text = {0};
    if (mr_source_entry(b->tree->source, json)->size > MR_TEXTS_MAX - b->st->texts.bytes.len)
        return MR_OK;
    MR_TRY(mr_source_read(b->tree->source, json, &text, b->err));
    mr_texts_keep(&b->st->texts, json, text.data, text.len);
    return MR_OK;
}

static mr_status read_files(build *b)
{
    for (size_t i = 0; i < b->dirs.count; i++) {
        const mr_split_dir *dir = &b->dirs.items[i];
        uint32_t json;
        MR_TRY(mr_createml_find(b->tree, dir->name, dir->len, &json, b->err));
        if (json == MR_NO_ENTRY)
            continue;
        b->plan->used[json] = 1;
        mr_status status = mr_createml_parse(b->tree->source, json, take_label, b, &b->st->files[i], b->err);
        if (b->dirs.count > 1)
            status = mr_source_dispensable(b->tree->source, json, "ingests without the images that it lists", status,
                                           b->err);
        MR_TRY(status);
        if (b->st->files[i])
            MR_TRY(keep_text(b, json));
    }
    mr_texts_sort(&b->st->texts);
    mr_plan_classes_sort(b->plan);
    return MR_OK;
}

static mr_status plan_all(build *b)
{
    mr_split_dirs_find(b->tree, b->options, &b->dirs);
    if (!b->dirs.count) {
        b->dirs.items[0] = mr_split_dir_whole(b->tree, b->options);
        b->dirs.count = 1;
    }
    MR_TRY(mr_split_dirs_open(b->tree, b->options, b->plan, &b->dirs, b->err));
    MR_TRY(mr_rf_readmes(b->tree, b->plan, b->err));
    MR_TRY(read_files(b));
    for (uint32_t split = 0; split < b->plan->split_count; split++)
        for (size_t i = 0; i < b->dirs.count; i++)
            if (b->dirs.items[i].split == split)
                MR_TRY(add_samples(b, i));
    return MR_OK;
}

mr_status mr_createml_plan(const mr_tree *t, const mr_layout_options *o, mr_plan *plan, mr_error *err)
{
    build b = {.tree = t, .options = o, .plan = plan, .st = mr_alloc(1, sizeof *b.st), .err = err};
    if (!b.st)
        return mr_fail_memory(err, "reading CreateML annotations");
    plan->state = b.st;
    plan->variant = "boxes";
    mr_status status = plan_all(&b);
    mr_class_set_free(&b.classes);
    return status;
}
