/* advice.c - what the user can do about images and annotations that would be lost.
 * Invariant: each option that is advised, followed as it is written, settles all leftovers of its folder. */
#include <string.h>

#include "base/scope.h"
#include "base/text.h"
#include "ingest/source/names.h"
#include "ingest/layout/folder_names.h"
#include "ingest/pipeline/ledger_parts.h"

enum { ENDINGS = 3, FILES = 8 }; /* per folder: endings for patterns, and files that are named one by one */

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

/* Whether a file of the dataset in this same folder ends like that. */
static bool kept_ends_so(const mr_left_folder *f, const char *end, size_t end_len)
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
static bool add_patterns(const mr_left_folder *f, mr_buf *out)
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

static void advise_leave_out(const mr_left_folder *f, bool *any, mr_buf *out)
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
    if (!told && f->count > FILES) {
        add_option(out, any);
        mr_buf_add_text(out, "files can be left out by their names (the report lists them: --report FILE)");
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
static const mr_split_alias *empty_split(const mr_left_folder *f)
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

/* What --split-map makes of a folder of folders beside the splits: "bird=NAME", or "data/train=train" if the folders in
 * it are named like splits; nothing if neither can be known. */
static void say_split_map(const mr_left_folder *f, mr_buf *out)
{
    const mr_tree *t = &f->book->in->choice.tree;
    mr_child child = {0};
    size_t words = 0, others = 0, path_len;
    bool annotated =
        f->book->in->choice.layout == &mr_layout_createml; /* its splits may be anywhere, each with a JSON */
    bool by_folder = f->book->in->plan.by_folder && f->images == f->count;
    if (!(by_folder || annotated) || !f->inside || !f->apart)
        return;
    const char *name = f->path + t->root_len;
    size_t len = f->len - t->root_len;
    if (memchr(name, '/', len))
        return;
    while (mr_tree_next(t, name, len, &child)) {
        const char *word = child.is_dir ? mr_split_word(child.name, child.name_len) : NULL;
        if (!child.is_dir && mr_name_is_image(child.name, child.name_len))
            others = words = 1; /* images of no class */
        others += !word;
        words += word != NULL;
        if (!word || others)
            continue;
        mr_buf_add_text(out, words > 1 ? "," : "");
        mr_source_quote(mr_tree_path(t, child.entry, &path_len), len + 1 + child.name_len, out);
        mr_buf_printf(out, "=%s", word);
    }
    if (words && others)
        mr_buf_clear(out);
    if (words || annotated)
        return;
    mr_source_quote(name, len, out);
    mr_buf_add_text(out, "=NAME");
}

void mr_list_options_add(mr_list_options *o, const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    const char *split = mr_split_token_of(name, strlen(name)).split;
    split = !split && strcasestr(name, "trainval") ? "train" : split;
    for (size_t i = 0; i < o->count && split; i++)
        split = strcmp(o->splits[i], split) != 0 ? split : NULL;
    if (!split || o->count == MR_COUNT(o->splits))
        return;
    mr_buf_add_text(&o->text, o->count ? "," : "");
    mr_source_quote(path, strlen(path), &o->text);
    mr_buf_printf(&o->text, "=%s", split);
    o->splits[o->count++] = split;
}

void mr_list_options_free(mr_list_options *o)
{
    mr_buf_free(&o->text);
}

/* Whether the folder is a dataset of its own, with annotations that some layout reads. */
static bool is_dataset(const mr_left_folder *f)
{
    const mr_ingest *in = f->book->in;
    MR_AUTO(mr_buf_free) mr_buf path = {0};
    mr_layout_options o = in->options->for_layout;
    mr_choice choice = {0};
    if (!f->apart || !f->images || !f->formats[0] || f->formats[0]->instead)
        return false;
    mr_buf_add(&path, f->path, f->len);
    o.root = mr_buf_text(&path);
    return !path.failed && mr_layout_choose(in->source, NULL, &o, &choice, NULL) == MR_OK;
}

/* Whether they are tables, in the place where layout table would read them. */
static bool are_tables(const mr_left_folder *f)
{
    const mr_ingest *in = f->book->in;
    const mr_tree *t = &in->choice.tree;
    mr_choice choice = {0};
    if (!f->inside || f->len + (f->len > 0) != t->root_len || !f->formats[0] ||
        !(f->formats[0]->kind & MR_FORMAT_TABLE) || in->choice.layout == &mr_layout_table)
        return false;
    return mr_layout_choose(in->source, mr_layout_table.name, &in->options->for_layout, &choice, NULL) == MR_OK &&
           choice.tree.root_len == t->root_len;
}

/* Why they are left. */
static void say_reason(const mr_left_folder *f, mr_buf *out)
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
        mr_buf_add_text(out, "a file is read as an image only if its name ends in .jpg, .png, .webp or the like");
    } else if (in->plan.by_folder) {
        mr_buf_add_text(out, !f->keepable                         ? "beside the split folders"
                             : in->options->for_layout.list_count ? "not in a class folder, or in none of the lists"
                                                                  : "not in a class folder");
    } else {
        mr_buf_printf(out, "nothing that layout %s reads lists %s", layout, f->count == 1 ? "it" : "them");
    }
}

void mr_left_advise(const mr_left_folder *f, mr_buf *out)
{
    const mr_ingest *in = f->book->in;
    const mr_tree *t = &in->choice.tree;
    const mr_split_alias *split = empty_split(f);
    MR_AUTO(mr_buf_free) mr_buf map = {0};
    MR_AUTO(mr_list_options_free) mr_list_options lists = {0};
    bool any = false;
    say_reason(f, out);
    if (!f->inside && t->root_len) {
        add_option(out, &any);
        mr_buf_add_text(out, "--root ");
        mr_source_quote(t->root, t->root_len - 1, out);
        mr_buf_add_text(out, " ingests only that folder");
    }
    if (f->keepable && in->choice.layout->options & MR_OPTION_UNLISTED) {
        add_option(out, &any);
        mr_buf_printf(out, "--keep-unlisted includes %s", f->count == 1 ? "it" : "them");
    }
    if (are_tables(f)) {
        add_option(out, &any);
        mr_buf_printf(out, "--layout table reads %s", f->count == 1 ? "it" : "them");
    }
    for (size_t i = 0; i < f->count; i++)
        if (f->items[i].format && f->items[i].format->kind & MR_FORMAT_LIST)
            mr_list_options_add(&lists, f->items[i].path);
    if (lists.count && !in->options->for_layout.list_count) {
        add_option(out, &any);
        mr_buf_add_text(out, "--split-list ");
        mr_buf_add(out, lists.text.data, lists.text.len);
        mr_buf_add_text(out, " makes splits of the images that they list");
    }
    say_split_map(f, &map);
    if (split || map.len) {
        add_option(out, &any);
        mr_buf_add_text(out, "--split-map ");
        if (split)
            mr_source_quote(split->name, split->len, out);
        else
            mr_buf_add(out, map.data, map.len);
        bool named = map.len > 5 && !memcmp(map.data + map.len - 5, "=NAME", 5);
        mr_buf_add_text(out, split   ? "= leaves the split out"
                             : named ? " makes the folder a split"
                                     : " includes what is in it");
    }
    if (is_dataset(f)) {
        add_option(out, &any);
        mr_buf_add_text(out, "--root ");
        mr_source_quote(f->path, f->len, out);
        mr_buf_add_text(out, " ingests only this folder");
    }
    if (f->skippable) {
        add_option(out, &any);
        mr_buf_add_text(out, "--skip-unmatched leaves out all such files");
    }
    advise_leave_out(f, &any, out);
    if (!f->inside && in->plan.flat && f->images == f->count && !in->options->for_layout.class_depth) {
        add_option(out, &any);
        mr_buf_add_text(out, "--class-depth 1 makes each folder a class");
    }
}
