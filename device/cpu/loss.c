/* loss.c - the CPU's cross entropy.
 * Invariant: a row's loss is computed in double, over its columns in order, by one task. */
#include <assert.h>
#include <math.h>

#include "cpu/cpu.h"

enum { WORK = 1 << 10 }; /* logits per task */

typedef struct loss_job {
    const mr_cross_entropy *c;
    size_t per_task;
} loss_job;

typedef struct loss_line { /* one row */
    const mr_cross_entropy *c;
    const float *x;
    size_t label; /* `classes`: the row has none */
    size_t best;  /* the first of the largest that are not excluded; 0 if all are */
    double sum;   /* of exp(x - x[best]) */
} loss_line;

static bool is_included(const loss_line *l, size_t i)
{
    const mr_cross_entropy *c = l->c;
    if (c->columns && c->columns[i] == 0)
        return false;
    return !c->groups || l->label == c->classes || i == l->label || c->groups[i] != c->groups[l->label];
}

static void sum_line(loss_line *l)
{
    const float *x = l->x;
    size_t classes = l->c->classes, first = 0;
    bool all = !l->c->columns && !l->c->groups;
    while (!all && first < classes && !is_included(l, first))
        first++;
    l->best = first < classes ? first : 0;
    for (size_t i = first + 1; i < classes; i++)
        if (x[i] > x[l->best] && (all || is_included(l, i)))
            l->best = i;
    for (size_t i = first; i < classes; i++)
        if (all || is_included(l, i))
            l->sum += exp((double)x[i] - (double)x[l->best]);
}

/* Compiled without -ffast-math, so that a NaN is kept and the run detects it. */
static void loss_row(const mr_cross_entropy *c, size_t row)
{
    const float *x = c->logits + row * c->classes;
    bool known = c->labels[row] >= 0 && (size_t)c->labels[row] < c->classes;
    loss_line l = {.c = c, .x = x, .label = known ? (size_t)c->labels[row] : c->classes};
    double weight = !known ? 0 : c->weights ? (double)c->weights[row] : 1, loss = 0;
    weight *= c->share != 0 ? (double)c->share : 1;
    sum_line(&l);
    if (weight != 0)
        loss = is_included(&l, l.label) ? weight * (log(l.sum) + (double)x[l.best] - (double)x[l.label]) : INFINITY;
    c->losses[row] = c->add_losses ? (float)((double)c->losses[row] + loss) : (float)loss;
    float *d = c->d_logits ? (float *)c->d_logits + row * c->classes : NULL;
    for (size_t i = 0; d && i < c->classes; i++) {
        double one = i == l.label ? 1 : 0;
        bool counts = weight != 0 && is_included(&l, i);
        d[i] = counts ? (float)(weight * (exp((double)x[i] - (double)x[l.best]) / l.sum - one)) : 0;
    }
    if (c->best)
        c->best[row] = (int32_t)l.best;
}

static void loss_rows(void *ctx, size_t task, unsigned member)
{
    const loss_job *j = ctx;
    size_t first = task * j->per_task, last = first + j->per_task < j->c->rows ? first + j->per_task : j->c->rows;
    (void)member;
    for (size_t row = first; row < last; row++)
        loss_row(j->c, row);
}

void mr_cpu_cross_entropy(mr_device *device, const mr_cross_entropy *c)
{
    mr_cpu *d = mr_cpu_of(device);
    assert(c->type == MR_F32 && c->classes);
    loss_job j = {.c = c, .per_task = mr_cpu_rows_per_task(c->rows, c->classes, WORK)};
    mr_team_run(d->team, (c->rows + j.per_task - 1) / j.per_task, loss_rows, &j);
}
