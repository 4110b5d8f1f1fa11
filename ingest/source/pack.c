/* pack.c - a source's listing as bytes, so that every rank works on the very same tree.
 * Invariant: pack and unpack run in the same program under one launcher; the bytes are never stored. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "source/list.h"

static void put32(mr_buf *out, uint32_t v)
{
    mr_buf_add(out, &v, sizeof v);
}

mr_status mr_source_pack(const mr_source *s, mr_buf *out, mr_error *err)
{
    put32(out, (uint32_t)s->holder_count);
    for (size_t i = 0; i < s->holder_count; i++) {
        put32(out, s->holders[i].kind);
        put32(out, (uint32_t)strlen(s->holders[i].path));
        mr_buf_add_text(out, s->holders[i].path);
    }
    mr_buf_add(out, &s->beyond, sizeof s->beyond);
    put32(out, (uint32_t)s->count);
    for (size_t i = 0; i < s->count; i++) {
        const mr_entry *e = &s->entries[i];
        mr_buf_add(out, e, sizeof *e);
        mr_buf_add(out, e->path, e->path_len);
        put32(out, e->file == e->path ? 0 : (uint32_t)strlen(e->file));
        if (e->file != e->path)
            mr_buf_add_text(out, e->file);
    }
    return mr_buf_status(out, err, "sharing the listing");
}

static const uint8_t *take(const uint8_t **at, size_t len)
{
    const uint8_t *bytes = *at;
    *at += len;
    return bytes;
}

static uint32_t take32(const uint8_t **at)
{
    uint32_t v;
    memcpy(&v, take(at, sizeof v), sizeof v);
    return v;
}

static mr_status open_holder(list *l, const char *path, holder_kind kind, int spool, mr_error *err)
{
    uint32_t number;
    if (kind == HOLD_DAMAGED)
        return list_holder(l, path, -1, kind, &number, err);
    int fd = kind == HOLD_SPOOL ? dup(spool) : open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return mr_fail_errno(err, errno, "%s", path);
    mr_status status = list_holder(l, path, fd, kind, &number, err);
    if (status != MR_OK)
        close(fd);
    return status;
}

mr_status mr_source_unpack(const mr_buf *packed, int spool, mr_source **out, mr_error *err)
{
    list l = {.source = mr_alloc(1, sizeof(mr_source))};
    const uint8_t *at = packed->data;
    mr_status status = l.source ? MR_OK : mr_fail_memory(err, "sharing the listing");
    uint32_t holders = take32(&at);
    for (uint32_t i = 0; i < holders && status == MR_OK; i++) {
        holder_kind kind = take32(&at);
        uint32_t len = take32(&at);
        char *path = strndup((const char *)take(&at, len), len);
        status = path ? open_holder(&l, path, kind, spool, err) : mr_fail_memory(err, "sharing the listing");
        free(path);
    }
    if (status == MR_OK)
        memcpy(&l.source->beyond, take(&at, sizeof l.source->beyond), sizeof l.source->beyond);
    uint32_t count = status == MR_OK ? take32(&at) : 0;
    if (status == MR_OK && !(l.source->entries = mr_alloc(count, sizeof *l.source->entries)))
        status = mr_fail_memory(err, "sharing the listing");
    for (uint32_t i = 0; i < count && status == MR_OK; i++) {
        mr_entry e;
        memcpy(&e, take(&at, sizeof e), sizeof e);
        e.path = e.file = list_keep(l.source, (const char *)take(&at, e.path_len), e.path_len);
        uint32_t file_len = take32(&at);
        if (file_len)
            e.file = list_keep(l.source, (const char *)take(&at, file_len), file_len);
        if (!e.path || !e.file)
            status = mr_fail_memory(err, "sharing the listing");
        else
            l.source->entries[l.source->count++] = e;
    }
    if (spool >= 0)
        close(spool);
    if (status == MR_OK)
        *out = l.source;
    else
        mr_source_free(l.source);
    return status;
}
