/* test_pairs_column.c - the text column of a split whose first samples have no text.
 * Invariant tested: a named column is looked for in all samples, in training, evaluation and `eval` alike. */
#include <stdlib.h>
#include <string.h>

#include "tests/support/training/train.h"

/* Takes the captions of the first `count` pictures of a split, by name, out of a drawn source. */
static void drop_captions(const char *source, const char *split, size_t count)
{
    char *path = support_path("%s/annotations/captions_%s2017.json", source, split);
    json_t *doc = json_load_file(path, 0, NULL), *images = json_object_get(doc, "images"), *image, *note;
    json_t *notes = json_object_get(doc, "annotations"), *kept = json_array();
    assert_true(json_array_size(images) > count + 1);
    size_t i, k;
    json_array_foreach(notes, i, note)
    {
        const json_t *id = json_object_get(note, "image_id");
        const char *name = NULL;
        size_t before = 0;
        json_array_foreach(images, k, image) if (json_equal(json_object_get(image, "id"), id)) name =
            json_string_value(json_object_get(image, "file_name"));
        assert_non_null(name);
        json_array_foreach(images, k, image) before +=
            strcmp(json_string_value(json_object_get(image, "file_name")), name) < 0;
        if (before >= count)
            json_array_append(kept, note);
    }
    json_object_set_new(doc, "annotations", kept);
    assert_int_equal(json_dump_file(doc, path, 0), 0);
    json_decref(doc);
    free(path);
}

static void words_may_begin_late(void **state)
{
    const char *dir = *state;
    IN(source, "source");
    IN(data, "data");
    IN(tokenizer, "tok.json");
    support_expect(0, "sample", source, "--layout", "coco", "--images", "64", "--size", "32", "--quiet", (char *)NULL);
    drop_captions(source, "train", 17);
    drop_captions(source, "val", 17);
    support_expect(0, "ingest", source, data, "--quiet", (char *)NULL);
    support_expect(0, "tokenizer", data, "--text-column", "captions", "--size", "300", "--output", tokenizer,
                   (char *)NULL);
    train_pairs_expect(0, dir, 0, "--text-column", "captions", "--steps", "2", "--batch", "2", "--output", "run",
                       (char *)NULL);
    support_result r = train_command(0, dir, 0, "eval", "data", "run", "--split", "val", (char *)NULL);
    support_result_free(&r);
    r = train_command(0, dir, 0, "predict", "data", "run", "--split", "val", (char *)NULL);
    support_result_free(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_TMPDIR(words_may_begin_late),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
