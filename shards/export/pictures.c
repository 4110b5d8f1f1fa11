/* pictures.c - a sample's image as a file, and names for folders.
 * Invariant: the bytes of the file are those of the record; they are never decoded. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/scope.h"
#include "base/text.h"
#include "image/codec/image.h"
#include "shards/export/format.h"

void mr_export_class_text(const mr_class *c, mr_buf *out)
{
    MR_AUTO(mr_buf_free) mr_buf bytes = {0};
    bool plain = mr_text_unescape(&bytes, c->name, strlen(c->name)) && mr_utf8_valid(mr_buf_text(&bytes), bytes.len);
    for (size_t i = 0; plain && i < bytes.len; i++)
        plain = bytes.data[i] >= ' ' && bytes.data[i] != 0x7F;
    if (plain)
        mr_buf_add(out, bytes.data, bytes.len);
    else
        mr_buf_add_text(out, c->name);
    out->failed = out->failed || bytes.failed;
}

mr_status mr_export_folder_name(mr_export_run *run, const char *folder, const char *name, mr_export_part part,
                                char **out, mr_error *err)
{
    MR_AUTO(mr_buf_free) mr_buf bytes = {0}, taken = {0};
    bool changed;
    if (!mr_text_unescape(&bytes, name, strlen(name)))
        mr_buf_clear(&bytes);
    const mr_name_request request = {
        .folder = folder, .wanted = mr_buf_text(&bytes), .len = bytes.len, .rules = MR_NAME_FOLDER};
    MR_TRY(mr_names_take(&run->names, &request, &taken, &changed, err));
    if (changed)
        mr_export_count_loss(run, part, NULL, 1);
    *out = strdup(mr_buf_text(&taken));
    return *out && !bytes.failed ? MR_OK : mr_fail_memory(err, "exporting");
}

mr_status mr_export_picture_name(mr_export_run *run, const char *folder, const mr_export_sample *s, unsigned rules,
                                 mr_buf *out, mr_error *err)
{
    const mr_codec *codec = mr_codec_by_id(s->view->codec);
    const mr_buf *source = &s->facts->source;
    bool changed;
    if (!codec)
        return mr_fail(err, MR_BAD_DATA, "%s %llu: unknown codec %u", s->split->name, (unsigned long long)s->number,
                       s->view->codec);
    const mr_name_request request = {.folder = folder,
                                     .wanted = source->len ? (const char *)source->data : "",
                                     .len = source->len,
                                     .suffix = codec->suffix,
                                     .rules = rules};
    mr_buf_clear(out);
    MR_TRY(mr_names_take(&run->names, &request, out, &changed, err));
    if (changed)
        mr_export_count_loss(run, MR_PART_NAMES, s, 1);
    mr_buf_text(out);
    return mr_buf_status(out, err, "exporting");
}

/* ---- --link ------------------------------------------------------------------------------------------------------ */

/* Whether FOLDER/SOURCE is a file with the image's bytes, and now PATH as well.  Where it is not, or the file system
 * does not link, the image is written. */
static bool link_source(mr_export_run *run, const char *path, const mr_export_sample *s)
{
    const mr_buf *source = &s->facts->source;
    MR_AUTO(mr_scope_close) int dir = -1, fd = -1;
    MR_AUTO(mr_buf_free) mr_buf name = {0}, bytes = {0};
    char self[40];
    uint64_t size;
    mr_buf_add(&name, source->data, source->len);
    const char *from = mr_buf_text(&name);
    if (!source->len || name.failed || !mr_path_is_safe(from, source->len))
        return false;
    dir = open(run->options->link, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0 || mr_file_open(dir, from, false, &fd, &size, NULL) != MR_OK || size != s->view->image_len)
        return false;
    if (!mr_buf_reserve(&bytes, size) || mr_file_pread(fd, bytes.data, size, 0, from, NULL) != MR_OK ||
        memcmp(bytes.data, s->view->image, size) != 0)
        return false;
    snprintf(self, sizeof self, "/proc/self/fd/%d", fd);
    return linkat(AT_FDCWD, self, run->out.dirfd, path, AT_SYMLINK_FOLLOW) == 0;
}

mr_status mr_export_picture(mr_export_run *run, const char *folder, const char *name, const mr_export_sample *s,
                            mr_error *err)
{
    MR_AUTO(mr_buf_free) mr_buf path = {0};
    mr_buf_printf(&path, "%s/%s", folder, name);
    const char *text = mr_buf_text(&path);
    MR_TRY(mr_buf_status(&path, err, "exporting"));
    if (run->options->link) {
        MR_TRY(mr_out_folder(&run->out, folder, err));
        if (link_source(run, text, s)) {
            run->out.files++;
            run->result->linked++;
            return MR_OK;
        }
    }
    return mr_out_file(&run->out, text, s->view->image, s->view->image_len, err);
}
