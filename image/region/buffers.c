/* buffers.c - shared by the decoders of regions: working memory, and rejecting an image whose size is not the index's.
 * Invariant: a buffer only grows, and loses its content when it does. */
#include "image/region/parts.h"

#include <stdlib.h>
#include <sys/mman.h>

enum { LARGE = 4 << 20, HUGE = 2 << 20 };

/* Large buffers use huge pages if the system has them: filling small pages for the first time costs more than the work,
 * and freeing a hundred thousand of them takes time. */
static uint8_t *take(size_t *capacity)
{
    if (*capacity < LARGE)
        return malloc(*capacity);
    *capacity = (*capacity + HUGE - 1) / HUGE * HUGE;
    uint8_t *data = aligned_alloc(HUGE, *capacity);
    if (data)
        madvise(data, *capacity, MADV_HUGEPAGE);
    return data;
}

uint8_t *mr_pixels_reserve(mr_pixels_buffer *buffer, size_t count, size_t size, size_t times)
{
    size_t need;
    if (__builtin_mul_overflow(count, size, &need) || __builtin_mul_overflow(need, times, &need) || need > SIZE_MAX / 4)
        return NULL;
    if (need <= buffer->capacity && buffer->data)
        return buffer->data;
    free(buffer->data); /* not realloc, which would copy the old bytes */
    buffer->capacity = need + need / 4;
    if (buffer->capacity < 4096)
        buffer->capacity = 4096;
    buffer->data = take(&buffer->capacity);
    if (!buffer->data)
        buffer->capacity = 0;
    return buffer->data;
}

mr_status mr_pixels_other_size(const char *name, uint64_t width, uint64_t height, const mr_image_facts *facts,
                               mr_error *err)
{
    return mr_fail(err, MR_BAD_SAMPLE,
                   "%s is %llu x %llu pixels, but %u x %u in the index; run `millrace verify --deep`", name,
                   (unsigned long long)width, (unsigned long long)height, facts->width, facts->height);
}
