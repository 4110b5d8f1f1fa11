/* webdataset.c - WebDataset tars: files that share a name up to the first dot are one sample.
 * Invariant: a sample's .json goes into its meta verbatim, below "columns"; only a meta that millrace itself
 * exported comes back as it was. */
#include "ingest/layout/webdataset/webdataset.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/scope.h"
#include "base/text.h"
#include "ingest/source/names.h"
#include "ingest/layout/captions.h"

enum { LOOK_AT = 512, HEAD = 16 };

/* ---- bid ------------------------------------------------------------------------------------------------------ */

typedef struct evidence {
    size_t images, shards; /* images, and those of them in the folder of a numbered shard */
    size_t cls, json, own; /* with .cls; with .json; with a .json that millrace exported */
    char first[200];       /* path text */
} evidence;

static uint32_t member(const mr_tree *t, const char *path, size_t key_len, const char *end)
{
    char name[4096];
    if (key_len + strlen(end) >= sizeof name)
        return MR_NO_ENTRY;
    memcpy(name, path, key_len);
    memcpy(name + key_len, end, strlen(end));
    return mr_tree_find(t, name, key_len + strlen(end));
}

static bool in_shard(const char *path, const char *base)
{
    const char *slash = base > path ? memrchr(path, '/', (size_t)(base - path - 1)) : NULL;
    const char *folder = slash ? slash + 1 : path;
    return base > path && mr_webdataset_shard(folder, (size_t)(base - 1 - folder)) > 0;
}

static mr_status look_at(const mr_tree *t, uint32_t entry, evidence *e, mr_error *err)
{
    size_t len, key_len;
    const char *path = mr_tree_path(t, entry, &len), *slash = memrchr(path, '/', len), *base = slash ? slash + 1 : path;
    if (!mr_name_is_image(path, len) || !mr_webdataset_name(base, len - (size_t)(base - path), &key_len))
        return MR_OK;
    size_t key_end = (size_t)(base - path) + key_len;
    if (!e->images++) {
        MR_AUTO(mr_buf_free) mr_buf text = {0};
        mr_text_escape(&text, path, len);
        snprintf(e->first, sizeof e->first, "%s", mr_buf_text(&text));
    }
    e->shards += in_shard(path, base);
    e->cls += member(t, path, key_end, ".cls") != MR_NO_ENTRY;
    uint32_t json = member(t, path, key_end, ".json");
    e->json += json != MR_NO_ENTRY;
    if (json == MR_NO_ENTRY || mr_source_entry(t->source, json)->size < HEAD || e->own != e->json - 1)
        return MR_OK;
    char head[HEAD];
    MR_TRY(mr_source_pread(t->source, json, head, sizeof head, 0, err));
    e->own += mr_webdataset_own(head, sizeof head);
    return MR_OK;
}

/* Images with only a .json may be of other formats (such as LabelMe): they count only in a numbered shard, or where
 * millrace exported them. */
static mr_status webdataset_bid(const mr_tree *t, const mr_layout_options *o, mr_bid *bid, mr_error *err)
{
    evidence e = {0};
    (void)o;
    for (uint32_t n = t->begin; n < t->end && n - t->begin < LOOK_AT; n++)
        MR_TRY(look_at(t, n, &e, err));
    bool sidecars = e.cls * 2 >= e.images || (e.own && e.own * 2 >= e.images);
    if (!e.images || (!sidecars && e.shards * 2 < e.images))
        return MR_OK;
    bid->score = e.shards * 2 >= e.images ? 97 : 96; /* the folder of the shards before one of them */
    snprintf(bid->why, sizeof bid->why, "samples of files with one name%s%s%s, first %s", e.shards ? " in shards" : "",
             e.cls ? ", .cls" : "", e.json ? ", .json" : "", e.first);
    return MR_OK;
}

/* ---- meta ----------------------------------------------------------------------------------------------------- */

static mr_status add_json(const mr_tree *t, const mr_webdataset_state *st, const mr_webdataset_row *row, mr_buf *out,
                          mr_error *err)
{
    MR_AUTO(mr_buf_free) mr_buf json = {0};
    MR_TRY(mr_webdataset_json(t, row->json, &json, err));
    const char *text = mr_buf_text(&json);
    size_t from = row->own ? mr_webdataset_added(text, json.len) : 0;
    if (from >= json.len)
        return mr_fail(err, MR_BAD_DATA, "%s: the file has changed since it was parsed; run again",
                       mr_source_entry(t->source, row->json)->path);
    if (row->own) {
        mr_buf_add(out, text + from, json.len - from - 1);
        return MR_OK;
    }
    mr_buf_add_text(out, ",\"columns\":");
    size_t at = out->len;
    mr_buf_add(out, json.data, json.len);
    return st->text_column ? mr_captions_add(t, row->json, st->text_column, at, out, err) : MR_OK;
}

static mr_status add_text(const mr_tree *t, uint32_t entry, mr_buf *out, mr_error *err)
{
    MR_AUTO(mr_buf_free) mr_buf text = {0};
    MR_TRY(mr_source_read(t->source, entry, &text, err));
    size_t len = text.len;
    while (len && strchr(" \t\r\n", text.data[len - 1]))
        len--;
    if (!mr_utf8_valid((const char *)text.data, len))
        return mr_fail(err, MR_BAD_DATA, "%s: not UTF-8 text", mr_source_entry(t->source, entry)->path);
    if (len) {
        mr_buf_add_text(out, ",\"captions\":[");
        mr_json_add_string(out, (const char *)text.data, len);
        mr_buf_add_text(out, "]");
    }
    return MR_OK;
}

static mr_status webdataset_meta(const mr_tree *t, const mr_plan *plan, const mr_sample *sample, mr_buf *out,
                                 mr_error *err)
{
    const mr_webdataset_state *st = plan->state;
    const mr_webdataset_row *row = &st->rows[sample->aux];
    if (row->json != MR_NO_ENTRY)
        MR_TRY(add_json(t, st, row, out, err));
    if (row->text != MR_NO_ENTRY && !row->own && !st->text_column)
        MR_TRY(add_text(t, row->text, out, err));
    return mr_buf_status(out, err, "writing a sample's meta");
}

static void free_state(void *p)
{
    mr_webdataset_state *st = p;
    free(st->rows);
    free(st->text_column);
    free(st);
}

const mr_layout mr_layout_webdataset = {
    .name = "webdataset",
    .title = "WebDataset tars: KEY.jpg with KEY.cls, KEY.json or KEY.txt, in shards such as train-000000.tar",
    .needs = "numbered tars (train-000000.tar) of KEY.jpg, .png or .webp, or images beside files of the same name that "
             "end in .cls",
    .options = MR_OPTION_LABEL | MR_OPTION_IMAGE | MR_OPTION_TEXT,
    .bid = webdataset_bid,
    .plan = mr_webdataset_plan,
    .meta = webdataset_meta,
    .free_state = free_state,
};
