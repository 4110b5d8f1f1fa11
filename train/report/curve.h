/* curve.h - curves over the updates of a run, as SVG.
 * Invariant: every point lies within the axes; many points become means of equally many steps, never a choice. */
#ifndef MR_REPORT_CURVE_H
#define MR_REPORT_CURVE_H

#include "train/report/run_facts.h"

typedef struct mr_chart {
    const char *title;
    struct {
        const char *name; /* in the legend; not read where there is one curve */
        const mr_curve *curve;
    } curves[3];
    bool percent;   /* values are shares, 0 to 1 */
    bool from_zero; /* the axis begins at 0 */
} mr_chart;

/* A <figure>; nothing if no curve has points. */
void mr_chart_add(mr_buf *out, const mr_chart *c);

/* Up to `most` round numbers that divide low..high, ascending; returns their number. */
size_t mr_ticks(double low, double high, size_t most, double *out);

#endif
