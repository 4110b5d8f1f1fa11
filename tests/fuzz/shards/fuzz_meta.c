/* fuzz_meta.c - the meta of a sample.
 * Promises: what was scanned is one JSON object, its facts are those that another parser sees, and laying it out for
 * people changes nothing but blanks. */
#include "base/text.h"
#include "shards/manifest/json_lay_out.h"
#include "shards/format/meta.h"
#include "shards/format/objects.h"
#include "tests/fuzz/fuzz.h"

static void check_against(const json_t *doc, const mr_meta_facts *f, mr_buf *source)
{
    const json_t *label = json_object_get(doc, "label"), *labels = json_object_get(doc, "labels");
    const json_t *of = json_object_get(doc, "image_of"), *path = json_object_get(doc, "source");
    FUZZ_MUST(label ? json_integer_value(label) == f->label : f->label == -1);
    FUZZ_MUST(f->multi_label == json_is_array(labels));
    FUZZ_MUST(f->has_image_of == (of != NULL));
    FUZZ_MUST(!of || (uint64_t)json_integer_value(of) == f->image_of);
    FUZZ_MUST(f->unannotated == json_is_true(json_object_get(doc, "unannotated")));
    FUZZ_MUST(source->len == json_string_length(path));
    FUZZ_MUST(!path || memcmp(source->data, json_string_value(path), source->len) == 0);
}

static void check_laid_out(const json_t *doc, const uint8_t *data, size_t size)
{
    mr_buf text = {0};
    mr_json_lay_out(&text, (const char *)data, size, 2);
    json_t *again = json_loadb((const char *)text.data, text.len, JSON_ALLOW_NUL, NULL);
    FUZZ_MUST(again && json_equal(doc, again));
    json_decref(again);
    mr_buf_free(&text);
}

/* The facts, written as ingest would, are read back the same. */
static void check_begin(const mr_meta_facts *facts, mr_buf *source)
{
    mr_buf text = {0}, path = {0}, back = {0};
    mr_meta_facts again;
    mr_error err;
    if (!mr_text_unescape(&path, mr_buf_text(source), source->len))
        mr_buf_clear(&path);
    mr_meta_begin(&text, (const char *)path.data, path.len, facts, facts->label >= 0 ? "a \"class\"" : NULL);
    mr_buf_add_text(&text, facts->multi_label ? ",\"labels\":[1,2]}" : "}");
    FUZZ_MUST(mr_meta_scan(text.data, text.len, &again, &back, &err) == MR_OK);
    FUZZ_MUST(again.label == facts->label && again.multi_label == facts->multi_label);
    FUZZ_MUST(again.unannotated == facts->unannotated && again.has_image_of == facts->has_image_of);
    FUZZ_MUST(!again.has_image_of || again.image_of == facts->image_of);
    mr_buf_clear(&text);
    FUZZ_MUST(mr_text_unescape(&text, mr_buf_text(&back), back.len));
    FUZZ_MUST(text.len == path.len && (path.len == 0 || memcmp(text.data, path.data, path.len) == 0));
    mr_buf_free(&text);
    mr_buf_free(&path);
    mr_buf_free(&back);
}

/* What is taken as objects is written in one form, which is read back as it is. */
static void check_objects(const uint8_t *data, size_t size)
{
    mr_objects first = {0}, second = {0};
    mr_buf text = {0}, again = {0};
    mr_error err;
    mr_status status = mr_objects_parse(data, size, &first, &err);
    if (status != MR_OK)
        fuzz_refused(status, &err);
    if (status == MR_OK && first.known) {
        mr_buf_add_text(&text, "{\"a\":0");
        mr_objects_write(&first, NULL, 0, &text);
        mr_buf_add_text(&text, "}");
        FUZZ_MUST(mr_objects_parse(mr_buf_text(&text), text.len, &second, &err) == MR_OK && second.known);
        mr_buf_add_text(&again, "{\"a\":0");
        mr_objects_write(&second, NULL, 0, &again);
        mr_buf_add_text(&again, "}");
        FUZZ_MUST(text.len == again.len && !memcmp(text.data, again.data, text.len));
    }
    mr_objects_free(&first);
    mr_objects_free(&second);
    mr_buf_free(&text);
    mr_buf_free(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    mr_meta_facts facts;
    mr_buf source = {0}, any = {0};
    mr_error err;
    mr_status status = mr_meta_scan(data, size, &facts, &source, &err);
    if (status == MR_OK) {
        json_t *doc = json_loadb((const char *)data, size, JSON_ALLOW_NUL, NULL);
        FUZZ_MUST(facts.label >= -1 && !(facts.multi_label && facts.label >= 0));
        FUZZ_MUST(fuzz_is_json(data, size));
        check_begin(&facts, &source);
        if (doc) { /* it refuses some numbers that yajl takes as text */
            check_against(doc, &facts, &source);
            check_laid_out(doc, data, size);
        }
        json_decref(doc);
    } else {
        FUZZ_MUST(status == MR_BAD_DATA);
        fuzz_refused(status, &err);
    }
    check_objects(data, size);
    mr_json_lay_out(&any, (const char *)data, size, 0);
    mr_buf_free(&any);
    mr_buf_free(&source);
    return 0;
}
