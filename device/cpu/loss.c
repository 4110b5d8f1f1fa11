/* loss.c - the CPU's cross entropies, for one label and for several.
 * Invariant: a row's loss is computed in double, over its columns in order, by one task. */
#include <assert.h>
#include <math.h>

#include "device/cpu/lines.h"

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
    double sum;   /* sum of exp(x - x[best]) */
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

static double mean_of(const float *x, size_t count)
{
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += (double)x[i];
    return sum / (double)count;
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
    double smoothing = (double)c->smoothing, share = smoothing / (double)c->classes;
    if (weight != 0) {
        double wanted = (1 - smoothing) * (double)x[l.label];
        wanted += smoothing > 0 ? smoothing * mean_of(x, c->classes) : 0;
        loss = is_included(&l, l.label) ? weight * (log(l.sum) + (double)x[l.best] - wanted) : INFINITY;
    }
    c->losses[row] = c->add_losses ? (float)((double)c->losses[row] + loss) : (float)loss;
    for (size_t i = 0; c->d_logits && i < c->classes; i++) {
        double one = share + (i == l.label ? 1 - smoothing : 0);
        bool counts = weight != 0 && is_included(&l, i);
        mr_line_store(c->type, c->d_logits, row * c->classes + i,
                      counts ? (float)(weight * (exp((double)x[i] - (double)x[l.best]) / l.sum - one)) : 0);
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
    assert(c->classes);
    loss_job j = {.c = c, .per_task = mr_cpu_rows_per_task(c->rows, c->classes, WORK)};
    mr_team_run(d->team, (c->rows + j.per_task - 1) / j.per_task, loss_rows, &j);
}

/* ---- several labels ---------------------------------------------------------------------------------------------- */

typedef struct sigmoid_job {
    const mr_sigmoid_loss *l;
    size_t per_task;
} sigmoid_job;

static void sigmoid_row(const mr_sigmoid_loss *l, size_t row)
{
    const float *logits = l->logits + row * l->classes, *targets = l->targets + row * l->classes;
    double weight = (l->weights ? (double)l->weights[row] : 1) / (double)l->classes, sum = 0;
    size_t best = 0;
    for (size_t i = 0; i < l->classes; i++) {
        double x = (double)logits[i], t = (double)targets[i], p = l->positive ? (double)l->positive[i] : 1;
        double small = exp(-fabs(x)), scale = 1 + (p - 1) * t;          /* exp(-x) would overflow */
        double below = (x < 0 ? 1 : small) / (1 + small);               /* 1 - sigmoid(x) */
        sum += (1 - t) * x + scale * (log1p(small) + (x < 0 ? -x : 0)); /* log(1 + exp(-x)) */
        if (l->d_logits)
            mr_line_store(l->type, l->d_logits, row * l->classes + i,
                          weight != 0 ? (float)(weight * (1 - t - scale * below)) : 0);
        best = logits[i] > logits[best] ? i : best;
    }
    l->losses[row] = weight != 0 ? (float)(weight * sum) : 0;
    if (l->best)
        l->best[row] = (int32_t)best;
}

static void sigmoid_rows(void *ctx, size_t task, unsigned member)
{
    const sigmoid_job *j = ctx;
    size_t first = task * j->per_task, last = first + j->per_task < j->l->rows ? first + j->per_task : j->l->rows;
    (void)member;
    for (size_t row = first; row < last; row++)
        sigmoid_row(j->l, row);
}

void mr_cpu_sigmoid_loss(mr_device *device, const mr_sigmoid_loss *l)
{
    mr_cpu *d = mr_cpu_of(device);
    assert(l->classes);
    sigmoid_job j = {.l = l, .per_task = mr_cpu_rows_per_task(l->rows, l->classes, WORK)};
    mr_team_run(d->team, (l->rows + j.per_task - 1) / j.per_task, sigmoid_rows, &j);
}
