/* expand.c - opens files of a source by running a program: their contents become entries of the tree.
 * Invariant: each thread has its own list and spool; nothing is shared until all have ended. */
#include "ingest/source/expand.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/system/pool.h"
#include "base/scope.h"
#include "base/cli/term.h"
#include "base/text.h"
#include "ingest/source/list.h"
#include "base/system/program.h"

typedef struct worker {
    list list;
    mr_notes notes;
    int spool;       /* closed at the end: the list has its own descriptor */
    char path[4096]; /* of the spool */
    mr_buf prefix, name, too_much;
} worker;

typedef struct expansion {
    const mr_source *source;
    const mr_expand *x;
    const char **argv; /* with the file appended */
    unsigned jobs;
    worker *workers; /* one per job */
    mr_progress *progress;
} expansion;

mr_status mr_list_prefixed(list *l, const char **path, size_t *len, mr_error *err)
{
    if (!l->prefix || !*path || *len == 0)
        return MR_OK;
    mr_buf_clear(&l->prefixed);
    mr_buf_add_text(&l->prefixed, l->prefix);
    mr_buf_add(&l->prefixed, *path, *len);
    *path = mr_buf_text(&l->prefixed);
    *len = l->prefixed.len;
    return mr_buf_status(&l->prefixed, err, "naming entries");
}

/* ---- lists joined --------------------------------------------------------------------------------------------- */

/* Appends everything in `from` to the list. */
static mr_status absorb(list *into, mr_source *from, mr_error *err)
{
    mr_source *s = into->source;
    uint32_t base = (uint32_t)s->holder_count;
    for (size_t i = 0; i < from->holder_count; i++) {
        if (!MR_GROW(s->holders, s->holder_count, s->holder_capacity))
            return mr_fail_memory(err, "listing the source");
        s->holders[s->holder_count++] = from->holders[i];
        from->holders[i] = (holder){.fd = -1};
    }
    block **last = &s->blocks;
    while (*last)
        last = &(*last)->next;
    *last = from->blocks;
    from->blocks = NULL;
    for (size_t i = 0; i < from->count; i++) {
        if (!MR_GROW(into->items, into->count, into->capacity))
            return mr_fail_memory(err, "listing the source");
        into->items[into->count] = (listed){.entry = from->entries[i], .part = (uint32_t)into->count};
        into->items[into->count++].entry.holder += base;
    }
    from->count = 0;
    s->excess += from->excess;
    return MR_OK;
}

/* The list's items as the source's entries, in order of arrival. */
static mr_status publish(list *l, mr_error *err)
{
    l->source->entries = mr_alloc(l->count, sizeof *l->source->entries);
    if (!l->source->entries)
        return mr_fail_memory(err, "listing the source");
    for (size_t i = 0; i < l->count; i++)
        l->source->entries[i] = l->items[i].entry;
    l->source->count = l->count;
    return MR_OK;
}

/* Each thread and rank checks the limits on its own; the sum is checked here, so the outcome does not depend on their
 * number. */
static mr_status check_limits(const list *l, mr_error *err)
{
    if (l->count > mr_list_max_entries(l))
        return mr_list_too_many(l, err);
    if (l->source->excess > MR_SOURCE_ALLOWANCE)
        return mr_fail(err, MR_BAD_DATA,
                       "the source: its files unpack to more than %llu times their size, like archive bombs; "
                       "--max-ratio N raises the limit",
                       (unsigned long long)mr_source_ratio(l->options.max_ratio));
    return MR_OK;
}

static mr_status absorb_all(list *l, mr_source *const *parts, size_t count, mr_error *err)
{
    for (size_t i = 0; i < count; i++)
        MR_TRY(absorb(l, parts[i], err));
    MR_TRY(check_limits(l, err));
    return mr_list_settle(l, err);
}

mr_status mr_source_join(mr_source *s, mr_source *const *parts, size_t count, const mr_source_options *o,
                         mr_notes *notes, mr_error *err)
{
    list l = {.source = s, .notes = notes, .options = *o};
    size_t noted = notes->count, total = s->count;
    for (size_t i = 0; i < count; i++)
        total += parts[i]->count;
    if (total >= MR_NO_ENTRY)
        return mr_fail(err, MR_BAD_DATA, "the source holds %zu files and rows, more than can be listed", total);
    l.items = mr_alloc(total, sizeof *l.items);
    if (!l.items)
        return mr_fail_memory(err, "listing the source");
    l.capacity = total;
    for (; l.count < s->count; l.count++)
        l.items[l.count] = (listed){.entry = s->entries[l.count], .part = (uint32_t)l.count};
    mr_status status = absorb_all(&l, parts, count, err);
    mr_notes_sort(notes, noted);
    free(l.items);
    return status;
}

/* ---- one file ------------------------------------------------------------------------------------------------- */

static mr_status begin_worker(expansion *e, unsigned number, mr_error *err)
{
    worker *w = &e->workers[number];
    if (w->list.source)
        return MR_OK;
    w->list = (list){.notes = &w->notes, .options = *e->x->options, .spool = -1, .spool_holder = MR_NO_ENTRY};
    w->list.options.quiet = true;
    w->list.source = mr_alloc(1, sizeof *w->list.source);
    if (!w->list.source)
        return mr_fail_memory(err, "listing the source");
    MR_TRY(e->x->spool(e->x->ctx, number, &w->spool, w->path, err));
    w->list.spool = w->spool;
    w->list.spool_path = *w->path ? w->path : NULL;
    return MR_OK;
}

/* A file in an archive is copied out: the program needs a file in which it can seek. */
static mr_status copy_out(const mr_source *s, uint32_t entry, int *out, mr_error *err)
{
    enum { CHUNK = 1 << 20 };
    const mr_entry *e = mr_source_entry(s, entry);
    MR_AUTO(mr_scope_free) char *bytes = malloc(CHUNK);
    MR_AUTO(mr_scope_close) int fd = -1;
    if (!bytes)
        return mr_fail_memory(err, e->path);
    MR_TRY(mr_file_scratch(&fd, err));
    for (uint64_t at = 0; at < e->size; at += CHUNK) {
        size_t len = e->size - at < CHUNK ? (size_t)(e->size - at) : CHUNK;
        MR_TRY(mr_source_pread(s, entry, bytes, len, at, err));
        MR_TRY(mr_file_pwrite(fd, bytes, len, at, "the copy of a file", err));
    }
    *out = fd;
    fd = -1;
    return MR_OK;
}

static mr_status open_input(const mr_source *s, uint32_t entry, int *fd, mr_error *err)
{
    const mr_entry *e = mr_source_entry(s, entry);
    const holder *h = &s->holders[e->holder];
    if (h->kind == HOLD_FOLDER)
        return mr_list_open(s, e, fd, NULL, err);
    return copy_out(s, entry, fd, err);
}

/* Links would lead to files other than the program's own rows. */
static void reject_links(worker *w)
{
    for (size_t i = 0; i < w->list.link_count; i++)
        mr_note_add(&w->notes, MR_NOTE_LINK, w->list.links[i].path, w->list.links[i].path_len, 0,
                    "a link in a program's output");
    w->list.link_count = 0;
}

/* A few bytes of a file may stand for a billion values. */
static void limit_memory(const expansion *e, worker *w, mr_program *program)
{
    const mr_source_options *o = e->x->options;
    uint64_t bytes;
    char text[32];
    if (!e->x->memory ||
        __builtin_add_overflow(mr_source_max_expansion(w->list.made_from, o->max_ratio), e->x->memory, &bytes))
        return;
    mr_buf_clear(&w->too_much);
    mr_buf_printf(
        &w->too_much,
        "needs more than %s of memory to be read, %llu times its size and what its reader needs, like an archive "
        "bomb; --max-ratio N raises the limit",
        mr_text_bytes(bytes, text), (unsigned long long)mr_source_ratio(o->max_ratio));
    mr_program_limit(program, bytes, mr_buf_text(&w->too_much));
}

static mr_status run_program(expansion *e, worker *w, int input, mr_error *err)
{
    mr_program *program = NULL;
    const char *name = mr_buf_text(&w->name);
    MR_TRY(mr_program_start(e->argv, input, &program, err));
    limit_memory(e, w, program);
    mr_status status = mr_list_archive(&w->list, mr_program_output(program), name, err);
    status = mr_program_end(program, status, name, err);
    reject_links(w);
    return status;
}

static mr_status open_file(expansion *e, worker *w, unsigned number, uint32_t entry, mr_error *err)
{
    const mr_entry *file = mr_source_entry(e->source, entry);
    MR_AUTO(mr_scope_close) int input = -1;
    MR_TRY(begin_worker(e, number, err));
    mr_buf_clear(&w->prefix);
    mr_buf_clear(&w->name);
    mr_buf_printf(&w->prefix, "%s/", file->path);
    mr_buf_add_text(&w->name, file->path);
    mr_buf_text(&w->name);
    w->list.prefix = mr_buf_text(&w->prefix);
    w->list.made_from = file->size ? file->size : 1;
    if (w->prefix.failed || w->name.failed)
        return mr_fail_memory(err, file->path);
    MR_TRY(open_input(e->source, entry, &input, err));
    return run_program(e, w, input, err);
}

static mr_status expand_one(void *ctx, size_t item, unsigned number, mr_error *err)
{
    expansion *e = ctx;
    uint32_t entry = e->x->entries[item];
    if (item % e->x->world != e->x->rank)
        return MR_OK;
    MR_TRY(open_file(e, &e->workers[number], number, entry, err));
    mr_progress_add(e->progress, 1, mr_source_entry(e->source, entry)->size);
    return MR_OK;
}

/* ---- all ------------------------------------------------------------------------------------------------------ */

static mr_status gather(expansion *e, mr_notes *notes, list *all, mr_error *err)
{
    for (unsigned i = 0; i < e->jobs; i++) {
        worker *w = &e->workers[i];
        if (!w->list.source)
            continue;
        MR_TRY(publish(&w->list, err));
        MR_TRY(absorb(all, w->list.source, err));
        mr_notes_move(notes, &w->notes);
    }
    return publish(all, err);
}

/* What all threads listed, as one source. */
static mr_status join_workers(expansion *e, mr_notes *notes, mr_source **part, mr_error *err)
{
    MR_AUTO(mr_list_free) list all = {.source = mr_alloc(1, sizeof *all.source)};
    if (!all.source)
        return mr_fail_memory(err, "listing the source");
    MR_TRY(gather(e, notes, &all, err));
    *part = all.source;
    all.source = NULL;
    return MR_OK;
}

static void end_worker(worker *w)
{
    if (w->list.source && w->spool >= 0)
        close(w->spool);
    mr_list_free(&w->list);
    mr_notes_free(&w->notes);
    mr_buf_free(&w->prefix);
    mr_buf_free(&w->name);
    mr_buf_free(&w->too_much);
}

static void end_expansion(expansion *e)
{
    for (unsigned i = 0; e->workers && i < e->jobs; i++)
        end_worker(&e->workers[i]);
    free(e->workers);
    free(e->argv);
}

mr_status mr_source_expand(const mr_source *s, const mr_expand *x, mr_notes *notes, mr_source **part, mr_error *err)
{
    size_t argc = 0, noted = notes->count;
    MR_AUTO(end_expansion) expansion e = {.source = s, .x = x, .jobs = x->jobs ? x->jobs : 1};
    while (x->argv[argc])
        argc++;
    e.argv = mr_alloc(argc + 2, sizeof *e.argv);
    e.workers = mr_alloc(e.jobs, sizeof *e.workers);
    if (!e.argv || !e.workers)
        return mr_fail_memory(err, "listing the source");
    memcpy(e.argv, x->argv, argc * sizeof *e.argv);
    e.argv[argc] = "/dev/stdin";
    for (unsigned i = 0; i < e.jobs; i++)
        e.workers[i].spool = -1;
    e.progress = mr_progress_begin("opening", x->count / x->world,
                                   x->options->quiet || x->rank ? MR_PROGRESS_QUIET : x->options->progress);
    mr_status status = mr_pool_run(x->count, e.jobs, expand_one, &e, err);
    mr_progress_end(e.progress);
    MR_TRY(status);
    MR_TRY(join_workers(&e, notes, part, err));
    mr_notes_sort(notes, noted);
    return MR_OK;
}
