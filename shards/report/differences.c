/* differences.c - what differs between two datasets as one page, the images side by side.
 * Invariant: the first SHOWN differences of each kind have images, fewer if these would make the page too large. */
#include "shards/report/differences.h"

#include "base/scope.h"
#include "shards/report/frame.h"
#include "shards/report/html.h"
#include "shards/report/wall.h"

enum { SHOWN = 60, BYTES = 12 << 20, KINDS = 3 };

static const struct {
    const char *id, *title;
} kinds[KINDS] = {{"changed", "Changed"}, {"removed", "Only in A"}, {"added", "Only in B"}};

typedef struct drawing {
    const mr_compared *c;
    mr_report_facts of[2]; /* A's and B's, as far as a figure needs them */
    mr_thumbs thumbs;
} drawing;

static size_t kind_of(const mr_difference *x)
{
    return x->a && x->b ? 0 : x->a ? 1 : 2;
}

static mr_status add_side(drawing *g, bool of_b, const mr_diff_side *s, mr_buf *out, mr_error *err)
{
    const mr_report_facts *f = &g->of[of_b];
    mr_status status = mr_wall_figure(f, mr_manifest_split(f->m, s->split), s->number, NULL, &g->thumbs, out, err);
    if (status != MR_BAD_SAMPLE)
        return status;
    mr_buf_add_text(out, "<p class=\"note\">");
    mr_html_string(out, s->source);
    mr_buf_add_text(out, " cannot be decoded.</p>\n");
    return MR_OK;
}

static void add_words(unsigned what, mr_buf *out)
{
    const char *comma = "";
    mr_buf_add_text(out, "<p class=\"note\">");
    for (size_t bit = 0; bit < MR_DIFF_BITS; bit++)
        if (what >> bit & 1) {
            mr_buf_printf(out, "%s%s", comma, mr_diff_words[bit]);
            comma = ", ";
        }
    mr_buf_add_text(out, "</p>\n");
}

static mr_status add_one(drawing *g, const mr_difference *x, mr_buf *out, mr_error *err)
{
    if (!x->a || !x->b)
        return add_side(g, !x->a, x->a ? x->a : x->b, out, err);
    mr_buf_add_text(out, "<div>");
    add_words(x->what, out);
    mr_buf_add_text(out, "<div class=\"pair\">\n");
    MR_TRY(add_side(g, false, x->a, out, err));
    MR_TRY(add_side(g, true, x->b, out, err));
    mr_buf_add_text(out, "</div></div>\n");
    return MR_OK;
}

static mr_status add_kind(drawing *g, size_t kind, size_t count, mr_buf *out, mr_error *err)
{
    size_t shown = 0, begin = out->len;
    if (!count)
        return MR_OK;
    mr_html_section(out, kinds[kind].id, kinds[kind].title);
    mr_buf_add_text(out, "<p>");
    mr_html_count(out, count);
    mr_buf_printf(out, " sample%s</p>\n<div class=\"%s\">\n", count == 1 ? "" : "s", kind ? "wall" : "pairs");
    for (size_t i = 0; i < g->c->d->count && shown < SHOWN && out->len - begin < BYTES / KINDS; i++)
        if (kind_of(&g->c->d->items[i]) == kind) {
            MR_TRY(add_one(g, &g->c->d->items[i], out, err));
            shown++;
        }
    mr_buf_add_text(out, "</div>\n");
    if (shown < count)
        mr_buf_printf(out, "<p class=\"note\">The first %zu; <code>millrace diff --json</code> lists all.</p>\n",
                      shown);
    mr_buf_add_text(out, "</section>\n");
    return mr_buf_status(out, err, "drawing differences");
}

static void add_fact(mr_buf *out, const char *term, uint64_t count)
{
    MR_AUTO(mr_buf_free) mr_buf text = {0};
    mr_html_count(&text, count);
    mr_frame_fact(out, term, mr_buf_text(&text));
}

static void add_facts(const mr_compared *c, mr_buf *out)
{
    mr_frame_fact(out, "A", c->path_a);
    mr_frame_fact(out, "B", c->path_b);
    add_fact(out, "Changed", c->d->changed);
    add_fact(out, "Only in A", c->d->removed);
    add_fact(out, "Only in B", c->d->added);
    mr_frame_fact(out, "Classes", c->d->classes_differ ? "names or order differ" : "equal");
}

static void free_drawing(drawing *g)
{
    mr_thumbs_free(&g->thumbs);
}

mr_status mr_differences_page(const mr_compared *c, mr_buf *out, mr_error *err)
{
    MR_AUTO(mr_buf_free) mr_buf body = {0}, name = {0};
    MR_AUTO(free_drawing)
    drawing g = {.c = c,
                 .of = {{.ds = c->a, .m = mr_dataset_manifest(c->a)}, {.ds = c->b, .m = mr_dataset_manifest(c->b)}}};
    const size_t counts[KINDS] = {c->d->changed, c->d->removed, c->d->added};
    mr_frame_section sections[KINDS];
    mr_frame_name(&name, c->path_a);
    mr_buf_add_text(&name, " and ");
    mr_frame_name(&name, c->path_b);
    for (size_t i = 0; i < KINDS; i++) {
        sections[i] = (mr_frame_section){kinds[i].id, kinds[i].title};
        MR_TRY(add_kind(&g, i, counts[i], &body, err));
    }
    if (mr_diff_equal(c->d))
        mr_buf_add_text(&body, "<p>All samples and the classes agree.</p>\n");
    mr_frame_begin(out, mr_buf_text(&name), "differences");
    mr_buf_add_text(out, "<dl>\n");
    add_facts(c, out);
    mr_buf_add_text(out, "</dl>\n");
    mr_frame_end(out, sections, KINDS, &body);
    return mr_buf_status(out, err, "drawing differences");
}
