/* bf16.h - private to this module: matrix products with operands or results of bf16.
 * Invariant: without oneDNN, or on a processor without such products, operands are widened to float32 instead. */
#ifndef MR_CPU_BF16_H
#define MR_CPU_BF16_H

#include "device/cpu/cpu.h"

void mr_cpu_bf16_close(mr_cpu_bf16 *b);
/* Converts g's operands to the type that products are computed in, and makes room for chunks of `chunk` elements.
 * false: no memory, which the device's wait() reports. */
bool mr_cpu_bf16_prepare(mr_cpu *d, mr_gemm *g, size_t chunk);
/* A thread's chunk of a result, as float32, dense. */
float *mr_cpu_bf16_chunk(const mr_cpu *d, unsigned member, size_t chunk);
void mr_cpu_bf16_load(const mr_cpu *d, const uint16_t *c, size_t ldc, size_t rows, size_t columns, float *chunk);
void mr_cpu_bf16_store(const mr_cpu *d, const float *chunk, size_t rows, size_t columns, uint16_t *c, size_t ldc);

#endif
