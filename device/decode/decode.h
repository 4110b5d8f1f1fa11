/* decode.h - the kernels jpeg_*.cl as plain C: for the device `cpu`, and for tests.
 * Invariant: each result equals decoding, turning, resizing and normalising on the host to the bit, or its image is
 * flagged as failed.
 *
 *   coded batch --entropy--> coefficients --idct--> samples --pixels--> RGB --across--> lines --down--> float32 NCHW */
#ifndef MR_DECODE_H
#define MR_DECODE_H

#include "device/device.h"

typedef enum mr_decode_step {
    MR_DECODE_ENTROPY,
    MR_DECODE_IDCT,
    MR_DECODE_PIXELS,
    MR_DECODE_ACROSS,
    MR_DECODE_DOWN,
    MR_DECODE_STEPS
} mr_decode_step;

/* Steps are done in order.  The tasks of a step write to different memory, except that several may flag an image. */
size_t mr_decode_tasks(const mr_decode *x, mr_decode_step step);
void mr_decode_task(const mr_decode *x, mr_decode_step step, size_t task);

/* How many symbols a lane decodes, one after another, for a part of a coded batch; in a damaged part, those before the
 * damage. */
uint32_t mr_decode_symbols(const mr_coded *batch, uint32_t part);

#endif
