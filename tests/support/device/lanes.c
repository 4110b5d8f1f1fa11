/* lanes.c - the lanes of a group, see lanes.h.
 * Invariant: one lane runs at a time, in one thread; its stack is told to AddressSanitizer. */
#include "tests/support/device/lanes.h"

#include <stdio.h>
#include <stdlib.h>
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

typedef struct lane {
    ucontext_t context;
    int at;     /* the line of the barrier where it is, or ENDED */
    void *fake; /* AddressSanitizer's */
    char *stack;
} lane;

static lane all[LANES_MOST];
static ucontext_t caller;
static void (*kernel)(const void *ctx);
static const void *argument;
static int on_stacks;

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

static const void *caller_bottom;
static size_t caller_size;

static void enter(void)
{
    lane *own = &all[lanes_here.lane];
    arrive(NULL, &caller_bottom, &caller_size);
    kernel(argument);
    own->at = ENDED;
    leave_for(NULL, caller_bottom, caller_size); /* for good */
    setcontext(&caller);
}

static void resume(uint32_t i)
{
    void *fake = NULL;
    lanes_here.lane = i;
    leave_for(&fake, all[i].stack, STACK);
    swapcontext(&caller, &all[i].context);
    arrive(fake, NULL, NULL);
}

void lanes_wait(int line)
{
    lane *own = &all[lanes_here.lane];
    if (!on_stacks) {
        fprintf(stderr, "lanes: a kernel that is said to have no barriers has one in line %d\n", line);
        abort();
    }
    own->at = line;
    leave_for(&own->fake, caller_bottom, caller_size);
    swapcontext(&own->context, &caller);
    arrive(own->fake, &caller_bottom, &caller_size);
}

/* ---- groups ------------------------------------------------------------------------------------------------------ */

static void prepare(uint32_t lanes)
{
    for (uint32_t i = 0; i < lanes; i++) {
        lane *l = &all[i];
        l->stack = l->stack ? l->stack : malloc(STACK);
        if (!l->stack || getcontext(&l->context) != 0)
            abort();
        l->at = 0;
        l->context.uc_stack.ss_sp = l->stack;
        l->context.uc_stack.ss_size = STACK;
        makecontext(&l->context, enter, 0);
    }
}

static void run_to_barrier(uint32_t lanes)
{
    static mr_random chance;
    static int seeded;
    uint32_t order[LANES_MOST] = {0};
    if (!seeded++)
        mr_random_seed(&chance, 1);
    for (uint32_t i = 0; i < lanes; i++) {
        uint32_t k = (uint32_t)mr_random_below(&chance, i + 1);
        order[i] = order[k];
        order[k] = i;
    }
    for (uint32_t i = 0; i < lanes; i++)
        resume(order[i]);
    for (uint32_t i = 1; i < lanes; i++)
        if (all[i].at != all[0].at) {
            fprintf(stderr, "lanes: lane 0 is at line %d, lane %u at line %d (%d: at the end)\n", all[0].at, i,
                    all[i].at, ENDED);
            abort();
        }
}

void lanes_run(void (*run)(const void *ctx), const void *ctx, uint32_t lanes, uint32_t groups, uint32_t rows,
               int has_barriers)
{
    kernel = run;
    argument = ctx;
    on_stacks = has_barriers;
    for (uint64_t g = 0; g < (uint64_t)groups * rows; g++) {
        lanes_here = (lanes_spot){.lanes = lanes, .group = (uint32_t)(g % groups), .row = (uint32_t)(g / groups)};
        if (!has_barriers) {
            for (lanes_here.lane = 0; lanes_here.lane < lanes; lanes_here.lane++)
                run(ctx);
            continue;
        }
        prepare(lanes);
        do
            run_to_barrier(lanes);
        while (all[0].at != ENDED);
    }
}
