/* captions.c - an image's captions, from a sample's meta.
 * Invariant: only the requested caption is copied from a meta, and names for a message. */
#include "shards/dataset/captions.h"

#include <stdlib.h>
#include <string.h>

#include "base/scope.h"
#include "base/text.h"
#include "shards/dataset/dataset.h"
#include "base/json/json_walk.h"

enum {
    NAME_SHOWN = 60,   /* bytes of a foreign column's name in a message */
    NAMES_SHOWN = 400, /* bytes of all the names shown */
};

/* ---- captions of a value ----------------------------------------------------------------------------------------- */

static mr_status not_json(mr_error *err)
{
    return mr_fail(err, MR_BAD_DATA, "meta: is not a valid JSON object; run 'millrace verify --deep'");
}

static mr_status twice(const char *name, mr_error *err)
{
    return mr_fail(err, MR_BAD_DATA, "meta: has \"%.*s\" twice", NAME_SHOWN, name);
}

/* A string with something in it: the item, or its member "caption". */
static bool caption_of(mr_json_span item, mr_json_span *out)
{
    if (*item.at == '{') {
        mr_json_walk w = mr_json_walk_of(item);
        mr_json_span key, value;
        bool found = false;
        while (!found && mr_json_next(&w, &key, &value) > 0)
            if (mr_json_equals(key, "caption")) {
                item = value;
                found = true;
            }
    }
    *out = item;
    return mr_json_is_text(item) && item.end - item.at > 2;
}

/* Caption n of a value; if n is too large, how many it has. */
static mr_status pick(mr_json_span value, size_t n, mr_json_span *out, size_t *count, mr_error *err)
{
    mr_json_span item;
    *count = 0;
    if (*value.at != '[') {
        *count = mr_json_is_text(value) && caption_of(value, out);
        return MR_OK;
    }
    mr_json_walk w = mr_json_walk_of(value);
    int more;
    while ((more = mr_json_next(&w, NULL, &item)) > 0)
        if (caption_of(item, out) && (*count)++ == n)
            return MR_OK;
    return more == 0 ? MR_OK : not_json(err);
}

/* ---- columns ----------------------------------------------------------------------------------------------------- */

typedef struct members {
    mr_json_span columns, captions; /* at NULL: has none */
} members;

static mr_status set_once(mr_json_span *slot, mr_json_span value, const char *name, mr_error *err)
{
    if (slot->at)
        return twice(name, err);
    *slot = value;
    return MR_OK;
}

static mr_status look(const char *meta, size_t len, members *out, mr_error *err)
{
    mr_json_span all = {mr_json_blanks(meta, meta + len), meta + len}, key, value;
    *out = (members){0};
    if (all.at == all.end || *all.at != '{')
        return not_json(err);
    mr_json_walk w = mr_json_walk_of(all);
    int more;
    mr_status status = MR_OK;
    while (status == MR_OK && (more = mr_json_next(&w, &key, &value)) != 0) {
        if (more < 0)
            return not_json(err);
        if (mr_json_equals(key, "columns") && *value.at == '{')
            status = set_once(&out->columns, value, "columns", err);
        else if (mr_json_equals(key, "captions") && *value.at == '[')
            status = set_once(&out->captions, value, "captions", err);
    }
    if (status == MR_OK && mr_json_blanks(w.at, w.end) != w.end)
        return not_json(err);
    return status;
}

static mr_status find_column(const members *m, const char *column, mr_json_span *out, mr_error *err)
{
    mr_json_span key, value;
    int more = 0;
    *out = (mr_json_span){0};
    mr_json_walk w = m->columns.at ? mr_json_walk_of(m->columns) : (mr_json_walk){0};
    while (m->columns.at && (more = mr_json_next(&w, &key, &value)) > 0) {
        mr_status status = mr_json_equals(key, column) ? set_once(out, value, column, err) : MR_OK;
        if (status != MR_OK)
            return status;
    }
    if (more < 0)
        return not_json(err);
    if (!out->at && (strcmp(column, "captions") == 0 || strcmp(column, "caption") == 0))
        *out = m->captions;
    return MR_OK;
}

mr_status mr_captions_find(const char *column, const char *meta, size_t len, mr_captions *out, mr_error *err)
{
    members m;
    mr_json_span value = {0}, unused;
    size_t count = 0;
    MR_TRY(look(meta, len, &m, err));
    MR_TRY(find_column(&m, column, &value, err));
    if (value.at)
        MR_TRY(pick(value, SIZE_MAX, &unused, &count, err));
    *out = (mr_captions){value.at, value.end, count};
    return MR_OK;
}

mr_status mr_captions_read(const mr_captions *c, size_t n, mr_buf *out, mr_error *err)
{
    mr_json_span text = {0};
    size_t count, begin = out->len;
    if (n >= c->count)
        return mr_fail(err, MR_MISUSE, "caption %zu of %zu does not exist", n, c->count);
    MR_TRY(pick((mr_json_span){c->at, c->end}, n, &text, &count, err));
    bool sound = mr_json_decode(text, out);
    if (!sound || (!out->failed && !mr_utf8_valid((const char *)out->data + begin, out->len - begin)))
        return mr_fail(err, MR_BAD_DATA, "meta: caption %zu is not a valid JSON string; run 'millrace verify --deep'",
                       n);
    return mr_buf_status(out, err, "reading a caption");
}

mr_status mr_captions_count(const char *column, const char *meta, size_t len, size_t *count, mr_error *err)
{
    mr_captions c;
    MR_TRY(mr_captions_find(column, meta, len, &c, err));
    *count = c.count;
    return MR_OK;
}

static mr_status none(const char *column, const char *meta, size_t len, mr_error *err)
{
    MR_AUTO(mr_buf_free) mr_buf known = {0};
    mr_captions_guess(meta, len, &known);
    const char *names = mr_buf_text(&known);
    return mr_fail(err, MR_BAD_SAMPLE, "meta: no caption in column \"%.*s\"; %s%s%s", NAME_SHOWN, column,
                   *names ? "there is text in " : "no column has text in it", names,
                   *names ? " (see --text-column)" : "");
}

mr_status mr_captions_get(const char *column, const char *meta, size_t len, size_t n, mr_buf *out, mr_error *err)
{
    mr_captions c;
    MR_TRY(mr_captions_find(column, meta, len, &c, err));
    if (c.count == 0)
        return none(column, meta, len, err);
    if (n >= c.count)
        return mr_fail(err, MR_BAD_SAMPLE, "meta: column \"%.*s\" has %zu caption%s, but not number %zu", NAME_SHOWN,
                       column, c.count, c.count == 1 ? "" : "s", n);
    return mr_captions_read(&c, n, out, err);
}

/* ---- names ------------------------------------------------------------------------------------------------------- */

/* A name from the data, made printable and shortened for a message. */
static void add_name(mr_buf *known, mr_json_span key)
{
    mr_buf name = {0};
    mr_json_span shown = key;
    bool whole = key.end - key.at <= 4 * NAME_SHOWN;
    if (known->len > NAMES_SHOWN) {
        if (memcmp(known->data + known->len - 5, ", ...", 5) != 0)
            mr_buf_add_text(known, ", ...");
        return;
    }
    if (!whole) /* may split an escape or a character, whose rest is not shown */
        shown.end = key.at + 4 * NAME_SHOWN;
    (void)mr_json_decode(shown, &name);
    if (name.len > NAME_SHOWN) {
        name.len = NAME_SHOWN;
        whole = false;
    }
    if (!whole)
        name.len -= mr_utf8_cut((const char *)name.data, name.len);
    mr_buf_add_text(known, known->len ? ", " : "");
    mr_text_escape(known, (const char *)name.data, name.len);
    mr_buf_add_text(known, whole ? "" : "...");
    mr_buf_free(&name);
}

static bool has_text(mr_json_span value)
{
    mr_json_span text;
    size_t count;
    return pick(value, SIZE_MAX, &text, &count, NULL) == MR_OK && count;
}

const char *mr_captions_guess(const char *meta, size_t len, mr_buf *known)
{
    members m;
    mr_json_span key, value;
    bool image = false, captions = false;
    if (look(meta, len, &m, NULL) != MR_OK)
        return NULL;
    mr_json_walk w = m.columns.at ? mr_json_walk_of(m.columns) : (mr_json_walk){0};
    while (m.columns.at && mr_json_next(&w, &key, &value) > 0) {
        image = image || mr_json_equals(key, "image_description");
        captions = captions || mr_json_equals(key, "captions");
        if (has_text(value))
            add_name(known, key);
    }
    if (!captions && m.captions.at && has_text(m.captions)) {
        static const char word[] = "\"captions\"";
        add_name(known, (mr_json_span){word, word + sizeof word - 1});
    }
    return image ? "image_description" : captions || m.captions.at ? "captions" : NULL;
}

mr_status mr_meta_captions(const char *meta, size_t len, const char *column, mr_take_text *take, void *ctx,
                           mr_error *err)
{
    MR_AUTO(mr_buf_free) mr_buf text = {0};
    mr_captions found;
    if (!column)
        column = mr_captions_guess(meta, len, &text);
    MR_TRY(mr_captions_find(column ? column : "captions", meta, len, &found, err));
    for (size_t n = 0; n < found.count; n++) {
        mr_buf_clear(&text);
        MR_TRY(mr_captions_read(&found, n, &text, err));
        take(ctx, mr_buf_text(&text), text.len);
    }
    return MR_OK;
}

/* ---- all captions of a split ------------------------------------------------------------------------------------- */

mr_status mr_captions_expand(const mr_dataset *ds, const char *split, const char *column, uint64_t **items,
                             uint64_t *count, uint64_t *without, mr_error *err)
{
    uint64_t samples = mr_dataset_samples(ds, split), *list = NULL, left_out = 0;
    size_t used = 0, capacity = 0;
    mr_sample_view view = {0};
    mr_error why;
    MR_TRY(mr_manifest_find_split(mr_dataset_manifest(ds), NULL, split, NULL, err));
    mr_status status = MR_OK;
    for (uint64_t n = 0; n < samples && status == MR_OK; n++) {
        status = mr_dataset_read_meta(ds, split, n, &view, err);
        bool bad = mr_status_is_bad(status);
        size_t captions = bad; /* a damaged one is listed once, for the loader to find */
        if (status != MR_OK && !bad)
            break;
        status = bad ? MR_OK : mr_captions_count(column, view.meta, view.meta_len, &captions, &why);
        if (status != MR_OK)
            status = mr_fail(err, status, "%s sample %llu: %s", split, (unsigned long long)n, why.text);
        left_out += status == MR_OK && captions == 0;
        for (size_t i = 0; i < captions && status == MR_OK; i++) {
            if (!MR_GROW(list, used, capacity))
                status = mr_fail_memory(err, "listing captions");
            else
                list[used++] = n;
        }
    }
    mr_sample_view_free(&view);
    if (status != MR_OK) {
        free(list);
        return status;
    }
    *items = list;
    *count = used;
    *without = left_out;
    return MR_OK;
}
