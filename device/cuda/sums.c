/* sums.c - sums over the devices of several processes, by NCCL.
 * Invariant: a sum begins when what was queued before it is done, in a stream of its own, so that later operations run
 * beside it.  One waits for it by done(), which never blocks: a process that is gone would block it forever.
 *
 * NCCL adds up in an order that depends on the devices, how they are connected, and the size of a sum: the same on
 * every run in the same place, unless its variables (NCCL_ALGO, NCCL_PROTO ...) change.  Sums are not captured in
 * graphs: all processes would have to capture the same ones, and their inputs differ. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/environment.h"
#include "device/cuda/cuda.h"

static bool note(mr_cuda *d, const char *what, int code)
{
    if (code && !d->wrong[0])
        snprintf(d->wrong, sizeof d->wrong, "%.40s: %s: NCCL: %.60s, code %d: %.100s", d->name, what,
                 d->api.nccl.error_text(code), code, d->api.nccl.last_error(d->peers));
    return code == 0;
}

static void look(mr_device *device, mr_sums_facts *out)
{
    mr_cuda *d = mr_cuda_of(device);
    const char *set = mr_env("MILLRACE_CUDA_NCCL");
    mr_error err;
    memset(out, 0, sizeof *out);
    if (set && strcmp(set, "0") == 0) {
        snprintf(out->how, sizeof out->how, "MILLRACE_CUDA_NCCL is 0");
    } else if (mr_cuda_nccl_open(&d->api, &err) != MR_OK) {
        snprintf(out->how, sizeof out->how, "%.*s", (int)sizeof out->how - 1, err.text);
    } else if (d->api.cu.device_uuid(out->device, d->id) != 0) {
        snprintf(out->how, sizeof out->how, "the driver does not report device ids");
    } else {
        d->api.nccl.version(&out->version);
        snprintf(out->how, sizeof out->how, "NCCL %d.%d.%d", out->version / 10000, out->version / 100 % 100,
                 out->version % 100);
        out->can = true;
    }
}

static mr_status fail_meeting(const mr_cuda *d, int code, mr_error *err)
{
    return mr_fail(err, MR_SYSTEM,
                   "cuda: %s: NCCL cannot be used (%s, code %d: %s); NCCL_DEBUG=INFO prints details, and with "
                   "MILLRACE_CUDA_NCCL=0 gradients are summed on the host",
                   d->name, d->api.nccl.error_text(code), code, d->api.nccl.last_error(NULL));
}

static mr_status invite(mr_device *device, uint8_t id[MR_SUMS_ID], mr_error *err)
{
    const mr_cuda *d = mr_cuda_of(device);
    mr_nccl_id made;
    int code = d->api.nccl.invite(&made);
    if (code)
        return fail_meeting(d, code, err);
    memcpy(id, made.bytes, MR_SUMS_ID);
    return MR_OK;
}

static mr_status meet(mr_device *device, const uint8_t id[MR_SUMS_ID], unsigned rank, unsigned world, mr_error *err)
{
    _Static_assert(sizeof(mr_nccl_id) == MR_SUMS_ID, "as device.h says");
    mr_cuda *d = mr_cuda_of(device);
    mr_nccl_id place;
    memcpy(place.bytes, id, MR_SUMS_ID);
    if (mr_cuda_use(d) && mr_cuda_note(d, "sums", d->api.cu.stream_create(&d->sums, MR_CU_NON_BLOCKING)) &&
        mr_cuda_note(d, "sums", d->api.cu.event_create(&d->given, MR_CU_NO_TIMING)))
        mr_cuda_note(d, "sums", d->api.cu.event_create(&d->summed, MR_CU_NO_TIMING));
    if (d->wrong[0])
        return mr_fail(err, MR_SYSTEM, "cuda: %s", d->wrong);
    int code = d->api.nccl.meet(&d->peers, (int)world, place, (int)rank);
    if (code)
        d->peers = NULL;
    return code ? fail_meeting(d, code, err) : MR_OK;
}

static void add(mr_device *device, float *x, size_t count)
{
    mr_cuda *d = mr_cuda_of(device);
    if (!count || !d->peers || !mr_cuda_use(d))
        return;
    if (!mr_cuda_has(d, x, count * sizeof *x)) {
        snprintf(d->wrong, sizeof d->wrong, "sum: not memory of the device");
        return;
    }
    if (mr_cuda_note(d, "sum", d->api.cu.event_record(d->given, d->stream)) &&
        mr_cuda_note(d, "sum", d->api.cu.stream_wait_event(d->sums, d->given, 0)) &&
        note(d, "sum", d->api.nccl.sum(x, x, count, MR_NCCL_F32, MR_NCCL_SUM, d->peers, d->sums)))
        mr_cuda_note(d, "sum", d->api.cu.event_record(d->summed, d->sums));
}

static void leave(mr_device *device)
{
    mr_cuda *d = mr_cuda_of(device);
    if (!d->peers)
        return;
    d->api.cu.context_use(d->context);
    d->api.nccl.abort(d->peers);
    d->peers = NULL;
}

/* Whether the last one is; a failure is noted. */
static bool is_done(mr_cuda *d)
{
    int failure = 0, code = d->api.cu.event_query(d->summed);
    if (code != MR_CU_NOT_READY)
        return mr_cuda_note(d, "sum", code);
    note(d, "sum", d->api.nccl.failure(d->peers, &failure));
    note(d, "sum", failure);
    return false;
}

static bool done(mr_device *device)
{
    mr_cuda *d = mr_cuda_of(device);
    bool is = d->peers && mr_cuda_use(d) && is_done(d);
    if (d->wrong[0]) /* or memory that they use could never be freed */
        leave(device);
    return is || !d->peers;
}

void mr_cuda_sums_close(mr_cuda *d)
{
    /* destroying it properly may wait for the others */
    if (d->peers && (d->wrong[0] || d->api.cu.event_query(d->summed) != 0))
        leave(&d->launcher.device);
    if (d->peers)
        d->api.nccl.close(d->peers);
    d->peers = NULL;
    if (d->given)
        d->api.cu.event_destroy(d->given);
    if (d->summed)
        d->api.cu.event_destroy(d->summed);
    if (d->sums)
        d->api.cu.stream_destroy(d->sums);
}

const mr_sums_iface mr_cuda_sums = {
    .look = look, .invite = invite, .meet = meet, .add = add, .done = done, .leave = leave};
