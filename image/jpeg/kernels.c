/* kernels.c - the sets of kernels, and the one that this machine uses.
 * Invariant: the last one is plain C, which runs everywhere. */
#include "image/jpeg/kernels.h"

#include <stddef.h>

const mr_jpeg_kernels *const mr_jpeg_kernels_all[] = {
#if defined(__x86_64__)
    &mr_jpeg_avx512,
    &mr_jpeg_avx2,
#elif defined(__aarch64__)
    &mr_jpeg_neon,
#endif
    &mr_jpeg_plain,
    NULL,
};

const mr_jpeg_kernels *mr_jpeg_kernels_best(void)
{
    const mr_jpeg_kernels *const *k = mr_jpeg_kernels_all;
    while (k[1] && !mr_processor_has((*k)->needs))
        k++;
    return *k;
}
