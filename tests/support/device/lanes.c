/* lanes.c - the lanes of a group, see lanes.h.
 * Invariant: one lane runs at a time, in one thread; its stack is told to AddressSanitizer. */
#include "tests/support/device/lanes.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#include "base/random.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#include <sanitizer/common_interface_defs.h>
#define __SANITIZE_ADDRESS__ 1
#endif
#endif

enum { STACK = 64 << 10, ENDED = -1 };

typedef struct place { /* where a stack goes on */
    ucontext_t context;
    void *jump[5];
    bool entered;
} place;

typedef struct fiber { /* runs lanes until one waits, which keeps it */
    place place;
    void *fake; /* AddressSanitizer's */
    char *stack;
} fiber;

typedef struct lane {
    int at; /* the line where it waits, or ENDED */
    bool in_warp;
    fiber *on;
} lane;

static lane all[LANES_MOST];
static fiber fibers[LANES_MOST], *idle[LANES_MOST], *running;
static uint32_t order[LANES_MOST], count, begun, end, idle_count,
    fiber_count; /* lanes of `order` from begun to end begin next */
static place caller = {.entered = true};
static void (*kernel)(const void *ctx);
static const void *argument;
static bool on_stacks;

lanes_spot lanes_here;

/* ---- from stack to stack ----------------------------------------------------------------------------------------- */

static void leave_for(void **fake, const void *bottom, size_t size)
{
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_start_switch_fiber(fake, bottom, size);
#else
    (void)fake, (void)bottom, (void)size;
#endif
}

static void arrive(void *fake, const void **bottom, size_t *size)
{
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_finish_switch_fiber(fake, bottom, size);
#else
    (void)fake, (void)bottom, (void)size;
#endif
}

/* Contexts alone would do, but ask the system for the mask of signals twice, and AddressSanitizer warns of them.  It
 * would also forget a stack that is left by a jump. */
static __attribute__((noinline, no_sanitize("address"))) void hop(place *from, place *to)
{
    if (__builtin_setjmp(from->jump) != 0)
        return;
    if (to->entered)
        __builtin_longjmp(to->jump, 1);
    to->entered = true;
    setcontext(&to->context);
}

static const void *caller_bottom;
static size_t caller_size;

static void return_to_caller(fiber *own)
{
    leave_for(&own->fake, caller_bottom, caller_size);
    hop(&own->place, &caller);
    arrive(own->fake, &caller_bottom, &caller_size);
}

static void serve(void)
{
    fiber *own = running;
    arrive(NULL, &caller_bottom, &caller_size);
    for (;;) {
        while (begun < end) {
            lane *l = &all[order[begun]];
            lanes_here.lane = order[begun++];
            l->on = own;
            kernel(argument);
            l->at = ENDED;
        }
        idle[idle_count++] = own;
        return_to_caller(own);
    }
}

static void resume(fiber *f)
{
    void *fake = NULL;
    running = f;
    leave_for(&fake, f->stack, STACK);
    hop(&caller, &f->place);
    arrive(fake, NULL, NULL);
}

static void prepare(ucontext_t *context, char *stack)
{
    if (!stack || getcontext(context) != 0)
        abort();
    context->uc_stack.ss_sp = stack;
    context->uc_stack.ss_size = STACK;
    makecontext(context, serve, 0);
}

static fiber *take_fiber(void)
{
    if (idle_count)
        return idle[--idle_count];
    fiber *f = &fibers[fiber_count++];
    f->stack = malloc(STACK);
    prepare(&f->place.context, f->stack);
    return f;
}

static void wait_at(int line, bool in_warp)
{
    lane *own = &all[lanes_here.lane];
    if (!on_stacks) {
        fprintf(stderr, "lanes: a kernel that is said to have no barriers has one in line %d\n", line);
        abort();
    }
    own->at = line;
    own->in_warp = in_warp;
    return_to_caller(own->on);
}

void lanes_wait(int line)
{
    wait_at(line, false);
}

void lanes_wait_warp(int line)
{
    wait_at(line, true);
}

/* ---- groups ------------------------------------------------------------------------------------------------------ */

static uint32_t drawn(uint32_t below)
{
    static mr_random chance;
    static bool seeded;
    if (!seeded)
        mr_random_seed(&chance, 1);
    seeded = true;
    return (uint32_t)mr_random_below(&chance, below);
}

/* Draws the order of lanes [from, to). */
static void draw_order(uint32_t from, uint32_t to)
{
    static uint32_t turn;
    uint32_t way = turn++ % 3;
    for (uint32_t i = from; i < to; i++) {
        uint32_t k = way == 2 ? from + drawn(i - from + 1) : i;
        order[i] = order[k];
        order[k] = way == 1 ? to - 1 - (i - from) : i;
    }
}

/* Whether lanes [from, to), which wait for one another, do so at the same place; false: they have ended. */
static bool met(uint32_t from, uint32_t to, bool in_warp)
{
    for (uint32_t i = from; i < to; i++)
        if (all[i].at != all[from].at || all[i].in_warp != in_warp) {
            fprintf(stderr, "lanes: lane %u is at line %d%s, lane %u at line %d%s (%d: at the end)\n", from,
                    all[from].at, all[from].in_warp ? " of its warp" : "", i, all[i].at,
                    all[i].in_warp ? " of its warp" : "", ENDED);
            abort();
        }
    return all[from].at != ENDED;
}

static void run_on(uint32_t from, uint32_t to)
{
    draw_order(from, to);
    for (uint32_t i = from; i < to; i++) {
        lane *l = &all[order[i]];
        l->in_warp = false;
        lanes_here.lane = order[i];
        resume(l->on);
    }
}

static void begin(uint32_t from, uint32_t to)
{
    draw_order(from, to);
    begun = from;
    end = to;
    while (begun < end)
        resume(take_fiber());
}

static bool any_in_warp(uint32_t from, uint32_t to)
{
    while (from < to && !all[from].in_warp)
        from++;
    return from < to;
}

/* From a barrier of the group, or the beginning, to its next one: a warp is there before another moves, so that no
 * two are in step. */
static void run_warps(bool first)
{
    uint32_t warps = (count + LANES_WARP - 1) / LANES_WARP;
    bool down = drawn(2);
    for (uint32_t i = 0; i < warps; i++) {
        uint32_t from = (down ? warps - 1 - i : i) * LANES_WARP;
        uint32_t to = from + LANES_WARP < count ? from + LANES_WARP : count;
        if (first)
            begin(from, to);
        else
            run_on(from, to);
        while (any_in_warp(from, to) && met(from, to, true))
            run_on(from, to);
    }
}

static void run_group(void)
{
    memset(all, 0, count * sizeof *all);
    run_warps(true);
    while (met(0, count, false))
        run_warps(false);
}

void lanes_run(void (*run)(const void *ctx), const void *ctx, uint32_t lanes, uint32_t groups, uint32_t rows,
               int may_wait)
{
    kernel = run;
    argument = ctx;
    on_stacks = may_wait;
    count = lanes;
    for (uint64_t g = 0; g < (uint64_t)groups * rows; g++) {
        lanes_here = (lanes_spot){.lanes = lanes, .group = (uint32_t)(g % groups), .row = (uint32_t)(g / groups)};
        if (may_wait)
            run_group();
        else
            for (lanes_here.lane = 0; lanes_here.lane < lanes; lanes_here.lane++)
                run(ctx);
    }
}
