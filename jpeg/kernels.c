/* kernels.c - which sets of kernels there are, and the choice of one.
 * Invariant: plain C, which runs everywhere, is the last one. */
#include "jpeg/kernels.h"

#include <stddef.h>

const mr_jpeg_kernels *const mr_jpeg_kernels_all[] = {
#if defined(__x86_64__)
    &mr_jpeg_avx512,
    &mr_jpeg_avx2,
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
