/* fuzz_coco_json.c - a COCO annotation file.
 * Promises: images sorted by id, ids once, each with a run of its own annotations, no annotation lost; what is handed
 * out again is JSON and is in the file; an image with a bad value is marked. */
#include "tests/fuzz/fuzz.h"
#include "ingest/tables/coco_json.h"

static void check_tables(const mr_coco_file *f, size_t size)
{
    size_t linked = 0;
    for (size_t i = 0; i < f->image_count; i++) {
        const mr_coco_image *image = &f->images[i];
        FUZZ_MUST(i == 0 || image[-1].id < image->id);
        FUZZ_MUST(image->bad <= f->bad_count);
        FUZZ_MUST(image->file_name && image->file_name[image->name_len] == '\0');
        FUZZ_MUST(image->at <= size && image->len <= size - image->at);
        FUZZ_MUST(image->first <= f->annotation_count && image->count <= f->annotation_count - image->first);
        for (uint32_t a = image->first; a < image->first + image->count; a++)
            FUZZ_MUST(f->annotations[a].image_id == image->id);
        linked += image->count;
    }
    FUZZ_MUST(linked + f->orphans == f->annotation_count);
    for (size_t i = 0; i < f->category_count; i++)
        FUZZ_MUST(f->categories[i].name != NULL);
    for (size_t i = 0; i < f->annotation_count; i++)
        FUZZ_MUST(f->annotations[i].png <= f->png_count);
    for (size_t i = 1; i < f->annotation_count; i++)
        FUZZ_MUST(f->annotations[i - 1].image_id <= f->annotations[i].image_id);
}

static void check_texts(const mr_source *s, const mr_coco_file *f, const uint8_t *data)
{
    mr_buf text = {0};
    mr_error err;
    for (size_t i = 0; i < f->image_count && i < 64; i++) {
        mr_buf_clear(&text);
        FUZZ_MUST(mr_coco_image_text(s, f, i, &text, &err) == MR_OK);
        FUZZ_MUST(text.len == f->images[i].len && memcmp(text.data, data + f->images[i].at, text.len) == 0);
        FUZZ_MUST(f->images[i].bad || fuzz_is_json(text.data, text.len));
        mr_buf_clear(&text);
        FUZZ_MUST(mr_coco_annotations(s, f, i, &text, &err) == MR_OK);
        FUZZ_MUST(text.data[0] == '[' && (f->images[i].bad || fuzz_is_json(text.data, text.len)));
    }
    mr_buf_free(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    mr_notes notes = {0};
    mr_error err;
    mr_coco_file *file = NULL;
    mr_coco_ids ids = {0};
    mr_source *source = fuzz_source_one(data, size, "instances_train2017.json", &notes);
    mr_status status = mr_coco_parse(source, 0, &ids, &file, &err);
    if (status == MR_OK) {
        size_t mark = size >= 3 && memcmp(data, "\xEF\xBB\xBF", 3) == 0 ? 3 : 0;
        FUZZ_MUST(file->repaired || fuzz_is_json(data + mark, size - mark));
        check_tables(file, size);
        check_texts(source, file, data);
    } else {
        FUZZ_MUST(status == MR_BAD_DATA && !file);
        fuzz_refused(status, &err);
    }
    mr_coco_free(file);
    mr_coco_ids_free(&ids);
    mr_source_free(source);
    mr_notes_free(&notes);
    return 0;
}
