/* captions.c - captions of a sample from a column of its row. */
#include "ingest/layout/captions.h"

#include "base/scope.h"
#include "ingest/tables/jsonl.h"

mr_status mr_captions_add(const mr_tree *t, uint32_t entry, const char *column, size_t columns_at, mr_buf *out,
                          mr_error *err)
{
    mr_jsonl file = {.source = t->source, .entry = entry};
    mr_jsonl_row row = {.text = (const char *)out->data + columns_at, .len = out->len - columns_at, .line = 1};
    mr_jsonl_field field = {.name = column, .texts = true};
    mr_status status = mr_jsonl_pick(&file, &row, &field, 1, NULL, err);
    MR_AUTO(mr_buf_free) mr_buf texts = field.text;
    MR_TRY(status);
    if (field.kind != MR_JSONL_TEXTS && field.kind != MR_JSONL_NULL && field.kind != MR_JSONL_ABSENT)
        return mr_fail(err, MR_BAD_DATA, "%s: column %s is neither a string nor a list of strings",
                       mr_source_entry(t->source, entry)->path, column);
    if (texts.len) {
        mr_buf_add_text(out, ",\"captions\":[");
        mr_buf_add(out, texts.data, texts.len);
        mr_buf_add_text(out, "]");
    }
    return MR_OK;
}
