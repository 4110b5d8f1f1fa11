/* pack.c - a source's listing as bytes, so that every rank works on the same tree.
 * Invariant: pack and unpack run in the same program under one launcher; the bytes are never stored. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/scope.h"
#include "ingest/source/list.h"

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
    mr_buf_add(out, &s->excess, sizeof s->excess);
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
        return mr_list_holder(l, path, -1, kind, &number, err);
    int fd = kind == HOLD_SPOOL ? dup(spool) : open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return mr_fail_errno(err, errno, "%s", path);
    return mr_list_holder(l, path, fd, kind, &number, err);
}

static mr_status take_holders(list *l, const uint8_t **at, int spool, mr_error *err)
{
    for (uint32_t left = take32(at); left; left--) {
        holder_kind kind = take32(at);
        uint32_t len = take32(at);
        MR_AUTO(mr_scope_free) char *path = strndup((const char *)take(at, len), len);
        if (!path)
            return mr_fail_memory(err, "sharing the listing");
        MR_TRY(open_holder(l, path, kind, spool, err));
    }
    return MR_OK;
}

static mr_status take_entries(mr_source *s, const uint8_t **at, mr_error *err)
{
    uint32_t count = take32(at);
    if (!(s->entries = mr_alloc(count, sizeof *s->entries)))
        return mr_fail_memory(err, "sharing the listing");
    while (s->count < count) {
        mr_entry e;
        memcpy(&e, take(at, sizeof e), sizeof e);
        e.path = e.file = mr_list_keep(s, (const char *)take(at, e.path_len), e.path_len);
        uint32_t file_len = take32(at);
        if (file_len)
            e.file = mr_list_keep(s, (const char *)take(at, file_len), file_len);
        if (!e.path || !e.file)
            return mr_fail_memory(err, "sharing the listing");
        s->entries[s->count++] = e;
    }
    return MR_OK;
}

static mr_status take_source(list *l, const uint8_t *at, int spool, mr_error *err)
{
    MR_TRY(take_holders(l, &at, spool, err));
    memcpy(&l->source->excess, take(&at, sizeof l->source->excess), sizeof l->source->excess);
    return take_entries(l->source, &at, err);
}

mr_status mr_source_unpack(const mr_buf *packed, int spool, mr_source **out, mr_error *err)
{
    MR_AUTO(mr_scope_close) int shared = spool;
    MR_AUTO(mr_list_free) list l = {.source = mr_alloc(1, sizeof(mr_source))};
    if (!l.source)
        return mr_fail_memory(err, "sharing the listing");
    MR_TRY(take_source(&l, packed->data, shared, err));
    *out = l.source;
    l.source = NULL;
    return MR_OK;
}
