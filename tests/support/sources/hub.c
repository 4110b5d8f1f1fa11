/* hub.c - hub folders for tests without Python. */
#include "tests/support/sources/hub.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/support/sources/archive.h"
#include "tests/support/images/image.h"

static support_entry entry(mr_buf *name, const void *bytes, size_t len)
{
    return (support_entry){.path = mr_buf_text(name), .bytes = bytes, .len = len};
}

void support_hub_file(const char *dir, const char *name, const char *schema, const support_row *rows, size_t count)
{
    mr_buf *names = mr_alloc(3 * count + 1, sizeof *names);
    support_entry *entries = mr_alloc(3 * count + 1, sizeof *entries);
    picture *pictures = mr_alloc(count, sizeof *pictures);
    mr_buf text = {0};
    size_t n = 0;
    assert_true(names && entries && pictures);
    for (const char *at = schema; *at; at++) { /* the format is the test's own text, not a literal */
        if (strncmp(at, "%zu", 3) == 0)
            mr_buf_printf(&text, "%zu", count);
        else
            mr_buf_add(&text, at, 1);
        at += strncmp(at, "%zu", 3) == 0 ? 2 : 0;
    }
    mr_buf_add_text(&names[0], "schema.json");
    if (*schema)
        entries[n++] = entry(&names[0], text.data, text.len);
    for (size_t i = 0; i < count; i++) {
        mr_buf_printf(&names[3 * i + 1], "%09zu.json", i);
        mr_buf_printf(&names[3 * i + 2], "%09zu.path", i);
        mr_buf_printf(&names[3 * i + 3], "%09zu/%zu.png", i, i);
        if (rows[i].json)
            entries[n++] = entry(&names[3 * i + 1], rows[i].json, strlen(rows[i].json));
        if (rows[i].path)
            entries[n++] = entry(&names[3 * i + 2], rows[i].path, strlen(rows[i].path));
        if (!rows[i].width)
            continue;
        pictures[i] = make_png(rows[i].width, 3, 2, 8, false);
        entries[n++] = entry(&names[3 * i + 3], pictures[i].bytes, pictures[i].len);
    }
    char *path = support_path("%s/%s", dir, name);
    support_write_text(path, ""); /* its folders */
    support_archive(path, "tar", entries, n);
    for (size_t i = 0; i < 3 * count + 1; i++)
        mr_buf_free(&names[i]);
    for (size_t i = 0; i < count; i++)
        if (rows[i].width)
            picture_free(&pictures[i]);
    mr_buf_free(&text);
    free(path);
    free(names);
    free(entries);
    free(pictures);
}

void support_hub_reader(const char *path, const char *script)
{
    support_write_text(path, script);
    assert_int_equal(chmod(path, 0755), 0);
    assert_int_equal(setenv("MILLRACE_PARQUET_READER", path, 1), 0);
}

void support_hub_rows(const char *dir, const char *name, size_t count, unsigned classes, unsigned width)
{
    support_row *rows = mr_alloc(count, sizeof *rows);
    mr_buf schema = {0};
    assert_non_null(rows);
    mr_buf_add_text(&schema, "{\"rows\":%zu,\"image\":\"image\",\"columns\":[\"label\",\"text\"],\"label\":{\"column\":"
                             "\"label\",\"kind\":\"names\",\"names\":[");
    for (unsigned c = 0; c < classes; c++)
        mr_buf_printf(&schema, "%s\"class %u\"", c ? "," : "", c);
    mr_buf_add_text(&schema, "]}}");
    for (size_t i = 0; i < count; i++) {
        rows[i].json = support_path("{\"label\": %zu, \"text\": \"row %zu\"}", i % classes, i);
        rows[i].width = width + (unsigned)i;
    }
    support_hub_file(dir, name, mr_buf_text(&schema), rows, count);
    for (size_t i = 0; i < count; i++)
        free((void *)(uintptr_t)rows[i].json);
    mr_buf_free(&schema);
    free(rows);
}

/* ---- a hub folder of the test's own ---------------------------------------------------------------------------- */

char *hub_dir, *hub_source, *hub_target;

int hub_set_up(void **state)
{
    (void)state;
    hub_dir = support_tmpdir();
    hub_source = support_path("%s/hub", hub_dir);
    hub_target = support_path("%s/dataset", hub_dir);
    char *reader = support_path("%s/reader", hub_dir);
    support_hub_reader(reader, "#!/bin/sh\nexec cat\n");
    free(reader);
    return 0;
}

int hub_tear_down(void **state)
{
    (void)state;
    unsetenv("MILLRACE_PARQUET_READER");
    free(hub_source);
    free(hub_target);
    support_tmpdir_remove(hub_dir);
    return 0;
}

void hub_ingest(int status, const char *words, const char *option, const char *value)
{
    support_result r = support_millrace("ingest", hub_source, hub_target, "--max-rejects", "50%",
                                        option ? option : "--jobs", option ? value : "2", (char *)NULL);
    support_assert_status(&r, status);
    if (words && !strstr(r.out, words) && !strstr(r.err, words))
        fail_msg("no \"%s\" in:\n%s%s", words, r.out, r.err);
    support_result_free(&r);
    char *partial = support_path("%s.partial", hub_target);
    assert_false(support_exists(partial));
    assert_int_equal(support_exists(hub_target), status == 0);
    free(partial);
}

void hub_start_again(void)
{
    support_result r = support_run((const char *[]){"rm", "-rf", hub_target, hub_source, NULL}, NULL);
    support_assert_status(&r, 0);
    support_result_free(&r);
}

json_t *hub_meta(const char *split, const char *sample)
{
    support_result r = support_millrace("show", hub_target, split, sample, "--json", (char *)NULL);
    support_assert_status(&r, 0);
    json_t *doc = json_loads(r.out, 0, NULL), *out = json_incref(json_object_get(doc, "meta"));
    assert_non_null(out);
    json_decref(doc);
    support_result_free(&r);
    return out;
}

void hub_assert_meta(const char *split, const char *sample, const char *expected)
{
    json_t *found = hub_meta(split, sample), *wanted = json_loads(expected, 0, NULL);
    assert_non_null(wanted);
    if (!json_equal(found, wanted)) {
        char *text = json_dumps(found, 0);
        fail_msg("%s %s: %s, not %s", split, sample, text, expected);
    }
    json_decref(found);
    json_decref(wanted);
}
