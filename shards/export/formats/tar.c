/* tar.c - a WebDataset tar: the files of a sample are adjacent and share their name up to the dot.
 *
 *    __millrace__/dataset.json   the split names and classes; WebDataset's readers skip the folder
 *    train/00000000.jpg   the encoded bytes      train/00000001.png ...
 *    train/00000000.json  the meta, as stored
 *    train/00000000.cls   the label, if there is exactly one
 *
 * Invariant: no clock, user or host of this run is in the tar, so equal datasets give equal tars. */
#include "shards/export/formats/tar.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <archive.h>
#include <archive_entry.h>

#include "base/files/file.h"
#include "base/scope.h"
#include "base/text.h"
#include "image/codec/image.h"

/* Reports success to libarchive: after a failed write it leaks, and would add its end marker to an incomplete tar. */
static la_ssize_t take(struct archive *a, void *ctx, const void *bytes, size_t len)
{
    mr_tar *t = ctx;
    (void)a;
    if (t->written == MR_OK)
        t->written = mr_file_write(t->fd, bytes, len, t->name, &t->error);
    return (la_ssize_t)len;
}

static mr_status write_status(const mr_tar *t, mr_error *err)
{
    if (t->written != MR_OK && err)
        *err = t->error;
    return t->written;
}

static mr_status tar_failed(const mr_tar *t, mr_error *err)
{
    int errnum = archive_errno(t->archive);
    const char *why = archive_error_string(t->archive);
    if (errnum == ENOMEM)
        return mr_fail_memory(err, t->name);
    if (errnum <= 0 && !why) /* it ran out of memory before it could report that */
        errnum = errno;
    if (errnum > 0)
        return mr_fail_errno(err, errnum, "%s: cannot write", t->name);
    return mr_fail(err, MR_SYSTEM, "%s: cannot write: %s", t->name, why ? why : strerror(errnum));
}

mr_status mr_tar_file(mr_tar *t, const char *path, const void *bytes, size_t len, mr_error *err)
{
    archive_entry_clear(t->entry);
    archive_entry_set_pathname(t->entry, path);
    archive_entry_set_filetype(t->entry, AE_IFREG);
    archive_entry_set_perm(t->entry, 0644);
    archive_entry_set_size(t->entry, (la_int64_t)len);
    archive_entry_set_mtime(t->entry, 0, 0);
    archive_entry_set_uid(t->entry, 0);
    archive_entry_set_gid(t->entry, 0);
    if (archive_write_header(t->archive, t->entry) != ARCHIVE_OK)
        return tar_failed(t, err);
    if (archive_write_data(t->archive, bytes, len) != (la_ssize_t)len)
        return tar_failed(t, err);
    t->result->files++;
    t->result->bytes += len;
    return write_status(t, err);
}

void mr_tar_name(const mr_tar *t, const mr_export_sample *s, const char *suffix, char name[MR_TAR_NAME])
{
    snprintf(name, MR_TAR_NAME, "%s%s%08llu.%s", t->shard ? "" : s->split->name, t->shard ? "" : "/",
             (unsigned long long)s->number, suffix);
}

static mr_status add(mr_tar *t, const mr_export_sample *s, const char *suffix, const void *bytes, size_t len,
                     mr_error *err)
{
    char path[MR_TAR_NAME];
    mr_tar_name(t, s, suffix, path);
    return mr_tar_file(t, path, bytes, len, err);
}

static void add_names(mr_buf *out, const char *key, size_t i, const char *name)
{
    if (i == 0)
        mr_buf_printf(out, "\"%s\": [", key);
    else
        mr_buf_add_text(out, ", ");
    mr_json_add_string(out, name, strlen(name));
}

/* A tar of one split names all classes: their numbers are the dataset's. */
void mr_tar_facts(const mr_manifest *m, const mr_export_options *o, mr_buf *text)
{
    size_t splits = 0;
    mr_buf_add_text(text, "{");
    for (size_t i = 0; i < m->split_count; i++)
        if (mr_export_wants(o, &m->splits[i]))
            add_names(text, "splits", splits++, m->splits[i].name);
    for (size_t i = 0; i < m->class_count; i++) {
        if (i == 0)
            mr_buf_add_text(text, "], ");
        add_names(text, "classes", i, m->classes[i].name);
    }
    mr_buf_add_text(text, "]}\n");
}

mr_status mr_tar_sample(mr_tar *t, const mr_export_sample *s, mr_error *err)
{
    const mr_codec *codec = mr_codec_by_id(s->view->codec);
    char label[16];
    if (!codec)
        return mr_fail(err, MR_BAD_DATA, "%s %llu: unknown codec %u", s->split->name, (unsigned long long)s->number,
                       s->view->codec);
    MR_TRY(add(t, s, codec->suffix, s->view->image, s->view->image_len, err));
    MR_TRY(add(t, s, "json", s->view->meta, s->view->meta_len, err));
    if (s->view->label < 0)
        return MR_OK;
    int n = snprintf(label, sizeof label, "%d", (int)s->view->label);
    return add(t, s, "cls", label, (size_t)n, err);
}

mr_status mr_tar_open(mr_tar *t, mr_error *err)
{
    t->archive = archive_write_new();
    t->entry = archive_entry_new();
    if (!t->archive || !t->entry)
        return mr_fail_memory(err, t->name);
    if (archive_write_set_format_pax_restricted(t->archive) != ARCHIVE_OK ||
        archive_write_set_bytes_per_block(t->archive, 256 * 1024) != ARCHIVE_OK ||
        archive_write_set_bytes_in_last_block(t->archive, 1) != ARCHIVE_OK ||
        archive_write_open(t->archive, t, NULL, take, NULL) != ARCHIVE_OK)
        return tar_failed(t, err);
    return MR_OK;
}

mr_status mr_tar_close(mr_tar *t, mr_error *err)
{
    return archive_write_close(t->archive) == ARCHIVE_OK ? write_status(t, err) : tar_failed(t, err);
}

void mr_tar_free(mr_tar *t, mr_status status)
{
    if (status != MR_OK)
        t->written = status;
    archive_entry_free(t->entry);
    archive_write_free(t->archive);
}
