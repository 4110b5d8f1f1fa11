/* fuzz_createml.c - a CreateML annotation file.
 * Promises: every image has a name; its text is handed out again as it is in the file, and makes objects that can be
 * written. */
#include "ingest/layout/createml/createml.h"
#include "tests/fuzz/fuzz.h"

static mr_status take_label(void *ctx, const char *text, size_t len, mr_error *err)
{
    (void)ctx, (void)err;
    FUZZ_MUST(text && len);
    return MR_OK;
}

static void check_image(const mr_source *s, const mr_createml_file *f, size_t n, const uint8_t *data, size_t size)
{
    const mr_createml_image *image = &f->images[n];
    mr_plan plan = {0};
    mr_objects objects = {0};
    mr_buf text = {0};
    mr_error err;
    FUZZ_MUST(image->name && image->name[image->name_len] == '\0');
    FUZZ_MUST(image->at <= size && image->len <= size - image->at);
    if (image->why) /* it is rejected */
        return;
    FUZZ_MUST(mr_createml_text(s, f, n, &text, &err) == MR_OK);
    FUZZ_MUST(text.len == image->len && !memcmp(text.data, data + image->at, text.len));
    FUZZ_MUST(mr_createml_objects(&text, &plan, &objects, &err) == MR_OK);
    FUZZ_MUST(objects.count + objects.unreadable >= image->objects);
    mr_objects_free(&objects);
    mr_buf_free(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    mr_notes notes = {0};
    mr_error err;
    mr_createml_file *file = NULL;
    mr_source *source = fuzz_source_one(data, size, "_annotations.createml.json", &notes);
    mr_status status = mr_createml_parse(source, 0, take_label, NULL, &file, &err);
    if (status != MR_OK)
        fuzz_refused(status, &err);
    for (size_t i = 0; status == MR_OK && i < file->count && i < 64; i++)
        check_image(source, file, i, data, size);
    mr_createml_free(file);
    mr_source_free(source);
    mr_notes_free(&notes);
    return 0;
}
