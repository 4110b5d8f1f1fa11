/* figure.c - one sample as a drawing: its thumbnail, its objects over it, words below.
 * Invariant: a sample that cannot be decoded leaves nothing on the page. */
#include <stdlib.h>
#include <string.h>

#include "base/scope.h"
#include "base/text.h"
#include "shards/format/meta.h"
#include "shards/format/objects.h"
#include "shards/report/html.h"
#include "shards/report/wall.h"
#include "shards/dataset/captions.h"

enum { OBJECTS_MOST = 60, POINTS_MOST = 400, CAPTION_MOST = 160 };

static double pixels(mr_milli m)
{
    return (double)m / 1000;
}

static const char *class_name(const mr_manifest *m, int32_t label)
{
    return label >= 0 && (size_t)label < m->class_count ? m->classes[label].name : NULL;
}

static unsigned colour_of(int32_t label)
{
    return label < 0 ? 0 : (unsigned)label % 6;
}

/* Stored to seen: EXIF 2.32, tag 0x0112, as a matrix of SVG. */
static const int *turn_of(const mr_sample_view *v)
{
    static const int turns[9][4] = {{1, 0, 0, 1}, {1, 0, 0, 1},  {-1, 0, 0, 1},  {-1, 0, 0, -1}, {1, 0, 0, -1},
                                    {0, 1, 1, 0}, {0, 1, -1, 0}, {0, -1, -1, 0}, {0, -1, 1, 0}};
    return turns[v->orientation <= 8 ? v->orientation : 1];
}

/* How far the turned image is moved back into view: along x, or along y. */
static long shift_of(const mr_sample_view *v, int axis)
{
    const int *m = turn_of(v);
    return m[axis] < 0 ? (long)v->width : m[2 + axis] < 0 ? (long)v->height : 0;
}

static void add_orientation(mr_buf *out, const mr_sample_view *v)
{
    const int *m = turn_of(v);
    if (v->orientation > 1)
        mr_buf_printf(out, " transform=\"matrix(%d %d %d %d %ld %ld)\"", m[0], m[1], m[2], m[3], shift_of(v, 0),
                      shift_of(v, 1));
}

static void add_points(mr_buf *out, const mr_milli *numbers, size_t count)
{
    size_t step = count / 2 / POINTS_MOST + 1;
    for (size_t i = 0; i + 1 < count; i += 2 * step)
        mr_buf_printf(out, "%s%.4g,%.4g", i ? " " : "", pixels(numbers[i]), pixels(numbers[i + 1]));
}

static void add_object(mr_buf *out, const mr_objects *all, const mr_object *o, double unit)
{
    unsigned colour = colour_of(o->label);
    for (size_t r = 0; r < o->ring_count; r++) {
        const mr_ring *ring = &all->rings[o->ring + r];
        mr_buf_printf(out, "<polygon class=\"o%u\" points=\"", colour);
        add_points(out, all->points + ring->at, ring->count);
        mr_buf_add_text(out, "\"/>");
    }
    if (o->oriented) {
        mr_buf_printf(out, "<polygon class=\"o%u\" points=\"", colour);
        add_points(out, o->corners, 8);
        mr_buf_add_text(out, "\"/>");
    } else if (o->has_box) {
        mr_buf_printf(out, "<rect class=\"o%u\" x=\"%.5g\" y=\"%.5g\" width=\"%.5g\" height=\"%.5g\"/>", colour,
                      pixels(o->box[0]), pixels(o->box[1]), pixels(o->box[2]), pixels(o->box[3]));
    }
    for (size_t k = 0; k < o->keypoint_count; k++) {
        const mr_keypoint *p = &all->keypoints[o->keypoint + k];
        if (p->visibility > 0)
            mr_buf_printf(out, "<circle class=\"k%u\" cx=\"%.5g\" cy=\"%.5g\" r=\"%.3g\"/>", colour, pixels(p->x),
                          pixels(p->y), 2 * unit);
    }
}

/* The name of an object's class, upright, at the left upper end of its box; nothing for an object without a box.  The
 * style shows names only on an enlarged image: smaller ones have no room for them. */
static void add_name(const mr_report_facts *f, const mr_sample_view *v, const mr_object *o, double unit, mr_buf *out)
{
    const char *name = class_name(f->m, o->label);
    if (!name || !o->has_box)
        return;
    const int *m = turn_of(v);
    double from_x = (double)shift_of(v, 0), from_y = (double)shift_of(v, 1), left = 0, top = 0;
    for (int corner = 0; corner < 4; corner++) {
        double x = pixels(o->box[0]) + (corner & 1 ? pixels(o->box[2]) : 0);
        double y = pixels(o->box[1]) + (corner & 2 ? pixels(o->box[3]) : 0);
        double seen_x = m[0] * x + m[2] * y + from_x, seen_y = m[1] * x + m[3] * y + from_y;
        left = !corner || seen_x < left ? seen_x : left;
        top = !corner || seen_y < top ? seen_y : top;
    }
    mr_buf_printf(out, "<text class=\"k%u\" x=\"%.5g\" y=\"%.5g\">", colour_of(o->label), left + unit, top + 4 * unit);
    mr_html_string(out, name);
    mr_buf_add_text(out, "</text>");
}

/* `unit`: about the size of a pixel on the page. */
static mr_status add_drawing(const mr_report_facts *f, const mr_sample_view *v, mr_thumbs *thumbs,
                             const mr_objects *objects, mr_buf *out, mr_error *err)
{
    uint32_t width = v->width, height = v->height;
    mr_orient_size(v->orientation, &width, &height);
    uint32_t longer = width > height ? width : height;
    double unit = (double)longer / MR_THUMB_SIDE;
    mr_buf_printf(out, "<svg class=\"shot\" viewBox=\"0 0 %u %u\" font-size=\"%.3g\" aria-hidden=\"true\"><g", width,
                  height, 4 * unit);
    add_orientation(out, v);
    mr_buf_printf(out, "><image width=\"%u\" height=\"%u\" preserveAspectRatio=\"none\" href=\"", v->width, v->height);
    MR_TRY(mr_thumb_add(thumbs, v, out, err));
    mr_buf_add_text(out, "\"/>");
    for (size_t i = 0; i < objects->count && i < OBJECTS_MOST; i++)
        add_object(out, objects, &objects->items[i], unit);
    mr_buf_add_text(out, "</g>");
    for (size_t i = 0; i < objects->count && i < OBJECTS_MOST; i++)
        add_name(f, v, &objects->items[i], unit, out);
    mr_buf_add_text(out, "</svg>");
    return MR_OK;
}

/* "dog, 2 cat", each after the colour of its boxes, of at most four classes. */
static void add_classes(const mr_report_facts *f, const mr_objects *objects, mr_buf *out)
{
    size_t named = 0;
    for (size_t i = 0; i < objects->count && named < 4; i++) {
        size_t same = 0;
        bool before = false;
        for (size_t k = 0; k < objects->count; k++) {
            bool equal = objects->items[k].label == objects->items[i].label;
            before |= equal && k < i;
            same += equal;
        }
        const char *name = class_name(f->m, objects->items[i].label);
        if (before || !name)
            continue;
        mr_buf_printf(out,
                      "%s<svg class=\"key\" viewBox=\"0 0 1 1\" aria-hidden=\"true\"><rect class=\"k%u\" width=\"1\" "
                      "height=\"1\"/></svg>",
                      named++ ? ", " : "", colour_of(objects->items[i].label));
        if (same > 1)
            mr_buf_printf(out, "%zu ", same);
        mr_html_string(out, name);
    }
    mr_buf_add_text(out, named == 4 ? " ..." : "");
}

static mr_status add_caption(const mr_sample_view *v, mr_buf *out, mr_error *err)
{
    MR_AUTO(mr_buf_free) mr_buf text = {0};
    mr_captions captions;
    const char *column = mr_captions_guess(v->meta, v->meta_len, &text);
    if (!column)
        return MR_OK;
    MR_TRY(mr_captions_find(column, v->meta, v->meta_len, &captions, err));
    if (!captions.count)
        return MR_OK;
    mr_buf_clear(&text);
    MR_TRY(mr_captions_read(&captions, 0, &text, err));
    size_t len = text.len < CAPTION_MOST ? text.len : CAPTION_MOST;
    len -= len ? mr_utf8_cut(mr_buf_text(&text), len) : 0;
    mr_buf_add_text(out, "<q>");
    mr_html_text(out, mr_buf_text(&text), len);
    mr_buf_add_text(out, len < text.len ? " ...</q>" : "</q>");
    return MR_OK;
}

mr_status mr_wall_figure(const mr_report_facts *f, const mr_split *split, uint64_t n, const char *label,
                         mr_thumbs *thumbs, mr_buf *out, mr_error *err)
{
    MR_AUTO(mr_sample_view_free) mr_sample_view view = {0};
    MR_AUTO(mr_objects_free) mr_objects objects = {0};
    MR_AUTO(mr_buf_free) mr_buf source = {0};
    mr_meta_facts facts;
    size_t begin = out->len;
    MR_TRY(mr_dataset_read(f->ds, split->name, n, &view, err));
    MR_TRY(mr_objects_parse(view.meta, view.meta_len, &objects, err));
    MR_TRY(mr_meta_scan(view.meta, view.meta_len, &facts, &source, err));
    mr_buf_add_text(out, "<figure tabindex=\"0\">");
    mr_status status = add_drawing(f, &view, thumbs, &objects, out, err);
    if (status != MR_OK) {
        out->len = begin;
        return status;
    }
    mr_buf_add_text(out, "<figcaption><b>");
    const char *name = label ? label : class_name(f->m, view.label);
    if (name)
        mr_html_string(out, name);
    else
        add_classes(f, &objects, out);
    mr_buf_add_text(out, "</b>");
    MR_TRY(add_caption(&view, out, err));
    mr_buf_printf(out, "<span class=\"where\">%s %llu: ", split->name, (unsigned long long)n);
    mr_html_string(out, mr_buf_text(&source));
    mr_buf_add_text(out, "</span></figcaption></figure>\n");
    return mr_buf_status(out, err, "drawing a sample");
}
