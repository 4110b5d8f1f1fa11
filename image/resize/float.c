/* float.c - antialiased resampling without rounding, as for tensors.
 * Invariant: the order in which an output's taps are added depends only on their number, so the values do not depend on
 * which part is kept.
 *
 *      a row of bytes --> r g b r g b floats --across--> a row in three planes --down--> added to every output row that
 *                                                        / 255 at the end                has it in its window
 *
 * No ring of rows as in resize.c: a float takes four bytes, and a window may be thousands of rows high. */
#include <stdlib.h>
#include <string.h>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "base/scope.h"
#include "image/resize/kernels.h"

/* Four floats at a time in the compiler's own vectors, aligned as floats are. */
typedef float four __attribute__((vector_size(16), aligned(4), may_alias));

enum { LANES = 4 };

static bool make_room(mr_resize_unrounded *u, size_t in_stride, const mr_resize_job *j)
{
    size_t need = in_stride + LANES + (size_t)j->crop_width * 3;
    if (need > u->memory_capacity) {
        free(u->memory);
        u->memory = mr_alloc(need, sizeof *u->memory);
        u->memory_capacity = u->memory ? need : 0;
    }
    return u->memory != NULL;
}

static void widen(const uint8_t *row, size_t len, float *out)
{
    size_t i = 0;
#ifdef __SSE2__ /* on every x86-64; without it compilers convert byte by byte */
    const __m128i zero = _mm_setzero_si128();
    for (; i + 8 <= len; i += 8) {
        __m128i words = _mm_unpacklo_epi8(_mm_loadl_epi64((const __m128i *)(const void *)(row + i)), zero);
        _mm_storeu_ps(out + i, _mm_cvtepi32_ps(_mm_unpacklo_epi16(words, zero)));
        _mm_storeu_ps(out + i + 4, _mm_cvtepi32_ps(_mm_unpackhi_epi16(words, zero)));
    }
#endif
    for (; i < len; i++)
        out[i] = row[i];
}

static four pixel(const float *row, size_t x) /* and the value after it */
{
    return *(const four *)(const void *)(row + 3 * x);
}

static void across(const mr_resize_floats *axis, const float *row, float *out)
{
    size_t width = axis->outputs;
    for (size_t o = 0; o < width; o++) {
        const float *k = axis->k + o * axis->taps, *from = row + (size_t)axis->start[o] * 3;
        four sum = {0}, odd = {0}; /* two, as an addition waits for the one before it */
        uint32_t t = 0, count = axis->count[o];
        for (; t + 2 <= count; t += 2) {
            sum += k[t] * pixel(from, t);
            odd += k[t + 1] * pixel(from, t + 1);
        }
        if (t < count)
            sum += k[t] * pixel(from, t);
        sum += odd;
        out[o] = sum[0];
        out[o + width] = sum[1];
        out[o + 2 * width] = sum[2];
    }
}

/* out += k * row */
static void add_row(float k, const float *row, size_t len, float *out)
{
    size_t i = 0;
    for (; i + LANES <= len; i += LANES)
        *(four *)(void *)(out + i) += k * *(const four *)(const void *)(row + i);
    for (; i < len; i++)
        out[i] += k * row[i];
}

mr_status mr_resize_unrounded_run(mr_resize_unrounded *u, const mr_resize_job *j, const _Atomic bool *stop,
                                  float *values, mr_error *err)
{
    const mr_resize_side columns_side = mr_resize_across(j), rows_side = mr_resize_down(j);
    size_t width = j->crop_width, plane = width * j->crop_height, first = 0;
    size_t in_stride = (size_t)columns_side.held.count * 3;
    MR_TRY(mr_resize_floats_set(&u->columns, &columns_side, err));
    MR_TRY(mr_resize_floats_set(&u->rows, &rows_side, err));
    if (!make_room(u, in_stride, j))
        return mr_fail_memory(err, "resizing an image");
    const mr_resize_floats *rows = &u->rows;
    float *wide = u->memory, *line = wide + in_stride + LANES;
    uint32_t end = rows->start[rows->outputs - 1] + rows->count[rows->outputs - 1];
    memset(values, 0, 3 * plane * sizeof *values);
    memset(wide + in_stride, 0, LANES * sizeof *wide);
    for (uint32_t y = rows->start[0]; y < end; y++) {
        if (stop && atomic_load_explicit(stop, memory_order_relaxed))
            return MR_END;
        widen(j->rgb + in_stride * y, in_stride, wide);
        across(&u->columns, wide, line);
        /* Windows begin and end in the order of their outputs. */
        while (rows->start[first] + rows->count[first] <= y)
            first++;
        for (size_t o = first; o < rows->outputs && rows->start[o] <= y; o++)
            for (size_t c = 0; c < 3; c++)
                add_row(rows->k[o * rows->taps + (y - rows->start[o])], line + c * width, width,
                        values + c * plane + o * width);
    }
    for (size_t i = 0; i < 3 * plane; i++)
        values[i] /= 255.0f;
    return MR_OK;
}

void mr_resize_unrounded_free(mr_resize_unrounded *u)
{
    mr_resize_floats_free(&u->columns);
    mr_resize_floats_free(&u->rows);
    free(u->memory);
}
