/* source.c - folders, archives and standard input as one sorted tree.
 * Invariant: after mr_source_open() nothing in a source changes except which damaged entries were requested, so every
 * reader is thread-safe. */
#include "ingest/source/names.h"
#include "ingest/source/source.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/files/path.h"
#include "base/scope.h"
#include "base/text.h"
#include "ingest/source/list.h"
#include "shards/remote/remote.h"

enum { BLOCK = 1 << 20 };

static const uint64_t max_text_entry = (uint64_t)1 << 36;
static const uint64_t default_max_entries = 20000000;

/* ---- the growing list ----------------------------------------------------------------------------------------- */

char *mr_list_keep(mr_source *s, const char *bytes, size_t len)
{
    block *b = s->blocks;
    if (!b || b->size - b->used < len + 1) {
        size_t size = len + 1 > BLOCK ? len + 1 : BLOCK;
        b = malloc(sizeof *b + size);
        if (!b)
            return NULL;
        *b = (block){.next = s->blocks, .size = size};
        s->blocks = b;
    }
    char *at = b->bytes + b->used;
    memcpy(at, bytes, len);
    at[len] = '\0';
    b->used += len + 1;
    return at;
}

mr_status mr_list_holder(list *l, const char *path, int fd, holder_kind kind, uint32_t *out, mr_error *err)
{
    mr_source *s = l->source;
    char *copy = strdup(path);
    if (!copy || !MR_GROW(s->holders, s->holder_count, s->holder_capacity)) {
        free(copy);
        mr_scope_close(&fd);
        return mr_fail_memory(err, "listing the source");
    }
    s->holders[s->holder_count] = (holder){.path = copy, .fd = fd, .kind = kind};
    *out = (uint32_t)s->holder_count++;
    return MR_OK;
}

mr_status mr_list_begin_part(list *l, const char *name, mr_error *err)
{
    char *copy = strdup(name);
    if (!copy || !MR_GROW(l->parts, l->part_count, l->part_capacity)) {
        free(copy);
        return mr_fail_memory(err, "listing the source");
    }
    l->parts[l->part_count++] = (list_part){.name = copy};
    return MR_OK;
}

void mr_list_plain_name(const char *name, size_t len, mr_buf *out)
{
    mr_buf_clear(out);
    for (size_t at = 0, end; at < len; at = end + 1) {
        const char *slash = memchr(name + at, '/', len - at);
        end = slash ? (size_t)(slash - name) : len;
        if (end == at || (end == at + 1 && name[at] == '.'))
            continue;
        mr_buf_add_text(out, out->len ? "/" : "");
        mr_buf_add(out, name + at, end - at);
    }
}

const char *mr_list_unsafe(const char *path, size_t len)
{
    if (len == 0)
        return "the name is empty";
    if (len > LIST_PATH_MAX)
        return "the name is longer than 4,096 bytes";
    if (memchr(path, '\0', len))
        return "the name contains a NUL byte";
    if (path[0] == '/')
        return "the name is an absolute path";
    for (size_t at = 0; at <= len;) {
        const char *slash = memchr(path + at, '/', len - at);
        size_t part = slash ? (size_t)(slash - path) - at : len - at;
        if (part == 2 && memcmp(path + at, "..", 2) == 0)
            return "the name leads out of the tree (..)";
        if (part == 0 || (part == 1 && path[at] == '.'))
            return "the name has an empty or \".\" part";
        if (part > 255)
            return "a part of the name is longer than 255 bytes";
        at += part + 1;
    }
    return NULL;
}

bool mr_list_name_ok(list *l, const char *path, size_t len)
{
    const char *why = mr_list_unsafe(path, len);
    if (why)
        mr_note_add(l->notes, MR_NOTE_BAD_NAME, path, len, 0, "%s", why);
    return !why;
}

/* macOS adds a resource fork of every file to archives: named like an image, but not one. */
static bool is_resource_fork(const char *path, size_t len)
{
    const char *slash = memrchr(path, '/', len);
    const char *base = slash ? slash + 1 : path;
    size_t base_len = len - (size_t)(base - path);
    return (len > 9 && memcmp(path, "__MACOSX/", 9) == 0) || (base_len > 2 && memcmp(base, "._", 2) == 0);
}

/* Thumbnails of Synology's and QNAP's disks, and what Windows keeps of deleted files. */
static bool in_system_folder(const char *path, size_t len)
{
    static const char *const names[] = {"@eaDir", ".@__thumb", "$RECYCLE.BIN", "System Volume Information"};
    const char *slash;
    for (const char *part = path; (slash = memchr(part, '/', len - (size_t)(part - path))); part = slash + 1)
        for (size_t i = 0; i < MR_COUNT(names); i++)
            if ((size_t)(slash - part) == strlen(names[i]) && !memcmp(part, names[i], strlen(names[i])))
                return true;
    return false;
}

uint64_t mr_list_max_size(const list *l, const char *path, size_t len)
{
    static const char *const text[] = {".json", ".jsonl", ".csv", ".txt", ".parquet", NULL};
    bool is_opened = mr_archive_is_class(path, len);
    return is_opened || mr_name_ends_in(path, len, text) ? max_text_entry : mr_source_max_entry(l->options.max_entry);
}

uint64_t mr_list_max_entries(const list *l)
{
    return l->options.max_entries ? l->options.max_entries : default_max_entries;
}

mr_status mr_list_too_many(const list *l, mr_error *err)
{
    return mr_fail(err, MR_BAD_DATA, "the source: more than %llu files; --max-files N raises the limit",
                   (unsigned long long)mr_list_max_entries(l));
}

void mr_list_note_large(list *l, const char *path, size_t len, uint64_t size)
{
    if (mr_list_left_out(l, path, len) < l->options.leave_out_count)
        return;
    mr_note_add(l->notes, mr_name_is_image(path, len) ? MR_NOTE_REJECT : MR_NOTE_IGNORED, path, len, size,
                "larger than the limit of %llu bytes", (unsigned long long)mr_list_max_size(l, path, len));
}

static bool is_export_list(const char *path, size_t len)
{
    static const char name[] = MR_PATH_EXPORT_LIST;
    size_t end = sizeof name - 1;
    return len >= end && !memcmp(path + len - end, name, end) && (len == end || path[len - end - 1] == '/');
}

mr_status mr_list_add(list *l, const mr_entry *entry, mr_error *err)
{
    mr_entry e = *entry;
    size_t len = e.path_len;
    if (!mr_list_name_ok(l, e.path, len))
        return MR_OK;
    if (is_resource_fork(e.path, len)) {
        mr_note_add(l->notes, MR_NOTE_IGNORED, e.path, len, e.size, "a macOS resource fork");
        return MR_OK;
    }
    if (in_system_folder(e.path, len)) {
        mr_note_add(l->notes, MR_NOTE_IGNORED, e.path, len, e.size, "in a system folder");
        return MR_OK;
    }
    if (is_export_list(e.path, len))
        return MR_OK;
    if (e.size > mr_list_max_size(l, e.path, len)) {
        mr_list_note_large(l, e.path, len, e.size);
        return MR_OK;
    }
    if (l->count >= mr_list_max_entries(l))
        return mr_list_too_many(l, err);
    if (!mr_utf8_valid(e.path, len))
        mr_note_add(l->notes, MR_NOTE_NOT_UTF8, e.path, len, e.size, "kept byte for byte");
    e.path = mr_list_keep(l->source, e.path, len);
    if (!e.path || !MR_GROW(l->items, l->count, l->capacity))
        return mr_fail_memory(err, "listing the source");
    if (!e.file)
        e.file = e.path;
    l->items[l->count] = (listed){.entry = e, .order = l->arrived++, .part = (uint32_t)l->part_count - 1};
    l->count++;
    return MR_OK;
}

int mr_list_compare(const char *a, size_t a_len, const char *b, size_t b_len)
{
    int order = memcmp(a, b, a_len < b_len ? a_len : b_len);
    return order ? order : (a_len > b_len) - (a_len < b_len);
}

uint32_t mr_list_find(const mr_source *s, const char *path, size_t len)
{
    uint32_t at = mr_source_lower(s, path, len);
    const mr_entry *e = at < s->count ? &s->entries[at] : NULL;
    return e && mr_list_compare(e->path, e->path_len, path, len) == 0 ? at : MR_NO_ENTRY;
}

mr_status mr_list_file(list *l, const char *path, mr_error *err)
{
    MR_AUTO(mr_scope_close) int fd = -1;
    uint64_t size;
    MR_TRY(mr_file_open(AT_FDCWD, path, true, &fd, &size, err));
    if (mr_name_ends(path, strlen(path), ".parquet") || mr_name_ends(path, strlen(path), ".json"))
        return mr_list_lone_file(l, path, size, err);
    const char *slash = strrchr(path, '/');
    return mr_list_shard(l, fd, path, slash ? slash + 1 : path, err);
}

/* By name: an image, or a file of labels, which says nothing without the files beside it. */
static bool is_part_of_dataset(const char *path)
{
    static const char *const labels[] = {".csv", ".tsv", ".txt", ".jsonl", ".xml", ".yaml", NULL};
    size_t len = strlen(path);
    return mr_name_is_image(path, len) || mr_name_ends_in(path, len, labels);
}

static mr_status list_one(list *l, const char *path, size_t number, mr_error *err)
{
    struct stat st;
    if (strcmp(path, "-") == 0)
        return mr_list_archive(l, STDIN_FILENO, "standard input", err);
    if (l->options.downloads && mr_remote_is_url(path))
        return mr_list_url(l, path, number, err);
    if (stat(path, &st) != 0) {
        if (mr_path_is_url(path))
            return mr_fail(err, MR_MISUSE,
                           "%s: archives are read from URLs of http, https, s3, gs and hf; download this one first",
                           path);
        if (errno == ENOENT || errno == ENOTDIR)
            return mr_fail(err, MR_MISUSE, "%s: no such file or folder", path);
        return mr_fail_errno(err, errno, "%s", path);
    }
    if (S_ISREG(st.st_mode) && is_part_of_dataset(path))
        return mr_fail(err, MR_MISUSE, "%s: a single file of a dataset; give the folder that contains it", path);
    return S_ISDIR(st.st_mode) ? mr_list_folder(l, path, err) : mr_list_file(l, path, err);
}

static mr_status list_all(list *l, char *const *srcs, size_t count, mr_error *err)
{
    l->several = count > 1;
    for (size_t i = 0; i < count; i++)
        MR_TRY(list_one(l, srcs[i], i, err));
    MR_TRY(mr_list_check_class_tars(l, err));
    mr_list_bind(l);
    MR_TRY(mr_list_settle(l, err));
    MR_TRY(mr_list_drop_replaced_files(l, err));
    MR_TRY(mr_list_resolve(l, err));
    MR_TRY(mr_list_drop_under_files(l, err));
    mr_list_note_replaced(l);
    MR_TRY(mr_list_leave_out(l, err));
    return mr_list_note_case(l, err);
}

mr_status mr_source_open(char *const *srcs, size_t count, int spool, const mr_source_options *o, mr_notes *notes,
                         mr_source **out, mr_error *err)
{
    MR_AUTO(mr_list_free)
    list l = {.notes = notes, .options = *o, .spool = spool, .spool_holder = MR_NO_ENTRY};
    size_t noted = notes->count;
    if (!(l.source = mr_alloc(1, sizeof *l.source)))
        return mr_fail_memory(err, "listing the source");
    mr_status status = list_all(&l, srcs, count, err);
    mr_notes_sort(notes, noted); /* they were added in file system order */
    MR_TRY(status);
    *out = l.source;
    l.source = NULL;
    return MR_OK;
}

void mr_list_free(list *l)
{
    mr_source_free(l->source);
    mr_buf_free(&l->prefixed);
    free(l->items);
    free(l->links);
    for (size_t i = 0; i < l->part_count; i++)
        free(l->parts[i].name);
    free(l->parts);
    free(l->class_tars);
}

void mr_source_free(mr_source *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < s->holder_count; i++) {
        if (s->holders[i].fd >= 0)
            close(s->holders[i].fd);
        free(s->holders[i].path);
    }
    for (block *b = s->blocks, *next; b; b = next) {
        next = b->next;
        free(b);
    }
    free(s->holders);
    free(s->entries);
    free(s->unfollowed);
    free(s);
}

/* ---- reading -------------------------------------------------------------------------------------------------- */

size_t mr_source_unfollowed_links(const mr_source *s, const mr_unfollowed_link **links)
{
    *links = s->unfollowed;
    return s->unfollowed_count;
}

uint32_t mr_source_count(const mr_source *s)
{
    return (uint32_t)s->count;
}

const mr_entry *mr_source_entry(const mr_source *s, uint32_t n)
{
    return &s->entries[n];
}

uint32_t mr_source_lower(const mr_source *s, const char *path, size_t len)
{
    size_t low = 0, high = s->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const mr_entry *e = &s->entries[middle];
        if (mr_list_compare(e->path, e->path_len, path, len) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return (uint32_t)low;
}

mr_status mr_list_open(const mr_source *s, const mr_entry *e, int *fd, uint64_t *size, mr_error *err)
{
    return mr_file_open(s->holders[e->holder].fd, e->file, e->offset == FOLLOW_LINK, fd, size, err);
}

mr_status mr_source_pread(const mr_source *s, uint32_t entry, void *bytes, size_t len, uint64_t at, mr_error *err)
{
    const mr_entry *e = &s->entries[entry];
    holder *h = &s->holders[e->holder];
    if (h->kind == HOLD_DAMAGED) {
        atomic_store(&h->requested, true);
        return mr_fail(err, MR_BAD_DATA, "%s", h->path);
    }
    if (at > e->size || len > e->size - at)
        return mr_fail(err, MR_BAD_DATA, "%s: byte %llu is past its end", e->path, (unsigned long long)(at + len));
    if (h->kind != HOLD_FOLDER)
        return mr_file_pread(h->fd, bytes, len, e->offset + at, e->path, err);
    MR_AUTO(mr_scope_close) int fd = -1;
    uint64_t size;
    MR_TRY(mr_list_open(s, e, &fd, &size, err));
    if (size != e->size)
        return mr_fail(err, MR_BAD_DATA, "%s: its size changed while it was read (%llu bytes, now %llu)", e->path,
                       (unsigned long long)e->size, (unsigned long long)size);
    return mr_file_pread(fd, bytes, len, at, e->path, err);
}

mr_status mr_source_check(const mr_source *s, mr_error *err)
{
    for (size_t i = 0; i < s->holder_count; i++)
        if (s->holders[i].kind == HOLD_DAMAGED && atomic_load(&s->holders[i].requested))
            return mr_fail(err, MR_BAD_DATA, "%s", s->holders[i].path);
    return MR_OK;
}

mr_status mr_source_read(const mr_source *s, uint32_t entry, mr_buf *out, mr_error *err)
{
    size_t size = (size_t)s->entries[entry].size;
    mr_buf_clear(out);
    if (!mr_buf_reserve(out, size))
        return mr_fail_memory(err, s->entries[entry].path);
    MR_TRY(mr_source_pread(s, entry, out->data, size, 0, err));
    out->len = size;
    return MR_OK;
}
