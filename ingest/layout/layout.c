/* layout.c - the layouts bid, with evidence, for a root in the source.
 * Invariant: the outcome depends on the tree alone, and two equal bids are an error that names both, never a guess. */
#include "ingest/layout/layout.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "ingest/source/names.h"
#include "ingest/layout/folder_names.h"
#include "ingest/layout/formats.h"
#include "ingest/layout/name_pattern.h"

enum { MAX_DEPTH = 4, MAX_ROOTS = 4000 };

const mr_layout *const mr_layouts[] = {
#define X(word) &mr_layout_##word,
    MR_LAYOUTS(X)
#undef X
        NULL,
};

typedef struct root {
    const char *path; /* "a/b/", points into an entry's path */
    size_t len;
    unsigned depth;
} root;

typedef struct roots {
    root *items;
    size_t count, capacity;
} roots;

/* Every folder to MAX_DEPTH, breadth first, so that shallow roots come first. */
static mr_status collect(const mr_source *s, roots *r, mr_error *err)
{
    if (!MR_GROW(r->items, r->count, r->capacity))
        return mr_fail_memory(err, "looking for a layout");
    r->items[r->count++] = (root){.path = ""};
    mr_tree whole = mr_tree_at(s, "", 0);
    for (size_t i = 0; i < r->count && r->count < MAX_ROOTS; i++) {
        root at = r->items[i];
        mr_child child = {0};
        if (at.depth >= MAX_DEPTH)
            continue;
        while (r->count < MAX_ROOTS && mr_tree_next(&whole, at.path, at.len ? at.len - 1 : 0, &child)) {
            if (!child.is_dir)
                continue;
            if (!MR_GROW(r->items, r->count, r->capacity))
                return mr_fail_memory(err, "looking for a layout");
            const char *path = mr_source_entry(s, child.entry)->path;
            r->items[r->count++] = (root){path, at.len + child.name_len + 1, at.depth + 1};
        }
    }
    return MR_OK;
}

mr_status mr_layout_check(const mr_layout *layout, const mr_layout_options *o, mr_error *err)
{
    const struct {
        unsigned bit;
        bool given;
        const char *name;
    } options[] = {
        {MR_OPTION_LABEL, o->label_column, "label-column"},
        {MR_OPTION_CONFIG, o->config, "config"},
        {MR_OPTION_IMAGE, o->image_column, "image-column"},
        {MR_OPTION_TEXT, o->text_column, "text-column"},
        {MR_OPTION_UNLISTED, o->keep_unlisted, "keep-unlisted"},
        {MR_OPTION_DEPTH, o->class_depth, "class-depth"},
        {MR_OPTION_SEPARATOR, o->label_separator, "label-separator"},
        {MR_OPTION_PATTERN, o->class_pattern, "class-pattern"},
        {MR_OPTION_ANNOTATIONS, o->annotation_count, "annotations"},
    };
    for (size_t i = 0; i < MR_COUNT(options); i++)
        if (options[i].given && !(layout->options & options[i].bit))
            return mr_fail(err, MR_MISUSE, "--%s: not supported by layout %s", options[i].name, layout->name);
    return MR_OK;
}

/* o->root as a root of the source: as given, or as reports write it. */
static mr_status given_root(const mr_source *s, const char *path, roots *r, mr_error *err)
{
    mr_buf prefix = {0};
    mr_tree t = {0};
    size_t len = 0;
    for (int form = 0; form < 2 && t.begin == t.end; form++) {
        mr_buf_clear(&prefix);
        if (form == 0)
            mr_buf_add_text(&prefix, path);
        else if (!mr_text_unescape(&prefix, path, strlen(path)))
            break;
        while (prefix.len && prefix.data[prefix.len - 1] == '/')
            prefix.len--;
        if (prefix.len && !(prefix.len == 1 && prefix.data[0] == '.'))
            mr_buf_add_text(&prefix, "/");
        else
            prefix.len = 0;
        len = prefix.len;
        t = mr_tree_at(s, mr_buf_text(&prefix), len);
    }
    mr_status status = mr_buf_status(&prefix, err, "looking for a layout");
    mr_buf_free(&prefix);
    if (status == MR_OK && t.begin == t.end)
        return mr_fail(err, MR_MISUSE, "--root %s: the source has no such folder", path);
    if (status == MR_OK && !MR_GROW(r->items, r->count, r->capacity))
        status = mr_fail_memory(err, "looking for a layout");
    if (status == MR_OK)
        r->items[r->count++] = (root){len ? mr_source_entry(s, t.begin)->path : "", len, 0};
    return status;
}

static const char *root_name(const mr_choice *c, char out[256])
{
    mr_buf text = {0};
    mr_text_escape(&text, c->tree.root, c->tree.root_len);
    snprintf(out, 256, "%.200s", c->tree.root_len ? mr_buf_text(&text) : "the top level of the source");
    mr_buf_free(&text);
    return out;
}

/* What is at the top: "train/, val/, 12 .jpg, 1 .csv ..." */
static void describe(const mr_source *s, mr_buf *out)
{
    struct kind {
        char end[16];
        size_t count;
    } kinds[8] = {0};
    size_t kind_count = 0, dirs = 0, other = 0;
    mr_tree whole = mr_tree_at(s, "", 0);
    mr_child child = {0};
    while (mr_tree_next(&whole, "", 0, &child)) {
        if (!child.is_dir || dirs++ >= 8)
            continue;
        mr_text_escape(out, child.name, child.name_len);
        mr_buf_add_text(out, "/, ");
    }
    if (dirs > 8)
        mr_buf_printf(out, "%zu more folders, ", dirs - 8);
    for (uint32_t i = 0; i < mr_source_count(s); i++) {
        const mr_entry *e = mr_source_entry(s, i);
        const char *slash = memrchr(e->path, '/', e->path_len), *base = slash ? slash + 1 : e->path;
        const char *dot = strrchr(base, '.');
        char end[16];
        bool named = dot && dot != base && mr_utf8_valid(dot, strlen(dot));
        snprintf(end, sizeof end, "%.14s", named ? dot : "without ending");
        size_t k = 0;
        while (k < kind_count && strcasecmp(kinds[k].end, end) != 0)
            k++;
        if (k == kind_count && k == MR_COUNT(kinds)) {
            other++;
            continue;
        }
        if (k == kind_count)
            snprintf(kinds[kind_count++].end, sizeof end, "%s", end);
        kinds[k].count++;
    }
    for (size_t k = 0; k < kind_count; k++)
        mr_buf_printf(out, "%zu %s%s", kinds[k].count, kinds[k].end, k + 1 < kind_count || other ? ", " : "");
    if (other)
        mr_buf_printf(out, "%zu of other kinds", other);
}

/* Where the folders of one place hold all images, at different depths, or in folders of splits. */
static void hint_depth(const mr_source *s, const mr_layout_options *o, mr_buf *out)
{
    mr_layout_options deep = *o;
    mr_choice c = {0};
    size_t folders = 0, splits = 0;
    char place[256];
    deep.class_depth = 1;
    if (o->class_depth || o->map_count || o->list_count || mr_layout_choose(s, NULL, &deep, &c, NULL) != MR_OK ||
        c.layout != &mr_layout_imagenette)
        return;
    for (uint32_t e = c.tree.begin; e < c.tree.end; e++) {
        size_t len;
        const char *path = mr_tree_path(&c.tree, e, &len), *class = memchr(path, '/', len);
        const char *inner = class ? strchr(class + 1, '/') : NULL;
        folders += inner != NULL;
        splits += inner && mr_split_word(class + 1, (size_t)(inner - class - 1));
    }
    if (splits)
        mr_buf_add_text(out, "folders of splits are in those of classes: arrange the images as SPLIT/CLASS/IMAGE");
    else if (folders)
        mr_buf_printf(out, "--class-depth 1 makes a class of each folder %s %s", c.tree.root_len ? "in" : "at",
                      root_name(&c, place));
}

static bool has_images(const mr_source *s)
{
    for (uint32_t i = 0; i < mr_source_count(s); i++)
        if (mr_name_is_image(mr_source_entry(s, i)->path, mr_source_entry(s, i)->path_len))
            return true;
    return false;
}

static mr_status nobody(const mr_source *s, const char *forced, const mr_layout_options *o, mr_choice *out,
                        mr_error *err)
{
    mr_buf seen = {0}, hint = {0};
    mr_format_hint(s, &hint);
    out->unknown = !hint.len && mr_source_count(s) > 0;
    describe(s, &seen);
    mr_buf_add_text(&seen, "; ");
    size_t described = seen.len;
    mr_name_pattern_hint(s, &seen);
    if (seen.len == described && !forced)
        hint_depth(s, o, &seen);
    if (seen.len == described && !forced)
        mr_buf_add_text(&seen, has_images(s) ? "--layout flat stores the images without labels"
                                             : "no file has the name of an image (.jpg, .png, .webp ...)");
    seen.len -= seen.len == described ? 2 : 0;
    if (mr_source_count(s) == 0)
        mr_fail(err, MR_BAD_DATA, "holds no files");
    else if (hint.len)
        mr_fail(err, MR_BAD_DATA, "%s", mr_buf_text(&hint));
    else
        mr_fail(err, MR_BAD_DATA, "%s%s fits; found: %s", forced ? "nothing of layout " : "no layout",
                forced ? forced : "", mr_buf_text(&seen));
    mr_buf_free(&seen);
    mr_buf_free(&hint);
    return MR_BAD_DATA;
}

/* Bids quote names, which may hold any bytes, and truncate long ones. */
static void to_utf8(char *text, size_t size)
{
    size_t len = strlen(text), whole = len;
    while (whole && len - whole < 3 && !mr_utf8_valid(text, whole))
        whole--;
    if (mr_utf8_valid(text, whole)) {
        text[whole] = '\0';
        return;
    }
    mr_buf escaped = {0};
    mr_text_escape(&escaped, text, len);
    snprintf(text, size, "%s", mr_buf_text(&escaped));
    for (len = strlen(text); len && !mr_utf8_valid(text, len); len--)
        text[len - 1] = '\0';
    mr_buf_free(&escaped);
}

static mr_status bid_at(mr_choice *c, const mr_layout_options *o, bool forced, mr_error *err)
{
    mr_status status = c->layout->bid(&c->tree, o, &c->bid, err);
    if (forced && c->bid.forced > c->bid.score)
        c->bid.score = c->bid.forced;
    return status;
}

static bool within(const mr_tree *inner, const mr_tree *outer)
{
    return inner->root_len >= outer->root_len && inner->begin >= outer->begin && inner->end <= outer->end;
}

static mr_status tie(const mr_choice *a, const mr_choice *b, mr_error *err)
{
    char first[256], second[256];
    if (a->layout == b->layout)
        return mr_fail(err, MR_BAD_DATA,
                       "two places look like a dataset of layout %s: %s (%s) and %s (%s); --root selects one of them, "
                       "--exclude leaves one out, --split-map FOLDER=train,FOLDER=val makes splits of folders",
                       a->layout->name, root_name(a, first), a->bid.why, root_name(b, second), b->bid.why);
    return mr_fail(err, MR_BAD_DATA, "%s (%s, at %s) and %s (%s, at %s) fit equally well; choose one with --layout",
                   a->layout->name, a->bid.why, root_name(a, first), b->layout->name, b->bid.why, root_name(b, second));
}

/* A requested layout has bid equally in several places: the one at or above the detected root is meant. The roots are
 * in breadth-first order, so the last of those above it is the nearest. */
static mr_status nearest(const mr_source *s, const roots *r, const mr_layout_options *o, mr_choice *best,
                         mr_choice *rival, mr_error *err)
{
    mr_choice found = {0}, near = {0};
    mr_status status = mr_layout_choose(s, NULL, o, &found, err);
    for (size_t i = 0; status == MR_OK && i < r->count; i++) {
        mr_choice c = {.layout = best->layout, .tree = mr_tree_at(s, r->items[i].path, r->items[i].len)};
        if (!within(&found.tree, &c.tree))
            continue;
        status = bid_at(&c, o, true, err);
        if (status == MR_OK && c.bid.score == best->bid.score)
            near = c;
    }
    if (near.layout) {
        *best = near;
        rival->layout = NULL;
    }
    return status == MR_SYSTEM ? status : MR_OK;
}

mr_status mr_layout_choose(const mr_source *s, const char *forced, const mr_layout_options *o, mr_choice *out,
                           mr_error *err)
{
    roots r = {0};
    mr_choice best = {0}, rival = {0};
    mr_status status = o->root ? given_root(s, o->root, &r, err) : collect(s, &r, err);
    for (size_t i = 0; status == MR_OK && i < r.count; i++) {
        mr_tree tree = mr_tree_at(s, r.items[i].path, r.items[i].len);
        for (const mr_layout *const *l = mr_layouts; *l; l++) {
            mr_choice c = {.layout = *l, .tree = tree};
            if (forced && strcmp((*l)->name, forced) != 0)
                continue;
            status = bid_at(&c, o, forced, err);
            if (status != MR_OK)
                break;
            if (c.bid.score > best.bid.score) {
                best = c;
                rival.layout = NULL;
            } else if (best.layout && c.bid.score == best.bid.score && !rival.layout &&
                       !(within(&tree, &best.tree) && best.layout == *l)) {
                rival = c;
            }
        }
    }
    if (status == MR_OK && rival.layout && forced)
        status = nearest(s, &r, o, &best, &rival, err);
    free(r.items);
    if (status != MR_OK)
        return status;
    if (rival.layout)
        return tie(&best, &rival, err);
    if (!best.layout && forced && mr_source_count(s) > 0) {
        mr_choice other = {0}; /* the root that another layout finds is this one's, too */
        if (mr_layout_choose(s, NULL, o, &other, err) == MR_SYSTEM)
            return MR_SYSTEM;
        for (const mr_layout *const *l = mr_layouts; *l; l++)
            if (strcmp((*l)->name, forced) == 0)
                best = (mr_choice){.layout = *l,
                                   .tree = other.layout ? other.tree : mr_tree_at(s, "", 0),
                                   .bid = {.why = "forced by --layout"}};
    }
    if (!best.layout)
        return nobody(s, forced, o, out, err);
    to_utf8(best.bid.why, sizeof best.bid.why);
    to_utf8(best.bid.refusal, sizeof best.bid.refusal);
    *out = best;
    if (best.bid.refusal[0])
        return mr_fail(err, MR_BAD_DATA, "%s", best.bid.refusal);
    return MR_OK;
}
