/* support.c - files and sources in memory for the fuzz targets, and promises checked the same way in each.
 * Invariant: a failure of the machine (no memory, no descriptor) ends the run; it is never taken for a parser's. */
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/text.h"
#include "tests/fuzz/fuzz.h"
#include "ingest/source/list.h"

void fuzz_broken(const char *promise, const char *file, int line)
{
    fprintf(stderr, "%s:%d: broken promise: %s\n", file, line, promise);
    abort();
}

void fuzz_refused(mr_status status, const mr_error *err)
{
    const char *end = memchr(err->text, '\0', sizeof err->text);
    FUZZ_MUST(status == MR_BAD_SAMPLE || status == MR_BAD_DATA || status == MR_MISUSE);
    FUZZ_MUST(err->status == status);
    FUZZ_MUST(end && end > err->text);
    FUZZ_MUST(mr_utf8_valid(err->text, (size_t)(end - err->text)));
    for (const char *p = err->text; p < end; p++)
        FUZZ_MUST((uint8_t)*p >= 0x20 && *p != 0x7F);
}

int fuzz_file(const void *bytes, size_t len)
{
    int fd = memfd_create("fuzz", MFD_CLOEXEC);
    if (fd < 0 || (len && write(fd, bytes, len) != (ssize_t)len)) {
        perror("fuzz: a file in memory");
        exit(3);
    }
    return fd;
}

/* JSON allows a NUL in a key, written as an escape, and jansson does not: another character in its place. */
static json_t *load_without_nul(const uint8_t *bytes, size_t len, json_error_t *why)
{
    mr_buf text = {0};
    mr_buf_add(&text, bytes, len);
    for (size_t i = 0; i + 5 < text.len; i++) {
        if (text.data[i] != '\\')
            continue;
        if (memcmp(text.data + i, "\\u0000", 6) == 0)
            text.data[i + 5] = '1';
        i++; /* what is escaped: perhaps a backslash */
    }
    json_t *doc = json_loadb((const char *)text.data, text.len, JSON_ALLOW_NUL, why);
    mr_buf_free(&text);
    return doc;
}

bool fuzz_is_json(const void *bytes, size_t len)
{
    json_error_t why;
    json_t *doc = json_loadb(bytes, len, JSON_ALLOW_NUL, &why);
    if (!doc && json_error_code(&why) == json_error_null_byte_in_key)
        doc = load_without_nul(bytes, len, &why);
    enum json_error_code code = doc ? json_error_unknown : json_error_code(&why);
    bool half_a_pair = !doc && strstr(why.text, "invalid Unicode") != NULL;
    json_decref(doc);
    return doc || code == json_error_numeric_overflow || half_a_pair;
}

static int by_path(const void *a, const void *b)
{
    const listed *x = a, *y = b;
    int order = strcmp(x->entry.path, y->entry.path);
    return order ? order : (x->order > y->order) - (x->order < y->order);
}

/* "a" and "a/b" cannot both be files: the one that comes later in the order goes. */
static bool clashes(const list *l, size_t kept, const mr_entry *e)
{
    for (size_t i = 0; i < kept; i++) {
        const mr_entry *k = &l->source->entries[i];
        if (k->path_len <= e->path_len && memcmp(k->path, e->path, k->path_len) == 0 &&
            (e->path[k->path_len] == '\0' || e->path[k->path_len] == '/'))
            return true;
    }
    return false;
}

mr_source *fuzz_source(const uint8_t *data, size_t size, const fuzz_member *members, size_t count, mr_notes *notes)
{
    list l = {.notes = notes, .spool = -1, .source = mr_alloc(1, sizeof *l.source)};
    uint32_t number;
    mr_error err;
    bool ok = l.source && mr_list_holder(&l, "fuzz", fuzz_file(data, size), HOLD_SPOOL, &number, &err) == MR_OK;
    for (size_t i = 0; ok && i < count; i++) {
        const fuzz_member *m = &members[i];
        mr_entry e = {
            .path = m->name, .path_len = (uint32_t)m->name_len, .holder = number, .size = m->len, .offset = m->at};
        ok = mr_list_add(&l, &e, &err) == MR_OK;
    }
    if (ok && l.count)
        qsort(l.items, l.count, sizeof *l.items, by_path);
    if (ok)
        l.source->entries = mr_alloc(l.count, sizeof *l.source->entries);
    if (!ok || !l.source->entries)
        exit(3);
    for (size_t i = 0; i < l.count; i++)
        if (!clashes(&l, l.source->count, &l.items[i].entry))
            l.source->entries[l.source->count++] = l.items[i].entry;
    free(l.items);
    return l.source;
}

mr_source *fuzz_source_one(const uint8_t *data, size_t size, const char *name, mr_notes *notes)
{
    fuzz_member member = {name, strlen(name), 0, size};
    return fuzz_source(data, size, &member, 1, notes);
}
