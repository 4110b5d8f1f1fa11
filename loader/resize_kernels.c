/* resize_kernels.c - which sets of inner loops there are, and which one this machine gets.
 * Invariant: plain C is among them and runs everywhere. */
#include "resize_kernels.h"

const mr_resize_kernels *const mr_resize_kernel_sets[] = {
#if defined(__x86_64__)
    &mr_resize_avx512,
    &mr_resize_avx2,
#endif
    &mr_resize_plain,
    NULL,
};

const mr_resize_kernels *mr_resize_kernels_best(void)
{
    size_t i = 0;
    while (!mr_resize_kernel_sets[i]->runs())
        i++;
    return mr_resize_kernel_sets[i];
}
