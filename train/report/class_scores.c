/* class_scores.c - how well an evaluation of samples with several labels found each class.
 * Invariant: a class that no evaluated sample has is last, and without an average precision. */
#include <stdlib.h>
#include <string.h>

#include "base/scope.h"
#include "shards/report/html.h"
#include "train/report/run_page.h"
#include "train/report/run_origin.h"

enum { CLASSES_MOST = 200 };

typedef struct row {
    const mr_class_score *score;
    size_t class;
} row;

static int by_precision(const void *a, const void *b)
{
    const row *x = a, *y = b;
    if (!x->score->positives != !y->score->positives)
        return x->score->positives ? -1 : 1;
    if (x->score->average_precision != y->score->average_precision)
        return x->score->average_precision < y->score->average_precision ? -1 : 1;
    return (x->class > y->class) - (x->class < y->class);
}

static void add_row(const mr_run_facts *f, const row *r, mr_buf *out)
{
    const double shares[] = {r->score->average_precision, r->score->precision, r->score->recall, r->score->f1};
    const char *name = json_string_value(json_array_get(f->classes, r->class));
    mr_buf_add_text(out, "<tr><th scope=\"row\">");
    mr_html_string(out, name ? name : "");
    mr_buf_add_text(out, "</th><td class=\"n\">");
    mr_html_count(out, r->score->positives);
    mr_buf_add_text(out, "</td>");
    for (size_t i = 0; i < MR_COUNT(shares); i++)
        if (r->score->positives)
            mr_buf_printf(out, "<td class=\"n\">%.1f %%</td>", 100 * shares[i]);
        else
            mr_buf_add_text(out, "<td class=\"n\">-</td>");
    mr_buf_add_text(out, "</tr>\n");
}

mr_status mr_class_scores_add(const mr_run_facts *f, mr_buf *out, mr_error *err)
{
    static const char *const columns[] = {"Samples", "Average precision", "Precision", "Recall", "F1"};
    const mr_scores *s = &f->outcomes.scores;
    MR_AUTO(mr_scope_free) row *rows = mr_alloc(s->classes + 1, sizeof *rows);
    if (!rows)
        return mr_fail_memory(err, "sorting classes");
    if (!s->classes)
        return MR_OK;
    for (size_t i = 0; i < s->classes; i++)
        rows[i] = (row){&s->each[i], i};
    qsort(rows, s->classes, sizeof *rows, by_precision);
    mr_html_section(out, "classes", "Classes");
    mr_run_origin_add(f, out);
    mr_buf_printf(
        out,
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Classes\"><table class=\"balance\">"
        "<caption>By class, the lowest average precision first; found from a probability of %.3g</caption>\n"
        "<thead><tr><th scope=\"col\">Class</th>",
        s->threshold);
    for (size_t i = 0; i < MR_COUNT(columns); i++)
        mr_buf_printf(out, "<th scope=\"col\" class=\"n\">%s</th>", columns[i]);
    mr_buf_add_text(out, "</tr></thead>\n");
    for (size_t i = 0; i < s->classes && i < CLASSES_MOST; i++)
        add_row(f, &rows[i], out);
    mr_buf_add_text(out, "</table></div>\n");
    if (s->classes > CLASSES_MOST)
        mr_buf_printf(out, "<p class=\"note\">The first %d of %zu classes.</p>\n", CLASSES_MOST, s->classes);
    mr_buf_add_text(out, "</section>\n");
    return mr_buf_status(out, err, "writing a report");
}
