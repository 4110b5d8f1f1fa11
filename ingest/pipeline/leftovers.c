/* leftovers.c - images and annotations that would be lost, folder by folder, and what the user can do about them.
 * Invariant: each option that is advised, followed as it is written, settles all leftovers of its folder.
 *
 *      data/train/cat/1.jpg        a sample of root data/
 *      data/test/1.jpg             in a split folder, but in no class folder
 *      data/bird/1.jpg             beside the split folders
 *      data/train/labels/1.xml     annotations that the layout does not read
 *      extra/cat/1.jpg             beside the root                                                                  */
#include <stdlib.h>
#include <string.h>

#include "base/scope.h"
#include "base/text.h"
#include "layout/folder_names.h"
#include "pipeline/ledger_parts.h"

enum { FORMATS = 4, ENDINGS = 3 }; /* of one folder; further ones are counted together */

typedef struct folder {
    const mr_book *book;
    const mr_leftover *items; /* those of the folder */
    size_t count;
    const char *path; /* from the top of the source */
    size_t len;
    size_t images, others; /* others: annotations of further formats */
    size_t odd;            /* of the images: not named like one */
    uint64_t bytes;
    const mr_format *formats[FORMATS];
    size_t counts[FORMATS];
    bool keepable, skippable; /* all of them */
    bool inside;              /* it is in the root */
    bool apart;               /* nothing in it is part of the dataset */
} folder;

static bool holds_kept(const mr_book *b, const char *path, size_t len)
{
    mr_tree t = mr_tree_at(b->in->source, path, len ? len + 1 : 0); /* with the slash */
    return b->kept[t.end] > b->kept[t.begin];
}

/* The outermost folder of the file that holds nothing of the dataset, or else the innermost one. */
static uint32_t folder_of(const mr_book *b, const char *path, size_t len)
{
    const char *slash, *from = path;
    size_t found = 0;
    while ((slash = memchr(from, '/', len - (size_t)(from - path)))) {
        found = (size_t)(slash - path);
        if (!holds_kept(b, path, found))
            break;
        from = slash + 1;
    }
    return (uint32_t)found;
}

static int by_folder(const void *a, const void *b)
{
    const mr_leftover *x = a, *y = b;
    uint32_t least = x->folder < y->folder ? x->folder : y->folder;
    int order = memcmp(x->path, y->path, least);
    order = order ? order : (x->folder > y->folder) - (x->folder < y->folder);
    return order ? order : (x->entry > y->entry) - (x->entry < y->entry);
}

static void count_item(folder *f, const mr_leftover *item)
{
    size_t k = 0;
    f->bytes += mr_source_entry(f->book->in->source, item->entry)->size;
    f->keepable = f->keepable && item->keepable;
    f->skippable = f->skippable && item->skippable;
    if (!item->format) {
        f->images++;
        f->odd += !mr_name_is_image(item->path, strlen(item->path));
        return;
    }
    while (k < FORMATS && f->formats[k] && f->formats[k] != item->format)
        k++;
    if (k == FORMATS) {
        f->others++;
        return;
    }
    f->formats[k] = item->format;
    f->counts[k]++;
}

/* The folder of the first of `count` sorted leftovers, with all of its leftovers. */
static folder next_folder(const mr_book *b, const mr_leftover *items, size_t count)
{
    const mr_tree *t = &b->in->choice.tree;
    folder f = {.book = b, .items = items, .path = items->path, .len = items->folder, .keepable = true};
    f.skippable = true;
    f.inside = items->entry >= t->begin && items->entry < t->end;
    f.apart = f.len && !holds_kept(b, f.path, f.len);
    while (f.count < count && items[f.count].folder == items->folder &&
           !memcmp(items[f.count].path, items->path, items->folder))
        count_item(&f, &items[f.count++]);
    return f;
}

/* ---- what to do about it ----------------------------------------------------------------------------------------- */

static void add_option(mr_buf *out, bool *any)
{
    mr_buf_add_text(out, *any ? ", " : "; ");
    *any = true;
}

/* The file's ending with its dot; empty: it has none. */
static const char *ending(const mr_leftover *item, size_t *len)
{
    size_t path_len = strlen(item->path), stem_len;
    const char *stem = mr_stem(item->path, path_len, &stem_len);
    *len = path_len - (size_t)(stem + stem_len - item->path);
    return stem + stem_len;
}

/* Whether a file of the dataset is in this very folder and ends like that. */
static bool kept_ends_so(const folder *f, const char *end, size_t end_len)
{
    mr_tree whole = mr_tree_at(f->book->in->source, "", 0);
    mr_child child = {0};
    while (mr_tree_next(&whole, f->path, f->len, &child))
        if (!child.is_dir && f->book->fates[child.entry] <= MR_FATE_MASK && child.name_len >= end_len &&
            !memcmp(child.name + child.name_len - end_len, end, end_len))
            return true;
    return false;
}

/* Patterns for files among those of the dataset; false: none tells them apart. */
static bool add_patterns(const folder *f, mr_buf *out)
{
    const char *ends[ENDINGS];
    size_t lens[ENDINGS], count = 0;
    for (size_t i = 0; i < f->count; i++) {
        size_t len, k = 0;
        const char *end = ending(&f->items[i], &len);
        while (k < count && (lens[k] != len || memcmp(ends[k], end, len) != 0))
            k++;
        if (k < count)
            continue;
        if (count == ENDINGS || !len ||
            memchr(f->items[i].path + f->len + (f->len > 0), '/', strlen(f->items[i].path) - f->len - (f->len > 0)))
            return false;
        if (kept_ends_so(f, end, len))
            return false;
        ends[count] = end;
        lens[count++] = len;
    }
    for (size_t k = 0; k < count; k++) {
        MR_AUTO(mr_buf_free) mr_buf pattern = {0};
        mr_buf_add(&pattern, f->path, f->len + (f->len > 0));
        mr_buf_add_text(&pattern, "*");
        mr_buf_add(&pattern, ends[k], lens[k]);
        mr_buf_add_text(out, k ? " " : "");
        mr_source_leave_out(mr_buf_text(&pattern), pattern.len, out);
    }
    return true;
}

static void advise_leave_out(const folder *f, bool *any, mr_buf *out)
{
    MR_AUTO(mr_buf_free) mr_buf patterns = {0};
    bool one = f->count == 1;
    if (f->apart) {
        add_option(out, any);
        mr_source_leave_out(f->path, f->len, out);
        mr_buf_add_text(out, " leaves it out");
        return;
    }
    bool told = !one && add_patterns(f, &patterns);
    if (!told && f->count > ENDINGS) {
        add_option(out, any);
        mr_buf_add_text(out, "files can be left out by their names (the report has them: --report FILE)");
        return;
    }
    add_option(out, any);
    if (told)
        mr_buf_add(out, patterns.data, patterns.len);
    for (size_t i = 0; i < f->count && !told; i++) {
        mr_buf_add_text(out, i ? " " : "");
        mr_source_leave_out(f->items[i].path, strlen(f->items[i].path), out);
    }
    mr_buf_add_text(out, one ? " leaves it out" : " leaves them out");
    out->failed = out->failed || patterns.failed;
}

/* A split of the plan in whose folder this one is, if the split has no sample; its name in the source. */
static const mr_split_alias *empty_split(const folder *f)
{
    const mr_plan *plan = &f->book->in->plan;
    size_t root = f->book->in->choice.tree.root_len;
    for (size_t s = 0; f->inside && f->len > root && s < plan->split_count; s++)
        for (size_t k = 0; k < plan->splits[s].alias_count; k++) {
            const mr_split_alias *a = &plan->splits[s].aliases[k];
            const char *path = f->path + root;
            size_t len = f->len - root;
            bool any = len < a->len || memcmp(path, a->name, a->len) != 0 || (len > a->len && path[a->len] != '/');
            for (size_t i = 0; i < plan->sample_count && !any; i++)
                any = plan->samples[i].split == s;
            if (!any)
                return a;
        }
    return NULL;
}

/* A folder of folders beside the splits may be a split. */
static bool may_be_split(const folder *f)
{
    const mr_tree *t = &f->book->in->choice.tree;
    const mr_plan *plan = &f->book->in->plan;
    mr_child child = {0};
    if (!plan->by_folder || !f->inside || !f->apart || f->images < f->count)
        return false;
    const char *name = f->path + t->root_len;
    size_t len = f->len - t->root_len;
    if (memchr(name, '/', len))
        return false;
    while (mr_tree_next(t, name, len, &child))
        if (!child.is_dir && mr_name_is_image(child.name, child.name_len))
            return false;
    return true;
}

/* "data/train" beside "val": where all folders of the folder are named like splits, an option for each takes it. */
static bool add_splits_inside(const folder *f, mr_buf *out)
{
    const mr_tree *t = &f->book->in->choice.tree;
    const char *name = f->path + t->root_len;
    size_t len = f->len - t->root_len;
    bool all = true, any = false;
    for (mr_child child = {0}; all && mr_tree_next(t, name, len, &child);)
        all = child.is_dir && mr_split_word(child.name, child.name_len);
    for (mr_child child = {0}; all && mr_tree_next(t, name, len, &child);) {
        MR_AUTO(mr_buf_free) mr_buf map = {0};
        mr_buf_add(&map, name, len);
        mr_buf_add_text(&map, "/");
        mr_buf_add(&map, child.name, child.name_len);
        mr_buf_add_text(out, any ? " --split-map " : "--split-map ");
        any = true;
        mr_source_quote((const char *)map.data, map.len, out);
        mr_buf_printf(out, "=%s", mr_split_word(child.name, child.name_len));
        out->failed = out->failed || map.failed;
    }
    return all;
}

/* Why they are left. */
static void say_reason(const folder *f, mr_buf *out)
{
    const mr_ingest *in = f->book->in;
    const char *layout = in->choice.layout->name;
    if (!f->inside) {
        mr_buf_add_text(out, "outside the dataset's root ");
        mr_text_escape(out, in->choice.tree.root, in->choice.tree.root_len);
    } else if (f->formats[0] && f->formats[0]->instead) {
        mr_buf_printf(out, "millrace does not read %s: %s", f->formats[0]->names, f->formats[0]->instead);
    } else if (f->formats[0]) {
        mr_buf_printf(out, f->skippable ? "layout %s found no image for %s" : "layout %s did not read %s", layout,
                      f->count - f->images == 1 ? "this annotation" : "these annotations");
    } else if (f->odd == f->images) {
        mr_buf_add_text(out, "an image is taken only if its name ends like one, with .jpg, .png or .webp");
    } else if (in->plan.by_folder) {
        mr_buf_add_text(out, f->keepable ? "not in a class folder" : "beside the split folders");
    } else {
        mr_buf_printf(out, "nothing that layout %s reads lists %s", layout, f->count == 1 ? "it" : "them");
    }
}

static void advise(const folder *f, mr_buf *out)
{
    const mr_ingest *in = f->book->in;
    const mr_tree *t = &in->choice.tree;
    const mr_split_alias *split = empty_split(f);
    bool any = false;
    say_reason(f, out);
    if (!f->inside && t->root_len) {
        add_option(out, &any);
        mr_buf_add_text(out, "--root ");
        mr_source_quote(t->root, t->root_len - 1, out);
        mr_buf_add_text(out, " ingests that folder alone");
    }
    if (f->keepable && in->choice.layout->options & MR_OPTION_UNLISTED) {
        add_option(out, &any);
        mr_buf_printf(out, "--keep-unlisted takes %s", f->count == 1 ? "it" : "them");
    }
    if (split || may_be_split(f)) {
        add_option(out, &any);
        if (!split && add_splits_inside(f, out)) {
            mr_buf_add_text(out, " takes what is in it");
        } else {
            mr_buf_add_text(out, "--split-map ");
            mr_source_quote(split ? split->name : f->path + t->root_len, split ? split->len : f->len - t->root_len,
                            out);
            mr_buf_add_text(out, split ? "= leaves the split out" : "=NAME takes the folder as a split");
        }
    }
    if (f->skippable) {
        add_option(out, &any);
        mr_buf_add_text(out, "--skip-unmatched leaves out all such files");
    }
    advise_leave_out(f, &any, out);
    if (!f->inside && in->plan.flat && f->images == f->count && !in->options->for_layout.class_depth) {
        add_option(out, &any);
        mr_buf_add_text(out, "--class-depth 1 takes each folder as a class");
    }
}

/* ---- what is said ------------------------------------------------------------------------------------------------ */

/* "8 images, 2 COCO annotation files" */
static void say_count(const folder *f, mr_buf *out)
{
    char count[32];
    if (f->images)
        mr_buf_printf(out, "%s image%s", mr_text_count(f->images, count), f->images == 1 ? "" : "s");
    for (size_t k = 0; k < FORMATS && f->formats[k]; k++)
        mr_buf_printf(out, "%s%s %s", k || f->images ? ", " : "", mr_text_count(f->counts[k], count),
                      f->counts[k] == 1 ? f->formats[k]->name : f->formats[k]->names);
    if (f->others)
        mr_buf_printf(out, ", %s other annotation%s", mr_text_count(f->others, count), f->others == 1 ? "" : "s");
}

/* Notes the folder; the first one also becomes the error's sentence. */
static void note_folder(mr_book *b, const folder *f, mr_buf *sentence)
{
    MR_AUTO(mr_buf_free) mr_buf what = {0};
    MR_AUTO(mr_buf_free) mr_buf path = {0};
    MR_AUTO(mr_buf_free) mr_buf advice = {0};
    say_count(f, &what);
    mr_text_escape(&path, f->path, f->len);
    mr_buf_add_text(&path, f->len ? "/" : "the top of the source");
    advise(f, &advice);
    if (!sentence->len) {
        mr_buf_printf(sentence, "%s %s %s would be left out: ", mr_buf_text(&what), f->len ? "in" : "at",
                      mr_buf_text(&path));
        mr_buf_add(sentence, advice.data, advice.len);
    }
    mr_note_add(&b->in->notes, MR_NOTE_LEFT_OUT, f->path, f->len, f->bytes, "%s, %s", mr_buf_text(&what),
                mr_buf_text(&advice));
    sentence->failed = sentence->failed || what.failed || path.failed || advice.failed;
}

mr_status mr_leftovers_check(mr_book *b, mr_error *err)
{
    MR_AUTO(mr_buf_free) mr_buf sentence = {0};
    const char *source = b->in->options->sources[0];
    char count[32], more[32];
    size_t folders = 0;
    if (!b->count)
        return MR_OK;
    for (size_t i = 0; i < b->count; i++)
        b->items[i].folder = folder_of(b, b->items[i].path, strlen(b->items[i].path));
    qsort(b->items, b->count, sizeof *b->items, by_folder);
    for (size_t i = 0; i < b->count; folders++) {
        folder f = next_folder(b, b->items + i, b->count - i);
        note_folder(b, &f, &sentence);
        i += f.count;
    }
    MR_TRY(mr_buf_status(&sentence, err, "accounting for the source"));
    if (folders == 1)
        return mr_fail(err, MR_BAD_DATA, "%s: %s. Nothing was written", source, mr_buf_text(&sentence));
    return mr_fail(err, MR_BAD_DATA,
                   "%s: %s. With %s more folder%s, listed above, %s files would be left out; nothing was written",
                   source, mr_buf_text(&sentence), mr_text_count(folders - 1, more), folders == 2 ? "" : "s",
                   mr_text_count(b->count, count));
}
