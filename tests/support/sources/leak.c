/* leak.c - a Roboflow export of a test, and the leaks that ingest finds in it. */
#include "tests/support/sources/leak.h"

#include <stdlib.h>

#include <jansson.h>

char *leak_dir, *leak_source;

int leak_set_up(void **state)
{
    (void)state;
    leak_dir = support_tmpdir();
    leak_source = support_path("%s/export", leak_dir);
    return 0;
}

int leak_tear_down(void **state)
{
    (void)state;
    free(leak_source);
    support_tmpdir_remove(leak_dir);
    return 0;
}

void leak_put(const char *name, uint64_t seed, alike_edit edit, enum alike_codec codec)
{
    char *path = support_path("%s/%s", leak_source, name);
    alike_write(seed, edit, codec, path);
    free(path);
}

void leak_put_bytes(const char *name, picture file)
{
    char *path = support_path("%s/%s", leak_source, name);
    support_write(path, file.bytes, file.len);
    picture_free(&file);
    free(path);
}

void leak_expect(const char *leaks, const char *same_names, int equal, int alike)
{
    static const char *const kinds[] = {"leaks", "same_names"};
    const char *const wanted[] = {leaks, same_names};
    support_result r = support_millrace("ingest", leak_source, "--dry-run", "--json", (char *)NULL);
    support_assert_status(&r, 0);
    json_t *doc = json_loads(r.out, 0, NULL);
    for (size_t k = 0; k < MR_COUNT(kinds); k++) {
        mr_buf lines = {0};
        json_t *list = json_object_get(doc, kinds[k]);
        for (size_t i = 0; i < json_array_size(list); i++)
            mr_buf_printf(&lines, "%s: %s\n", json_string_value(json_object_get(json_array_get(list, i), "file")),
                          json_string_value(json_object_get(json_array_get(list, i), "reason")));
        assert_string_equal(mr_buf_text(&lines), wanted[k]);
        assert_int_equal(json_integer_value(json_object_get(json_object_get(doc, "counts"), kinds[k])),
                         json_array_size(list));
        mr_buf_free(&lines);
    }
    json_decref(doc);
    support_result_free(&r);
    support_expect(equal, "ingest", leak_source, "--dry-run", "--quiet", "--fail-on-leak", (char *)NULL);
    support_expect(alike, "ingest", leak_source, "--dry-run", "--quiet", "--fail-on-leak=alike", (char *)NULL);
}

void leak_put_text(const char *name, const char *text)
{
    support_put(leak_source, name, text);
}
