/* classes.c - splits, how many samples each class has in them, and where these shares differ.
 * Invariant: classes are ordered by their counts, equal ones by their numbers. */
#include "shards/report/classes.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/scope.h"
#include "base/text.h"
#include "shards/report/html.h"

enum { CLASSES_MOST = 1000, CLASSES_OPEN = 20, BALANCE_MOST = 12 };

static uint64_t label_count(const mr_report_facts *f, size_t split, size_t class)
{
    return f->labels.counts[split * f->labels.width + class];
}

/* Whether samples have one label each, as in classification. */
static bool has_labels(const mr_report_facts *f)
{
    uint64_t without = 0;
    for (size_t i = 0; i < f->m->split_count; i++)
        without += label_count(f, i, f->m->class_count + MR_NO_LABEL) +
                   label_count(f, i, f->m->class_count + MR_SEVERAL_LABELS);
    return without < f->samples;
}

static void add_splits(const mr_report_facts *f, mr_buf *out)
{
    bool labels = has_labels(f);
    mr_buf_add_text(out, "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Splits\"><table><thead><tr>"
                         "<th scope=\"col\">Split</th><th scope=\"col\" class=\"n\">Samples</th>"
                         "<th scope=\"col\" class=\"n\">Distinct images</th><th scope=\"col\" class=\"n\">Bytes</th>");
    mr_buf_add_text(out,
                    labels ? "<th scope=\"col\" class=\"n\">Without a label</th></tr></thead>\n" : "</tr></thead>\n");
    for (size_t i = 0; i < f->m->split_count; i++) {
        const mr_split *s = &f->m->splits[i];
        char bytes[32];
        mr_buf_printf(out,
                      "<tr><th scope=\"row\"><svg class=\"key\" viewBox=\"0 0 1 1\" aria-hidden=\"true\">"
                      "<rect class=\"s%zu\" width=\"1\" height=\"1\"/></svg>",
                      i % 6);
        mr_html_string(out, s->name);
        mr_buf_add_text(out, "</th><td class=\"n\">");
        mr_html_count(out, s->samples);
        mr_buf_add_text(out, "</td><td class=\"n\">");
        mr_html_count(out, s->images);
        mr_buf_printf(out, "</td><td class=\"n\">%s</td>", mr_text_bytes(s->image_bytes, bytes));
        if (labels) {
            mr_buf_add_text(out, "<td class=\"n\">");
            mr_html_count(out, label_count(f, i, f->m->class_count + MR_NO_LABEL));
            mr_buf_add_text(out, "</td>");
        }
        mr_buf_add_text(out, "</tr>\n");
    }
    mr_buf_add_text(out, "</table></div>\n");
}

typedef struct counted {
    size_t class;
    uint64_t count;
} counted;

static int by_count(const void *a, const void *b)
{
    const counted *x = a, *y = b;
    if (x->count != y->count)
        return x->count > y->count ? -1 : 1;
    return (x->class > y->class) - (x->class < y->class);
}

static void add_class_row(const mr_report_facts *f, size_t class, const uint64_t *parts, size_t count, uint64_t most,
                          mr_buf *out)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += parts[i];
    mr_buf_add_text(out, "<tr><th scope=\"row\">");
    mr_html_string(out, class < f->m->class_count ? f->m->classes[class].name : "no class");
    mr_buf_add_text(out, "</th>");
    for (size_t i = 0; i < count && count > 1; i++) {
        mr_buf_add_text(out, "<td class=\"n\">");
        mr_html_count(out, parts[i]);
        mr_buf_add_text(out, "</td>");
    }
    mr_buf_add_text(out, "<td class=\"n\">");
    mr_html_count(out, sum);
    mr_buf_add_text(out, "</td><td class=\"b\">");
    mr_html_stack(out, parts, count, most);
    mr_buf_add_text(out, "</td></tr>\n");
}

mr_status mr_class_bars(const mr_report_facts *f, const char *title, const uint64_t *counts, size_t stride,
                        size_t parts, size_t classes, const char *const *heads, mr_buf *out, mr_error *err)
{
    MR_AUTO(mr_scope_free) counted *order = mr_alloc(classes + 1, sizeof *order);
    MR_AUTO(mr_scope_free) uint64_t *row = mr_alloc(parts + 1, sizeof *row);
    size_t used = 0;
    if (!order || !row)
        return mr_fail_memory(err, "writing a report");
    for (size_t c = 0; c < classes; c++) {
        order[c] = (counted){c, 0};
        for (size_t p = 0; p < parts; p++)
            order[c].count += counts[p * stride + c];
        used += order[c].count > 0;
    }
    qsort(order, classes, sizeof *order, by_count);
    if (!used)
        return MR_OK;
    mr_buf_add_text(out, "<table class=\"bars\"><caption>");
    mr_html_string(out, title);
    mr_buf_add_text(out, "</caption>\n<thead><tr><th scope=\"col\">Class</th>");
    for (size_t p = 0; p < parts && parts > 1; p++) {
        mr_buf_add_text(out, "<th scope=\"col\" class=\"n\">");
        mr_html_string(out, heads[p]);
        mr_buf_add_text(out, "</th>");
    }
    mr_buf_add_text(out,
                    "<th scope=\"col\" class=\"n\">All</th><th scope=\"col\" class=\"b\">Share</th></tr></thead>\n");
    for (size_t i = 0; i < classes && i < CLASSES_MOST; i++) {
        if (i == CLASSES_OPEN)
            mr_buf_printf(out, "</table>\n<details><summary>%zu more classes</summary><table class=\"bars\">\n",
                          (classes < CLASSES_MOST ? classes : CLASSES_MOST) - CLASSES_OPEN);
        for (size_t p = 0; p < parts; p++)
            row[p] = counts[p * stride + order[i].class];
        add_class_row(f, order[i].class, row, parts, order[0].count, out);
    }
    mr_buf_add_text(out, classes > CLASSES_OPEN ? "</table></details>\n" : "</table>\n");
    if (classes > CLASSES_MOST)
        mr_buf_printf(out,
                      "<p class=\"note\">The %d largest of %zu classes; 'millrace inspect --classes' lists all.</p>\n",
                      CLASSES_MOST, classes);
    return MR_OK;
}

typedef struct share {
    size_t class;
    double first, other;
} share;

static int by_difference(const void *a, const void *b)
{
    const share *x = a, *y = b;
    double one = x->other - x->first, two = y->other - y->first;
    one = one < 0 ? -one : one;
    two = two < 0 ? -two : two;
    return one != two ? (one > two ? -1 : 1) : (x->class > y->class) - (x->class < y->class);
}

/* Where the classes' shares of one split differ most from those of the first one. */
static mr_status add_balance(const mr_report_facts *f, size_t split, mr_buf *out, mr_error *err)
{
    size_t classes = f->m->class_count;
    uint64_t first = 0, other = 0;
    MR_AUTO(mr_scope_free) share *shares = mr_alloc(classes + 1, sizeof *shares);
    if (!shares)
        return mr_fail_memory(err, "writing a report");
    for (size_t c = 0; c < classes; c++) {
        first += label_count(f, 0, c);
        other += label_count(f, split, c);
    }
    if (!first || !other)
        return MR_OK;
    double distance = 0;
    for (size_t c = 0; c < classes; c++) {
        shares[c] =
            (share){c, (double)label_count(f, 0, c) / (double)first, (double)label_count(f, split, c) / (double)other};
        double d = shares[c].other - shares[c].first;
        distance += d < 0 ? -d / 2 : d / 2;
    }
    qsort(shares, classes, sizeof *shares, by_difference);
    mr_buf_printf(out,
                  "<table class=\"balance\"><caption>Balance: %s beside %s, %.1f %% of the samples would have to "
                  "change class</caption>\n"
                  "<thead><tr><th scope=\"col\">Class</th><th scope=\"col\" class=\"n\">%s</th>"
                  "<th scope=\"col\" class=\"n\">%s</th></tr></thead>\n",
                  f->m->splits[split].name, f->m->splits[0].name, 100 * distance, f->m->splits[0].name,
                  f->m->splits[split].name);
    for (size_t i = 0; i < classes && i < BALANCE_MOST && shares[i].first != shares[i].other; i++) {
        mr_buf_add_text(out, "<tr><th scope=\"row\">");
        mr_html_string(out, f->m->classes[shares[i].class].name);
        mr_buf_printf(out, "</th><td class=\"n\">%.2f %%</td><td class=\"n\">%.2f %%</td></tr>\n",
                      100 * shares[i].first, 100 * shares[i].other);
    }
    mr_buf_add_text(out, "</table>\n");
    return MR_OK;
}

mr_status mr_splits_add(const mr_report_facts *f, mr_buf *out, mr_error *err)
{
    const char *heads[MR_SPLITS_MAX];
    size_t splits = f->m->split_count;
    for (size_t i = 0; i < splits; i++)
        heads[i] = f->m->splits[i].name;
    mr_html_section(out, "splits", "Splits and classes");
    add_splits(f, out);
    MR_TRY(mr_class_bars(f, "Samples by class", f->labels.counts, f->labels.width, splits, f->m->class_count, heads,
                         out, err));
    if (f->lists)
        MR_TRY(mr_class_bars(f, "Samples with the class in their label list", f->listed, 0, 1, f->m->class_count, heads,
                             out, err));
    for (size_t i = 1; i < splits && i < 4; i++)
        MR_TRY(add_balance(f, i, out, err));
    mr_buf_add_text(out, "</section>\n");
    return MR_OK;
}
