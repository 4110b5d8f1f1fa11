/* fuzz_archive.c - an archive of any format, listed and read.
 * Promises: only safe paths, sorted, each once and within the limits; every entry can be read, or is damaged and said
 * to be once it was wanted; a packed listing gives the same entries on another rank. */
#include <stdio.h>
#include <unistd.h>

#include "tests/fuzz/fuzz.h"

enum { MAX_ENTRY = 64 << 10, MAX_ENTRIES = 100 };

static void check_path(const mr_entry *e)
{
    char path[8200];
    FUZZ_MUST(e->path_len > 0 && e->path_len <= 4096 && strlen(e->path) == e->path_len);
    FUZZ_MUST(e->path[0] != '/' && e->path[e->path_len - 1] != '/');
    snprintf(path, sizeof path, "/%s/", e->path);
    FUZZ_MUST(!strstr(path, "//") && !strstr(path, "/./") && !strstr(path, "/../"));
}

static void check_source(const mr_source *s)
{
    mr_buf bytes = {0};
    mr_error err;
    bool damaged = false;
    FUZZ_MUST(mr_source_check(s, &err) == MR_OK);
    for (uint32_t i = 0; i < mr_source_count(s); i++) {
        const mr_entry *e = mr_source_entry(s, i);
        check_path(e);
        FUZZ_MUST(i == 0 || strcmp(mr_source_entry(s, i - 1)->path, e->path) < 0);
        FUZZ_MUST(mr_source_lower(s, e->path, e->path_len) == i);
        if (e->size > MAX_ENTRY)
            continue;
        mr_status status = mr_source_read(s, i, &bytes, &err);
        FUZZ_MUST(status == MR_OK ? bytes.len == e->size : status == MR_BAD_DATA);
        damaged = damaged || status != MR_OK;
    }
    FUZZ_MUST((mr_source_check(s, &err) != MR_OK) == damaged);
    mr_buf_free(&bytes);
}

static void check_packed(const mr_source *s)
{
    mr_buf packed = {0};
    mr_source *again = NULL;
    mr_error err;
    int spool = fuzz_file("", 0);
    FUZZ_MUST(mr_source_pack(s, &packed, &err) == MR_OK);
    FUZZ_MUST(mr_source_unpack(&packed, spool, &again, &err) == MR_OK);
    FUZZ_MUST(mr_source_count(again) == mr_source_count(s));
    for (uint32_t i = 0; i < mr_source_count(s); i++) {
        const mr_entry *a = mr_source_entry(s, i), *b = mr_source_entry(again, i);
        FUZZ_MUST(strcmp(a->path, b->path) == 0 && a->size == b->size && a->offset == b->offset);
    }
    mr_source_free(again);
    mr_buf_free(&packed);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const mr_source_options options = {.max_entry = MAX_ENTRY, .max_entries = MAX_ENTRIES, .quiet = true};
    mr_notes notes = {0};
    mr_source *source = NULL;
    mr_error err;
    char path[64];
    char *srcs[] = {path};
    int fd = fuzz_file(data, size), spool = fuzz_file("", 0);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    mr_status status = mr_source_open(srcs, 1, spool, &options, &notes, &source, &err);
    FUZZ_MUST(!notes.failed);
    if (status == MR_OK) {
        FUZZ_MUST(mr_source_count(source) <= MAX_ENTRIES);
        check_source(source);
        check_packed(source);
    } else {
        FUZZ_MUST(!source);
        fuzz_refused(status, &err);
    }
    mr_source_free(source);
    mr_notes_free(&notes);
    close(fd);
    close(spool);
    return 0;
}
