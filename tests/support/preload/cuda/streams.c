/* streams.c - libcuda.so.1 of the fake device: streams, events, and graphs that a stream captures; see fake.h.
 * Invariant: a stream runs only as far as something that is waited for needs it; a graph is run from copies of what was
 * captured, so that each launch of it is the same. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cli/term.h"
#include "base/error.h"
#include "fake.h"

enum { STREAMS = 4, WORK_MAX = 4096, WAIT_US = 50 };

typedef struct graph {
    fake_work *works;
    size_t count, capacity;
} graph;

typedef struct stream {
    fake_work works[WORK_MAX]; /* number n at n % WORK_MAX */
    uint64_t queued, ran;
    bool open, running;
    graph *captures; /* NULL: it does not */
} stream;

typedef struct event {
    stream *of; /* NULL: not recorded */
    uint64_t after;
    bool timed;
    double at; /* seconds, once it has happened */
} event;

static stream streams[STREAMS];
static uint64_t calls, graphs, kernels;

static stream *stream_of(void *s)
{
    for (size_t i = 0; i < STREAMS; i++)
        if (s == &streams[i] && streams[i].open)
            return &streams[i];
    return NULL;
}

bool fake_captures(void)
{
    for (size_t i = 0; i < STREAMS; i++)
        if (streams[i].captures)
            return true;
    return false;
}

/* ---- running ----------------------------------------------------------------------------------------------------- */

/* Up to work number `until`; false: something has to be waited for. */
static bool advance(stream *s, uint64_t until)
{
    while (s->ran < until) {
        fake_work *w = &s->works[s->ran % WORK_MAX];
        if (s->running) /* it waits for itself */
            return false;
        s->running = true;
        bool done = fake_is_lost() || w->run(w);
        s->running = false;
        if (!done)
            return false;
        free(w->data);
        s->ran++;
    }
    return true;
}

static int finish(stream *s, uint64_t until, bool waits)
{
    while (!advance(s, until)) {
        if (!waits)
            return FAKE_NOT_READY;
        usleep(WAIT_US);
    }
    return fake_is_lost() ? FAKE_LOST : 0;
}

int fake_run_all(void)
{
    int code = 0;
    for (size_t i = 0; i < STREAMS && !code; i++)
        code = finish(&streams[i], streams[i].queued, true);
    return code;
}

bool fake_is_lost(void)
{
    return kernels > fake_setting("MILLRACE_FAKE_LAUNCHES", UINT64_MAX - 1);
}

static int refuse(void *s)
{
    return !fake_has_context() ? FAKE_NO_CONTEXT : !stream_of(s) ? FAKE_NO_HANDLE : fake_is_lost() ? FAKE_LOST : 0;
}

static int capture(graph *g, fake_work work)
{
    if (!MR_GROW(g->works, g->count, g->capacity))
        return FAKE_NO_MEMORY;
    g->works[g->count++] = work;
    return 0;
}

static int put(void *handle, fake_work work)
{
    stream *s = stream_of(handle);
    kernels += s && !s->captures && work.kernel;
    int code = refuse(handle);
    if (!code && s->captures)
        code = capture(s->captures, work);
    else if (!code && s->queued - s->ran == WORK_MAX)
        code = finish(s, s->queued, true);
    if (code)
        free(work.data);
    else if (!s->captures)
        s->works[s->queued++ % WORK_MAX] = work;
    return code;
}

int fake_queue(void *s, fake_work work)
{
    calls++;
    return put(s, work);
}

int cuStreamCreate(void **out, unsigned flags);
int cuStreamCreate(void **out, unsigned flags)
{
    size_t i = 0;
    while (i < STREAMS && streams[i].open)
        i++;
    if (!fake_has_context() || flags != 1 || i == STREAMS)
        return fake_has_context() ? FAKE_INVALID : FAKE_NO_CONTEXT;
    streams[i].open = true;
    *out = &streams[i];
    return 0;
}

int cuStreamDestroy_v2(void *s);
int cuStreamDestroy_v2(void *s)
{
    stream *known = stream_of(s);
    if (!known)
        return FAKE_NO_HANDLE;
    known->open = false;
    return 0;
}

int cuStreamSynchronize(void *s);
int cuStreamSynchronize(void *s)
{
    stream *known = stream_of(s);
    int code = fake_captures() ? FAKE_CAPTURES : refuse(s);
    return code ? code : finish(known, known->queued, true);
}

/* ---- events ------------------------------------------------------------------------------------------------------ */

int cuEventCreate(event **out, unsigned flags);
int cuEventCreate(event **out, unsigned flags)
{
    *out = calloc(1, sizeof **out);
    if (*out)
        (*out)->timed = flags == 0;
    return !*out ? FAKE_NO_MEMORY : !fake_has_context() ? FAKE_NO_CONTEXT : flags == 2 || flags == 0 ? 0 : FAKE_INVALID;
}

int cuEventDestroy_v2(event *e);
int cuEventDestroy_v2(event *e)
{
    free(e);
    return 0;
}

static bool run_stamp(fake_work *w)
{
    ((event *)w->host)->at = mr_seconds();
    return true;
}

int cuEventRecord(event *e, void *s);
int cuEventRecord(event *e, void *s)
{
    stream *known = stream_of(s);
    if (!fake_has_context() || !known || known->captures)
        return !fake_has_context() ? FAKE_NO_CONTEXT : known ? FAKE_CAPTURES : FAKE_NO_HANDLE;
    int code = e->timed ? put(s, (fake_work){.run = run_stamp, .host = e}) : 0;
    *e = (event){known, known->queued, e->timed, 0};
    return code;
}

int cuEventElapsedTime(float *ms, const event *from, const event *to);
int cuEventElapsedTime(float *ms, const event *from, const event *to)
{
    if (!from->timed || !to->timed || !from->of || !to->of)
        return FAKE_NO_HANDLE;
    *ms = 1000 * (float)(to->at - from->at);
    return fake_is_lost() ? FAKE_LOST : from->of->ran < from->after || to->of->ran < to->after ? FAKE_NOT_READY : 0;
}

/* One that was never recorded has happened. */
int cuEventSynchronize(event *e);
int cuEventSynchronize(event *e)
{
    if (!fake_has_context())
        return FAKE_NO_CONTEXT;
    return e->of ? finish(e->of, e->after, true) : 0;
}

int cuEventQuery(event *e);
int cuEventQuery(event *e)
{
    if (!fake_has_context())
        return FAKE_NO_CONTEXT;
    return e->of ? finish(e->of, e->after, false) : 0;
}

static bool run_wait(fake_work *w)
{
    const event *e = w->data;
    return advance(e->of, e->after);
}

int cuStreamWaitEvent(void *s, const event *e, unsigned flags);
int cuStreamWaitEvent(void *s, const event *e, unsigned flags)
{
    fake_work w = {.run = run_wait, .data = e->of && !flags ? malloc(sizeof *e) : NULL, .data_bytes = sizeof *e};
    if (!w.data)
        return FAKE_INVALID;
    memcpy(w.data, e, sizeof *e);
    return fake_queue(s, w);
}

/* ---- graphs ------------------------------------------------------------------------------------------------------ */

int cuStreamBeginCapture_v2(void *s, int mode);
int cuStreamBeginCapture_v2(void *s, int mode)
{
    int code = fake_captures() || mode != 1 ? FAKE_CAPTURES : refuse(s);
    if (!code)
        stream_of(s)->captures = calloc(1, sizeof(graph));
    return code;
}

int cuStreamEndCapture(void *s, graph **out);
int cuStreamEndCapture(void *s, graph **out)
{
    stream *known = stream_of(s);
    if (!known || !known->captures)
        return FAKE_INVALID;
    *out = known->captures;
    known->captures = NULL;
    return fake_is_lost() ? FAKE_LOST : 0;
}

/* A copy, as the graph may be destroyed before it. */
int cuGraphInstantiateWithFlags(graph **out, const graph *g, unsigned long long flags);
int cuGraphInstantiateWithFlags(graph **out, const graph *g, unsigned long long flags)
{
    graph *made = calloc(1, sizeof *made);
    if (!made || flags)
        return flags ? FAKE_INVALID : FAKE_NO_MEMORY;
    for (size_t i = 0; i < g->count; i++) {
        fake_work w = g->works[i];
        if (w.data) {
            w.data = malloc(w.data_bytes);
            memcpy(w.data, g->works[i].data, w.data_bytes); /* NOLINT: a few bytes */
        }
        if (capture(made, w))
            return FAKE_NO_MEMORY;
    }
    *out = made;
    return 0;
}

int cuGraphDestroy(graph *g);
int cuGraphDestroy(graph *g)
{
    for (size_t i = 0; i < g->count; i++)
        free(g->works[i].data);
    free(g->works);
    free(g);
    return 0;
}

int cuGraphExecDestroy(graph *g);
int cuGraphExecDestroy(graph *g)
{
    return cuGraphDestroy(g);
}

int cuGraphLaunch(const graph *g, void *s);
int cuGraphLaunch(const graph *g, void *s)
{
    int code = refuse(s);
    calls++;
    graphs++;
    for (size_t i = 0; i < g->count && !code; i++) {
        fake_work w = g->works[i];
        w.data = w.data ? malloc(w.data_bytes) : NULL;
        if (w.data)
            memcpy(w.data, g->works[i].data, w.data_bytes);
        code = put(s, w);
    }
    return code;
}

void fake_tell(void)
{
    const char *path = getenv("MILLRACE_FAKE_COUNTS");
    FILE *f = path ? fopen(path, "a") : NULL;
    if (!f)
        return;
    fprintf(f, "%llu calls, %llu graphs\n", (unsigned long long)calls, (unsigned long long)graphs);
    fclose(f);
}
