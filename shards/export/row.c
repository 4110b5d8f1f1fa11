/* row.c - a sample as a row of the hub.
 * Invariant: an object without a part has an empty list, or null, in its place: the lists stay parallel. */
#include "shards/export/row.h"

#include <string.h>

#include "base/text.h"

mr_export_row_kind mr_export_row_kind_of(const mr_export_run *run)
{
    const mr_export_survey *s = run->survey;
    return (mr_export_row_kind){.label = s->labelled,
                                .labels = s->several,
                                .captions = s->captioned,
                                .columns = s->columns,
                                .objects = s->known,
                                .polygons = s->polygons,
                                .oriented = s->oriented,
                                .keypoints = s->keypoints};
}

/* The class's name or number; null: none. */
static void add_class(const mr_export_run *run, int64_t label, bool number, mr_buf *out)
{
    mr_buf name = {0};
    if (label < 0 || (size_t)label >= run->manifest->class_count) {
        mr_buf_add_text(out, "null");
        return;
    }
    if (number) {
        mr_buf_printf(out, "%lld", (long long)label);
        return;
    }
    mr_export_class_text(&run->manifest->classes[label], &name);
    mr_json_add_string(out, mr_buf_text(&name), name.len);
    out->failed = out->failed || name.failed;
    mr_buf_free(&name);
}

static void add_texts(const mr_export_facts *f, mr_buf *out)
{
    mr_buf_add_text(out, ",\"captions\":[");
    for (size_t i = 0; i < f->caption_count; i++) {
        mr_buf_add_text(out, i ? "," : "");
        mr_json_add_string(out, (const char *)f->texts.data + f->captions[i].at, f->captions[i].len);
    }
    mr_buf_add_text(out, "]");
}

/* ---- objects ----------------------------------------------------------------------------------------------------- */

/* With a decimal even if it is whole, so that no reader mistakes a column for one of integers. */
static void add_number(mr_milli number, mr_buf *out)
{
    mr_milli_write(number, out);
    mr_buf_add_text(out, number % 1000 ? "" : ".0");
}

static void add_numbers(const mr_milli *numbers, size_t count, mr_buf *out)
{
    mr_buf_add_text(out, "[");
    for (size_t i = 0; i < count; i++) {
        mr_buf_add_text(out, i ? "," : "");
        add_number(numbers[i], out);
    }
    mr_buf_add_text(out, "]");
}

typedef void add_part(const mr_export_run *run, const mr_objects *all, const mr_object *o, bool number, mr_buf *out);

static void add_box(const mr_export_run *run, const mr_objects *all, const mr_object *o, bool number, mr_buf *out)
{
    (void)run, (void)all, (void)number;
    add_numbers(o->box, o->has_box ? 4 : 0, out);
}

static void add_category(const mr_export_run *run, const mr_objects *all, const mr_object *o, bool number, mr_buf *out)
{
    (void)all;
    add_class(run, o->label, number, out);
}

static void add_polygons(const mr_export_run *run, const mr_objects *all, const mr_object *o, bool number, mr_buf *out)
{
    (void)run, (void)number;
    mr_buf_add_text(out, "[");
    for (size_t i = 0; i < o->ring_count; i++) {
        const mr_ring *ring = &all->rings[o->ring + i];
        mr_buf_add_text(out, i ? "," : "");
        add_numbers(all->points + ring->at, ring->count, out);
    }
    mr_buf_add_text(out, "]");
}

static void add_oriented(const mr_export_run *run, const mr_objects *all, const mr_object *o, bool number, mr_buf *out)
{
    (void)run, (void)all, (void)number;
    add_numbers(o->corners, o->oriented ? 8 : 0, out);
}

static void add_keypoints(const mr_export_run *run, const mr_objects *all, const mr_object *o, bool number, mr_buf *out)
{
    (void)run, (void)number;
    mr_buf_add_text(out, "[");
    for (size_t i = 0; i < o->keypoint_count; i++) {
        const mr_keypoint *k = &all->keypoints[o->keypoint + i];
        mr_buf_add_text(out, i ? "," : "");
        add_number(k->x, out);
        mr_buf_add_text(out, ",");
        add_number(k->y, out);
        mr_buf_printf(out, ",%d.0", k->visibility);
    }
    mr_buf_add_text(out, "]");
}

static void add_crowd(const mr_export_run *run, const mr_objects *all, const mr_object *o, bool number, mr_buf *out)
{
    (void)run, (void)all, (void)number;
    mr_buf_add_text(out, o->crowd ? "true" : "false");
}

static void add_objects(const mr_export_run *run, const mr_objects *all, mr_export_row_kind kind, mr_buf *out)
{
    const struct {
        const char *name;
        bool wanted;
        add_part *add;
    } parts[] = {{"bbox", true, add_box},
                 {"categories", true, add_category},
                 {"polygons", kind.polygons, add_polygons},
                 {"oriented", kind.oriented, add_oriented},
                 {"keypoints", kind.keypoints, add_keypoints},
                 {"crowd", true, add_crowd}};
    mr_buf_add_text(out, ",\"objects\":{");
    for (size_t p = 0; p < MR_COUNT(parts); p++) {
        if (!parts[p].wanted)
            continue;
        mr_buf_printf(out, "%s\"%s\":[", p ? "," : "", parts[p].name);
        for (size_t i = 0; i < all->count; i++) {
            mr_buf_add_text(out, i ? "," : "");
            parts[p].add(run, all, &all->items[i], kind.numbers, out);
        }
        mr_buf_add_text(out, "]");
    }
    mr_buf_add_text(out, "}");
}

void mr_export_row_add(const mr_export_run *run, const mr_export_sample *s, mr_export_row_kind kind, mr_buf *out)
{
    const mr_export_facts *f = s->facts;
    if (kind.label) {
        mr_buf_add_text(out, ",\"label\":");
        add_class(run, s->view->label, kind.numbers, out);
    }
    if (kind.labels) {
        mr_buf_add_text(out, ",\"labels\":[");
        if (!f->label_count && s->view->label >= 0)
            add_class(run, s->view->label, kind.numbers, out);
        for (size_t i = 0; i < f->label_count; i++) {
            mr_buf_add_text(out, i ? "," : "");
            add_class(run, f->labels[i], kind.numbers, out);
        }
        mr_buf_add_text(out, "]");
    }
    if (kind.captions)
        add_texts(f, out);
    if (kind.columns) { /* as text: its members may have any types */
        mr_buf_add_text(out, ",\"columns\":");
        if (f->columns.len)
            mr_json_add_string(out, s->view->meta + f->columns.at, f->columns.len);
        else
            mr_buf_add_text(out, "null");
    }
    if (kind.objects)
        add_objects(run, s->objects, kind, out);
}
