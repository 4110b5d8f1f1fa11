/* recorder.c - operations captured from the stream as a graph of CUDA, which is launched as a whole.
 * Invariant: a graph holds the addresses it was captured with, so it is launched only if no memory has been freed
 * since; freeing any counts, as no step of a run frees memory.
 *
 * The capture is that of the calling thread alone: other threads may call the driver meanwhile. */
#include <stdio.h>
#include <stdlib.h>

#include "device/cuda/cuda.h"

struct mr_recording {
    mr_cu_graph_exec graph;
    uint64_t freed; /* tensors, before it was made */
};

static bool begin(mr_device *device)
{
    mr_cuda *d = mr_cuda_of(device);
    return d->records && mr_cuda_use(d) &&
           mr_cuda_note(d, "recording", d->api.cu.capture_begin(d->stream, MR_CU_THREAD_LOCAL));
}

static void free_recording(mr_device *device, mr_recording *r)
{
    mr_cuda *d = mr_cuda_of(device);
    if (!r)
        return;
    d->api.cu.context_use(d->context);
    mr_cuda_note(d, "recording", d->api.cu.graph_close(r->graph));
    free(r);
}

static mr_recording *end(mr_device *device)
{
    mr_cuda *d = mr_cuda_of(device);
    mr_cu_graph graph = NULL;
    mr_cu_graph_exec made = NULL;
    mr_recording *r = NULL;
    /* Also after a failure, or the stream would go on capturing. */
    mr_cuda_note(d, "recording", d->api.cu.capture_end(d->stream, &graph));
    if (!d->wrong[0])
        mr_cuda_note(d, "recording", d->api.cu.graph_open(&made, graph, 0));
    if (graph)
        d->api.cu.graph_free(graph);
    if (made)
        r = mr_alloc(1, sizeof *r);
    if (r) {
        *r = (mr_recording){made, d->freed};
    } else if (made) {
        d->api.cu.graph_close(made);
        snprintf(d->wrong, sizeof d->wrong, "no memory for a recording");
    }
    return r;
}

static bool holds(const mr_device *device, const mr_recording *r)
{
    return ((const mr_cuda *)(const void *)device)->freed == r->freed;
}

static void replay(mr_device *device, const mr_recording *r)
{
    mr_cuda *d = mr_cuda_of(device);
    if (r && mr_cuda_use(d))
        mr_cuda_note(d, "replay", d->api.cu.graph_launch(r->graph, d->stream));
}

const mr_recorder mr_cuda_recorder = {
    .begin = begin, .end = end, .holds = holds, .replay = replay, .free = free_recording};
