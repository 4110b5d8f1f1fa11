/* mat.c - writes MAT-files of version 5, after "MAT-File Format" of The MathWorks. */
#include "tests/support/sources/mat.h"

#include <string.h>

#include <zlib.h>

#include "tests/support/support.h"

enum { INT8 = 1, UINT16 = 4, INT32 = 5, UINT32 = 6, DOUBLE = 9, MATRIX = 14, COMPRESSED = 15 };
enum { STRUCT = 2, CHAR = 4, NUMBER = 6, NAME_LEN = 16 };

static void put(mr_buf *out, uint64_t v, size_t size, bool big)
{
    for (size_t i = 0; i < size; i++) {
        uint8_t byte = (uint8_t)(v >> 8 * (big ? size - 1 - i : i));
        mr_buf_add(out, &byte, 1);
    }
}

static void element(mr_buf *out, uint32_t type, const void *bytes, size_t len, bool big)
{
    static const char zeros[8];
    if (len > 0 && len <= 4) { /* small */
        put(out, len << 16 | type, 4, big);
        mr_buf_add(out, bytes, len);
        mr_buf_add(out, zeros, 4 - len);
        return;
    }
    put(out, type, 4, big);
    put(out, len, 4, big);
    mr_buf_add(out, bytes, len);
    mr_buf_add(out, zeros, (8 - len % 8) % 8);
}

/* Numbers of `size` bytes as one element. */
static void numbers(mr_buf *out, uint32_t type, const uint64_t *values, size_t count, size_t size, bool big)
{
    mr_buf bytes = {0};
    for (size_t i = 0; i < count; i++)
        put(&bytes, values[i], size, big);
    element(out, type, bytes.data, bytes.len, big);
    mr_buf_free(&bytes);
}

static void begin_matrix(mr_buf *out, uint32_t class, size_t rows, size_t columns, const char *name, bool big)
{
    numbers(out, UINT32, (uint64_t[]){class, 0}, 2, 4, big);
    numbers(out, INT32, (uint64_t[]){rows, columns}, 2, 4, big);
    element(out, INT8, name, strlen(name), big);
}

static void end_matrix(mr_buf *out, mr_buf *body, bool big)
{
    put(out, MATRIX, 4, big);
    put(out, body->len, 4, big);
    mr_buf_add(out, body->data, body->len);
    mr_buf_free(body);
}

static void number(mr_buf *out, double value, bool big)
{
    mr_buf body = {0};
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    begin_matrix(&body, NUMBER, 1, 1, "", big);
    numbers(&body, DOUBLE, &bits, 1, 8, big);
    end_matrix(out, &body, big);
}

static void text(mr_buf *out, const char *value, bool big)
{
    mr_buf body = {0};
    uint64_t units[256];
    size_t len = strlen(value);
    for (size_t i = 0; i < len; i++)
        units[i] = (uint8_t)value[i];
    begin_matrix(&body, CHAR, 1, len, "", big);
    numbers(&body, UINT16, units, len, 2, big);
    end_matrix(out, &body, big);
}

static void write_synsets(const support_mat *m, const support_synset *synsets, size_t count, mr_buf *out)
{
    const char *const fields[] = {m->id_field ? m->id_field : "ILSVRC2012_ID", "WNID", "words", "children"};
    char names[MR_COUNT(fields) * NAME_LEN] = "";
    mr_buf body = {0};
    uint64_t name_len = NAME_LEN;
    for (size_t i = 0; i < MR_COUNT(fields); i++)
        strcpy(names + i * NAME_LEN, fields[i]);
    begin_matrix(&body, STRUCT, count, 1, m->variable ? m->variable : "synsets", m->big);
    numbers(&body, INT32, &name_len, 1, 4, m->big);
    element(&body, INT8, names, sizeof names, m->big);
    for (size_t i = 0; i < count; i++) {
        number(&body, synsets[i].id, m->big);
        text(&body, synsets[i].name, m->big);
        text(&body, synsets[i].words, m->big);
        mr_buf none = {0};
        begin_matrix(&none, NUMBER, 0, 0, "", m->big);
        end_matrix(&body, &none, m->big);
    }
    end_matrix(out, &body, m->big);
}

void support_mat_write(const support_mat *m, const support_synset *synsets, size_t count, mr_buf *out)
{
    char header[128];
    mr_buf plain = {0};
    memset(header, ' ', sizeof header);
    memcpy(header, "MATLAB 5.0 MAT-file", 19);
    memset(header + 116, 0, 8);
    memcpy(header + 124, m->big ? "\1\0MI" : "\0\1IM", 4);
    mr_buf_clear(out);
    mr_buf_add(out, header, sizeof header);
    write_synsets(m, synsets, count, m->compressed ? &plain : out);
    if (m->compressed) {
        uLongf len = compressBound(plain.len);
        assert_true(mr_buf_reserve(out, len + 8));
        assert_int_equal(compress(out->data + out->len + 8, &len, plain.data, plain.len), Z_OK);
        put(out, COMPRESSED, 4, m->big);
        put(out, len, 4, m->big);
        out->len += len;
    }
    assert_false(out->failed || plain.failed);
    mr_buf_free(&plain);
}
