/* sweep_plan.c - `millrace train --plan=json` for each way, and what the processors could do at most.
 * Invariant: the limit is measured with the library and the threads that the way would use, once for each number of
 * them and each precision. */
#include "train/sweep_plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/pool.h"
#include "base/scope.h"
#include "base/term.h"
#include "base/text.h"
#include "journal/memory.h"
#include "profile/limits.h"
#include "train/sweep_process.h"

enum { MOST_THREADS = 1024 };

/* ---- the machine ------------------------------------------------------------------------------------------------- */

/* FLOP/s of a product of two large matrices; 0: not known. */
static double matrix_rate(unsigned threads, mr_type type)
{
    const mr_device_options o = {.threads = threads};
    mr_device *d = NULL;
    if (mr_device_open("cpu", &o, &d, NULL) != MR_OK)
        return 0;
    double rate = mr_limit_flops(d, type);
    mr_device_close(d);
    return rate;
}

/* ---- one way ----------------------------------------------------------------------------------------------------- */

static mr_status plan(const mr_sweep *s, mr_sweep_way *w, double *flops, mr_error *err)
{
    MR_AUTO(mr_buf_free) mr_buf text = {0};
    MR_AUTO(json_decrefp) json_t *doc = NULL;
    MR_TRY(mr_sweep_process(s, w, false, (const char *const[]){"--steps", "1", "--plan=json", NULL}, &text, err));
    MR_TRY(mr_json_parse(text.data, text.len, "the plan", &doc, err));
    w->memory = (uint64_t)json_integer_value(json_object_get(doc, "memory_per_rank")) * mr_sweep_ranks(w);
    *flops = json_number_value(json_object_get(doc, "training_flops_per_sample"));
    return MR_OK;
}

/* Why it cannot work here; false: it can. */
static bool is_too_much(mr_sweep_way *w, unsigned processors, uint64_t available)
{
    char bytes[2][32];
    uint64_t threads = mr_sweep_ranks(w) * strtoull(w->value[MR_SWEEP_THREADS], NULL, 10);
    if (threads > processors)
        snprintf(w->skipped, sizeof w->skipped, "more threads than the %u processors", processors);
    else if (available && w->memory > available)
        snprintf(w->skipped, sizeof w->skipped, "needs %s of memory, and %s are available",
                 mr_text_bytes(w->memory, bytes[0]), mr_text_bytes(available, bytes[1]));
    return *w->skipped;
}

static bool has_device(const mr_sweep *s)
{
    for (size_t i = 0; i < s->option_count; i++)
        if (strncmp(s->options[i], "--device", strlen("--device")) == 0)
            return true;
    return false;
}

mr_status mr_sweep_plan(mr_sweep *s, mr_error *err)
{
    unsigned processors = mr_pool_processors();
    uint64_t available = mr_memory_in_use().available;
    MR_AUTO(mr_scope_free) double *rates = mr_alloc(2 * (MOST_THREADS + 1), sizeof *rates);
    size_t possible = 0;
    mr_error why = {0};
    if (!rates)
        return mr_fail_memory(err, "planning a sweep");
    for (size_t i = 0; i < s->count; i++) {
        mr_sweep_way *w = &s->ways[i];
        double flops = 0;
        uint64_t threads = mr_sweep_ranks(w) * strtoull(w->value[MR_SWEEP_THREADS], NULL, 10);
        mr_status status = plan(s, w, &flops, &why);
        if (status != MR_OK && status != MR_MISUSE)
            return mr_fail(err, status, "%s", why.text);
        if (status != MR_OK) {
            snprintf(w->skipped, sizeof w->skipped, "%.390s", why.text);
            continue;
        }
        possible++;
        if (is_too_much(w, processors, available) || threads > MOST_THREADS || has_device(s))
            continue;
        mr_type type = mr_type_of(w->value[MR_SWEEP_PRECISION]);
        double *rate = &rates[2 * threads + type];
        if (*rate == 0)
            *rate = matrix_rate((unsigned)threads, type);
        w->limit = flops > 0 ? *rate / flops : 0;
    }
    return possible ? MR_OK : mr_fail(err, MR_MISUSE, "%s", why.text);
}
