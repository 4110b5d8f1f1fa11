/* kernels.c - the sets of inner loops, and the one that this machine uses.
 * Invariant: the last one is plain C, which runs everywhere. */
#include "image/resize/kernels.h"

const mr_resize_kernels *const mr_resize_kernels_all[] = {
#if defined(__x86_64__)
    &mr_resize_avx512,
    &mr_resize_avx2,
#elif defined(__aarch64__)
    &mr_resize_neon,
#endif
    &mr_resize_plain,
    NULL,
};

const mr_resize_kernels *mr_resize_kernels_best(void)
{
    const mr_resize_kernels *const *k = mr_resize_kernels_all;
    while (k[1] && !mr_processor_has((*k)->needs))
        k++;
    return *k;
}
