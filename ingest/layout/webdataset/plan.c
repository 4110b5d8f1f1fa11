/* plan.c - files that share a key become samples, folder by folder.
 * Invariant: the samples of a split are in the order of their folders' paths, those of a folder in the order of their
 * keys. */
#include <stdlib.h>
#include <string.h>

#include "base/scope.h"
#include "ingest/layout/folder_names.h"
#include "ingest/layout/webdataset/samples.h"
#include "ingest/source/names.h"

enum { PLACES = 3 };

typedef mr_webdataset_build build;

/* Train, val, test, others: the order that readers of the summary expect. */
static int place_of(const build *b, const char *name, size_t len)
{
    const mr_split_map *map = mr_split_map_find(b->options, name, len);
    return (int)mr_split_rank(map ? map->to : mr_split_word(name, len));
}

/* The folder's split; false: it belongs to another pass, or there is a failure. */
static bool open_split(build *b, const char *dir, size_t dir_len, mr_status *status)
{
    const char *name;
    size_t len;
    bool several, named = mr_webdataset_split(&b->facts, b->options, dir, dir_len, &name, &len, &several);
    if (place_of(b, name, len) != b->place)
        return false;
    if (!named && (b->split_known || several))
        *status = mr_fail(b->err, MR_BAD_DATA,
                          "%.*s: has samples, but its name states %s; --split-map %.*s=train stores them as train",
                          dir_len ? (int)dir_len : 1, dir_len ? dir : ".",
                          several ? "more than one split" : "no split, unlike others", dir_len ? (int)dir_len : 1,
                          dir_len ? dir : ".");
    else
        *status = mr_plan_split_get(b->plan, b->options, name, len, &b->split, b->err);
    return *status == MR_OK;
}

/* ---- folders -------------------------------------------------------------------------------------------------- */

static mr_status add_files(build *b, const char *dir, size_t dir_len)
{
    mr_child child = {0};
    mr_webdataset_group g = mr_webdataset_no_files;
    while (mr_tree_next(b->tree, dir, dir_len, &child)) {
        size_t key_len;
        if (child.is_dir || !mr_webdataset_name(child.name, child.name_len, &key_len))
            continue;
        if (!g.key || g.key_len != key_len || memcmp(g.key, child.name, key_len) != 0) {
            MR_TRY(mr_webdataset_sample(b, &g));
            g = mr_webdataset_no_files;
            g.key = child.name;
            g.key_len = key_len;
        }
        mr_webdataset_group_add(b->options, &g, &child);
        if (b->options->image_column && mr_name_is_image(child.name, child.name_len))
            b->plan->used[child.entry] = MR_USE_LEFT_OUT; /* unless it becomes a sample's image */
    }
    return mr_webdataset_sample(b, &g);
}

static bool has_image(const build *b, const char *dir, size_t dir_len)
{
    mr_child child = {0};
    size_t key_len;
    while (mr_tree_next(b->tree, dir, dir_len, &child))
        if (!child.is_dir && mr_webdataset_name(child.name, child.name_len, &key_len) &&
            mr_webdataset_is_image(b->options, child.name + key_len + 1, child.name_len - key_len - 1))
            return true;
    return false;
}

typedef mr_status folder_fn(build *b, const char *dir, size_t dir_len);

/* Calls fn for every folder, a folder before those in it; a source nests at most 64 deep. */
static mr_status each_folder(build *b, const char *dir, size_t dir_len, folder_fn *fn)
{
    mr_child child = {0};
    MR_TRY(fn(b, dir, dir_len));
    while (mr_tree_next(b->tree, dir, dir_len, &child)) {
        if (!child.is_dir || child.name[0] == '.')
            continue;
        const char *path = mr_source_entry(b->tree->source, child.entry)->path + b->tree->root_len;
        MR_TRY(each_folder(b, path, (size_t)(child.name - path) + child.name_len, fn));
    }
    return MR_OK;
}

static mr_status look_at_folder(build *b, const char *dir, size_t dir_len)
{
    const char *name, *slash = dir_len ? memrchr(dir, '/', dir_len) : NULL, *base = slash ? slash + 1 : dir;
    size_t len;
    bool several;
    mr_webdataset_gaps(b->tree, dir, dir_len, b->plan->notes);
    if (!has_image(b, dir, dir_len))
        return MR_OK;
    b->split_known = b->split_known || mr_webdataset_split(&b->facts, b->options, dir, dir_len, &name, &len, &several);
    if (mr_webdataset_shard(base, dir_len - (size_t)(base - dir)))
        b->plan->variant = "shards";
    return MR_OK;
}

/* A folder of shards holds other files, too, such as img2dataset's 00000_stats.json. */
static bool is_beside_shards(const build *b, const char *dir, size_t dir_len)
{
    const char *slash = dir_len ? memrchr(dir, '/', dir_len) : NULL, *base = slash ? slash + 1 : dir;
    return !strcmp(b->plan->variant, "shards") && !mr_webdataset_shard(base, dir_len - (size_t)(base - dir));
}

static mr_status plan_folder(build *b, const char *dir, size_t dir_len)
{
    static const char facts[] = MR_WEBDATASET_FACTS;
    b->beside = is_beside_shards(b, dir, dir_len);
    mr_status status = MR_OK;
    if (dir_len == strcspn(facts, "/") && memcmp(dir, facts, dir_len) == 0)
        return MR_OK;
    if (!has_image(b, dir, dir_len)) /* samples without an image are named */
        return b->place == 0 ? add_files(b, dir, dir_len) : MR_OK;
    if (!open_split(b, dir, dir_len, &status))
        return status;
    if (b->split != MR_NO_ENTRY)
        return add_files(b, dir, dir_len);
    mr_child child = {0};
    while (mr_tree_next(b->tree, dir, dir_len, &child))
        if (!child.is_dir)
            b->plan->used[child.entry] = MR_USE_LEFT_OUT;
    mr_note_add(b->plan->notes, MR_NOTE_INFO, dir, dir_len, 0, "left out by --split-map");
    return MR_OK;
}

mr_status mr_webdataset_plan(const mr_tree *t, const mr_layout_options *o, mr_plan *plan, mr_error *err)
{
    mr_webdataset_state *st = plan->state = mr_alloc(1, sizeof *st);
    build b = {.tree = t, .options = o, .plan = plan, .state = st, .err = err};
    b.field.name = o->label_column ? o->label_column : "label";
    b.labels.column.asked = o->label_column;
    b.labels.highest = -1;
    plan->variant = "files";
    if (!st || (o->text_column && !(st->text_column = strdup(o->text_column))))
        return mr_fail_memory(err, "listing samples");
    mr_status status = mr_webdataset_facts_read(t, plan, &b.facts, err);
    if (status == MR_OK)
        status = each_folder(&b, "", 0, look_at_folder);
    for (; status == MR_OK && b.place <= PLACES; b.place++)
        status = each_folder(&b, "", 0, plan_folder);
    if (status == MR_OK)
        status = mr_webdataset_check_odd(&b);
    if (status == MR_OK)
        status = mr_webdataset_classes(&b.labels, &b.facts, t, plan, err);
    if (status == MR_OK && b.unread && !plan->class_count)
        mr_note_add(plan->notes, MR_NOTE_INFO, ".json", 5, 0,
                    "samples with a member label: %zu; without --label-column label they have none", b.unread);
    mr_buf_free(&b.field.text);
    mr_webdataset_labels_free(&b.labels);
    mr_webdataset_facts_free(&b.facts);
    return status;
}
