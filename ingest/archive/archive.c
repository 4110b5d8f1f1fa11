/* archive.c - lists what libarchive reads as entries, with their bytes in the archive itself or in the spool.
 * Invariant: no name of an archive ever reaches the file system: bytes stay or go to one unlinked file, names go into
 * the list. */
#include <errno.h>
#include <inttypes.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <archive_entry.h>

#include "ingest/archive/archive.h"
#include "base/files/file.h"
#include "base/scope.h"
#include "base/cli/term.h"
#include "image/codec/image.h"

/* A program that keeps writing after its tar must not block us forever. */
enum { PROGRAM_PADDING_MAX = 1 << 20 };

static mr_status open_spool(list *l, mr_error *err)
{
    if (l->spool_holder != MR_NO_ENTRY)
        return MR_OK;
    int fd = -1;
    if (l->spool < 0)
        MR_TRY(mr_file_scratch(&fd, err));
    else if ((fd = dup(l->spool)) < 0)
        return mr_fail_errno(err, errno, "cannot create a file to unpack archives to");
    return mr_list_holder(l, l->spool_path ? l->spool_path : "the unpacked archive", fd,
                          l->spool_path ? HOLD_ARCHIVE : HOLD_SPOOL, &l->spool_holder, err);
}

mr_status mr_unpack_holder(unpack *u, mr_error *err)
{
    if (u->holder != MR_NO_ENTRY)
        return MR_OK;
    int fd = dup(u->fd);
    if (fd < 0)
        return mr_fail_errno(err, errno, "%s", u->name);
    return mr_list_holder(u->list, u->name, fd, HOLD_ARCHIVE, &u->holder, err);
}

/* Listed anyway: reading its bytes fails with the reason.  Its size may be damaged as well; an entry of 0 bytes would
 * never be read. */
static mr_status add_damaged(unpack *u, const char *path, size_t len, uint64_t size, mr_error *err)
{
    list *l = u->list;
    MR_AUTO(mr_buf_free) mr_buf sentence = {0};
    bool plausible = size > 0 && size <= mr_list_max_size(l, path, len);
    mr_entry e = {.path = path, .path_len = (uint32_t)len, .size = plausible ? size : 1};
    const char *complaint = mr_buf_text(&u->complaint);
    mr_buf_printf(&sentence, "%s: %.*s: %s", u->name, (int)len, path, complaint);
    const char *text = mr_buf_text(&sentence);
    MR_TRY(mr_buf_status(&u->complaint, err, u->name));
    MR_TRY(mr_buf_status(&sentence, err, u->name));
    mr_note_add(l->notes, MR_NOTE_INFO, u->name, strlen(u->name), size, "%.*s: %s", (int)len, path, complaint);
    MR_TRY(mr_list_holder(l, text, -1, HOLD_DAMAGED, &e.holder, err));
    return mr_list_add(l, &e, err);
}

/* Reads the entry's data, and copies it to the spool unless it can stay in place.  The spool keeps rejected bytes:
 * holes in what comes next must read as zeros. */
static mr_status place_data(unpack *u, struct archive_entry *e, const char *path, uint64_t max, place *p, mr_error *err)
{
    list *l = u->list;
    bool stated = archive_entry_size_is_set(e);
    uint64_t size = stated ? (uint64_t)archive_entry_size(e) : 0;
    MR_TRY(mr_unpack_data(u, max, path, p, err));
    if (!p->large && !p->damaged && stated && archive_entry_sparse_count(e) > 0)
        MR_TRY(mr_unpack_end_hole(u, size, p, err));
    if (!p->in_place)
        l->spool_at += p->size;
    /* A file may end in a hole: the spool must be as long as the entry. */
    if (!p->in_place && p->size && ftruncate(l->source->holders[l->spool_holder].fd, (off_t)l->spool_at) != 0)
        return mr_fail_errno(err, errno, "the spool file");
    if (!p->large && !p->damaged && stated && p->size != size) {
        p->damaged = true;
        mr_buf_add_text(&u->complaint, "does not have the length stated in the archive");
    }
    return MR_OK;
}

static mr_status reject(unpack *u, const char *path, size_t len, const char *why)
{
    mr_note_add(u->list->notes, MR_NOTE_REJECT, path, len, 0, "%s", why);
    return MR_OK;
}

/* Without it a class would be missing, not just a file. */
static mr_status fail_class_tar(const unpack *u, const char *path, size_t len, const char *why, mr_error *err)
{
    return mr_fail(err, MR_BAD_DATA, "%s: %.*s: %s", u->name, (int)len, path, why);
}

static mr_status add_class_tar(unpack *u, struct archive_entry *e, const char *path, size_t len, mr_error *err)
{
    uint64_t max = mr_list_max_size(u->list, path, len), at = u->list->spool_at;
    bool stated = archive_entry_size_is_set(e),
         is_tar = (archive_format(u->archive) & ARCHIVE_FORMAT_BASE_MASK) == ARCHIVE_FORMAT_TAR;
    place p = {0};
    if (u->outer)
        return fail_class_tar(u, path, len, "an archive nested more than two deep is not opened; unpack it first", err);
    if (archive_entry_is_encrypted(e))
        return fail_class_tar(u, path, len, "encrypted", err);
    if (stated && (archive_entry_size(e) < 0 || (uint64_t)archive_entry_size(e) > max))
        return fail_class_tar(u, path, len, "its size is negative, or more than 64 GiB", err);
    if (stated && is_tar && mr_archive_input_is_file(u->input) && archive_entry_sparse_count(e) == 0)
        p.whole = (uint64_t)archive_entry_size(e);
    MR_TRY(place_data(u, e, path, max, &p, err));
    if (p.damaged || p.large)
        return fail_class_tar(u, path, len, p.large ? "more than 64 GiB" : mr_buf_text(&u->complaint), err);
    return mr_unpack_class_tar(u, &p, at, path, len, err);
}

static mr_status add_file(unpack *u, struct archive_entry *e, const char *path, size_t len, mr_error *err)
{
    list *l = u->list;
    uint64_t max = mr_list_max_size(l, path, len), at = l->spool_at;
    bool stated = archive_entry_size_is_set(e);
    place p = {0};
    if (mr_archive_is_class(path, len) && !l->made_from && !mr_list_leaves_class_tar(l, path, len))
        return add_class_tar(u, e, path, len, err);
    if (archive_entry_is_encrypted(e))
        return reject(u, path, len, "encrypted");
    if (stated && archive_entry_size(e) < 0)
        return reject(u, path, len, "claims a negative size");
    p.large = stated && (uint64_t)archive_entry_size(e) > max;
    if (!p.large)
        MR_TRY(place_data(u, e, path, max, &p, err));
    if (p.large) {
        mr_list_note_large(l, path, len, stated ? (uint64_t)archive_entry_size(e) : p.size);
        return MR_OK;
    }
    if (p.damaged)
        return add_damaged(u, path, len, p.size, err);
    mr_progress_add(u->progress, 1, p.size);
    if (p.in_place)
        MR_TRY(mr_unpack_holder(u, err));
    return mr_list_add(l,
                       &(mr_entry){.path = path,
                                   .path_len = (uint32_t)len,
                                   .size = p.size,
                                   .holder = p.in_place ? u->holder : l->spool_holder,
                                   .offset = p.in_place ? p.at : at},
                       err);
}

/* Counts the entry, and checks what is known without its data. */
static mr_status begin_entry(unpack *u, struct archive_entry *e, size_t len, bool *damaged, mr_error *err)
{
    list *l = u->list;
    MR_TRY(mr_archive_input_grow(u->input, ARCHIVE_INPUT_HEADER + len, err));
    if (u->census.read.entries == 0)
        MR_TRY(mr_archive_check_start(u->archive, u->input, &u->census, err));
    if (!mr_archive_check_kind(u->archive, e, &u->census, &u->complaint))
        *damaged = true;
    if (u->census.read.entries > mr_list_max_entries(l))
        return mr_fail(err, MR_BAD_DATA, "%s: more than %" PRIu64 " entries; --max-files N raises the limit", u->name,
                       mr_list_max_entries(l));
    return MR_OK;
}

/* The entry's name in the tree, lent until the next call; NULL: there is no memory for it. */
static const char *take_name(unpack *u, const char *name, size_t len, size_t *plain_len)
{
    mr_list_plain_name(name, len, &u->plain);
    const char *plain = mr_buf_text(&u->plain);
    *plain_len = u->plain.len;
    return u->plain.failed ? NULL : plain;
}

static mr_status add_hard_link(unpack *u, const char *path, size_t len, const char *target, mr_error *err)
{
    list *l = u->list;
    MR_AUTO(mr_buf_free) mr_buf plain = {0}, full = {0}; /* `path` is in a buffer of the list or of `u` */
    mr_list_plain_name(target, strlen(target), &plain);
    mr_buf_add_text(&full, l->prefix ? l->prefix : "");
    mr_buf_add_text(&full, mr_buf_text(&plain));
    target = mr_buf_text(&full);
    return full.failed || plain.failed ? mr_fail_memory(err, u->name) : mr_list_link(l, path, len, target, err);
}

static mr_status add_entry(unpack *u, struct archive_entry *e, bool damaged, mr_error *err)
{
    list *l = u->list;
    size_t len, named;
    const char *name = mr_archive_input_name(e, &named), *path = name ? take_name(u, name, named, &len) : NULL;
    mode_t type = archive_entry_filetype(e);
    len = path ? len : 0;
    MR_TRY(mr_list_prefixed(l, &path, &len, err));
    MR_TRY(begin_entry(u, e, len, &damaged, err));
    if (type == AE_IFDIR)
        return MR_OK;
    if (!path || len == 0) {
        mr_note_add(l->notes, MR_NOTE_BAD_NAME, "", 0, 0, "entry %" PRIu64 " of %s has no readable name",
                    u->census.read.entries, u->name);
        return MR_OK;
    }
    if (damaged && mr_archive_is_class(path, len))
        return fail_class_tar(u, path, len, mr_buf_text(&u->complaint), err);
    if (damaged)
        return mr_list_name_ok(l, path, len) ? add_damaged(u, path, len, (uint64_t)archive_entry_size(e), err) : MR_OK;
    if (archive_entry_hardlink(e))
        return add_hard_link(u, path, len, archive_entry_hardlink(e), err);
    if (type == AE_IFLNK)
        return mr_list_symlink(l, path, len, archive_entry_symlink(e), LINK_UNKNOWN, err);
    if (type != AE_IFREG && type != 0) {
        mr_note_add(l->notes, MR_NOTE_LINK, path, len, 0, "a device or FIFO");
        return MR_OK;
    }
    if ((name && named && name[named - 1] == '/') ||
        !mr_list_name_ok(l, path, len)) /* a folder that is not marked as one */
        return MR_OK;
    return add_file(u, e, path, len, err);
}

/* The directory of a zip or 7z is at its end: all of a stream is copied to the spool first. */
static mr_status keep_stream(unpack *u, mr_error *err)
{
    list *l = u->list;
    int spool = l->source->holders[l->spool_holder].fd;
    MR_TRY(mr_archive_input_keep(u->input, spool, l->spool_at, err));
    u->fd = spool;
    u->base = l->spool_at;
    u->holder = l->spool_holder;
    l->spool_at += u->input->size;
    return MR_OK;
}

static mr_status each_entry(unpack *u, archive_input *in, mr_error *err)
{
    struct archive_entry *entry;
    bool more = false;
    for (int r; (r = archive_read_next_header(u->archive, &entry)) != ARCHIVE_EOF;) {
        archive_verdict verdict = r == ARCHIVE_FATAL ? ARCHIVE_BAD : mr_archive_check_header(u->archive, r);
        mr_buf_clear(&u->complaint);
        if (verdict == ARCHIVE_BAD)
            return mr_archive_input_broken(u->archive, in, u->census.read.entries, NULL, err);
        if (verdict == ARCHIVE_BAD_ENTRY)
            mr_archive_complaint(u->archive, &u->complaint);
        MR_TRY(add_entry(u, entry, verdict == ARCHIVE_BAD_ENTRY, err));
    }
    if (u->census.read.entries == 0)
        MR_TRY(mr_archive_check_start(u->archive, in, &u->census, err));
    MR_TRY(mr_archive_check_census(in, &u->census, err));
    mr_status status = mr_archive_input_end(u->archive, in, u->census.read.entries, &more, err);
    if (more)
        mr_note_add(u->list->notes, MR_NOTE_INFO, u->name, strlen(u->name), 0,
                    "the bytes after its end mark were not read: is it more than one archive?");
    if (mr_archive_input_has_garbage(in))
        mr_note_add(u->list->notes, MR_NOTE_INFO, u->name, strlen(u->name), 0,
                    "the bytes after its gzip stream are not gzip and were ignored");
    return status;
}

mr_status mr_unpack_entries(unpack *u, mr_error *err)
{
    archive_input *in = u->input;
    if (!mr_archive_input_begin(in))
        return mr_fail_errno(err, errno, "%s", u->name);
    const char *what = NULL;
    mr_codec_find(in->block, in->ready, &what);
    if (!in->seekable && mr_archive_input_must_seek(in))
        MR_TRY(keep_stream(u, err));
    int r = mr_archive_input_open(u->archive, in);
    if (r < ARCHIVE_WARN) {
        MR_TRY(mr_archive_input_blame(in, err));
        return mr_fail(err, MR_BAD_DATA, "%s: not a readable archive: %s%s%s", u->name,
                       mr_archive_input_why(u->archive, in), what ? "; it looks like " : "", what ? what : "");
    }
    /* Names must not depend on the user's locale: UTF-8 in, UTF-8 out, other bytes as they are.  In a UTF-8 locale
     * libarchive would compose the letters of a tar's names; in "C" it does not.  It never composes those of zip and
     * 7z. */
    locale_t names = newlocale(LC_CTYPE_MASK, mr_archive_input_is_tar(in) ? "C" : "C.UTF-8", (locale_t)0);
    locale_t before = names ? uselocale(names) : (locale_t)0;
    mr_status status = each_entry(u, in, err);
    if (names) {
        uselocale(before);
        freelocale(names);
    }
    return status;
}

void mr_unpack_end(unpack *u)
{
    mr_buf_free(&u->compare);
    mr_buf_free(&u->plain);
    mr_buf_free(&u->complaint);
    archive_read_free(u->archive);
    mr_archive_input_free(u->input);
}

mr_status mr_unpack_begin(unpack *u, mr_error *err)
{
    uint64_t excess = u->list->source->excess;
    u->archive = archive_read_new();
    archive_input *in = u->input = mr_alloc(1, sizeof *in);
    if (!u->archive || !in)
        return mr_fail_memory(err, u->name);
    in->name = u->name;
    in->coming = u->list->coming;
    in->ratio = u->list->options.max_ratio;
    in->allowance = excess < MR_SOURCE_ALLOWANCE ? MR_SOURCE_ALLOWANCE - excess : 0;
    return MR_OK;
}

mr_status mr_list_archive(list *l, int fd, const char *path, mr_error *err)
{
    struct stat st;
    bool is_file = fd != STDIN_FILENO && fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
    MR_AUTO(mr_unpack_end) unpack u = {.list = l, .name = path, .fd = is_file ? fd : -1, .holder = MR_NO_ENTRY};
    MR_TRY(mr_list_begin_part(l, path, err));
    MR_TRY(open_spool(l, err));
    MR_TRY(mr_unpack_begin(&u, err));
    u.input->fd = fd;
    u.input->seekable = is_file;
    u.input->size = is_file ? (uint64_t)st.st_size : 0;
    u.input->weight = l->made_from;
    u.input->padding = l->made_from ? PROGRAM_PADDING_MAX : 0;
    u.progress = mr_progress_begin("unpacking", 0, l->options.quiet ? MR_PROGRESS_QUIET : l->options.progress);
    mr_status status = mr_unpack_entries(&u, err);
    mr_progress_end(u.progress);
    l->source->excess += mr_archive_input_excess(u.input);
    return status;
}
