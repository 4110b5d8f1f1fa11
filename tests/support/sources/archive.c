/* archive.c - archives made for tests. */
#include "tests/support/sources/archive.h"

#include <stdlib.h>
#include <string.h>

#include <archive.h>
#include <archive_entry.h>

static struct archive *begin(const char *path, const char *kind)
{
    struct archive *a = archive_write_new();
    assert_non_null(a);
    if (strncmp(kind, "zip", 3) == 0) {
        archive_write_set_format_zip(a);
        assert_int_equal(archive_write_set_options(a, strcmp(kind, "zip") == 0 ? "zip:compression=store"
                                                                               : "zip:compression=deflate"),
                         ARCHIVE_OK);
    } else if (strncmp(kind, "7z", 2) == 0) {
        archive_write_set_format_7zip(a);
        if (strcmp(kind, "7z-store") == 0)
            assert_int_equal(archive_write_set_options(a, "7zip:compression=store"), ARCHIVE_OK);
    } else if (strncmp(kind, "cpio", 4) == 0) {
        archive_write_set_format_cpio_newc(a);
        if (strcmp(kind, "cpio.gz") == 0)
            archive_write_add_filter_gzip(a);
    } else {
        archive_write_set_format_pax_restricted(a);
        if (strcmp(kind, "tar.gz") == 0)
            archive_write_add_filter_gzip(a);
        if (strcmp(kind, "tar.zst") == 0)
            archive_write_add_filter_zstd(a);
        if (strcmp(kind, "tar.bz2") == 0)
            archive_write_add_filter_bzip2(a);
        if (strcmp(kind, "tar.xz") == 0)
            archive_write_add_filter_xz(a);
    }
    if (archive_write_open_filename(a, path) != ARCHIVE_OK)
        fail_msg("%s: %s", path, archive_error_string(a));
    return a;
}

static void put(struct archive *a, const char *kind, const support_entry *s)
{
    struct archive_entry *e = archive_entry_new();
    archive_entry_set_pathname(e, s->path);
    archive_entry_set_mtime(e, 0, 0);
    archive_entry_set_perm(e, 0644);
    archive_entry_set_filetype(e, s->device                  ? s->device
                                  : s->link                  ? AE_IFLNK
                                  : s->bytes || s->hard_link ? AE_IFREG
                                                             : AE_IFDIR);
    archive_entry_set_rdevmajor(e, s->device ? 1 : 0);
    archive_entry_set_rdevminor(e, s->device ? 3 : 0);
    if (s->link)
        archive_entry_set_symlink(e, s->link);
    if (s->hard_link)
        archive_entry_set_hardlink(e, s->hard_link);
    if (strcmp(kind, "zip-streamed") != 0 || !s->bytes)
        archive_entry_set_size(e, s->bytes ? (int64_t)s->len : 0);
    if (archive_write_header(a, e) < ARCHIVE_WARN)
        fail_msg("%s: %s", s->path, archive_error_string(a));
    if (s->bytes)
        assert_int_equal(archive_write_data(a, s->bytes, s->len), (la_ssize_t)s->len);
    archive_entry_free(e);
}

static void end(struct archive *a)
{
    assert_int_equal(archive_write_close(a), ARCHIVE_OK);
    archive_write_free(a);
}

void support_archive(const char *path, const char *kind, const support_entry *entries, size_t count)
{
    struct archive *a = begin(path, kind);
    for (size_t i = 0; i < count; i++)
        put(a, kind, &entries[i]);
    end(a);
}

size_t support_archive_flip(const char *path, const char *where, size_t after, unsigned bit)
{
    size_t len, at;
    uint8_t *bytes = support_read(path, &len);
    const uint8_t *found = memmem(bytes, len, where, strlen(where));
    if (!found)
        fail_msg("%s does not hold \"%s\"", path, where);
    at = (size_t)(found - bytes) + after;
    assert_true(at < len);
    bytes[at] ^= (uint8_t)(1 << bit);
    support_write(path, bytes, len);
    free(bytes);
    return at;
}

void support_archive_tree(const char *path, const char *kind, const char *dir, bool reversed)
{
    struct archive *a = begin(path, kind);
    char *list = support_list(dir), *names[20000];
    size_t count = 0;
    for (char *name = strtok(list, "\n"); name; name = strtok(NULL, "\n")) {
        assert_true(count < 20000);
        names[count++] = name;
    }
    for (size_t i = 0; i < count; i++) {
        const char *name = names[reversed ? count - 1 - i : i];
        char *full = support_path("%s/%s", dir, name);
        support_entry entry = {.path = name};
        entry.bytes = support_read(full, &entry.len);
        put(a, kind, &entry);
        free((void *)(uintptr_t)entry.bytes);
        free(full);
    }
    free(list);
    end(a);
}
