/* coco_ids.c - see coco_ids.h.
 * Invariant: string number n has the id INT64_MIN + 1 + n. */
#include "ingest/tables/coco_ids.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

static const void *text_of(const void *list, size_t number, size_t *len)
{
    const mr_coco_ids *ids = list;
    size_t begin = number ? ids->ends[number - 1] : 0;
    *len = ids->ends[number] - begin;
    return ids->text.data + begin;
}

/* False: not an integer, or less than MR_COCO_ID_LEAST, or more than INT64_MAX. */
static bool integer_of(const char *text, size_t len, int64_t *out)
{
    size_t minus = len && text[0] == '-';
    int64_t value = 0;
    if (len == minus)
        return false;
    for (size_t i = minus; i < len; i++) {
        if (text[i] < '0' || text[i] > '9' || __builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, text[i] - '0', &value))
            return false;
    }
    *out = minus ? -value : value;
    return *out >= MR_COCO_ID_LEAST;
}

bool mr_coco_id_number(const char *text, size_t len, int64_t *out)
{
    static const double exact = 9007199254740992; /* 2^53: beyond it a double is not one integer */
    char copy[64];
    if (integer_of(text, len, out))
        return true;
    if (len >= sizeof copy || !(memchr(text, '.', len) || memchr(text, 'e', len) || memchr(text, 'E', len)))
        return false;
    memcpy(copy, text, len);
    copy[len] = '\0';
    double value = strtod(copy, NULL);
    if (!(fabs(value) <= exact) || value != floor(value))
        return false;
    *out = (int64_t)value;
    return true;
}

/* As JSON writes it: no leading zero, no "-0". */
static bool plain_integer(const char *text, size_t len, int64_t *out)
{
    size_t minus = len && text[0] == '-';
    return integer_of(text, len, out) && (text[minus] != '0' || len == 1);
}

bool mr_coco_id_add(mr_coco_ids *ids, const char *text, size_t len, int64_t *out)
{
    if (plain_integer(text, len, out))
        return true;
    size_t number = mr_string_map_find(&ids->map, text_of, ids, text, len);
    if (number == SIZE_MAX) {
        if (ids->count >= UINT32_MAX - 1 || !MR_GROW(ids->ends, ids->count, ids->capacity))
            return false;
        mr_buf_add(&ids->text, text, len);
        if (ids->text.failed)
            return false;
        number = ids->count;
        ids->ends[ids->count++] = ids->text.len;
        if (!mr_string_map_add(&ids->map, text_of, ids, text, len))
            return false;
    }
    *out = INT64_MIN + 1 + (int64_t)number;
    return true;
}

int64_t mr_coco_id_find(const mr_coco_ids *ids, const char *text, size_t len)
{
    int64_t id;
    if (plain_integer(text, len, &id))
        return id;
    size_t number = mr_string_map_find(&ids->map, text_of, ids, text, len);
    return number == SIZE_MAX ? MR_COCO_NO_ID : INT64_MIN + 1 + (int64_t)number;
}

bool mr_coco_id_is_text(int64_t id)
{
    return id != MR_COCO_NO_ID && id < MR_COCO_ID_LEAST;
}

const char *mr_coco_id_show(const mr_coco_ids *ids, int64_t id, char out[120])
{
    if (!mr_coco_id_is_text(id)) {
        snprintf(out, 120, "%" PRId64, id);
        return out;
    }
    size_t len;
    const char *text = text_of(ids, (size_t)(id - INT64_MIN - 1), &len);
    mr_buf shown = {0};
    bool cut = len > 80;
    len = cut ? 80 - mr_utf8_cut(text, 80) : len;
    mr_text_escape(&shown, text, len);
    snprintf(out, 120, "\"%.100s%s\"", mr_buf_text(&shown), cut ? "..." : "");
    mr_buf_free(&shown);
    return out;
}

void mr_coco_ids_free(mr_coco_ids *ids)
{
    mr_string_map_release(&ids->map);
    mr_buf_free(&ids->text);
    free(ids->ends);
}
