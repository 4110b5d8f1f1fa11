/* samples.c - the files of one key become a sample.
 * Invariant: every file of a sample with an image is used or named. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/scope.h"
#include "base/text.h"
#include "shards/format/objects.h"
#include "shards/manifest/format.h"
#include "ingest/source/names.h"
#include "ingest/layout/captions.h"
#include "ingest/layout/webdataset/samples.h"

enum { LABEL_FILE_MAX = 4096 };

typedef mr_webdataset_group group;
typedef mr_webdataset_build build;

static const char *path_of(const build *b, uint32_t entry)
{
    return mr_source_entry(b->tree->source, entry)->path;
}

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

mr_status mr_webdataset_sample(build *b, const group *g)
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

mr_status mr_webdataset_check_odd(const build *b)
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
