/* support_hub.c - hub folders for tests without Python. */
#include "support_hub.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "support_archive.h"
#include "support_image.h"

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
    for (const char *at = schema; *at; at++) {      /* the format is the test's own text, not a literal */
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
    support_write_text(path, "");       /* its folders */
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
