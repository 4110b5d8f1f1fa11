/* mat.c - a reader of the part of MAT-files of version 5 that meta.mat needs: an array of structs.
 * Source: "MAT-File Format" of The MathWorks, chapter 1 (level 5); readme.txt of ILSVRC2012_devkit_t12 for the fields.
 *
 *      header, 128 bytes: text ... version (0x0100), "IM" or "MI"
 *      element: type u32, bytes u32, data, padding to 8      or, small: type u16, bytes u16 (1 to 4), data in 4 bytes
 *      compressed: a zlib stream that holds an element       matrix: flags, dimensions, name, contents
 *      struct: length of a field's name, names, then for each struct a matrix for each field
 *
 * Invariant: every element is inside the one that holds it, so no length is trusted, and what is unpacked has one limit
 * for all variables. */
#include "ingest/layout/ilsvrc/mat.h"

#include <math.h>
#include <string.h>

#include <zlib.h>

#include "base/scope.h"
#include "ingest/source/names.h"
#include "ingest/source/source.h"

enum { HEADER = 128, ENDIAN_AT = 126, TAG = 8, FIELDS_MAX = 64 };
enum type { INT8 = 1, UINT8, INT16, UINT16, INT32, UINT32, SINGLE, DOUBLE = 9, MATRIX = 14, COMPRESSED, UTF8, UTF16 };
enum class { STRUCT = 2, CHAR = 4, FIRST_NUMBER = 6, LAST_NUMBER = 15 };

typedef struct part { /* bytes of the file, or of what was compressed in it */
    const uint8_t *at, *end;
    bool big; /* endian */
} part;

typedef struct element {
    uint32_t type;
    part data;
} element;

typedef struct matrix {
    uint32_t class;
    uint64_t count; /* number of its members: the product of the dimensions */
    element name;
    part rest; /* after the name */
} matrix;

static size_t left(const part *p)
{
    return (size_t)(p->end - p->at);
}

static uint64_t number_at(const uint8_t *at, size_t size, bool big)
{
    uint64_t v = 0;
    for (size_t i = 0; i < size; i++)
        v = v << 8 | at[big ? i : size - 1 - i];
    return v;
}

static mr_status damaged(mr_error *err)
{
    return mr_fail(err, MR_BAD_DATA, "damaged or truncated: an element ends after the one that holds it");
}

/* MR_END: no more. */
static mr_status next_element(part *p, element *out, mr_error *err)
{
    if (!left(p))
        return MR_END;
    if (left(p) < TAG)
        return damaged(err);
    uint64_t type = number_at(p->at, 4, p->big), size = number_at(p->at + 4, 4, p->big);
    size_t skip = TAG;
    if (type >> 16) { /* small */
        size = type >> 16;
        type &= 0xFFFF;
        skip = 4;
        if (size > 4)
            return damaged(err);
    }
    if (size > left(p) - skip)
        return damaged(err);
    *out = (element){(uint32_t)type, {p->at + skip, p->at + skip + size, p->big}};
    size_t padded = skip == 4 ? 4 : type == COMPRESSED ? (size_t)size : ((size_t)size + 7) / 8 * 8;
    p->at += skip + (padded < left(p) - skip ? padded : left(p) - skip);
    return MR_OK;
}

static mr_status need_element(part *p, element *out, mr_error *err)
{
    mr_status status = next_element(p, out, err);
    return status == MR_END ? damaged(err) : status;
}

/* An empty matrix has no parts: its class is 0. */
static mr_status open_matrix(const element *e, matrix *out, mr_error *err)
{
    element flags, dims;
    part p = e->data;
    *out = (matrix){0};
    if (e->type != MATRIX)
        return mr_fail(err, MR_BAD_DATA, "not a list of synsets: it holds something that is not an array");
    if (!left(&p))
        return MR_OK;
    MR_TRY(need_element(&p, &flags, err));
    MR_TRY(need_element(&p, &dims, err));
    MR_TRY(need_element(&p, &out->name, err));
    if (flags.type != UINT32 || left(&flags.data) != 8 || dims.type != INT32 || left(&dims.data) % 4)
        return damaged(err);
    out->class = (uint32_t)number_at(flags.data.at, 4, p.big) & 0xFF;
    out->count = 1;
    for (; left(&dims.data); dims.data.at += 4)
        if (__builtin_mul_overflow(out->count, number_at(dims.data.at, 4, p.big), &out->count))
            return damaged(err);
    out->rest = p;
    return MR_OK;
}

/* ---- values ------------------------------------------------------------------------------------------------------ */

static size_t size_of(uint32_t type)
{
    static const uint8_t sizes[] = {[INT8] = 1,   [UINT8] = 1,  [INT16] = 2,  [UINT16] = 2, [INT32] = 4,
                                    [UINT32] = 4, [SINGLE] = 4, [DOUBLE] = 8, [UTF8] = 1,   [UTF16] = 2};
    return type < sizeof sizes ? sizes[type] : 0;
}

/* The only member of a numeric array, as a positive integer; 0: it is not one. */
static uint64_t whole_number(const matrix *m)
{
    element e;
    part p = m->rest;
    if (m->class < FIRST_NUMBER || m->class > LAST_NUMBER || next_element(&p, &e, NULL) != MR_OK || !size_of(e.type) ||
        left(&e.data) != size_of(e.type))
        return 0;
    uint64_t bits = number_at(e.data.at, size_of(e.type), p.big);
    double value = (double)bits;
    if (e.type == DOUBLE)
        memcpy(&value, &bits, sizeof value);
    if (e.type == SINGLE) {
        uint32_t low = (uint32_t)bits;
        float narrow;
        memcpy(&narrow, &low, sizeof narrow);
        value = (double)narrow;
    }
    return value >= 1 && value <= 1e9 && value == floor(value) ? (uint64_t)value : 0;
}

static void add_character(uint32_t c, mr_buf *out)
{
    uint8_t bytes[3] = {(uint8_t)c};
    size_t len = 1;
    if (c >= 0x800) {
        memcpy(bytes,
               (uint8_t[]){(uint8_t)(0xE0 | c >> 12), (uint8_t)(0x80 | (c >> 6 & 0x3F)), (uint8_t)(0x80 | (c & 0x3F))},
               len = 3);
    } else if (c >= 0x80) {
        memcpy(bytes, (uint8_t[]){(uint8_t)(0xC0 | c >> 6), (uint8_t)(0x80 | (c & 0x3F))}, len = 2);
    } else if (c < ' ' || c == 0x7F) {
        bytes[0] = ' ';
    }
    mr_buf_add(out, bytes, len);
}

/* Text as UTF-8, on one line; false: it is not text. */
static bool add_text(const matrix *m, mr_buf *out)
{
    element e;
    part p = m->rest;
    if (!m->class || !m->count)
        return true;
    if (m->class != CHAR || next_element(&p, &e, NULL) != MR_OK)
        return false;
    size_t size = size_of(e.type);
    if (size == 0 || size > 2)
        return false;
    for (; left(&e.data) >= size; e.data.at += size) {
        uint32_t c = (uint32_t)number_at(e.data.at, size, p.big);
        if (e.type == UTF8 && c >= 0x80)
            mr_buf_add(out, e.data.at, 1);
        else
            add_character(c >= 0xD800 && c < 0xE000 ? '?' : c, out);
    }
    return true;
}

/* ---- synsets ----------------------------------------------------------------------------------------------------- */

typedef struct fields { /* numbers of those that count */
    size_t count, id, name, words;
} fields;

static mr_status read_fields(part *p, fields *out, mr_error *err)
{
    element length, names;
    MR_TRY(need_element(p, &length, err));
    MR_TRY(need_element(p, &names, err));
    if (length.type != INT32 || left(&length.data) != 4)
        return damaged(err);
    uint64_t each = number_at(length.data.at, 4, p->big);
    if (!each || left(&names.data) % each || left(&names.data) / each > FIELDS_MAX)
        return damaged(err);
    *out = (fields){left(&names.data) / each, FIELDS_MAX, FIELDS_MAX, FIELDS_MAX};
    for (size_t i = 0; i < out->count; i++) {
        const char *name = (const char *)names.data.at + i * each;
        size_t len = strnlen(name, each);
        if (len == 13 && !memcmp(name, "ILSVRC2012_ID", len))
            out->id = i;
        else if (len == 4 && !memcmp(name, "WNID", len))
            out->name = i;
        else if (len == 5 && !memcmp(name, "words", len))
            out->words = i;
    }
    if (out->id == FIELDS_MAX || out->name == FIELDS_MAX)
        return mr_fail(err, MR_BAD_DATA, "its synsets have no ILSVRC2012_ID or no WNID");
    return MR_OK;
}

static mr_status read_synset(part *p, const fields *f, uint64_t number, mr_buf *out, mr_error *err)
{
    uint64_t id = 0;
    MR_AUTO(mr_buf_free) mr_buf name = {0};
    MR_AUTO(mr_buf_free) mr_buf words = {0};
    bool text = true;
    for (size_t i = 0; i < f->count; i++) {
        element e;
        matrix m;
        MR_TRY(need_element(p, &e, err));
        if (i != f->id && i != f->name && i != f->words)
            continue;
        MR_TRY(open_matrix(&e, &m, err));
        if (i == f->id)
            id = whole_number(&m);
        else
            text = add_text(&m, i == f->name ? &name : &words) && text;
    }
    if (!id || !text || !mr_name_is_synset(mr_buf_text(&name), name.len))
        return mr_fail(err, MR_BAD_DATA,
                       "synset %llu: its ILSVRC2012_ID is not a number, or its WNID not n and 8 digits",
                       (unsigned long long)number);
    mr_buf_printf(out, "%s\t%llu\t%s\n", mr_buf_text(&name), (unsigned long long)id, mr_buf_text(&words));
    return mr_buf_status(out, err, "reading the synsets");
}

/* *found: the element is the variable `synsets`. */
static mr_status read_variable(const element *e, bool *found, mr_buf *out, mr_error *err)
{
    static const char wanted[] = "synsets";
    matrix m;
    fields f = {0};
    MR_TRY(open_matrix(e, &m, err));
    if (left(&m.name.data) != strlen(wanted) || memcmp(m.name.data.at, wanted, strlen(wanted)) != 0)
        return MR_OK;
    *found = true;
    if (m.class != STRUCT)
        return mr_fail(err, MR_BAD_DATA, "its variable synsets is not an array of structs");
    MR_TRY(read_fields(&m.rest, &f, err));
    for (uint64_t i = 0; i < m.count; i++)
        MR_TRY(read_synset(&m.rest, &f, i + 1, out, err));
    return MR_OK;
}

/* ---- the file ---------------------------------------------------------------------------------------------------- */

static mr_status inflate_all(const element *e, size_t *budget, mr_buf *out, mr_error *err)
{
    enum { STEP = 1 << 16 };
    z_stream z = {.next_in = (Bytef *)e->data.at, .avail_in = (uInt)left(&e->data)};
    int r = inflateInit(&z);
    if (r != Z_OK)
        return mr_fail_memory(err, "reading meta.mat");
    while (r == Z_OK && out->len <= *budget && mr_buf_reserve(out, STEP)) {
        z.next_out = out->data + out->len;
        z.avail_out = STEP;
        r = inflate(&z, Z_NO_FLUSH);
        out->len += STEP - z.avail_out;
    }
    inflateEnd(&z);
    if (out->failed || r == Z_MEM_ERROR)
        return mr_fail_memory(err, "reading meta.mat");
    if (out->len > *budget)
        return mr_fail(err, MR_BAD_DATA, "unpacks to more than 64 MiB, the limit for meta.mat");
    *budget -= out->len;
    return r == Z_STREAM_END ? MR_OK : mr_fail(err, MR_BAD_DATA, "damaged: its compressed data cannot be unpacked");
}

static mr_status read_compressed(const element *e, bool *found, size_t *budget, mr_buf *out, mr_error *err)
{
    MR_AUTO(mr_buf_free) mr_buf bytes = {0};
    element inner;
    MR_TRY(inflate_all(e, budget, &bytes, err));
    part p = {bytes.data, bytes.data + bytes.len, e->data.big};
    MR_TRY(need_element(&p, &inner, err));
    return read_variable(&inner, found, out, err);
}

static mr_status check_header(const uint8_t *bytes, size_t len, mr_error *err)
{
    if (len > MR_MAT_MAX)
        return mr_fail(err, MR_BAD_DATA, "longer than 16 MiB, the limit");
    if (len >= 10 && !memcmp(bytes, "MATLAB 7.3", 10))
        return mr_fail(err, MR_BAD_DATA,
                       "a MAT-file of version 7.3, of which only version 5 is read: save it with -v7");
    bool little = len >= HEADER && !memcmp(bytes + ENDIAN_AT, "IM", 2);
    if (len < HEADER || (!little && memcmp(bytes + ENDIAN_AT, "MI", 2) != 0) ||
        bytes[ENDIAN_AT - (little ? 1 : 2)] != 1)
        return mr_fail(err, MR_BAD_DATA, "not a MAT-file of version 5");
    return MR_OK;
}

mr_status mr_mat_synsets(const void *bytes, size_t len, size_t *budget, mr_buf *out, mr_error *err)
{
    const uint8_t *b = bytes;
    element e;
    bool found = false;
    MR_TRY(check_header(b, len, err));
    part p = {b + HEADER, b + len, b[ENDIAN_AT] == 'M'};
    for (mr_status status; !found && (status = next_element(&p, &e, err)) != MR_END;) {
        MR_TRY(status);
        if (e.type == COMPRESSED)
            MR_TRY(read_compressed(&e, &found, budget, out, err));
        else if (e.type == MATRIX)
            MR_TRY(read_variable(&e, &found, out, err));
    }
    return found ? MR_OK : mr_fail(err, MR_BAD_DATA, "has no variable synsets");
}
