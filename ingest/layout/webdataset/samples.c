/* samples.c - files that share a key become samples, folder by folder.
 * Invariant: every file of a sample with an image is used or named; the samples of a split are in the order of their
 * folders' paths, those of a folder in the order of their keys. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/scope.h"
#include "base/text.h"
#include "format/format.h"
#include "layout/folder_names.h"
#include "webdataset/webdataset.h"

enum { LABEL_FILE_MAX = 4096, PLACES = 3 };

typedef struct group { /* the files of one key */
    const char *key;   /* not NUL-terminated */
    size_t key_len;
    uint32_t image, json, cls, text, first;
    uint32_t second_image; /* MR_NO_ENTRY: there is one */
} group;

typedef struct build {
    const mr_tree *tree;
    const mr_layout_options *options;
    mr_plan *plan;
    mr_webdataset_state *state;
    mr_webdataset_labels labels;
    mr_webdataset_facts facts;
    mr_jsonl_field field; /* --label-column */
    bool split_known;     /* some folder names a split, so all must */
    uint32_t split;       /* of the current folder */
    int place;            /* the current splits: train, val, test, others */
    mr_error *err;
} build;

static const group no_files = {NULL, 0, MR_NO_ENTRY, MR_NO_ENTRY, MR_NO_ENTRY, MR_NO_ENTRY, MR_NO_ENTRY, MR_NO_ENTRY};

static const char *path_of(const build *b, uint32_t entry)
{
    return mr_source_entry(b->tree->source, entry)->path;
}

/* ---- splits --------------------------------------------------------------------------------------------------- */

/* The part of one folder's name that names a split: of "train-000012.tar" and "imagenet-train-000012.tar" it is
 * "train".  `several`: it names more than one. */
static bool split_part(const build *b, const char **name, size_t *len, bool *several)
{
    if (mr_webdataset_facts_split(&b->facts, *name, *len))
        return true;
    size_t shard = mr_webdataset_shard(*name, *len);
    size_t whole = shard ? shard : *len;
    if (shard && mr_webdataset_facts_split(&b->facts, *name, shard)) {
        *len = shard;
        return true;
    }
    if (mr_split_map_find(b->options, *name, whole) || mr_split_word(*name, whole)) {
        *len = whole;
        return true;
    }
    mr_split_token token = mr_split_token_of(*name, shard);
    if (token.several) {
        *several = true;
        return false;
    }
    if (token.split) {
        *name += token.at;
        *len = token.len;
    }
    return token.split != NULL;
}

/* The split that a folder's path names, "train" where none does, or one of its names names several. */
static bool find_split(const build *b, const char *dir, size_t dir_len, const char **name, size_t *len, bool *several)
{
    *several = false;
    for (size_t at = 0, end; at < dir_len; at = end + 1) {
        const char *slash = memchr(dir + at, '/', dir_len - at);
        end = slash ? (size_t)(slash - dir) : dir_len;
        *name = dir;
        *len = end; /* a path that --split-map names */
        if (mr_split_map_find(b->options, *name, *len))
            return true;
        *name = dir + at;
        *len = end - at;
        if (split_part(b, name, len, several))
            return true;
    }
    *name = "train";
    *len = 5;
    return false;
}

/* Train, val, test, others: the order that readers of the summary expect. */
static int place_of(const build *b, const char *name, size_t len)
{
    static const char *const first[] = {"train", "val", "test"};
    const mr_split_map *map = mr_split_map_find(b->options, name, len);
    const char *stored = map ? map->to : mr_split_word(name, len);
    int place = 0;
    while (place < (int)MR_COUNT(first) && (!stored || strcmp(stored, first[place]) != 0))
        place++;
    return place;
}

/* The folder's split; false: it belongs to another pass, or there is a failure. */
static bool open_split(build *b, const char *dir, size_t dir_len, mr_status *status)
{
    const char *name;
    size_t len;
    bool several, named = find_split(b, dir, dir_len, &name, &len, &several);
    if (place_of(b, name, len) != b->place)
        return false;
    if (!named && (b->split_known || several))
        *status = mr_fail(b->err, MR_BAD_DATA,
                          "%.*s: has samples, but its name names %s; --split-map %.*s=train stores them as train",
                          dir_len ? (int)dir_len : 1, dir_len ? dir : ".",
                          several ? "more than one split" : "no split, as others do", dir_len ? (int)dir_len : 1,
                          dir_len ? dir : ".");
    else
        *status = mr_plan_split_get(b->plan, b->options, name, len, &b->split, b->err);
    return *status == MR_OK;
}

/* ---- samples -------------------------------------------------------------------------------------------------- */

static mr_status read_label(build *b, const group *g, const char *own_label)
{
    MR_AUTO(mr_buf_free) mr_buf text = {0};
    if (g->cls == MR_NO_ENTRY)
        return mr_webdataset_label(&b->labels, own_label, strlen(own_label), "", b->err);
    if (mr_source_entry(b->tree->source, g->cls)->size > LABEL_FILE_MAX)
        return mr_fail(b->err, MR_BAD_DATA, "%s: not a label: more than %d bytes", path_of(b, g->cls), LABEL_FILE_MAX);
    MR_TRY(mr_source_read(b->tree->source, g->cls, &text, b->err));
    const char *label = mr_buf_text(&text);
    return mr_webdataset_label(&b->labels, label, text.len, path_of(b, g->cls), b->err);
}

/* Whether millrace's own members all precede those that the layout added: only then is the meta restored. */
static bool is_own(const mr_buf *json)
{
    MR_AUTO(mr_buf_free) mr_buf added = {0};
    MR_AUTO(mr_buf_free) mr_buf source = {0};
    mr_meta_facts facts;
    if (!mr_webdataset_own(json->data, json->len))
        return false;
    size_t from = mr_webdataset_added((const char *)json->data, json->len);
    mr_buf_add_text(&added, "{");
    from += json->data[from] == ',';
    mr_buf_add(&added, json->data + from, json->len - from);
    return !added.failed && mr_meta_scan(added.data, added.len, &facts, &source, NULL) == MR_OK && facts.label < 0 &&
           !facts.has_class && !facts.has_image_of && !facts.unannotated && !source.len;
}

/* Our own meta: its label, unless .cls has one, its class name and its flags. */
static mr_status read_own(build *b, const group *g, const mr_buf *json, mr_sample *sample)
{
    MR_AUTO(mr_buf_free) mr_buf class_text = {0};
    MR_AUTO(mr_buf_free) mr_buf name = {0};
    mr_meta_facts facts;
    mr_error why;
    char label[24] = "";
    mr_status status = mr_meta_scan_class(json->data, json->len, &facts, &class_text, &why);
    if (status != MR_OK)
        return mr_fail(b->err, status, "%s: %.800s", path_of(b, g->json), why.text);
    if (facts.label >= 0)
        snprintf(label, sizeof label, "%d", (int)facts.label);
    if (facts.multi_label) {
        sample->flags |= MR_FLAG_MULTI_LABEL;
        if (facts.highest > b->labels.highest && facts.highest <= MR_WEBDATASET_LABEL_MAX)
            b->labels.highest = facts.highest;
    }
    if (facts.unannotated)
        sample->flags |= MR_FLAG_UNANNOTATED;
    if (!mr_text_unescape(&name, mr_buf_text(&class_text), class_text.len) || memchr(mr_buf_text(&name), 0, name.len))
        mr_buf_clear(&name);
    mr_buf_add(&b->labels.names, mr_buf_text(&name), name.len + 1);
    return read_label(b, g, label);
}

static mr_status read_json(build *b, const group *g, mr_sample *sample)
{
    MR_AUTO(mr_buf_free) mr_buf json = {0};
    if (g->json != MR_NO_ENTRY) {
        MR_TRY(mr_webdataset_json(b->tree, g->json, &json, b->err));
        mr_jsonl file = {.source = b->tree->source, .entry = g->json};
        mr_jsonl_row row = {.text = (const char *)json.data, .len = json.len, .line = 1};
        MR_TRY(mr_jsonl_pick(&file, &row, &b->field, b->field.name != NULL, NULL, b->err));
        bool own = !b->labels.column.asked && is_own(&json);
        b->state->rows[sample->aux].own = own;
        if (own)
            return read_own(b, g, &json, sample);
    } else {
        b->field.kind = MR_JSONL_ABSENT;
        mr_buf_clear(&b->field.text);
    }
    mr_buf_add(&b->labels.names, "", 1);
    if (b->labels.column.asked)
        return mr_labels_take(&b->labels.column, &b->field, path_of(b, g->json == MR_NO_ENTRY ? g->image : g->json),
                              "line", 1, b->err);
    return read_label(b, g, "");
}

static mr_status add_sample(build *b, const group *g)
{
    const mr_source *s = b->tree->source;
    mr_webdataset_state *st = b->state;
    mr_sample sample = {.split = b->split, .entry = g->image, .label = -1, .aux = st->count};
    if (g->second_image != MR_NO_ENTRY)
        return mr_fail(b->err, MR_BAD_DATA,
                       "%s and %s are both the image of one sample; --image-column takes one kind: its name after the "
                       "first dot",
                       path_of(b, g->image), path_of(b, g->second_image));
    if (!MR_GROW(st->rows, st->count, st->room))
        return mr_fail_memory(b->err, "listing samples");
    st->rows[st->count++] = (mr_webdataset_row){.json = g->json, .text = g->text};
    const uint32_t members[] = {g->json, g->cls, g->text};
    for (size_t i = 0; i < MR_COUNT(members); i++)
        if (members[i] != MR_NO_ENTRY) {
            b->plan->used[members[i]] = MR_USE_TAKEN;
            sample.meta_bytes += mr_source_entry(s, members[i])->size;
        }
    MR_TRY(read_json(b, g, &sample));
    return mr_plan_add(b->plan, &sample, b->err);
}

static mr_status end_group(build *b, const group *g)
{
    if (!g->key)
        return MR_OK;
    if (g->image != MR_NO_ENTRY)
        return add_sample(b, g);
    const char *path = path_of(b, g->first);
    const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
    if (g->json != MR_NO_ENTRY || g->cls != MR_NO_ENTRY) { /* a README.txt is not a sample */
        mr_note_add(b->plan->notes, MR_NOTE_MISSING, path, (size_t)(base - path) + g->key_len, 0,
                    "sample left out: no file of this name is an image");
        const uint32_t members[] = {g->json, g->cls, g->text};
        for (size_t i = 0; i < MR_COUNT(members); i++)
            if (members[i] != MR_NO_ENTRY)
                b->plan->used[members[i]] = MR_USE_TAKEN;
    }
    return MR_OK;
}

static bool is_member(const char *name, size_t len, const char *want)
{
    return strlen(want) == len && strncasecmp(name, want, len) == 0;
}

/* The image of a sample: the requested member, or one of a supported kind. */
static bool is_image(const build *b, const char *name, size_t len)
{
    if (b->options->image_column)
        return is_member(name, len, b->options->image_column);
    return is_member(name, len, "jpg") || is_member(name, len, "jpeg") || is_member(name, len, "png") ||
           is_member(name, len, "webp");
}

static void add_member(const build *b, group *g, const mr_child *child)
{
    const char *name = child->name + g->key_len + 1;
    size_t len = child->name_len - g->key_len - 1;
    if (g->first == MR_NO_ENTRY)
        g->first = child->entry;
    if (is_image(b, name, len))
        *(g->image == MR_NO_ENTRY ? &g->image : &g->second_image) = child->entry;
    else if (is_member(name, len, "json"))
        g->json = child->entry;
    else if (is_member(name, len, "cls"))
        g->cls = child->entry;
    else if (is_member(name, len, "txt"))
        g->text = child->entry;
}

static mr_status add_files(build *b, const char *dir, size_t dir_len)
{
    mr_child child = {0};
    group g = no_files;
    while (mr_tree_next(b->tree, dir, dir_len, &child)) {
        size_t key_len;
        if (child.is_dir || !mr_webdataset_name(child.name, child.name_len, &key_len))
            continue;
        if (!g.key || g.key_len != key_len || memcmp(g.key, child.name, key_len) != 0) {
            MR_TRY(end_group(b, &g));
            g = no_files;
            g.key = child.name;
            g.key_len = key_len;
        }
        add_member(b, &g, &child);
    }
    return end_group(b, &g);
}

static bool has_image(const build *b, const char *dir, size_t dir_len)
{
    mr_child child = {0};
    size_t key_len;
    while (mr_tree_next(b->tree, dir, dir_len, &child))
        if (!child.is_dir && mr_webdataset_name(child.name, child.name_len, &key_len) &&
            is_image(b, child.name + key_len + 1, child.name_len - key_len - 1))
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

static mr_status look_for_splits(build *b, const char *dir, size_t dir_len)
{
    const char *name, *slash = dir_len ? memrchr(dir, '/', dir_len) : NULL, *base = slash ? slash + 1 : dir;
    size_t len;
    bool several;
    if (!has_image(b, dir, dir_len))
        return MR_OK;
    b->split_known = b->split_known || find_split(b, dir, dir_len, &name, &len, &several);
    if (mr_webdataset_shard(base, dir_len - (size_t)(base - dir)))
        b->plan->variant = "shards";
    return MR_OK;
}

static mr_status plan_folder(build *b, const char *dir, size_t dir_len)
{
    static const char facts[] = MR_WEBDATASET_FACTS;
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
    build b = {.tree = t, .options = o, .plan = plan, .state = st, .err = err, .field = {.name = o->label_column}};
    b.labels.column.asked = o->label_column;
    b.labels.highest = -1;
    plan->variant = "files";
    if (!st || (o->text_column && !(st->text_column = strdup(o->text_column))))
        return mr_fail_memory(err, "listing samples");
    mr_status status = mr_webdataset_facts_read(t, plan, &b.facts, err);
    if (status == MR_OK)
        status = each_folder(&b, "", 0, look_for_splits);
    for (; status == MR_OK && b.place <= PLACES; b.place++)
        status = each_folder(&b, "", 0, plan_folder);
    if (status == MR_OK)
        status = mr_webdataset_classes(&b.labels, &b.facts, plan, err);
    mr_buf_free(&b.field.text);
    mr_webdataset_labels_free(&b.labels);
    mr_webdataset_facts_free(&b.facts);
    return status;
}
