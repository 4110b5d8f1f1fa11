/* lines.h - private to this module: rows of activations as the kernels want them, in float32.
 * Invariant: a row of float32 is used where it is; one of bf16 is copied into a line of the thread that works on it,
 * and written back by mr_line_write() alone.  So an operation is written once for both types, and may work in place.
 *
 *      d->lines:   thread 0  | slot 0 | slot 1 | slot 2 | slot 3 |  ...      slots as wide as the operation's rows */
#ifndef MR_CPU_LINES_H
#define MR_CPU_LINES_H

#include <assert.h>
#include <string.h>

#include "base/bf16.h"
#include "device/cpu/cpu.h"

typedef struct mr_lines { /* lines of one thread, while it runs one task */
    const mr_cpu *d;
    unsigned member;
    mr_type type;
    size_t width; /* width of a row; at most MR_CPU_LINE for bf16 */
} mr_lines;

static inline uint8_t *mr_line_place(mr_type type, const void *base, size_t at)
{
    return (uint8_t *)(uintptr_t)base + at * mr_type_size(type);
}

/* Where the float32 values of base[at, at + width) are put: written back by mr_line_write(). */
static inline float *mr_line_out(const mr_lines *l, unsigned slot, void *base, size_t at)
{
    assert(slot < MR_CPU_LINES && (l->type == MR_F32 || l->width <= MR_CPU_LINE));
    if (l->type == MR_F32)
        return (float *)base + at;
    float *lines = (float *)(void *)l->d->lines.data + l->member * ((size_t)MR_CPU_LINES * MR_CPU_LINE);
    return lines + slot * ((l->width + 15) / 16 * 16);
}

/* base[at, at + width) as float32; NULL for NULL. */
static inline const float *mr_line_read(const mr_lines *l, unsigned slot, const void *base, size_t at)
{
    if (!base || l->type == MR_F32)
        return base ? (const float *)base + at : NULL;
    float *line = mr_line_out(l, slot, NULL, 0);
    l->d->kernels->widen(l->width, (const uint16_t *)base + at, line);
    return line;
}

static inline void mr_line_write(const mr_lines *l, const float *line, void *base, size_t at)
{
    if (l->type == MR_BF16)
        l->d->kernels->narrow(l->width, line, (uint16_t *)base + at);
}

static inline void mr_line_copy(const mr_lines *l, const void *from, size_t from_at, void *to, size_t to_at)
{
    const void *source = mr_line_place(l->type, from, from_at);
    void *target = mr_line_place(l->type, to, to_at);
    if (source != target)
        memcpy(target, source, l->width * mr_type_size(l->type));
}

/* A single element, rounded to the type. */
static inline void mr_line_store(mr_type type, void *base, size_t at, float value)
{
    if (type == MR_F32)
        ((float *)base)[at] = value;
    else
        ((uint16_t *)base)[at] = mr_bf16_of(value);
}

#endif
