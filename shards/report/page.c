/* page.c - the sections of a report, from the dataset's identity to what was left out.
 * Invariant: a section with nothing to say is left out; numbers of a choice of samples say so. */
#include "shards/report/page.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/scope.h"
#include "base/text.h"
#include "shards/report/classes.h"
#include "shards/report/frame.h"
#include "shards/report/html.h"
#include "shards/report/pairs.h"
#include "shards/view/view.h"

enum { WORDS_MOST = 60, ROWS_MOST = 30 };

typedef unsigned long long ull;

/* ---- what it is -------------------------------------------------------------------------------------------------- */

static void add_facts(const mr_report_facts *f, mr_buf *out)
{
    char size[32], layout[200];
    uint64_t bytes = 0;
    for (size_t i = 0; i < f->m->split_count; i++)
        bytes += f->m->splits[i].image_bytes;
    snprintf(layout, sizeof layout, "%s%s%s", f->m->layout, strcmp(f->m->layout, f->m->variant) ? ", " : "",
             strcmp(f->m->layout, f->m->variant) ? f->m->variant : "");
    mr_buf_add_text(out, "<p class=\"note\">An image dataset of ");
    mr_html_count(out, f->samples);
    mr_buf_printf(out, " sample%s, prepared by millrace " MILLRACE_VERSION ".</p>\n<dl>\n", f->samples == 1 ? "" : "s");
    mr_buf_printf(out, "<dt>Digest</dt><dd><code>%s</code></dd>\n", mr_dataset_sha256(f->ds));
    mr_frame_fact(out, "Source layout", layout);
    mr_frame_fact(out, "Licence", f->m->licence ? f->m->licence : "not stated by the source");
    mr_frame_fact(out, "Images", mr_text_bytes(bytes, size));
    mr_buf_add_text(out, "</dl>\n");
}

/* ---- images, objects, words ------------------------------------------------------------------------------------- */

static void add_bins(const mr_report_facts *f, mr_bins_kind kind, mr_buf *out)
{
    mr_html_bars(out, mr_bins_of[kind].title, mr_bins_of[kind].names, f->bins[kind]);
}

static void add_jpegs(const mr_thumbs *t, mr_buf *out)
{
    if (!t->jpegs.read)
        return;
    mr_buf_printf(
        out,
        "<p class=\"note\">Of the %llu JPEGs shown below, %llu were examined in detail: quality %u to %u, about "
        "%.0f on average (on libjpeg's scale); chroma 4:4:4 in %llu, 4:2:2 or 4:4:0 in %llu, 4:2:0 in %llu, "
        "grey %llu.</p>\n",
        (ull)t->jpegs.all, (ull)t->jpegs.read, t->jpegs.lowest, t->jpegs.highest,
        (double)t->jpegs.quality_sum / (double)t->jpegs.read, (ull)t->jpegs.full, (ull)t->jpegs.half,
        (ull)t->jpegs.quarter, (ull)t->jpegs.grey);
}

static void add_pictures(const mr_report_facts *f, const mr_thumbs *thumbs, mr_buf *out)
{
    mr_html_section(out, "pictures", "Images");
    mr_buf_add_text(out, "<div class=\"charts\">\n");
    for (mr_bins_kind kind = MR_BINS_SIDE; kind <= MR_BINS_EXIF; kind++)
        add_bins(f, kind, out);
    mr_buf_add_text(out, "</div>\n");
    add_jpegs(thumbs, out);
    mr_buf_add_text(out, "</section>\n");
}

static void add_looked(const mr_report_facts *f, mr_buf *out)
{
    if (f->looked == f->samples)
        return;
    mr_buf_add_text(out, "<p class=\"note\">Of ");
    mr_html_count(out, f->looked);
    mr_buf_add_text(out, " samples chosen evenly from ");
    mr_html_count(out, f->samples);
    mr_buf_add_text(out, ".</p>\n");
}

static mr_status add_objects(const mr_report_facts *f, mr_buf *out, mr_error *err)
{
    if (!f->object_count)
        return MR_OK;
    mr_html_section(out, "objects", "Objects");
    add_looked(f, out);
    mr_buf_add_text(out, "<div class=\"charts\">\n");
    add_bins(f, MR_BINS_OBJECTS, out);
    add_bins(f, MR_BINS_BOX, out);
    mr_buf_add_text(out, "</div>\n");
    MR_TRY(mr_class_bars(f, "Objects by class", f->objects, 0, 1,
                         f->m->class_count + (f->objects[f->m->class_count] > 0), NULL, out, err));
    mr_buf_add_text(out, "</section>\n");
    return MR_OK;
}

static void add_words(const mr_report_facts *f, mr_buf *out)
{
    if (!f->captions)
        return;
    mr_html_section(out, "words", "Words");
    add_looked(f, out);
    add_bins(f, MR_BINS_LENGTH, out);
    mr_buf_add_text(out, "<h3>Most frequent, of three letters or more</h3>\n<p class=\"words\">");
    for (size_t i = 0; i < f->words.count && i < WORDS_MOST; i++) {
        mr_buf_add_text(out, "<span>");
        mr_html_text(out, (const char *)f->words.text.data + f->words.items[i].at, f->words.items[i].len);
        mr_buf_add_text(out, " <small>");
        mr_html_count(out, f->words.items[i].count);
        mr_buf_add_text(out, "</small></span> ");
    }
    mr_buf_add_text(out, "</p>\n</section>\n");
}

/* ---- what ingest found ------------------------------------------------------------------------------------------- */

static const struct {
    const char *key, *title;
} findings[] = {
    {"rejects", "Rejected images"},
    {"leaks", "Leaks between splits"},
    {"missing", "Annotated, but missing"},
    {"unlisted", "Not listed by any annotation"},
    {"left_out", "Left out"},
    {"collisions", "Names that collide"},
    {"class_notes", "Classes"},
    {"notes", "Remarks"},
};

static void add_finding(const json_t *list, const char *title, mr_buf *out)
{
    size_t i, count = json_array_size(list);
    const json_t *item;
    if (!count)
        return;
    mr_buf_printf(out,
                  "<table><caption>%s: %zu</caption>\n<thead><tr><th scope=\"col\">File</th><th scope=\"col\">Why</th>"
                  "</tr></thead>\n",
                  title, count);
    json_array_foreach(list, i, item)
    {
        const char *file = json_string_value(json_object_get(item, "file"));
        const char *reason = json_string_value(json_object_get(item, "reason"));
        if (i >= ROWS_MOST)
            break;
        mr_buf_add_text(out, "<tr><td><code>");
        mr_html_string(out, file ? file : "");
        mr_buf_add_text(out, "</code></td><td>");
        mr_html_string(out, reason ? reason : "");
        mr_buf_add_text(out, "</td></tr>\n");
    }
    mr_buf_add_text(out, "</table>\n");
    if (count > ROWS_MOST)
        mr_buf_printf(out, "<p class=\"note\">The first %d; report.json beside the dataset lists all.</p>\n",
                      ROWS_MOST);
}

static void add_findings(const mr_report_facts *f, mr_buf *out)
{
    size_t any = 0;
    for (size_t i = 0; i < MR_COUNT(findings); i++)
        any += json_array_size(json_object_get(f->report, findings[i].key));
    if (!any && f->report)
        return;
    mr_html_section(out, "findings", "What ingest found");
    if (!f->report)
        mr_buf_add_text(out, "<p>The dataset has no report.json that can be read.</p>\n");
    for (size_t i = 0; i < MR_COUNT(findings); i++)
        add_finding(json_object_get(f->report, findings[i].key), findings[i].title, out);
    mr_buf_add_text(out, "</section>\n");
}

/* ---- the page ---------------------------------------------------------------------------------------------------- */

static const mr_frame_section sections[] = {
    {"splits", "Splits and classes"},
    {"pictures", "Images"},
    {"objects", "Objects"},
    {"words", "Words"},
    {"samples", "Samples"},
    {"alike", "Near-duplicate images"},
    {"findings", "What ingest found"},
};

static mr_status write_page(const char *dir, const mr_report_facts *f, const mr_page_options *o, mr_thumbs *thumbs,
                            mr_buf *out, mr_error *err)
{
    MR_AUTO(mr_buf_free) mr_buf body = {0}, wall = {0}, name = {0};
    mr_frame_name(&name, dir);
    MR_TRY(mr_wall_add(f, o->seed, thumbs, &wall, err));
    MR_TRY(mr_splits_add(f, &body, err));
    add_pictures(f, thumbs, &body);
    MR_TRY(add_objects(f, &body, err));
    add_words(f, &body);
    mr_buf_add(&body, wall.data, wall.len);
    MR_TRY(mr_pairs_add(dir, f, o->max_pixels, o->progress, &body, err));
    add_findings(f, &body);
    MR_TRY(mr_buf_status(&body, err, "writing a report"));
    mr_frame_begin(out, mr_buf_text(&name), "dataset report");
    add_facts(f, out);
    mr_frame_end(out, sections, MR_COUNT(sections), &body);
    return mr_buf_status(out, err, "writing a report");
}

mr_status mr_page_write(const char *dir, const mr_page_options *o, mr_buf *out, mr_error *err)
{
    MR_AUTO(mr_dataset_release) mr_dataset *ds = NULL;
    MR_AUTO(mr_report_facts_free) mr_report_facts facts = {0};
    MR_AUTO(mr_thumbs_free) mr_thumbs thumbs = {.max_pixels = o->max_pixels};
    MR_TRY(mr_dataset_open(dir, &ds, err));
    MR_TRY(mr_report_facts_read(dir, ds, o->seed, &facts, err));
    return write_page(dir, &facts, o, &thumbs, out, err);
}
