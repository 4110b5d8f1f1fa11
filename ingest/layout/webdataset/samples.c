/* samples.c - files that share a key become samples, folder by folder.
 * Invariant: every file of a sample with an image is used or named; the samples of a split are in the order of their
 * folders' paths, those of a folder in the order of their keys. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/scope.h"
#include "base/text.h"
#include "shards/format/objects.h"
#include "shards/manifest/format.h"
#include "ingest/source/names.h"
#include "ingest/layout/captions.h"
#include "ingest/layout/folder_names.h"
#include "ingest/layout/webdataset/groups.h"
#include "ingest/layout/webdataset/webdataset.h"

enum { LABEL_FILE_MAX = 4096, PLACES = 3 };

typedef mr_webdataset_group group;

typedef struct build {
    const mr_tree *tree;
    const mr_layout_options *options;
    mr_plan *plan;
    mr_webdataset_state *state;
    mr_webdataset_labels labels;
    mr_webdataset_facts facts;
    mr_jsonl_field field; /* --label-column, else "label" */
    size_t unread;        /* samples whose JSON has that label, which is not read without --label-column */
    bool split_known;     /* some folder names a split, so all must */
    uint32_t split;       /* of the current folder */
    bool beside;          /* the current folder is none of the shards, and there are some */
    int place;            /* the current splits: train, val, test, others */
    group odd;            /* the first whose images are of other kinds only */
    mr_error *err;
} build;

static const char *path_of(const build *b, uint32_t entry)
{
    return mr_source_entry(b->tree->source, entry)->path;
}

/* ---- splits --------------------------------------------------------------------------------------------------- */

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
    bool several, named = mr_webdataset_split(&b->facts, b->options, dir, dir_len, &name, &len, &several);
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

/* A class of one of several labels, or of an object: one of the list, or of those that are numbered. */
static mr_status take_class(build *b, const group *g, int32_t class)
{
    int64_t most = b->facts.class_count ? (int64_t)b->facts.class_count - 1 : MR_WEBDATASET_LABEL_MAX;
    if (class > most)
        return mr_fail(b->err, MR_BAD_DATA, "%s: class %d is past the last one, %lld", path_of(b, g->json), (int)class,
                       (long long)most);
    b->labels.highest = class > b->labels.highest ? class : b->labels.highest;
    return MR_OK;
}

static mr_status take_objects(build *b, const group *g, const mr_buf *json)
{
    static const char word[] = "\"objects\"";
    MR_AUTO(mr_objects_free) mr_objects objects = {0};
    mr_error why;
    if (!memmem(json->data, json->len, word, sizeof word - 1))
        return MR_OK;
    if (mr_objects_parse(json->data, json->len, &objects, &why) != MR_OK)
        return mr_fail(b->err, why.status, "%s: %.800s", path_of(b, g->json), why.text);
    for (size_t i = 0; i < objects.count; i++)
        MR_TRY(take_class(b, g, objects.items[i].label));
    return MR_OK;
}

/* Our own meta: its label, unless .cls has one, its class name, its flags and its objects. */
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
        MR_TRY(take_class(b, g, facts.highest));
    }
    MR_TRY(take_objects(b, g, json));
    if (facts.unannotated)
        sample->flags |= MR_FLAG_UNANNOTATED;
    if (!mr_text_unescape(&name, mr_buf_text(&class_text), class_text.len) || memchr(mr_buf_text(&name), 0, name.len))
        mr_buf_clear(&name);
    mr_buf_add(&b->labels.names, mr_buf_text(&name), name.len + 1);
    return read_label(b, g, label);
}

/* What meta() will need must be readable, so that a bad file costs one sample and not the run. */
static mr_status check_captions(const build *b, const group *g)
{
    MR_AUTO(mr_buf_free) mr_buf text = {0};
    const char *column = b->state->text_column;
    if (column && g->json != MR_NO_ENTRY) {
        MR_TRY(mr_webdataset_json(b->tree, g->json, &text, b->err));
        return mr_captions_add(b->tree, g->json, column, 0, &text, b->err);
    }
    if (g->text == MR_NO_ENTRY || column)
        return MR_OK;
    MR_TRY(mr_source_read(b->tree->source, g->text, &text, b->err));
    if (!mr_utf8_valid((const char *)text.data, text.len))
        return mr_fail(b->err, MR_BAD_DATA, "%s: not UTF-8 text", path_of(b, g->text));
    return MR_OK;
}

static mr_status read_json(build *b, const group *g, mr_sample *sample)
{
    MR_AUTO(mr_buf_free) mr_buf json = {0};
    if (g->json != MR_NO_ENTRY) {
        MR_TRY(mr_webdataset_json(b->tree, g->json, &json, b->err));
        mr_jsonl file = {.source = b->tree->source, .entry = g->json};
        mr_jsonl_row row = {.text = (const char *)json.data, .len = json.len, .line = 1};
        MR_TRY(mr_jsonl_pick(&file, &row, &b->field, 1, NULL, b->err));
        bool own = !b->labels.column.asked && is_own(&json);
        b->state->rows[sample->aux].own = own;
        if (own)
            return read_own(b, g, &json, sample);
        b->unread += !b->labels.column.asked && b->field.kind != MR_JSONL_ABSENT;
    } else {
        b->field.kind = MR_JSONL_ABSENT;
        mr_buf_clear(&b->field.text);
    }
    MR_TRY(check_captions(b, g));
    mr_buf_add(&b->labels.names, "", 1);
    if (b->labels.column.asked)
        return mr_labels_take(&b->labels.column, &b->field, path_of(b, g->json == MR_NO_ENTRY ? g->image : g->json),
                              "line", 1, b->err);
    return read_label(b, g, "");
}

static mr_status read_sample(build *b, const group *g, mr_sample *sample)
{
    mr_webdataset_state *st = b->state;
    const uint32_t members[] = {g->json, g->cls, g->text};
    MR_TRY(mr_webdataset_group_check(b->tree, g, b->err));
    if (!MR_GROW(st->rows, st->count, st->capacity))
        return mr_fail_memory(b->err, "listing samples");
    st->rows[st->count++] = (mr_webdataset_row){.json = g->json, .text = g->text};
    for (size_t i = 0; i < MR_COUNT(members); i++)
        if (members[i] != MR_NO_ENTRY)
            sample->meta_bytes += mr_source_entry(b->tree->source, members[i])->size;
    return read_json(b, g, sample);
}

/* All files of a sample are used, or rejected with it. */
static void take_members(build *b, const group *g)
{
    const uint32_t members[] = {g->image, g->json, g->cls, g->text, g->second};
    for (size_t i = 0; i < MR_COUNT(members); i++)
        if (members[i] != MR_NO_ENTRY)
            b->plan->used[members[i]] = MR_USE_TAKEN;
}

static mr_status add_sample(build *b, const group *g)
{
    mr_webdataset_labels *l = &b->labels;
    mr_sample sample = {.split = b->split, .entry = g->image, .label = -1, .aux = b->state->count};
    size_t texts = l->texts.len, names = l->names.len, column = l->column.texts.len;
    mr_error why, *err = b->err;
    b->err = &why;
    mr_status status = read_sample(b, g, &sample);
    b->err = err;
    take_members(b, g);
    if (status == MR_OK)
        return mr_plan_add(b->plan, &sample, b->err);
    if (status != MR_BAD_DATA)
        return mr_fail(b->err, status, "%s", why.text);
    b->state->count = sample.aux;
    l->texts.len = texts;
    l->names.len = names;
    l->column.texts.len = column;
    mr_note_add(b->plan->notes, MR_NOTE_REJECT, path_of(b, g->image), strlen(path_of(b, g->image)),
                mr_source_entry(b->tree->source, g->image)->size, "%s", why.text);
    return MR_OK;
}

static mr_status end_group(build *b, const group *g)
{
    if (!g->key)
        return MR_OK;
    if (g->image != MR_NO_ENTRY)
        return add_sample(b, g);
    const char *path = path_of(b, g->first);
    const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
    if (g->odd != MR_NO_ENTRY) {
        b->odd = b->odd.key ? b->odd : *g;
        mr_note_add(b->plan->notes, MR_NOTE_MISSING, path, (size_t)(base - path) + g->key_len, 0,
                    "sample left out: its image is of another kind: %s", mr_webdataset_member(b->tree, g, g->odd));
    } else if (g->cls != MR_NO_ENTRY) {
        path = path_of(b, g->cls);
        mr_note_add(b->plan->notes, MR_NOTE_MISSING, path, strlen(path), 0,
                    "sample left out: no file of this name is an image");
    } else if (g->json != MR_NO_ENTRY && !b->beside && strncmp(base, "croissant.json", strlen("croissant.json")) != 0) {
        mr_note_add(b->plan->notes, MR_NOTE_MISSING, path, (size_t)(base - path) + g->key_len, 0,
                    "sample left out: no file of this name is an image");
    }
    return MR_OK;
}

/* No sample has an image of a usual kind: which member is meant cannot be known. */
static mr_status check_odd(const build *b)
{
    const group *g = &b->odd;
    if (b->plan->sample_count || !g->key)
        return MR_OK;
    const char *first = mr_webdataset_member(b->tree, g, g->odd);
    bool several = g->odd_after != MR_NO_ENTRY;
    return mr_fail(b->err, MR_BAD_DATA,
                   "%s: samples have no member %s, but %s%s%s; --image-column selects one of them: --image-column %s",
                   path_of(b, g->first), b->options->image_column ? b->options->image_column : "jpg, png or webp",
                   first, several ? " and " : "", several ? mr_webdataset_member(b->tree, g, g->odd_after) : "", first);
}

static mr_status add_files(build *b, const char *dir, size_t dir_len)
{
    mr_child child = {0};
    group g = mr_webdataset_no_files;
    while (mr_tree_next(b->tree, dir, dir_len, &child)) {
        size_t key_len;
        if (child.is_dir || !mr_webdataset_name(child.name, child.name_len, &key_len))
            continue;
        if (!g.key || g.key_len != key_len || memcmp(g.key, child.name, key_len) != 0) {
            MR_TRY(end_group(b, &g));
            g = mr_webdataset_no_files;
            g.key = child.name;
            g.key_len = key_len;
        }
        mr_webdataset_group_add(b->options, &g, &child);
        if (b->options->image_column && mr_name_is_image(child.name, child.name_len))
            b->plan->used[child.entry] = MR_USE_LEFT_OUT; /* unless it becomes a sample's image */
    }
    return end_group(b, &g);
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

static mr_status look_for_splits(build *b, const char *dir, size_t dir_len)
{
    const char *name, *slash = dir_len ? memrchr(dir, '/', dir_len) : NULL, *base = slash ? slash + 1 : dir;
    size_t len;
    bool several;
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
        status = each_folder(&b, "", 0, look_for_splits);
    for (; status == MR_OK && b.place <= PLACES; b.place++)
        status = each_folder(&b, "", 0, plan_folder);
    if (status == MR_OK)
        status = check_odd(&b);
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
