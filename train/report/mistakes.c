/* mistakes.c - single samples of an evaluation, as images: most confident mistakes, highest losses, searches.
 * Invariant: a sample is shown once; without the run's dataset it is a line of text. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/scope.h"
#include "shards/report/html.h"
#include "train/report/run_page.h"
#include "train/report/run_origin.h"
#include "shards/report/wall.h"

enum { SHOWN = 12, SEARCHES = 8 };

typedef unsigned long long ull;

static const char *class_name(const mr_run_facts *f, int32_t class)
{
    const char *name = json_string_value(json_array_get(f->classes, (size_t) class));
    return name ? name : "";
}

/* A figure of a sample under this title; a line where there is no image. */
static mr_status add_figure(const mr_run_facts *f, uint64_t sample, const char *title, mr_thumbs *thumbs, mr_buf *out,
                            mr_error *err)
{
    const mr_report_facts facts = {.ds = f->ds, .m = f->ds ? mr_dataset_manifest(f->ds) : NULL};
    mr_status status = MR_BAD_SAMPLE;
    if (f->split && sample < f->split->samples)
        status = mr_wall_figure(&facts, f->split, sample, title, thumbs, out, err);
    if (status != MR_BAD_SAMPLE)
        return status;
    mr_buf_add_text(out, "<figure tabindex=\"0\"><figcaption><b>");
    mr_html_string(out, title);
    mr_buf_add_text(out, "</b><span class=\"where\">");
    mr_html_string(out, f->outcomes.split);
    mr_buf_printf(out, " %llu</span></figcaption></figure>\n", (ull)sample);
    return MR_OK;
}

/* ---- mistakes ---------------------------------------------------------------------------------------------------- */

static bool is_wrong(const mr_outcome *o)
{
    return o->label != o->predicted;
}

static int by_probability(const void *a, const void *b)
{
    const mr_outcome *x = *(const mr_outcome *const *)a, *y = *(const mr_outcome *const *)b;
    if (x->probability != y->probability)
        return x->probability > y->probability ? -1 : 1;
    return (x->sample > y->sample) - (x->sample < y->sample);
}

static int by_loss(const void *a, const void *b)
{
    const mr_outcome *x = *(const mr_outcome *const *)a, *y = *(const mr_outcome *const *)b;
    if (x->loss != y->loss)
        return x->loss > y->loss ? -1 : 1;
    return (x->sample > y->sample) - (x->sample < y->sample);
}

static mr_status add_wall(const mr_run_facts *f, const char *title, const mr_outcome *const *items, size_t count,
                          bool loss, mr_thumbs *thumbs, mr_buf *out, mr_error *err)
{
    MR_AUTO(mr_buf_free) mr_buf text = {0};
    mr_buf_printf(out, "<h3>%s</h3>\n<div class=\"wall\">\n", title);
    for (size_t i = 0; i < count; i++) {
        const mr_outcome *o = items[i];
        mr_buf_clear(&text);
        mr_buf_add_text(&text, class_name(f, o->label));
        if (is_wrong(o))
            mr_buf_printf(&text, ", predicted %s", class_name(f, o->predicted));
        if (loss)
            mr_buf_printf(&text, " (loss %.3g)", (double)o->loss);
        else
            mr_buf_printf(&text, " (%.3g %%)", 100 * (double)o->probability);
        MR_TRY(mr_buf_status(&text, err, "showing mistakes"));
        MR_TRY(add_figure(f, o->sample, mr_buf_text(&text), thumbs, out, err));
    }
    mr_buf_add_text(out, "</div>\n");
    return MR_OK;
}

mr_status mr_mistakes_add(const mr_run_facts *f, mr_thumbs *thumbs, mr_buf *out, mr_error *err)
{
    const mr_outcomes *o = &f->outcomes;
    MR_AUTO(mr_scope_free) const mr_outcome **items = mr_alloc(o->count + 1, sizeof *items);
    size_t sure = 0, left = 0;
    if (!items)
        return mr_fail_memory(err, "showing mistakes");
    for (size_t i = 0; i < o->count; i++)
        if (is_wrong(&o->items[i]) && isfinite(o->items[i].probability))
            items[sure++] = &o->items[i];
    if (!o->count)
        return MR_OK;
    mr_html_section(out, "mistakes", "Mistakes");
    mr_run_origin_add(f, out);
    qsort(items, sure, sizeof *items, by_probability);
    sure = sure < SHOWN ? sure : SHOWN;
    float least = sure ? items[sure - 1]->probability : 2;
    if (sure)
        MR_TRY(add_wall(f, "Most confident mistakes", items, sure, false, thumbs, out, err));
    uint64_t last = sure ? items[sure - 1]->sample : 0;
    for (size_t i = 0; i < o->count; i++) {
        const mr_outcome *item = &o->items[i];
        bool before =
            is_wrong(item) && (item->probability > least || (item->probability == least && item->sample <= last));
        if (!before && isfinite(item->loss))
            items[left++] = item;
    }
    qsort(items, left, sizeof *items, by_loss);
    if (left)
        MR_TRY(add_wall(f, "Highest losses of the others", items, left < SHOWN ? left : SHOWN, true, thumbs, out, err));
    mr_buf_add_text(out, "</section>\n");
    return mr_buf_status(out, err, "showing mistakes");
}

/* ---- searches ---------------------------------------------------------------------------------------------------- */

static mr_status add_search(const mr_run_facts *f, const mr_search *s, mr_thumbs *thumbs, mr_buf *out, mr_error *err)
{
    size_t place = 0;
    while (place < s->count && !s->right[place])
        place++;
    mr_buf_add_text(out, "<h3><q>");
    mr_html_text(out, (const char *)f->outcomes.text.data + s->words, s->words_len);
    mr_buf_add_text(out, "</q></h3>\n");
    if (place < s->count)
        mr_buf_printf(out, "<p class=\"note\">Found at rank %zu.</p>\n", place + 1);
    else
        mr_buf_printf(out, "<p class=\"note\">Not among the first %zu.</p>\n", s->count);
    mr_buf_add_text(out, "<div class=\"wall\">\n");
    for (size_t i = 0; i < s->count; i++) {
        char title[80];
        snprintf(title, sizeof title, "%s%.3f", s->right[i] ? "right, " : "", (double)s->scores[i]);
        MR_TRY(add_figure(f, s->found[i], title, thumbs, out, err));
    }
    mr_buf_add_text(out, "</div>\n");
    return MR_OK;
}

mr_status mr_searches_add(const mr_run_facts *f, mr_thumbs *thumbs, mr_buf *out, mr_error *err)
{
    const mr_outcomes *o = &f->outcomes;
    if (!o->search_count)
        return MR_OK;
    mr_html_section(out, "searches", "Searches");
    mr_run_origin_add(f, out);
    mr_buf_add_text(
        out,
        "<p class=\"note\">The nearest images for some texts, with the cosine similarity of their embeddings.</p>\n");
    for (size_t i = 0; i < SEARCHES && i < o->search_count; i++) {
        size_t each = o->search_count < SEARCHES ? 1 : o->search_count / SEARCHES;
        MR_TRY(add_search(f, &o->searches[i * each], thumbs, out, err));
    }
    mr_buf_add_text(out, "</section>\n");
    return mr_buf_status(out, err, "showing searches");
}
