/* curve.c - a chart: axes with round numbers, a line for each curve, a sentence for those who cannot see it.
 * Invariant: numbers are written with as few digits as their distance needs. */
#include "train/report/curve.h"

#include <math.h>
#include <stdio.h>

#include "base/text.h"
#include "shards/report/html.h"

enum {
    WIDTH = 420,
    HEIGHT = 210,
    LEFT = 46,
    RIGHT = 12,
    TOP = 10,
    BOTTOM = 26,
    POINTS_MOST = 300,
    DOTS_MOST = 40,
    TICKS = 6,
    CURVES = sizeof((mr_chart *)0)->curves / sizeof((mr_chart *)0)->curves[0]
};

typedef struct axes {
    double low, high;   /* values */
    double first, last; /* steps */
} axes;

size_t mr_ticks(double low, double high, size_t most, double *out)
{
    static const double rounds[] = {1, 2, 5, 10};
    double power = pow(10, floor(log10((high - low) / (double)most)));
    size_t count = 0, r = 0;
    while (r + 1 < MR_COUNT(rounds) &&
           floor(high / (power * rounds[r])) - ceil(low / (power * rounds[r])) >= (double)most)
        r++;
    double unit = power * rounds[r];
    double first = ceil(low / unit - 1e-9);
    while (count < most && (first + (double)count) * unit <= high + 1e-9 * unit) {
        out[count] = (first + (double)count) * unit + 0.0; /* not -0 */
        count++;
    }
    return count;
}

typedef struct place {
    double step, value;
} place;

/* What is drawn of a curve: means of equally many points, at most POINTS_MOST; returns how many. */
static size_t places_of(const mr_curve *c, place out[POINTS_MOST])
{
    size_t each = (c->count + POINTS_MOST - 1) / POINTS_MOST, count = 0;
    for (size_t i = 0; i < c->count; i += each) {
        place sum = {0};
        size_t n = c->count - i < each ? c->count - i : each;
        for (size_t k = 0; k < n; k++) {
            sum.step += (double)c->points[i + k].step;
            sum.value += (double)c->points[i + k].value;
        }
        out[count++] = (place){sum.step / (double)n, sum.value / (double)n};
    }
    return count;
}

static bool find_axes(const mr_chart *c, axes *a)
{
    place places[POINTS_MOST];
    bool any = false;
    for (size_t k = 0; k < CURVES && c->curves[k].curve; k++) {
        size_t count = places_of(c->curves[k].curve, places);
        for (size_t i = 0; i < count; i++) {
            const place *p = &places[i];
            a->low = !any || p->value < a->low ? p->value : a->low;
            a->high = !any || p->value > a->high ? p->value : a->high;
            a->first = !any || p->step < a->first ? p->step : a->first;
            a->last = !any || p->step > a->last ? p->step : a->last;
            any = true;
        }
    }
    if (c->from_zero && a->low > 0)
        a->low = 0;
    if (!(a->high > a->low)) { /* one value: some room around it */
        double capacity = fabs(a->high) > 0 ? fabs(a->high) / 10 : 1;
        a->high += capacity;
        a->low -= c->from_zero && a->low <= 0 ? 0 : capacity;
    }
    return any;
}

static double x_of(const axes *a, double step)
{
    double range = a->last > a->first ? a->last - a->first : 1;
    return LEFT + (step - a->first) / range * (WIDTH - LEFT - RIGHT);
}

static double y_of(const axes *a, double value)
{
    return HEIGHT - BOTTOM - (value - a->low) / (a->high - a->low) * (HEIGHT - TOP - BOTTOM);
}

/* Short, as there is room for seven characters beside an axis. */
static void add_value(mr_buf *out, const mr_chart *c, double value)
{
    if (c->percent)
        mr_buf_printf(out, "%.3g %%", value * 100);
    else if (value >= 1e6)
        mr_buf_printf(out, "%.4g M", value / 1e6);
    else if (value >= 1e4)
        mr_buf_printf(out, "%.4g k", value / 1e3);
    else
        mr_buf_printf(out, fabs(value) < 1e-3 && value != 0 ? "%.2g" : "%.4g", value);
}

static void add_axes(mr_buf *out, const mr_chart *c, const axes *a)
{
    double ticks[TICKS];
    char count[32];
    size_t n = mr_ticks(a->low, a->high, TICKS - 1, ticks);
    for (size_t i = 0; i < n; i++) {
        double y = y_of(a, ticks[i]);
        mr_buf_printf(out, "<path d=\"M%d %.1fH%d\"/><text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">", LEFT, y,
                      WIDTH - RIGHT, LEFT - 5, y + 4);
        add_value(out, c, ticks[i]);
        mr_buf_add_text(out, "</text>");
    }
    n = a->last > a->first ? mr_ticks(a->first, a->last, TICKS - 1, ticks) : 0;
    for (size_t i = 0; i < n; i++) {
        double x = x_of(a, ticks[i]);
        if (floor(ticks[i]) != ticks[i])
            continue;
        mr_buf_printf(out, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"%s\">%s</text>", x, HEIGHT - 8,
                      x > WIDTH - 30 ? "end" : "middle", mr_text_count((uint64_t)ticks[i], count));
    }
}

static void add_line(mr_buf *out, const axes *a, const mr_curve *c, size_t colour)
{
    place places[POINTS_MOST];
    size_t count = places_of(c, places);
    mr_buf_printf(out, "<polyline class=\"l%zu\" points=\"", colour);
    for (size_t i = 0; i < count; i++)
        mr_buf_printf(out, "%s%.1f,%.1f", i ? " " : "", x_of(a, places[i].step), y_of(a, places[i].value));
    mr_buf_add_text(out, "\"/>");
    for (size_t i = 0; i < count && count <= DOTS_MOST; i++)
        mr_buf_printf(out, "<circle class=\"s%zu\" cx=\"%.1f\" cy=\"%.1f\" r=\"2.5\"/>", colour,
                      x_of(a, places[i].step), y_of(a, places[i].value));
}

static void add_sentence(mr_buf *out, const mr_chart *c, const char *name, const mr_curve *curve)
{
    const mr_point *first = &curve->points[0], *last = &curve->points[curve->count - 1];
    char count[32];
    mr_buf_printf(out, "%s: ", name);
    add_value(out, c, (double)first->value);
    mr_buf_printf(out, " after update %s, ", mr_text_count(first->step, count));
    add_value(out, c, (double)last->value);
    mr_buf_printf(out, " after update %s. ", mr_text_count(last->step, count));
}

void mr_chart_add(mr_buf *out, const mr_chart *c)
{
    axes a = {0};
    uint64_t left_out = 0;
    if (!find_axes(c, &a))
        return;
    mr_buf_printf(out, "<figure class=\"chart\" tabindex=\"0\"><figcaption><b>%s</b> by update</figcaption>\n",
                  c->title);
    mr_buf_printf(out, "<svg viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"", WIDTH, HEIGHT);
    for (size_t k = 0; k < CURVES && c->curves[k].curve; k++)
        if (c->curves[k].curve->count)
            add_sentence(out, c, c->curves[k].name ? c->curves[k].name : c->title, c->curves[k].curve);
    mr_buf_add_text(out, "\">");
    add_axes(out, c, &a);
    for (size_t k = 0; k < CURVES && c->curves[k].curve; k++) {
        if (c->curves[k].curve->count)
            add_line(out, &a, c->curves[k].curve, k);
        left_out += c->curves[k].curve->left_out;
    }
    mr_buf_add_text(out, "</svg>\n<p class=\"note\">");
    for (size_t k = 0; k < CURVES && c->curves[k].curve && c->curves[1].curve; k++)
        if (c->curves[k].curve->count)
            mr_buf_printf(out,
                          "<svg class=\"key\" viewBox=\"0 0 1 1\" aria-hidden=\"true\"><rect class=\"s%zu\" "
                          "width=\"1\" height=\"1\"/></svg>%s ",
                          k, c->curves[k].name);
    if (left_out)
        mr_buf_printf(out, "%llu values are not finite and are left out.", (unsigned long long)left_out);
    mr_buf_add_text(out, "</p></figure>\n");
}
