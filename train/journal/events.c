/* events.c - TensorBoard event files.
 * Invariant: after every call the file ends with a whole record; one that was written in part is cut off again.
 *
 *      record: | u64 length | u32 masked CRC of it | bytes of one Event | u32 masked CRC of them |   little-endian
 *      Event:   1 wall_time (double)  2 step (int64)  3 file_version (string, first record)  5 summary  7 session_log
 *      Summary: 1 value, one per scalar: 1 tag (string)  2 simple_value (float)
 *      SessionLog: 1 status, START = 1 */
#include "train/journal/events.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/scope.h"

enum { AHEAD_MAX = 366 * 24 * 3600 }; /* seconds; the clock that dated a later file was wrong */

static const char name_start[] = MR_EVENTS_NAME;

struct mr_events {
    int fd;
    mr_buf path, record, summary, value; /* the last three: scratch, kept for its memory */
    uint64_t size;                       /* bytes of whole records in the file */
};

uint32_t mr_crc32c(const void *bytes, size_t len)
{
    /* Four bits at a time, by the reflected polynomial 82F63B78: fast enough for a hundred bytes. */
    static const uint32_t step[16] = {0x00000000, 0x105EC76F, 0x20BD8EDE, 0x30E349B1, 0x417B1DBC, 0x5125DAD3,
                                      0x61C69362, 0x7198540D, 0x82F63B78, 0x92A8FC17, 0xA24BB5A6, 0xB21572C9,
                                      0xC38D26C4, 0xD3D3E1AB, 0xE330A81A, 0xF36E6F75};
    const uint8_t *at = bytes;
    uint32_t crc = ~UINT32_C(0);
    for (size_t i = 0; i < len; i++) {
        crc ^= at[i];
        crc = crc >> 4 ^ step[crc & 15];
        crc = crc >> 4 ^ step[crc & 15];
    }
    return ~crc;
}

/* TFRecord masks its CRCs, as the CRC of data that contain their own CRC is weak. */
uint32_t mr_masked_crc32c(const void *bytes, size_t len)
{
    uint32_t crc = mr_crc32c(bytes, len);
    return (uint32_t)((crc >> 15 | crc << 17) + UINT32_C(0xA282EAD8));
}

static void add_fixed(mr_buf *out, uint64_t value, unsigned bytes)
{
    uint8_t little[8];
    for (unsigned i = 0; i < bytes; i++)
        little[i] = (uint8_t)(value >> (8 * i));
    mr_buf_add(out, little, bytes);
}

static void add_masked_crc(mr_buf *out, const void *bytes, size_t len)
{
    add_fixed(out, mr_masked_crc32c(bytes, len), 4);
}

/* ---- protocol buffers: a field is (number << 3 | type), then a varint, 8 or 4 bytes, or a length and bytes ------- */

enum { VARINT = 0, FIXED64 = 1, BYTES = 2, FIXED32 = 5 };

static void add_varint(mr_buf *out, uint64_t value)
{
    uint8_t byte;
    do {
        byte = value & 0x7F;
        value >>= 7;
        byte |= value ? 0x80 : 0;
        mr_buf_add(out, &byte, 1);
    } while (value);
}

static void add_key(mr_buf *out, unsigned field, unsigned type)
{
    add_varint(out, field << 3 | type);
}

static void add_bytes(mr_buf *out, unsigned field, const void *bytes, size_t len)
{
    add_key(out, field, BYTES);
    add_varint(out, len);
    mr_buf_add(out, bytes, len);
}

static void add_double(mr_buf *out, unsigned field, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    add_key(out, field, FIXED64);
    add_fixed(out, bits, 8);
}

static void add_float(mr_buf *out, unsigned field, float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    add_key(out, field, FIXED32);
    add_fixed(out, bits, 4);
}

/* ---- records ---------------------------------------------------------------------------------------------------- */

enum { HEAD = 12 }; /* length and its CRC */

/* e->record: room for the head, then the event. */
static mr_status write_record(mr_events *e, mr_error *err)
{
    mr_buf *r = &e->record;
    const char *path = mr_buf_text(&e->path);
    if (e->summary.failed || e->value.failed || r->failed || e->path.failed)
        return mr_fail_memory(err, "writing TensorBoard events");
    size_t len = r->len - HEAD;
    r->len = 0;
    add_fixed(r, len, 8);
    add_masked_crc(r, r->data, 8);
    r->len = HEAD + len;
    add_masked_crc(r, r->data + HEAD, len);
    mr_status status = mr_buf_status(r, err, "writing TensorBoard events");
    if (status == MR_OK)
        status = mr_file_write(e->fd, r->data, r->len, path, err);
    if (status == MR_OK)
        e->size += r->len;
    else if (ftruncate(e->fd, (off_t)e->size) == 0) /* otherwise readers stop at the incomplete record */
        lseek(e->fd, (off_t)e->size, SEEK_SET);
    return status;
}

static void begin_event(mr_events *e, double seconds, uint64_t step)
{
    static const uint8_t head[HEAD];
    mr_buf_clear(&e->record);
    mr_buf_add(&e->record, head, HEAD);
    add_double(&e->record, 1, seconds);
    add_key(&e->record, 2, VARINT);
    add_varint(&e->record, step);
}

mr_status mr_events_add(mr_events *e, double seconds, uint64_t step, const mr_scalar *scalars, size_t count,
                        mr_error *err)
{
    mr_buf_clear(&e->summary);
    for (size_t i = 0; i < count; i++) {
        mr_buf_clear(&e->value);
        add_bytes(&e->value, 1, scalars[i].tag, strlen(scalars[i].tag));
        add_float(&e->value, 2, scalars[i].value);
        add_bytes(&e->summary, 1, e->value.data, e->value.len);
        e->summary.failed |= e->value.failed;
    }
    begin_event(e, seconds, step);
    add_bytes(&e->record, 5, e->summary.data, e->summary.len);
    return write_record(e, err);
}

mr_status mr_events_restart(mr_events *e, double seconds, uint64_t step, mr_error *err)
{
    static const uint8_t start[] = {1 << 3 | VARINT, 1};
    begin_event(e, seconds, step);
    add_bytes(&e->record, 7, start, sizeof start);
    return write_record(e, err);
}

/* ---- the file --------------------------------------------------------------------------------------------------- */

/* As part of a file name: only letters, digits, '-' and '.'. */
static void host_name(char name[65])
{
    if (gethostname(name, 64) != 0)
        strcpy(name, "localhost");
    name[64] = '\0';
    for (char *at = name; *at; at++)
        if (!strchr("-.0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz", *at))
            *at = '_';
}

/* Links are not followed: a run's folder may come from elsewhere. */
static mr_status open_folder(const char *dir, int *fd, mr_error *err)
{
    struct stat st;
    MR_TRY(mr_dir_make(dir, err));
    *fd = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (*fd >= 0)
        return MR_OK;
    int saved = errno;
    if (lstat(dir, &st) == 0 && S_ISLNK(st.st_mode))
        return mr_fail(err, MR_MISUSE,
                       "%s: is a link, and TensorBoard events are written only to the run's own folder; "
                       "remove the link",
                       dir);
    return mr_fail_errno(err, saved, "%s: cannot write TensorBoard events", dir);
}

/* `now`, or the second after that of the newest file if the clock is not yet past it: TensorBoard reads files in the
 * order of their names. */
static long long second_of(const char *dir, long long now)
{
    DIR *list = opendir(dir);
    for (struct dirent *e; list && (e = readdir(list));) {
        const char *digits = e->d_name + strlen(name_start);
        if (strncmp(e->d_name, name_start, strlen(name_start)) != 0 || !isdigit((unsigned char)*digits))
            continue;
        long long second = strtoll(digits, NULL, 10);
        now = second >= now && second < now + AHEAD_MAX ? second + 1 : now;
    }
    if (list)
        closedir(list);
    return now;
}

static mr_status make_file(mr_events *e, int folder, const char *dir, long long seconds, mr_error *err)
{
    char host[65];
    host_name(host);
    for (unsigned n = 0; n < 10000; n++) {
        mr_buf_clear(&e->path);
        mr_buf_printf(&e->path, "%s/%s%lld.%s.%ld.%u", dir, name_start, seconds, host, (long)getpid(), n);
        const char *path = mr_buf_text(&e->path);
        if (e->path.failed)
            return mr_fail_memory(err, dir);
        e->fd = openat(folder, path + strlen(dir) + 1, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (e->fd >= 0)
            return MR_OK;
        if (errno != EEXIST)
            return mr_fail_errno(err, errno, "%s: cannot write TensorBoard events", path);
    }
    return mr_fail(err, MR_SYSTEM, "%s: 10,000 event files of this second exist; name another directory", dir);
}

/* A new file with its first record. */
static mr_status begin_file(mr_events *e, const char *dir, mr_error *err)
{
    static const char version[] = "brain.Event:2";
    MR_AUTO(mr_scope_close) int folder = -1;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    MR_TRY(open_folder(dir, &folder, err));
    MR_TRY(make_file(e, folder, dir, second_of(dir, (long long)now.tv_sec), err));
    begin_event(e, (double)now.tv_sec + (double)now.tv_nsec * 1e-9, 0);
    add_bytes(&e->record, 3, version, strlen(version));
    return write_record(e, err);
}

mr_status mr_events_open(const char *dir, mr_events **out, mr_error *err)
{
    mr_events *e = mr_alloc(1, sizeof *e);
    if (!e)
        return mr_fail_memory(err, dir);
    e->fd = -1;
    mr_status status = begin_file(e, dir, err);
    if (status == MR_OK)
        *out = e;
    else
        mr_events_close(e, NULL);
    return status;
}

const char *mr_events_path(const mr_events *e)
{
    return (const char *)e->path.data;
}

mr_status mr_events_close(mr_events *e, mr_error *err)
{
    mr_status status = MR_OK;
    if (!e)
        return MR_OK;
    if (e->fd >= 0 && close(e->fd) != 0)
        status = mr_fail_errno(err, errno, "%s: cannot close", mr_buf_text(&e->path));
    mr_buf_free(&e->path);
    mr_buf_free(&e->record);
    mr_buf_free(&e->summary);
    mr_buf_free(&e->value);
    free(e);
    return status;
}
