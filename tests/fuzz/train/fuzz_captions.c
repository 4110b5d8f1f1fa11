/* fuzz_captions.c - the words of a picture out of foreign meta.
 * Promises: what a JSON parser takes gives the captions that the parser sees, in order; texts and names are UTF-8; a
 * refusal says why. */
#include "base/text.h"
#include "tests/fuzz/fuzz.h"
#include "shards/dataset/captions.h"

static const char *const columns[] = {"captions", "caption", "image_description", "t"};

/* Caption n of a column in the meta, as the parser sees it; NULL: there is none. */
static const json_t *parsed(const json_t *doc, const char *column, size_t n)
{
    const json_t *list = json_object_get(doc, "captions");
    const json_t *v = json_object_get(json_object_get(doc, "columns"), column);
    if (!v && strncmp(column, "caption", 7) == 0 && json_is_array(list))
        v = list;
    if (json_is_string(v))
        return json_string_length(v) && n == 0 ? v : NULL;
    for (size_t i = 0; i < json_array_size(v); i++) {
        const json_t *item = json_array_get(v, i);
        if (json_is_object(item))
            item = json_object_get(item, "caption");
        if (json_string_length(item) && n-- == 0)
            return item;
    }
    return NULL;
}

static void check(const char *meta, size_t size, const json_t *doc, const char *column)
{
    mr_error err;
    size_t count = 0;
    mr_buf text = {0};
    mr_status status = mr_captions_count(column, meta, size, &count, &err);
    if (status != MR_OK) {
        FUZZ_MUST(status == MR_BAD_DATA && !doc);
        fuzz_refused(status, &err);
        return;
    }
    for (size_t n = 0; n <= count && n < 100; n++) {
        const json_t *want = doc ? parsed(doc, column, n) : NULL;
        mr_buf_clear(&text);
        status = mr_captions_get(column, meta, size, n, &text, &err);
        if (status != MR_OK)
            fuzz_refused(status, &err);
        else
            FUZZ_MUST(n < count && text.len && mr_utf8_valid((const char *)text.data, text.len));
        FUZZ_MUST(n < count || status == MR_BAD_SAMPLE);
        FUZZ_MUST(!doc || (status == MR_OK) == (want != NULL));
        FUZZ_MUST(!want || text.len == json_string_length(want));
        FUZZ_MUST(!want || memcmp(text.data, json_string_value(want), text.len) == 0);
    }
    mr_buf_free(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *meta = (const char *)data;
    mr_buf known = {0};
    json_t *doc = json_loadb(meta, size, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);
    if (doc && !json_is_object(doc)) {
        json_decref(doc);
        doc = NULL;
    }
    for (size_t i = 0; i < sizeof columns / sizeof *columns; i++)
        check(meta, size, doc, columns[i]);
    mr_captions_guess(meta, size, &known);
    FUZZ_MUST(mr_utf8_valid(mr_buf_text(&known), known.len));
    mr_buf_free(&known);
    json_decref(doc);
    return 0;
}
