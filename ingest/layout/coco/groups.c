/* groups.c - COCO: annotation files of one split are a group, and each group a split.
 * Invariant: a group has at most one file of a kind. */
#include <stdlib.h>
#include <string.h>

#include "base/scope.h"
#include "ingest/layout/coco/coco.h"
#include "ingest/layout/folder_names.h"

typedef struct folders { /* of the images that exist */
    bool any;
    bool words, tokens; /* all are in a folder that is named like a split; in one of whose name is a word */
    bool train, other;  /* the splits that the latter name */
} folders;

static mr_status look_at_folders(mr_coco_build *b, mr_coco_group *g, mr_coco_part *part, folders *f)
{
    for (size_t n = 0; n < part->file->image_count && (f->words || f->tokens); n++) {
        size_t len, folder_len;
        uint32_t entry;
        const char *folder;
        MR_TRY(mr_coco_find_image(b, g, &part->file->images[n], &entry));
        if (entry == MR_NO_ENTRY)
            continue;
        const char *path = mr_tree_path(b->tree, entry, &len);
        const char *token = mr_split_token_of_path(path, len, &folder, &folder_len).split;
        f->any = true;
        f->words = f->words && mr_coco_split_folder(path, len, &folder_len);
        f->tokens = f->tokens && token;
        f->train = f->train || (token && !strcmp(token, "train"));
        f->other = f->other || (token && strcmp(token, "train") != 0);
    }
    return MR_OK;
}

/* Whether every image of the group's files that exists is in a folder of a split. */
static mr_status in_split_folders(mr_coco_build *b, mr_coco_group *g)
{
    folders f = {.words = true, .tokens = true};
    for (size_t i = 0; i < g->count; i++) {
        mr_coco_part *part = &b->st->parts[g->first + i];
        MR_TRY(mr_coco_open_part(b, part));
        MR_TRY(look_at_folders(b, g, part, &f));
    }
    g->by_folder = f.any && f.words;
    g->by_token = f.any && f.tokens && f.train && f.other && !f.words;
    return MR_OK;
}

/* Called on an empty plan first: a split whose images are all missing must not appear in the dataset. */
static mr_status is_left_out(const mr_coco_build *b, const mr_coco_group *g, bool *out)
{
    mr_plan probe = {0};
    uint32_t split = 0;
    mr_status status = mr_coco_get_split(b, &probe, g, &split);
    *out = split == MR_NO_ENTRY;
    b->plan->maps_used |= probe.maps_used;
    free(probe.splits);
    return status;
}

/* Parts are sorted by their split, bytewise. */
static bool has_parts(const mr_coco_build *b, const char *folder)
{
    size_t low = 0, high = b->st->part_count, len = strlen(folder);
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        const mr_coco_part *p = &b->st->parts[mid];
        int order = memcmp(p->split, folder, p->split_len < len ? p->split_len : len);
        if (!order && p->split_len == len)
            return true;
        if (order < 0 || (!order && p->split_len < len))
            low = mid + 1;
        else
            high = mid;
    }
    return false;
}

/* Images of train2017 may be in train/, unless that is another split's. */
static void use_short_folder(const mr_coco_build *b, mr_coco_group *g)
{
    char shorter[sizeof g->folder], path[300];
    size_t len = strlen(g->folder), cut = mr_coco_without_year(g->folder, len);
    if (cut == len || mr_coco_folder(b->tree, g->folder, len, path) || !mr_coco_folder(b->tree, g->folder, cut, path))
        return;
    memcpy(shorter, g->folder, cut);
    shorter[cut] = '\0';
    if (!has_parts(b, shorter))
        memcpy(g->folder, shorter, cut + 1);
}

static void set_beside(const mr_coco_build *b, const mr_coco_part *part, mr_coco_group *g)
{
    size_t len;
    g->beside = mr_tree_path(b->tree, part->entry, &len);
    const char *slash = memrchr(g->beside, '/', len);
    g->beside_len = slash ? (size_t)(slash - g->beside) + 1 : 0;
    if (g->beside_len >= 1024)
        g->beside_len = 0;
}

/* The images of instances_minival2014.json and instances_valminusminival2014.json are those of val2014/. */
static void use_val_folder(const mr_coco_build *b, mr_coco_group *g)
{
    static const char *const words[] = {"minival", "valminusminival"};
    char path[300];
    for (size_t i = 0; i < MR_COUNT(words); i++) {
        size_t len = strlen(words[i]);
        if (strncmp(g->folder, words[i], len) != 0 || mr_coco_folder(b->tree, g->folder, strlen(g->folder), path))
            continue;
        memmove(g->folder + 3, g->folder + len, strlen(g->folder + len) + 1);
        memcpy(g->folder, "val", 3);
        return;
    }
}

/* Images may say themselves of which split they are. */
static void note_splits(const mr_coco_build *b, const mr_coco_group *g)
{
    for (size_t i = 0; i < g->count; i++) {
        const mr_coco_file *f = b->st->parts[g->first + i].file;
        if (f->splits[1][0] && mr_split_word(f->splits[0], strlen(f->splits[0])))
            mr_note_add(b->plan->notes, MR_NOTE_INFO, g->beside, strlen(g->beside), 0,
                        "its images have a member \"split\" (%s, %s), which is kept in their metas and does not divide "
                        "them: write a JSON for each split",
                        f->splits[0], f->splits[1]);
    }
}

/* image_info_test-dev2017.json lists some of the images of test2017/ again, where there is no test-dev2017/. */
static mr_status add_group(mr_coco_build *b, size_t first, size_t count)
{
    mr_coco_state *st = b->st;
    if (st->group_count == MR_SPLITS_MAX)
        return mr_fail(b->err, MR_BAD_DATA, "annotation files of more than %d splits, the limit for a dataset",
                       MR_SPLITS_MAX);
    const mr_coco_part *part = &st->parts[first];
    mr_coco_group g = {.first = first, .count = count, .split = MR_NO_ENTRY};
    if (part->split_len >= sizeof g.folder)
        return mr_fail(b->err, MR_BAD_DATA, "a split's name of %zu bytes in annotation files", part->split_len);
    memcpy(g.folder, part->split, part->split_len);
    set_beside(b, part, &g);
    char *dev = strstr(g.folder, "-dev"), own[300];
    if (dev && (dev[4 + strspn(dev + 4, "0123456789")] || mr_coco_folder(b->tree, part->split, part->split_len, own)))
        dev = NULL;
    if (dev)
        memmove(dev, dev + 4, strlen(dev + 4) + 1);
    use_val_folder(b, &g);
    for (size_t i = 0; i < count; i++)
        b->plan->used[part[i].entry] = 1;
    if (!dev)
        use_short_folder(b, &g);
    if (dev && has_parts(b, g.folder)) {
        mr_note_add(b->plan->notes, MR_NOTE_INFO, part->split, part->split_len, 0,
                    "left out: it lists images of %s again", g.folder);
        return MR_OK;
    }
    if (part->unnamed)
        MR_TRY(in_split_folders(b, &g));
    if (g.by_folder || g.by_token) {
        mr_note_add(b->plan->notes, MR_NOTE_INFO, g.beside, strlen(g.beside), 0,
                    "its name does not give the split, but the folders of its images do");
    } else {
        MR_TRY(is_left_out(b, &g, &g.left_out));
        if (part->unnamed)
            note_splits(b, &g);
    }
    if (g.left_out)
        mr_note_add(b->plan->notes, MR_NOTE_INFO, part->split, part->split_len, 0, "left out by --split-map");
    if (!MR_GROW(st->groups, st->group_count, st->group_capacity))
        return mr_fail_memory(b->err, "listing annotation files");
    st->groups[st->group_count++] = g;
    return MR_OK;
}

/* Two files of one kind and split, which --annotations joins: their ids have nothing to do with each other. */
static mr_status check_kinds(const mr_coco_build *b, size_t first, size_t end)
{
    const mr_coco_part *p = b->st->parts;
    const mr_source *s = b->tree->source;
    for (size_t i = first + 1; i < end; i++) {
        if (p[i].kind != p[i - 1].kind || b->options->annotation_count)
            continue;
        MR_AUTO(mr_buf_free) mr_buf one = {0}, two = {0};
        const mr_entry *a = mr_source_entry(s, p[i - 1].entry), *c = mr_source_entry(s, p[i].entry);
        mr_source_quote(a->path, a->path_len, &one);
        mr_source_quote(c->path, c->path_len, &two);
        mr_fail(b->err, MR_BAD_DATA,
                "%s and %s are both the %s of split %.*s; --annotations %s --annotations %s reads both", a->path,
                c->path, mr_coco_kinds[p[i].kind], (int)p[i].split_len, p[i].split, mr_buf_text(&one),
                mr_buf_text(&two));
        return mr_source_dispensable(s, p[i].entry, "keeps the other", MR_BAD_DATA, b->err);
    }
    return MR_OK;
}

/* Moves one part of each kind to the front of [first, end), and returns the end of these. */
static size_t one_of_each_kind(mr_coco_part *p, size_t first, size_t end)
{
    size_t kept = first;
    for (size_t i = first; i < end; i++) {
        if (kept > first && p[i].kind == p[kept - 1].kind)
            continue;
        const mr_coco_part part = p[i];
        memmove(&p[kept + 1], &p[kept], (i - kept) * sizeof *p);
        p[kept++] = part;
    }
    return kept;
}

/* The kind of a file without a standard name is taken from its annotations. */
static mr_status settle_kinds(const mr_coco_build *b)
{
    for (size_t i = 0; i < b->st->part_count; i++) {
        mr_coco_part *part = &b->st->parts[i];
        if (part->kind != MR_COCO_UNKNOWN)
            continue;
        MR_TRY(mr_coco_open_part(b, part));
        const mr_coco_file *f = part->file;
        part->kind = f->has & MR_COCO_HAS_SEGMENTS                        ? MR_COCO_PANOPTIC
                     : f->has & MR_COCO_HAS_CAPTION && !f->category_count ? MR_COCO_CAPTIONS
                                                                          : MR_COCO_INSTANCES;
    }
    qsort(b->st->parts, b->st->part_count, sizeof *b->st->parts, mr_coco_part_order);
    return MR_OK;
}

mr_status mr_coco_make_groups(mr_coco_build *b)
{
    MR_TRY(settle_kinds(b));
    mr_coco_part *p = b->st->parts;
    for (size_t i = 0, end; i < b->st->part_count; i = end) {
        for (end = i + 1; end < b->st->part_count && mr_coco_same_split(&p[end], p[i].split, p[i].split_len); end++)
            ;
        MR_TRY(check_kinds(b, i, end));
        for (size_t next; i < end; i = next) {
            next = one_of_each_kind(p, i, end);
            MR_TRY(add_group(b, i, next - i));
        }
    }
    return MR_OK;
}
