/* events_read.c - scalars back from TensorBoard event files, for a report.
 * Invariant: no byte is used before the CRC of its record was checked, nor past the end of its record. */
#include "train/journal/events.h"

#include <dirent.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/files/file.h"
#include "base/scope.h"

enum { HEAD = 12, TAIL = 4, TAG_MOST = 200, FILES_MOST = 10000 };
#define FILE_MAX ((uint64_t)1 << 30)

/* ---- protocol buffers: a field is (number << 3 | type), then a varint, 8 or 4 bytes, or a length and bytes ------- */

enum { VARINT = 0, FIXED64 = 1, BYTES = 2, FIXED32 = 5 };

typedef struct field {
    unsigned number, type;
    uint64_t value;       /* VARINT, FIXED64 and FIXED32 */
    const uint8_t *bytes; /* BYTES */
    size_t len;
} field;

typedef struct message {
    const uint8_t *at, *end;
} message;

static bool take_varint(message *m, uint64_t *out)
{
    *out = 0;
    for (unsigned shift = 0; shift < 64 && m->at < m->end; shift += 7) {
        uint8_t byte = *m->at++;
        *out |= (uint64_t)(byte & 0x7F) << shift;
        if (byte < 0x80)
            return true;
    }
    return false;
}

static bool take_fixed(message *m, unsigned bytes, uint64_t *out)
{
    *out = 0;
    if ((size_t)(m->end - m->at) < bytes)
        return false;
    for (unsigned i = 0; i < bytes; i++)
        *out |= (uint64_t)*m->at++ << (8 * i);
    return true;
}

/* False: the message has ended, or is not one. */
static bool next_field(message *m, field *f)
{
    uint64_t key, len;
    *f = (field){0};
    if (m->at == m->end || !take_varint(m, &key))
        return false;
    f->number = (unsigned)(key >> 3);
    f->type = key & 7;
    if (f->type == VARINT)
        return take_varint(m, &f->value);
    if (f->type == FIXED64 || f->type == FIXED32)
        return take_fixed(m, f->type == FIXED64 ? 8 : 4, &f->value);
    if (f->type != BYTES || !take_varint(m, &len) || len > (size_t)(m->end - m->at))
        return false;
    f->bytes = m->at;
    f->len = (size_t)len;
    m->at += len;
    return true;
}

/* ---- events ------------------------------------------------------------------------------------------------------ */

typedef struct reading {
    mr_scalar_fn take;
    void *ctx;
} reading;

static mr_status take_value(const reading *r, uint64_t step, message m, mr_error *err)
{
    field f;
    char tag[TAG_MOST + 1] = "";
    bool valued = false;
    float value = 0;
    while (next_field(&m, &f)) {
        if (f.number == 1 && f.type == BYTES && f.len <= TAG_MOST) {
            memcpy(tag, f.bytes, f.len);
            tag[f.len] = '\0';
        } else if (f.number == 2 && f.type == FIXED32) {
            uint32_t bits = (uint32_t)f.value;
            memcpy(&value, &bits, sizeof value);
            valued = true;
        }
    }
    return valued && *tag ? r->take(r->ctx, step, tag, value, err) : MR_OK;
}

static mr_status take_event(const reading *r, message m, mr_error *err)
{
    uint64_t step = 0;
    message summary = {NULL, NULL};
    bool restart = false;
    field f;
    while (next_field(&m, &f)) {
        if (f.number == 2 && f.type == VARINT)
            step = f.value;
        else if (f.number == 5 && f.type == BYTES)
            summary = (message){f.bytes, f.bytes + f.len};
        else if (f.number == 7 && f.type == BYTES)
            restart = true;
    }
    if (restart)
        return r->take(r->ctx, step, NULL, 0, err);
    while (summary.at && next_field(&summary, &f))
        if (f.number == 1 && f.type == BYTES)
            MR_TRY(take_value(r, step, (message){f.bytes, f.bytes + f.len}, err));
    return MR_OK;
}

static uint32_t crc_at(const uint8_t *at)
{
    uint32_t crc;
    memcpy(&crc, at, sizeof crc);
    return le32toh(crc);
}

mr_status mr_events_parse(const void *bytes, size_t size, const char *path, mr_scalar_fn take, void *ctx, mr_error *err)
{
    const reading r = {take, ctx};
    for (size_t at = 0; size - at >= HEAD;) {
        const uint8_t *record = (const uint8_t *)bytes + at;
        uint64_t len;
        memcpy(&len, record, sizeof len);
        len = le64toh(len);
        if (mr_masked_crc32c(record, sizeof len) != crc_at(record + sizeof len))
            return mr_fail(err, MR_BAD_DATA, "%s: the record at %zu is damaged", path, at);
        if (size - at - HEAD < TAIL || len > size - at - HEAD - TAIL)
            break; /* cut off */
        if (mr_masked_crc32c(record + HEAD, (size_t)len) != crc_at(record + HEAD + len))
            return mr_fail(err, MR_BAD_DATA, "%s: the record at %zu is damaged", path, at);
        MR_TRY(take_event(&r, (message){record + HEAD, record + HEAD + len}, err));
        at += HEAD + (size_t)len + TAIL;
    }
    return MR_OK;
}

/* ---- files ------------------------------------------------------------------------------------------------------ */

static int is_events(const struct dirent *e)
{
    return strncmp(e->d_name, MR_EVENTS_NAME, strlen(MR_EVENTS_NAME)) == 0;
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static mr_status read_file(const reading *r, const char *dir, const char *name, mr_error *err)
{
    MR_AUTO(mr_buf_free) mr_buf path = {0}, file = {0};
    mr_buf_printf(&path, "%s/%s", dir, name);
    MR_TRY(mr_buf_status(&path, err, dir));
    MR_TRY(mr_file_read_all(AT_FDCWD, mr_buf_text(&path), FILE_MAX, &file, err));
    return mr_events_parse(file.data, file.len, mr_buf_text(&path), r->take, r->ctx, err);
}

mr_status mr_events_read(const char *dir, mr_scalar_fn take, void *ctx, mr_error *err)
{
    struct dirent **names = NULL;
    const reading r = {take, ctx};
    int count = scandir(dir, &names, is_events, by_name);
    mr_status status = count < 0 && errno != ENOENT && errno != ENOTDIR
                           ? mr_fail_errno(err, errno, "%s: cannot read TensorBoard events", dir)
                       : count <= 0 ? MR_END
                                    : MR_OK;
    if (count > FILES_MOST)
        status = mr_fail(err, MR_BAD_DATA, "%s: has more than %d event files", dir, FILES_MOST);
    for (int i = 0; i < count; i++) {
        if (status == MR_OK)
            status = read_file(&r, dir, names[i]->d_name, err);
        free(names[i]);
    }
    free(names);
    return status;
}

/* ---- removing ---------------------------------------------------------------------------------------------------- */

mr_status mr_events_remove(int dirfd, const char *name, const char *parent, mr_error *err)
{
    int fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    if (!dir) {
        int why = errno;
        if (fd >= 0)
            close(fd);
        return fd < 0 && (why == ENOENT || why == ENOTDIR || why == ELOOP)
                   ? MR_OK
                   : mr_fail_errno(err, why, "%s/%s: cannot list the directory", parent, name);
    }
    mr_status status = MR_OK;
    for (struct dirent *e; status == MR_OK && (e = readdir(dir));)
        if (strncmp(e->d_name, MR_EVENTS_NAME, strlen(MR_EVENTS_NAME)) == 0 && unlinkat(fd, e->d_name, 0) != 0)
            status = mr_fail_errno(err, errno, "%s/%s/%s: cannot be removed", parent, name, e->d_name);
    closedir(dir);
    if (status == MR_OK)
        unlinkat(dirfd, name, AT_REMOVEDIR); /* stays where strangers' files are in it */
    return status;
}
