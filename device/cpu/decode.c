/* decode.c - JPEGs decoded by the kernels that other devices run, on the CPU's threads.
 * Invariant: a step begins when the one before it is done. */
#include "device/cpu/cpu.h"
#include "device/decode/decode.h"

typedef struct job {
    const mr_decode *x;
    mr_decode_step step;
} job;

static void run(void *ctx, size_t task, unsigned member)
{
    const job *j = ctx;
    (void)member;
    mr_decode_task(j->x, j->step, task);
}

void mr_cpu_decode(mr_device *device, const mr_decode *x)
{
    job j = {.x = x};
    for (; j.step < MR_DECODE_STEPS; j.step++)
        mr_team_run(mr_cpu_of(device)->team, mr_decode_tasks(x, j.step), run, &j);
}
