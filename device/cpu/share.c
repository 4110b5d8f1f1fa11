/* share.c - what the operations of the CPU share: tasks of rows, dropout's masks, room for a library.
 * Invariant: how work is divided depends on shapes alone. */
#include <sys/mman.h>

#include "base/random.h"
#include "device/cpu/cpu.h"

size_t mr_cpu_rows_per_task(size_t rows, size_t width, size_t work)
{
    size_t per_task = width ? (work + width - 1) / width : rows;
    return per_task < 1 ? 1 : per_task;
}

mr_cpu_mask mr_cpu_mask_of(const mr_dropout *d, size_t sample)
{
    mr_cpu_mask m = {.scale = 1};
    if (d->rate > 0) {
        uint64_t key = mr_random_mix(mr_random_mix(d->keys[sample] + UINT64_C(0x9e3779b97f4a7c15)) + d->site);
        m.key[0] = (uint32_t)key;
        m.key[1] = (uint32_t)(key >> 32);
        m.threshold = (uint32_t)((double)d->rate * (1 << 24) + 0.5);
        m.scale = (float)(1 / (1 - (double)d->rate));
    }
    return m;
}

bool mr_cpu_can_map(size_t bytes)
{
    void *probe = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (probe == MAP_FAILED)
        return false;
    munmap(probe, bytes);
    return true;
}
