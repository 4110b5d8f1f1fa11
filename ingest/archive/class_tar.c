/* class_tar.c - ImageNet's class tars: n01440764.tar in ILSVRC2012_img_train.tar, or in a folder.
 * Invariant: inside an archive only a plain tar of this name is opened, and nothing inside of it; its bytes stay where
 * the outer archive's are, and count against the limits of both.
 *
 *      ILSVRC2012_img_train.tar: n01440764.tar: n01440764_10026.JPEG    ->  n01440764/n01440764_10026.JPEG          */
#include <stdlib.h>
#include <string.h>

#include "base/scope.h"
#include "ingest/source/names.h"
#include "ingest/archive/archive.h"

static const char ending[] = ".tar";

bool mr_archive_is_class(const char *path, size_t len)
{
    const char *slash = memrchr(path, '/', len), *name = slash ? slash + 1 : path;
    size_t name_len = len - (size_t)(name - path), stem = name_len - strlen(ending);
    return name_len > strlen(ending) && !memcmp(name + stem, ending, strlen(ending)) && mr_name_is_synset(name, stem);
}

mr_status mr_list_class_tar(list *l, const char *path, size_t len, const char *where, mr_buf *prefix, mr_error *err)
{
    char *kept = mr_list_keep(l->source, path, len - strlen(ending));
    char *kept_where = mr_list_keep(l->source, where, strlen(where));
    if (!kept || !kept_where || !MR_GROW(l->class_tars, l->class_tar_count, l->class_tar_capacity))
        return mr_fail_memory(err, "listing the source");
    l->class_tars[l->class_tar_count++] = (class_tar){kept, kept_where, l->count, l->count};
    mr_buf_clear(prefix);
    mr_buf_printf(prefix, "%s/", kept);
    mr_buf_text(prefix);
    return mr_buf_status(prefix, err, "listing the source");
}

void mr_list_end_class_tar(list *l)
{
    l->class_tars[l->class_tar_count - 1].end = l->count;
}

bool mr_list_leaves_class_tar(const list *l, const char *path, size_t len)
{
    return mr_archive_is_class(path, len) && mr_list_left_out(l, path, len) < l->options.leave_out_count;
}

static int by_path(const void *a, const void *b)
{
    return strcmp(((const class_tar *)a)->path, ((const class_tar *)b)->path);
}

/* The class tar whose folder is the first `len` bytes of a path; NULL: none. */
static const class_tar *find_class_tar(const list *l, const char *path, size_t len)
{
    size_t low = 0, high = l->class_tar_count;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        const char *name = l->class_tars[mid].path;
        int order = mr_list_compare(path, len, name, strlen(name));
        if (!order)
            return &l->class_tars[mid];
        *(order < 0 ? &high : &low) = order < 0 ? mid : mid + 1;
    }
    return NULL;
}

/* A folder that a class tar has been unpacked to, perhaps not to its end. */
static mr_status check_folders(const list *l, mr_error *err)
{
    for (size_t i = 0; i < l->count && l->class_tar_count; i++) {
        const mr_entry *e = &l->items[i].entry;
        for (const char *slash = memchr(e->path, '/', e->path_len); slash;
             slash = memchr(slash + 1, '/', e->path_len - (size_t)(slash + 1 - e->path))) {
            const class_tar *tar = find_class_tar(l, e->path, (size_t)(slash - e->path));
            if (!tar || (i >= tar->begin && i < tar->end) ||
                mr_list_left_out(l, e->path, e->path_len) < l->options.leave_out_count)
                continue;
            MR_AUTO(mr_buf_free) mr_buf option = {0};
            mr_buf_add_text(&option, tar->path);
            mr_buf_add_text(&option, ending);
            MR_AUTO(mr_buf_free) mr_buf shown = {0};
            mr_source_leave_out(mr_buf_text(&option), option.len, &shown);
            return mr_fail(err, MR_BAD_DATA,
                           "%s.tar (in %s) is beside a folder %s/: their images would be mixed in one class; %s keeps "
                           "only the folder",
                           tar->path, tar->where, tar->path, mr_buf_text(&shown));
        }
    }
    return MR_OK;
}

mr_status mr_list_check_class_tars(list *l, mr_error *err)
{
    if (l->class_tar_count)
        qsort(l->class_tars, l->class_tar_count, sizeof *l->class_tars, by_path);
    for (size_t i = 1; i < l->class_tar_count; i++)
        if (by_path(&l->class_tars[i - 1], &l->class_tars[i]) == 0)
            return mr_fail(err, MR_BAD_DATA,
                           "%s.tar occurs twice (in %s and in %s): their images would be mixed in one class",
                           l->class_tars[i].path, l->class_tars[i - 1].where, l->class_tars[i].where);
    return check_folders(l, err);
}

static mr_status read_class_tar(unpack *u, const char *prefix, mr_error *err)
{
    list *l = u->list;
    const char *before = l->prefix;
    l->prefix = prefix;
    mr_status status = mr_unpack_entries(u, err);
    l->prefix = before;
    mr_list_end_class_tar(l);
    if (status == MR_OK && u->census.read.entries == 0)
        mr_note_add(l->notes, MR_NOTE_INFO, u->name, strlen(u->name), 0, "holds no files");
    return status;
}

mr_status mr_unpack_class_tar(unpack *outer, const place *p, uint64_t spool_at, const char *path, size_t len,
                              mr_error *err)
{
    list *l = outer->list;
    MR_AUTO(mr_buf_free) mr_buf name = {0};
    MR_AUTO(mr_buf_free) mr_buf prefix = {0};
    mr_buf_printf(&name, "%s: %.*s", outer->name, (int)len, path);
    MR_AUTO(mr_unpack_end)
    unpack u = {.list = l, .name = mr_buf_text(&name), .outer = outer, .progress = outer->progress};
    MR_TRY(mr_buf_status(&name, err, outer->name));
    MR_TRY(mr_list_class_tar(l, path, len, outer->name, &prefix, err));
    if (p->in_place)
        MR_TRY(mr_unpack_holder(outer, err));
    u.holder = p->in_place ? outer->holder : l->spool_holder;
    u.fd = p->in_place ? outer->fd : l->source->holders[l->spool_holder].fd;
    u.base = p->in_place ? p->at : spool_at;
    MR_TRY(mr_unpack_begin(&u, err));
    u.input->fd = u.fd;
    u.input->seekable = true;
    u.input->base = u.base;
    u.input->size = p->size;
    if (!p->in_place)
        u.input->coming = NULL; /* the spool has all of it */
    u.input->plain = true;
    u.input->outer = outer->input;
    return read_class_tar(&u, mr_buf_text(&prefix), err);
}
