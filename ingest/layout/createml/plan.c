/* plan.c - CreateML: the images that JSON files name, in the order of their paths.
 * Invariant: every entry of a JSON file, and every image next to it, ends up in a sample or in a note; what several
 * entries say about one image adds up. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/scope.h"
#include "ingest/layout/createml/createml.h"
#include "shards/manifest/format.h"
#include "ingest/layout/common/class_set.h"
#include "ingest/layout/image_names.h"
#include "ingest/layout/common/roboflow_files.h"

enum { ENTRIES_COMPARED = 16 };

typedef struct build {
    const mr_tree *tree;
    const mr_layout_options *options;
    mr_plan *plan;
    mr_createml_state *st;
    mr_split_dirs dirs;
    bool from_root; /* the JSON files are at the root, beside the split folders */
    mr_class_set classes;
    mr_error *err;
} build;

/* ---- which image an entry names ---------------------------------------------------------------------------------- */

typedef struct place { /* where the images of a JSON file are */
    uint32_t json, begin, end;
    mr_image_names names; /* in there, once one is needed */
} place;

/* The image's entry, beside its JSON file or alone of its name below it; MR_NO_ENTRY: missing. */
static mr_status find_image(const build *b, place *p, const mr_createml_image *image, mr_name_match *found)
{
    MR_AUTO(mr_buf_free) mr_buf path = {0};
    size_t len;
    const char *json = mr_tree_path(b->tree, p->json, &len);
    *found = (mr_name_match){MR_NO_ENTRY, MR_NO_ENTRY};
    if (memchr(image->name, '\0', image->name_len))
        return MR_OK;
    if (mr_path_beside(json, len, image->name, &path))
        found->entry = mr_tree_find(b->tree, mr_buf_text(&path), path.len);
    if (found->entry != MR_NO_ENTRY && found->entry >= p->begin && found->entry < p->end && found->entry != p->json)
        return MR_OK;
    MR_TRY(mr_buf_status(&path, b->err, "reading CreateML annotations"));
    return mr_image_names_below(&p->names, b->tree, p->begin, p->end, image->name, image->name_len, found, b->err);
}

static void note_missing(const build *b, const mr_createml_file *f, const mr_createml_image *image,
                         const mr_name_match *found)
{
    size_t len;
    const char *json = mr_tree_path(b->tree, f->entry, &len);
    if (found->rival == MR_NO_ENTRY)
        mr_note_add(b->plan->notes, MR_NOTE_MISSING, image->name, image->name_len, 0, "%s names it (annotations: %u)",
                    json, image->objects);
    else
        mr_note_add(b->plan->notes, MR_NOTE_MISSING, image->name, image->name_len, 0,
                    "%s names it, which may be %s or %s: include the folder in the name", json,
                    mr_tree_path(b->tree, found->entry, &len), mr_tree_path(b->tree, found->rival, &len));
}

static void reject(const build *b, const mr_createml_file *f, const mr_createml_image *image, uint32_t entry)
{
    size_t json_len, len;
    const char *json = mr_tree_path(b->tree, f->entry, &json_len);
    const char *path = entry == MR_NO_ENTRY ? json : mr_tree_path(b->tree, entry, &len);
    mr_note_add(b->plan->notes, MR_NOTE_REJECT, path, strlen(path), 0, "%s: byte %" PRIu64 ": %s", json, image->why_at,
                image->why);
}

static mr_status add_refs(build *b, place *p, uint32_t number)
{
    mr_createml_state *st = b->st;
    const mr_createml_file *f = st->files[number];
    for (uint32_t n = 0; n < f->count; n++) {
        const mr_createml_image *image = &f->images[n];
        mr_name_match found;
        if (!image->name_len) {
            mr_createml_image bad = *image;
            bad.why = bad.why ? bad.why : "\"image\" is empty";
            bad.why_at = image->why ? bad.why_at : bad.at + 1;
            reject(b, f, &bad, MR_NO_ENTRY);
            continue;
        }
        MR_TRY(find_image(b, p, image, &found));
        bool missing = found.entry == MR_NO_ENTRY || found.rival != MR_NO_ENTRY;
        if (missing && image->why) { /* its name may be what is bad */
            reject(b, f, image, MR_NO_ENTRY);
            continue;
        }
        if (missing) {
            note_missing(b, f, image, &found);
            continue;
        }
        if (!MR_GROW(st->refs, st->ref_count, st->ref_capacity))
            return mr_fail_memory(b->err, "listing the samples");
        st->refs[st->ref_count++] = (mr_createml_ref){found.entry, number, n};
    }
    return MR_OK;
}

/* ---- several entries of one image -------------------------------------------------------------------------------- */

static int by_entry(const void *a, const void *b)
{
    const mr_createml_ref *x = a, *y = b;
    if (x->entry != y->entry)
        return x->entry < y->entry ? -1 : 1;
    if (x->file != y->file)
        return x->file < y->file ? -1 : 1;
    return (x->image > y->image) - (x->image < y->image);
}

/* Among the first ones: an image has few entries, and a hostile file any number. */
static mr_status is_repeat(const build *b, const mr_createml_ref *first, const mr_createml_ref *one, bool *yes)
{
    const mr_createml_ref *end = one - first > ENTRIES_COMPARED ? first + ENTRIES_COMPARED : one;
    MR_AUTO(mr_buf_free) mr_buf text = {0}, other = {0};
    MR_TRY(mr_createml_ref_text(b->tree->source, b->st, one, &text, b->err));
    *yes = false;
    for (; first < end && !*yes; first++) {
        mr_buf_clear(&other);
        MR_TRY(mr_createml_ref_text(b->tree->source, b->st, first, &other, b->err));
        *yes = other.len == text.len && !memcmp(other.data, text.data, text.len);
    }
    return MR_OK;
}

/* Copies of an entry, as in a second file that is a copy of the first, say nothing new. */
static mr_status join_refs(build *b)
{
    mr_createml_state *st = b->st;
    size_t kept = 0, first = 0, repeats = 0, joined = 0;
    if (st->ref_count)
        qsort(st->refs, st->ref_count, sizeof *st->refs, by_entry);
    for (size_t i = 0; i < st->ref_count; i++) {
        const mr_createml_ref ref = st->refs[i];
        bool again = kept && st->refs[kept - 1].entry == ref.entry, repeat = false;
        first = again ? first : kept;
        st->refs[kept] = ref;
        if (again)
            MR_TRY(is_repeat(b, &st->refs[first], &st->refs[kept], &repeat));
        joined += again && !repeat;
        repeats += repeat;
        kept += !repeat;
    }
    st->ref_count = kept;
    if (joined)
        mr_note_add(b->plan->notes, MR_NOTE_INFO, "", 0, 0,
                    "more entries for images that already have one: %zu; their annotations are joined", joined);
    if (repeats)
        mr_note_add(b->plan->notes, MR_NOTE_INFO, "", 0, 0,
                    "entries that repeat another for the same image exactly: %zu; they are used once", repeats);
    return MR_OK;
}

/* ---- files ------------------------------------------------------------------------------------------------------- */

static mr_status take_label(void *ctx, const char *text, size_t len, mr_error *err)
{
    build *b = ctx;
    return mr_class_set_add(&b->classes, b->plan, text, len, err);
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

static mr_status read_file(build *b, place *p, bool only)
{
    mr_createml_state *st = b->st;
    mr_createml_file *file = NULL;
    b->plan->used[p->json] = MR_USE_TAKEN;
    mr_status status = mr_createml_parse(b->tree->source, p->json, take_label, b, &file, b->err);
    if (!only)
        status =
            mr_source_dispensable(b->tree->source, p->json, "ingests without the images that it lists", status, b->err);
    MR_TRY(status);
    if (!MR_GROW(st->files, st->file_count, st->file_capacity)) {
        mr_createml_free(file);
        return mr_fail_memory(b->err, "reading CreateML annotations");
    }
    st->files[st->file_count++] = file;
    MR_TRY(keep_text(b, p->json));
    status = add_refs(b, p, (uint32_t)st->file_count - 1);
    mr_image_names_free(&p->names);
    return status;
}

static mr_status read_files(build *b)
{
    MR_AUTO(mr_createml_jsons_free) mr_createml_jsons found = {0};
    size_t ends[MR_SPLIT_DIRS_MAX + 1] = {0}, dirs = b->dirs.count;
    for (size_t i = 0; i < dirs; i++) {
        MR_TRY(mr_createml_list(b->tree, b->dirs.items[i].name, b->dirs.items[i].len, &found, b->err));
        ends[i] = found.count;
    }
    b->from_root = !found.count;
    if (b->from_root)
        MR_TRY(mr_createml_list(b->tree, "", 0, &found, b->err));
    for (size_t i = 0, dir = 0; i < found.count; i++) {
        while (!b->from_root && i >= ends[dir])
            dir++;
        const mr_split_dir *d = &b->dirs.items[dir];
        place p = {.json = found.entries[i],
                   .begin = b->from_root ? b->tree->begin : d->begin,
                   .end = b->from_root ? b->tree->end : d->end};
        MR_TRY(read_file(b, &p, found.count == 1));
    }
    MR_TRY(join_refs(b));
    mr_texts_sort(&b->st->texts);
    mr_plan_classes_sort(b->plan);
    return MR_OK;
}

/* ---- samples ----------------------------------------------------------------------------------------------------- */

static size_t first_ref(const mr_createml_state *st, uint32_t entry)
{
    size_t low = 0, high = st->ref_count;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (st->refs[mid].entry < entry)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

static mr_status add_sample(build *b, uint32_t split, uint32_t entry, size_t ref)
{
    const mr_createml_state *st = b->st;
    mr_sample s = {.split = split, .entry = entry, .label = -1, .flags = MR_FLAG_UNANNOTATED, .aux = ref + 1};
    for (size_t i = ref; i < st->ref_count && st->refs[i].entry == entry; i++) {
        const mr_createml_file *f = st->files[st->refs[i].file];
        const mr_createml_image *image = &f->images[st->refs[i].image];
        if (image->why) {
            b->plan->used[entry] = MR_USE_TAKEN;
            reject(b, f, image, entry);
            return MR_OK;
        }
        s.flags = image->objects ? 0 : s.flags;
        s.meta_bytes += 2 * (uint64_t)image->len + 32;
    }
    mr_rf_group(b->tree, &s);
    return mr_plan_add(b->plan, &s, b->err);
}

static mr_status add_samples(build *b, const mr_split_dir *dir)
{
    const mr_createml_state *st = b->st;
    bool beside = b->from_root;
    for (size_t i = 0; i < st->file_count && !beside; i++)
        beside = st->files[i]->entry >= dir->begin && st->files[i]->entry < dir->end;
    size_t ref = first_ref(st, dir->begin);
    for (uint32_t e = dir->begin; e < dir->end; e++) {
        while (ref < st->ref_count && st->refs[ref].entry < e)
            ref++;
        if (ref < st->ref_count && st->refs[ref].entry == e)
            MR_TRY(add_sample(b, dir->split, e, ref));
        else if (mr_folder_image(b->tree, e, dir->len ? dir->len + 1 : 0))
            MR_TRY(
                mr_folder_unlisted(b->tree, b->options, b->plan, dir->split, e,
                                   beside ? "not listed in the annotations beside it" : "no annotations are beside it",
                                   mr_rf_group, b->err));
    }
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
                MR_TRY(add_samples(b, &b->dirs.items[i]));
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
