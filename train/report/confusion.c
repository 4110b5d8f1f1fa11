/* confusion.c - what an evaluation mistook for what: a matrix, the most frequent confusions, recall and precision by
 * class.
 * Invariant: a number in the matrix counts all samples that were evaluated, never a choice of them. */
#include <stdlib.h>
#include <string.h>

#include "base/scope.h"
#include "shards/report/html.h"
#include "train/report/run_page.h"
#include "train/report/run_origin.h"

enum { MATRIX_MOST = 20, CONFUSED_MOST = 15, CLASSES_MOST = 60 };

typedef struct tally { /* what is counted for one class */
    int32_t class;
    uint64_t samples, right, predicted;
} tally;

typedef struct confused {
    int32_t label, predicted;
    uint64_t count;
} confused;

typedef struct confusion {
    const mr_run_facts *f;
    tally *tallies; /* [classes] */
    size_t classes;
    confused *pairs; /* each once, the commonest first */
    size_t pair_count;
} confusion;

static void release(confusion *c)
{
    free(c->tallies);
    free(c->pairs);
}

static void add_class(const confusion *c, int32_t class, mr_buf *out)
{
    const char *name = json_string_value(json_array_get(c->f->classes, (size_t) class));
    mr_html_string(out, name ? name : "");
}

static int by_pair(const void *a, const void *b)
{
    const confused *x = a, *y = b;
    int label = (x->label > y->label) - (x->label < y->label);
    return label ? label : (x->predicted > y->predicted) - (x->predicted < y->predicted);
}

static int by_count(const void *a, const void *b)
{
    const confused *x = a, *y = b;
    return x->count != y->count ? x->count > y->count ? -1 : 1 : by_pair(a, b);
}

/* The worst recall first; classes without a sample last. */
static int by_recall(const void *a, const void *b)
{
    const tally *x = a, *y = b;
    if (!x->samples != !y->samples)
        return x->samples ? -1 : 1;
    double one = (double)x->right * (double)y->samples, other = (double)y->right * (double)x->samples;
    if (one != other)
        return one < other ? -1 : 1;
    return (x->class > y->class) - (x->class < y->class);
}

static mr_status count_pairs(confusion *c, mr_error *err)
{
    const mr_outcomes *o = &c->f->outcomes;
    c->classes = json_array_size(c->f->classes);
    c->tallies = mr_alloc(c->classes + 1, sizeof *c->tallies);
    c->pairs = mr_alloc(o->count + 1, sizeof *c->pairs);
    if (!c->tallies || !c->pairs)
        return mr_fail_memory(err, "counting confusions");
    for (size_t i = 0; i < c->classes; i++)
        c->tallies[i].class = (int32_t)i;
    for (size_t i = 0; i < o->count; i++) {
        const mr_outcome *item = &o->items[i];
        bool right = item->label == item->predicted;
        c->tallies[item->label].samples++;
        c->tallies[item->label].right += right;
        c->tallies[item->predicted].predicted++;
        c->pairs[i] = (confused){item->label, item->predicted, 1};
    }
    qsort(c->pairs, o->count, sizeof *c->pairs, by_pair);
    for (size_t i = 0; i < o->count; i++) {
        confused *last = c->pair_count ? &c->pairs[c->pair_count - 1] : NULL;
        if (last && by_pair(last, &c->pairs[i]) == 0)
            last->count++;
        else
            c->pairs[c->pair_count++] = c->pairs[i];
    }
    qsort(c->pairs, c->pair_count, sizeof *c->pairs, by_count);
    return MR_OK;
}

static uint64_t pair_count(const confusion *c, int32_t label, int32_t predicted)
{
    for (size_t i = 0; i < c->pair_count; i++)
        if (c->pairs[i].label == label && c->pairs[i].predicted == predicted)
            return c->pairs[i].count;
    return 0;
}

/* Rows are labels, columns are predictions; `shown` classes, in their order. */
static void add_matrix(const confusion *c, const int32_t *shown, size_t count, mr_buf *out)
{
    mr_buf_add_text(out, "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Confusion matrix\">"
                         "<table class=\"matrix\"><caption>Rows are labels, columns what was predicted");
    mr_buf_add_text(out, count < c->classes ? "; the classes that are confused most</caption>\n" : "</caption>\n");
    mr_buf_add_text(out, "<thead><tr><th scope=\"col\">Class</th>");
    for (size_t k = 0; k < count; k++)
        mr_buf_printf(out, "<th scope=\"col\" class=\"n\">%zu</th>", k + 1);
    mr_buf_add_text(out, "</tr></thead>\n");
    for (size_t r = 0; r < count; r++) {
        const tally *t = &c->tallies[shown[r]];
        mr_buf_printf(out, "<tr><th scope=\"row\">%zu ", r + 1);
        add_class(c, shown[r], out);
        mr_buf_add_text(out, "</th>");
        for (size_t k = 0; k < count; k++) {
            uint64_t n = pair_count(c, shown[r], shown[k]);
            if (!n) {
                mr_buf_add_text(out, "<td class=\"n\"></td>");
                continue;
            }
            mr_buf_printf(out, "<td class=\"n %s\" style=\"--p:%.2f\">", r == k ? "good" : "bad",
                          0.35 * (double)n / (double)t->samples);
            mr_html_count(out, n);
            mr_buf_add_text(out, "</td>");
        }
        mr_buf_add_text(out, "</tr>\n");
    }
    mr_buf_add_text(out, "</table></div>\n");
}

static int by_class(const void *a, const void *b)
{
    return (*(const int32_t *)a > *(const int32_t *)b) - (*(const int32_t *)a < *(const int32_t *)b);
}

/* All classes if they fit, otherwise those of the most frequent confusions. */
static size_t choose(const confusion *c, int32_t shown[MATRIX_MOST])
{
    size_t count = 0;
    for (size_t i = 0; i < c->classes && c->classes <= MATRIX_MOST; i++)
        shown[count++] = (int32_t)i;
    for (size_t i = 0; i < c->pair_count && c->classes > MATRIX_MOST; i++) {
        const int32_t both[] = {c->pairs[i].label, c->pairs[i].predicted};
        for (size_t b = 0; b < 2 && both[0] != both[1]; b++) {
            size_t at = 0;
            while (at < count && shown[at] != both[b])
                at++;
            if (at == count && count < MATRIX_MOST)
                shown[count++] = both[b];
        }
    }
    qsort(shown, count, sizeof *shown, by_class);
    return count;
}

static void add_confused(const confusion *c, mr_buf *out)
{
    size_t shown = 0;
    for (size_t i = 0; i < c->pair_count && shown < CONFUSED_MOST; i++) {
        const confused *p = &c->pairs[i];
        if (p->label == p->predicted)
            continue;
        if (!shown++)
            mr_buf_add_text(out, "<table class=\"balance\"><caption>Most frequent confusions</caption>\n<thead><tr>"
                                 "<th scope=\"col\">Label</th><th scope=\"col\">Predicted</th>"
                                 "<th scope=\"col\" class=\"n\">Samples</th></tr></thead>\n");
        mr_buf_add_text(out, "<tr><td>");
        add_class(c, p->label, out);
        mr_buf_add_text(out, "</td><td>");
        add_class(c, p->predicted, out);
        mr_buf_add_text(out, "</td><td class=\"n\">");
        mr_html_count(out, p->count);
        mr_buf_add_text(out, "</td></tr>\n");
    }
    mr_buf_add_text(out, shown ? "</table>\n" : "<p>No confusions.</p>\n");
}

static void add_share(mr_buf *out, uint64_t part, uint64_t whole)
{
    if (whole)
        mr_buf_printf(out, "<td class=\"n\">%.1f %%</td>", 100 * (double)part / (double)whole);
    else
        mr_buf_add_text(out, "<td class=\"n\">-</td>");
}

static void add_tallies(confusion *c, mr_buf *out)
{
    qsort(c->tallies, c->classes, sizeof *c->tallies, by_recall);
    mr_buf_add_text(out, "<table class=\"balance\"><caption>By class, the lowest recall first</caption>\n<thead><tr>"
                         "<th scope=\"col\">Class</th><th scope=\"col\" class=\"n\">Samples</th>"
                         "<th scope=\"col\" class=\"n\">Recall</th><th scope=\"col\" class=\"n\">Precision</th>"
                         "</tr></thead>\n");
    for (size_t i = 0; i < c->classes && i < CLASSES_MOST; i++) {
        const tally *t = &c->tallies[i];
        mr_buf_add_text(out, "<tr><th scope=\"row\">");
        add_class(c, t->class, out);
        mr_buf_add_text(out, "</th><td class=\"n\">");
        mr_html_count(out, t->samples);
        mr_buf_add_text(out, "</td>");
        add_share(out, t->right, t->samples);
        add_share(out, t->right, t->predicted);
        mr_buf_add_text(out, "</tr>\n");
    }
    mr_buf_add_text(out, "</table>\n");
    if (c->classes > CLASSES_MOST)
        mr_buf_printf(out, "<p class=\"note\">The first %d of %zu classes.</p>\n", CLASSES_MOST, c->classes);
}

mr_status mr_confusion_add(const mr_run_facts *f, mr_buf *out, mr_error *err)
{
    MR_AUTO(release) confusion c = {.f = f};
    int32_t shown[MATRIX_MOST];
    if (!f->outcomes.count)
        return MR_OK;
    MR_TRY(count_pairs(&c, err));
    mr_html_section(out, "classes", "Classes");
    mr_run_origin_add(f, out);
    size_t chosen = choose(&c, shown);
    if (chosen)
        add_matrix(&c, shown, chosen, out);
    mr_buf_add_text(out, "<div class=\"charts\">\n<div>");
    add_confused(&c, out);
    mr_buf_add_text(out, "</div>\n<div>");
    add_tallies(&c, out);
    mr_buf_add_text(out, "</div>\n</div>\n</section>\n");
    return mr_buf_status(out, err, "counting confusions");
}
