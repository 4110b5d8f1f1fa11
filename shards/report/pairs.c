/* pairs.c - the section of images that look alike.
 * Invariant: a pair is two drawings, or a line where one of them cannot be decoded. */
#include "shards/report/pairs.h"

#include "base/scope.h"
#include "base/text.h"
#include "shards/report/html.h"
#include "shards/report/wall.h"
#include "shards/similar/similar.h"

static const char *const titles[MR_SIMILAR_KINDS] = {[MR_SIMILAR_EQUAL] = "The same file in two splits",
                                                     [MR_SIMILAR_LEAK] = "Near-duplicates in two splits",
                                                     [MR_SIMILAR_DUPLICATE] = "Near-duplicates in one split"};

typedef struct section {
    const mr_report_facts *f;
    const mr_similar *found;
    mr_thumbs thumbs; /* not the page's, which counts the JPEGs among its samples */
    size_t begin;     /* where the section begins in the page */
} section;

static void free_section(section *s)
{
    mr_thumbs_free(&s->thumbs);
}

static mr_status add_one(section *s, const mr_similar_picture *p, mr_buf *out, mr_error *err)
{
    const mr_split *split = &s->f->m->splits[p->split];
    mr_status status = mr_wall_figure(s->f, split, p->number, NULL, &s->thumbs, out, err);
    if (status != MR_BAD_SAMPLE)
        return status;
    mr_buf_printf(out, "<p class=\"note\">%s %llu cannot be decoded, or is larger than --max-pixels.</p>\n",
                  split->name, (unsigned long long)p->number);
    return MR_OK;
}

static mr_status add_kind(section *s, mr_similar_kind kind, mr_buf *out, mr_error *err)
{
    uint64_t count = mr_similar_count(s->found, kind);
    size_t shown = 0;
    if (!count)
        return MR_OK;
    mr_buf_printf(out, "<h3>%s: ", titles[kind]);
    mr_html_count(out, count);
    mr_buf_add_text(out, "</h3>\n<div class=\"pairs\">\n");
    for (size_t i = 0; i < s->found->count && shown < MR_PAIRS_SHOWN; i++) {
        const mr_similar_picture *other = mr_similar_other(s->found, i, kind);
        if (!other)
            continue;
        if (out->len - s->begin >= MR_PAIRS_BYTES)
            break;
        mr_buf_add_text(out, "<div class=\"pair\">\n");
        MR_TRY(add_one(s, other, out, err));
        MR_TRY(add_one(s, &s->found->pictures[i], out, err));
        mr_buf_add_text(out, "</div>\n");
        shown++;
    }
    mr_buf_add_text(out, "</div>\n");
    if (shown < count)
        mr_buf_printf(out,
                      "<p class=\"note\">The first %zu; <code>millrace inspect --near-duplicates --json</code> lists "
                      "all.</p>\n",
                      shown);
    return MR_OK;
}

static void add_note(const section *s, bool bytes_only, mr_buf *out)
{
    if (bytes_only)
        mr_buf_add_text(
            out, "<p class=\"note\">Only identical files were looked for: the dataset is too large to decode all of "
                 "it for a page. <code>millrace inspect --near-duplicates</code> does.</p>\n");
    else if (!s->found->equal && !s->found->leaks && !s->found->duplicates)
        mr_buf_add_text(out, "<p>No two images look alike.</p>\n");
}

mr_status mr_pairs_add(const char *dir, const mr_report_facts *f, uint64_t max_pixels, int progress, mr_buf *out,
                       mr_error *err)
{
    MR_AUTO(mr_similar_free) mr_similar found = {0};
    MR_AUTO(free_section) section s = {.f = f, .found = &found, .begin = out->len, .thumbs.max_pixels = max_pixels};
    const mr_similar_options o = {.distance = MR_NEAR_DISTANCE_STANDARD,
                                  .progress = progress,
                                  .max_pixels = max_pixels,
                                  .bytes_only = f->samples > MR_PAIRS_PICTURES || f->decoding > MR_PAIRS_PIXELS};
    if (f->samples < 2 || f->samples > MR_PAIRS_SAMPLES)
        return MR_OK;
    MR_TRY(mr_similar_find(dir, f->ds, &o, &found, err));
    mr_html_section(out, "alike", "Near-duplicate images");
    for (int kind = 0; kind < MR_SIMILAR_KINDS; kind++)
        MR_TRY(add_kind(&s, (mr_similar_kind)kind, out, err));
    add_note(&s, o.bytes_only, out);
    mr_buf_add_text(out, "</section>\n");
    return mr_buf_status(out, err, "drawing pairs");
}
