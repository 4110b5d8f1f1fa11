/* fuzz_export.c - a sample's meta on its way into a format of export.
 * Promises: an annotation of COCO is JSON, whatever the meta holds; spans are JSON values inside of the meta; a name is
 * one safe path component; a fraction of the picture is a number from 0 to 1. */
#include "base/text.h"
#include "shards/export/formats/coco.h"
#include "shards/export/outline.h"
#include "tests/fuzz/fuzz.h"

static void check_span(const uint8_t *data, size_t size, mr_span span)
{
    FUZZ_MUST(span.at <= size && span.len <= size - span.at);
    FUZZ_MUST(!span.len || fuzz_is_json(data + span.at, span.len));
}

static void check_annotations(const uint8_t *data, const mr_export_facts *f, const mr_objects *objects)
{
    mr_export_raws raws = {0};
    mr_buf text = {0};
    mr_error err;
    const char *meta = (const char *)data;
    mr_status status = mr_export_raws_read(meta, f, &raws, &err);
    if (status != MR_OK)
        fuzz_refused(status, &err);
    for (size_t i = 0; status == MR_OK && i < objects->count; i++) {
        const mr_object *o = &objects->items[i];
        const char *id = o->id_len ? (const char *)objects->ids.data + o->id_at : "";
        const mr_export_annotation a = {.meta = meta,
                                        .objects = objects,
                                        .object = o,
                                        .raw = o->id_len ? mr_export_raws_find(&raws, meta, id, o->id_len) : NULL,
                                        .id = 1,
                                        .image = 2,
                                        .category = 3};
        mr_buf_clear(&text);
        FUZZ_MUST(!mr_export_annotation_write(&a, &text) || fuzz_is_json(text.data, text.len));
    }
    free(raws.items);
    mr_buf_free(&text);
}

static void check_outlines(const mr_objects *objects)
{
    const mr_stored picture = {640, 480, 1};
    mr_outline outline = {0};
    mr_buf text = {0};
    for (size_t i = 0; i < objects->count; i++) {
        FUZZ_MUST(mr_outline_make(objects, &objects->items[i], &outline));
        for (size_t k = 0; k + 1 < outline.count; k += 2) {
            mr_milli x = outline.points[k], y = outline.points[k + 1];
            mr_outline_clip(&picture, &x, &y);
            mr_buf_clear(&text);
            mr_outline_fraction(x, picture.width, &text);
            double part = strtod(mr_buf_text(&text), NULL);
            FUZZ_MUST(part >= 0 && part <= 1 && text.len <= 11);
        }
    }
    mr_outline_free(&outline);
    mr_buf_free(&text);
}

static void check_names(const mr_buf *source)
{
    mr_names names = {0};
    mr_error err;
    bool changed;
    for (unsigned rules = 0; rules < 8; rules++) {
        mr_buf name = {0};
        const mr_name_request request = {"f", source->len ? (const char *)source->data : "", source->len, "jpg", rules};
        FUZZ_MUST(mr_names_take(&names, &request, &name, &changed, &err) == MR_OK);
        const char *text = mr_buf_text(&name);
        FUZZ_MUST(name.len && strlen(text) == name.len && !strchr(text, '/') && *text != '.');
        FUZZ_MUST(name.len <= MR_NAME_MAX + 1 && mr_utf8_valid(text, name.len));
        mr_buf_free(&name);
    }
    mr_names_free(&names);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    mr_export_facts facts = {0};
    mr_objects objects = {0};
    mr_error err;
    mr_status status = mr_export_facts_read((const char *)data, size, &facts, &err);
    if (status == MR_OK)
        status = mr_objects_parse(data, size, &objects, &err);
    if (status == MR_OK) {
        check_span(data, size, facts.columns);
        check_span(data, size, facts.instances);
        check_span(data, size, facts.keypoints);
        FUZZ_MUST(facts.image_id.at <= size && facts.image_id.len <= size - facts.image_id.at);
        for (size_t i = 0; i < facts.image_id.len; i++)
            FUZZ_MUST(memchr("0123456789+-.eE", data[facts.image_id.at + i], 15));
        check_annotations(data, &facts, &objects);
        check_outlines(&objects);
        check_names(&facts.source);
    } else {
        fuzz_refused(status, &err);
    }
    mr_export_facts_free(&facts);
    mr_objects_free(&objects);
    return 0;
}
