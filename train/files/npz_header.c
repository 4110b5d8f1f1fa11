/* npz_header.c - the header of a .npy file: a dictionary in Python's syntax, read by a parser of just that much Python.
 * Invariant: the parser only moves forward within [at, end), so it ends on any text.
 *
 *      "\x93NUMPY" 1 0 | length, 2 bytes | {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), } .. \n | elements
 *      "\x93NUMPY" 2 0 | length, 4 bytes | the same; version 3 may hold UTF-8 */
#include "train/files/npz_header.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "train/files/safetensors_parts.h"

typedef struct literal {
    const char *at, *end;
    const char *why; /* reason of the first failure */
} literal;

enum { DESCR = 1, ORDER = 2, SHAPE = 4, MAX_NAMES = 1 << 16 };

static const struct {
    const char *descr;
    unsigned bytes;
} types[] = {[MR_NPZ_F32] = {"<f4", 4}, [MR_NPZ_I64] = {"<i8", 8}, [MR_NPZ_U8] = {"|u1", 1}};

bool mr_npz_count(mr_npz_type type, unsigned dims, const uint64_t *shape, uint64_t *count, uint64_t *bytes)
{
    return mr_tensors_count(dims, shape, types[type].bytes, count, bytes);
}

uint64_t mr_npz_bytes(const mr_npz_array *array)
{
    return array->count * types[array->type].bytes;
}

bool mr_npy_prefix(const uint8_t *bytes, size_t len, size_t *more, size_t *text_len, const char **why)
{
    if (len < 10 || memcmp(bytes, "\x93NUMPY", 6) != 0) {
        *why = "does not start like a .npy file";
        return false;
    }
    if (bytes[6] < 1 || bytes[6] > 3 || bytes[7] != 0) {
        *why = "is a .npy file of an unknown version (1.0 to 3.0 are read)";
        return false;
    }
    size_t text = (size_t)(bytes[8] | bytes[9] << 8);
    *more = bytes[6] > 1 && len < 12 ? 2 : 0;
    if (bytes[6] > 1 && len >= 12)
        text |= (size_t)(bytes[10] | bytes[11] << 8) << 16;
    if (*more == 0 && text > MR_NPY_TEXT) {
        *why = "has a .npy header that is too long";
        return false;
    }
    *text_len = text;
    return true;
}

/* ---- just enough Python ------------------------------------------------------------------------------------------ */

static bool fault(literal *l, const char *why)
{
    if (!l->why)
        l->why = why;
    return false;
}

static void skip_blanks(literal *l)
{
    while (l->at < l->end && (*l->at == ' ' || *l->at == '\n' || *l->at == '\t' || *l->at == '\r'))
        l->at++;
}

/* Passes over `c` and the blanks around it; false (and no fault) if anything else follows. */
static bool take(literal *l, char c)
{
    skip_blanks(l);
    if (l->at >= l->end || *l->at != c)
        return false;
    l->at++;
    skip_blanks(l);
    return true;
}

static bool take_word(literal *l, const char *word)
{
    size_t len = strlen(word);
    if ((size_t)(l->end - l->at) < len || memcmp(l->at, word, len) != 0)
        return false;
    l->at += len;
    return true;
}

/* 'text' or "text" without escapes; lent. */
static bool take_string(literal *l, const char **text, size_t *len)
{
    if (l->at >= l->end || (*l->at != '\'' && *l->at != '"'))
        return false;
    const char *begin = l->at + 1, *close = memchr(begin, *l->at, (size_t)(l->end - begin));
    if (!close || memchr(begin, '\\', (size_t)(close - begin)))
        return false;
    *text = begin;
    *len = (size_t)(close - begin);
    l->at = close + 1;
    return true;
}

static bool take_number(literal *l, uint64_t *out)
{
    uint64_t n = 0;
    const char *begin = l->at;
    for (; l->at < l->end && *l->at >= '0' && *l->at <= '9'; l->at++)
        if (__builtin_mul_overflow(n, 10, &n) || __builtin_add_overflow(n, (uint64_t)(*l->at - '0'), &n))
            return fault(l, "has a dimension that no file could hold");
    if (l->at == begin)
        return fault(l, "has a shape that cannot be read");
    if (l->at < l->end && *l->at == 'L') /* as Python 2 wrote long integers */
        l->at++;
    *out = n;
    return true;
}

/* (), (3,), (3, 4), (3, 4,) */
static bool take_shape(literal *l, mr_npz_array *array)
{
    bool comma = true;
    array->dims = 0;
    if (!take(l, '('))
        return fault(l, "has a shape that cannot be read");
    while (!take(l, ')')) {
        if (!comma)
            return fault(l, "has a shape that cannot be read");
        if (array->dims == MR_NPZ_DIMS)
            return fault(l, "has more than 8 dimensions");
        if (!take_number(l, &array->shape[array->dims]))
            return false;
        array->dims++;
        comma = take(l, ',');
    }
    return array->dims == 1 && !comma ? fault(l, "has a shape that is a number, not a tuple") : true;
}

static bool take_descr(literal *l, mr_npz_array *array)
{
    const char *text;
    size_t len;
    if (l->at < l->end && *l->at == '[')
        return fault(l, "has elements of a structured type; '<f4', '<i8' and '|u1' are read");
    if (!take_string(l, &text, &len))
        return false;
    for (size_t i = 0; i < MR_COUNT(types); i++)
        if (strlen(types[i].descr) == len && memcmp(types[i].descr, text, len) == 0) {
            array->type = (mr_npz_type)i;
            return true;
        }
    if (len && *text == '>')
        return fault(l, "is big-endian; save it with astype('<f4')");
    return fault(l, "has elements of a type other than '<f4', '<i8' and '|u1'; save it with astype('<f4')");
}

static bool take_order(literal *l)
{
    if (take_word(l, "False"))
        return true;
    if (take_word(l, "True"))
        return fault(l, "is in Fortran order; save it with numpy.ascontiguousarray()");
    return fault(l, "has a fortran_order that is neither True nor False");
}

static bool take_member(literal *l, mr_npz_array *array, unsigned *seen)
{
    static const char *const keys[] = {"descr", "fortran_order", "shape"};
    const char *key;
    size_t len, k = 0;
    if (!take_string(l, &key, &len) || !take(l, ':'))
        return fault(l, "has a .npy header that cannot be read");
    while (k < MR_COUNT(keys) && (strlen(keys[k]) != len || memcmp(keys[k], key, len) != 0))
        k++;
    if (k == MR_COUNT(keys) || (*seen & 1u << k))
        return fault(l, "has a .npy header with an unknown key or one twice");
    *seen |= 1u << k;
    return 1u << k == DESCR ? take_descr(l, array) : 1u << k == ORDER ? take_order(l) : take_shape(l, array);
}

bool mr_npy_parse(const char *text, size_t len, mr_npz_array *array, const char **why)
{
    literal l = {.at = text, .end = text + len};
    unsigned seen = 0;
    bool comma = true, ok = take(&l, '{');
    uint64_t bytes;
    while (ok && !take(&l, '}')) {
        ok = comma && take_member(&l, array, &seen);
        comma = take(&l, ',');
    }
    if (ok && l.at != l.end)
        ok = fault(&l, "has a .npy header with text after its end");
    if (ok && seen != (DESCR | ORDER | SHAPE))
        ok = fault(&l, "has a .npy header without one of 'descr', 'fortran_order', 'shape'");
    if (ok && !mr_npz_count(array->type, array->dims, array->shape, &array->count, &bytes))
        ok = fault(&l, "has a shape of more elements than can be counted");
    if (!ok)
        *why = l.why ? l.why : "has a .npy header that cannot be read";
    return ok;
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

size_t mr_npy_header(const mr_npz_array *array, uint8_t *out)
{
    char text[MR_NPY_HEADER]; /* 8 sides of 20 digits and 60 letters fit */
    int len =
        snprintf(text, sizeof text, "{'descr': '%s', 'fortran_order': False, 'shape': (", types[array->type].descr);
    for (unsigned i = 0; i < array->dims; i++)
        len += snprintf(text + len, sizeof text - (size_t)len, "%s%llu%s", i ? " " : "",
                        (unsigned long long)array->shape[i], i + 1 < array->dims || array->dims == 1 ? "," : "");
    len += snprintf(text + len, sizeof text - (size_t)len, "), }");
    size_t all = (10 + (size_t)len + 1 + 63) / 64 * 64, text_len = all - 10;
    memcpy(out, "\x93NUMPY\1\0", 8);
    out[8] = (uint8_t)text_len;
    out[9] = (uint8_t)(text_len >> 8);
    memcpy(out + 10, text, (size_t)len);
    memset(out + 10 + len, ' ', text_len - (size_t)len - 1);
    out[all - 1] = '\n';
    return all;
}

/* ---- names ------------------------------------------------------------------------------------------------------- */

const char *mr_npz_name_fault(const char *name, size_t len)
{
    if (len == 0)
        return "has no name";
    if (len >= MR_NPZ_NAME)
        return "has a name of more than 255 bytes";
    for (size_t i = 0; i < len; i++) /* libarchive sometimes turns a backslash into a slash */
        if (name[i] < 0x20 || name[i] > 0x7E || name[i] == '\\')
            return "has a name that is not plain ASCII, or a backslash";
    for (const char *part = name, *end = name + len; part;) {
        const char *slash = memchr(part, '/', (size_t)(end - part));
        size_t part_len = (size_t)((slash ? slash : end) - part);
        if (part_len == 0 || (part_len <= 2 && memcmp(part, "..", part_len) == 0))
            return "has a name with an empty part, \".\" or \"..\"";
        part = slash ? slash + 1 : NULL;
    }
    return NULL;
}

static const void *hash_at(const void *names, size_t number, size_t *len)
{
    const mr_npz_names *n = names;
    *len = sizeof *n->items;
    return &n->items[number];
}

mr_status mr_npz_names_add(mr_npz_names *names, const char *name, const char *where, mr_error *err)
{
    uint64_t hash = mr_hash64(name, strlen(name));
    if (mr_string_map_find(&names->by_hash, hash_at, names, &hash, sizeof hash) != SIZE_MAX)
        return mr_fail(err, MR_BAD_DATA, "%s: %s occurs twice", where, name);
    if (names->count == MAX_NAMES)
        return mr_fail(err, MR_BAD_DATA, "%s: more than %d arrays", where, MAX_NAMES);
    if (!MR_GROW(names->items, names->count, names->capacity) ||
        !mr_string_map_add(&names->by_hash, hash_at, names, &hash, sizeof hash))
        return mr_fail_memory(err, where);
    names->items[names->count++] = hash;
    return MR_OK;
}

void mr_npz_names_release(mr_npz_names *names)
{
    free(names->items);
    mr_string_map_release(&names->by_hash);
}
