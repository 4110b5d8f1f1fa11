/* support_npz.c - arrays out of numpy's .npz files: a zip of .npy, each a header in Python's words, then the bytes. */
#include "support_npz.h"

#include <archive.h>
#include <archive_entry.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct member {
    char *name;
    uint8_t *bytes;
    size_t len;
} member;

struct support_npz {
    member *members;
    size_t count;
};

char *support_parity(const char *sub)
{
    const char *root = getenv("MILLRACE_PARITY");
    char *path = root && *root ? support_path("%s/%s", root, sub)
                               : support_path("%s/../shared/parity/%s", MILLRACE_SOURCE_DIR, sub);
    if (!access(path, R_OK))
        return path;
    free(path);
    return NULL;
}

static void take_member(support_npz *z, struct archive *a, struct archive_entry *e)
{
    member m = {.name = support_path("%s", archive_entry_pathname(e))};
    size_t room = 0;
    la_ssize_t n;
    do {
        if (m.len == room) {
            room = room ? room * 2 : 1 << 16;
            m.bytes = realloc(m.bytes, room);
            assert_non_null(m.bytes);
        }
        n = archive_read_data(a, m.bytes + m.len, room - m.len);
        if (n < 0)
            fail_msg("%s: %s", m.name, archive_error_string(a));
        m.len += (size_t)n;
    } while (n);
    z->members = realloc(z->members, (z->count + 1) * sizeof *z->members);
    assert_non_null(z->members);
    z->members[z->count++] = m;
}

support_npz *support_npz_open(const char *path)
{
    support_npz *z = calloc(1, sizeof *z);
    struct archive *a = archive_read_new();
    struct archive_entry *e;
    assert_non_null(z);
    archive_read_support_format_zip_seekable(a);
    if (archive_read_open_filename(a, path, 1 << 16) != ARCHIVE_OK)
        fail_msg("%s: %s", path, archive_error_string(a));
    while (archive_read_next_header(a, &e) == ARCHIVE_OK)
        take_member(z, a, e);
    archive_read_free(a);
    return z;
}

void support_npz_close(support_npz *z)
{
    for (size_t i = 0; i < z->count; i++) {
        free(z->members[i].name);
        free(z->members[i].bytes);
    }
    free(z->members);
    free(z);
}

static const void *array_of(const member *m, const char *type, size_t shape[4])
{
    char head[512], descr[32];
    size_t n = m->len > 10 ? m->bytes[8] + 256u * m->bytes[9] : 0, sides = 0;
    size_t item = (size_t)strtoul(type + 2, NULL, 10);
    if (m->len < 10 || memcmp(m->bytes, "\x93NUMPY\1", 7) || n >= sizeof head || 10 + n > m->len)
        fail_msg("%s is no .npy of version 1", m->name);
    memcpy(head, m->bytes + 10, n);
    head[n] = '\0';
    snprintf(descr, sizeof descr, "'descr': '%s'", type);
    char *at = strstr(head, "'shape': (");
    if (!strstr(head, descr) || !strstr(head, "'fortran_order': False") || !at)
        fail_msg("%s is not of type %s: %s", m->name, type, head);
    shape[0] = shape[1] = shape[2] = shape[3] = 1;
    for (at += 10; *at && *at != ')' && sides < 4; at += strspn(at, ", "))
        shape[sides++] = (size_t)strtoul(at, &at, 10);
    assert_int_equal(m->len - 10 - n, shape[0] * shape[1] * shape[2] * shape[3] * item);
    return m->bytes + 10 + n;
}

const void *support_npz_get(const support_npz *z, const char *name, const char *type, size_t shape[4])
{
    char file[256];
    snprintf(file, sizeof file, "%s.npy", name);
    for (size_t i = 0; i < z->count; i++)
        if (!strcmp(z->members[i].name, file))
            return array_of(&z->members[i], type, shape);
    fail_msg("no array %s", name);
    return NULL;
}
