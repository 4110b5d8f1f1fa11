/* voc.c - the export `voc`: an XML for each image, as in the development kit of VOC2012.
 *
 *      JPEGImages/1.jpg  Annotations/1.xml  ImageSets/Main/train.txt  ImageSets/Main/val.txt
 *
 * Coordinates count pixels from 1, and the last one is part of the object: a box from the left edge of the first
 * pixel to the right edge of the third is xmin 1, xmax 3.  Polygons, which Roboflow adds, are edges from 0.
 * Invariant: an image is named after its source, without blanks, which would end its name in a list. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/scope.h"
#include "base/text.h"
#include "shards/export/format.h"
#include "shards/export/outline.h"

typedef struct voc {
    mr_out_text list; /* the split's list */
    mr_outline outline;
    mr_buf name, xml;
} voc;

/* Names that XML cannot hold as they are: see add_text(). */
static void count_names(mr_export_run *run)
{
    for (size_t c = 0; c < run->manifest->class_count; c++) {
        const char *name = run->manifest->classes[c].name;
        size_t len = strlen(name), i = 0;
        while (i < len && !mr_text_is_no_character(name + i, len - i))
            i++;
        if (i < len)
            mr_export_count_loss(run, MR_PART_CLASS_NAMES, NULL, 1);
    }
}

static mr_status begin(mr_export_run *run, mr_error *err)
{
    const char **instead = run->result->instead;
    run->state = mr_alloc(1, sizeof(voc));
    if (!run->state)
        return mr_fail_memory(err, "exporting");
    instead[MR_PART_RINGS] = "joined into one";
    instead[MR_PART_ORIENTED] = "upright boxes";
    instead[MR_PART_KEYPOINTS] = "boxes";
    instead[MR_PART_CROWDS] = "marked as difficult";
    instead[MR_PART_CLASS_NUMBERS] = "sorted by name";
    count_names(run);
    MR_TRY(mr_out_folder(&run->out, "JPEGImages", err));
    return mr_out_folder(&run->out, "Annotations", err);
}

static mr_status begin_split(mr_export_run *run, const mr_split *split, mr_error *err)
{
    voc *v = run->state;
    MR_AUTO(mr_scope_free) char *name = NULL;
    MR_AUTO(mr_buf_free) mr_buf path = {0};
    bool joint = !strcmp(split->name, "trainval"); /* which would be read as train and val together */
    MR_TRY(mr_export_folder_name(run, "/splits", joint ? "trainval_" : split->name, MR_PART_SPLIT_NAMES, &name, err));
    if (joint)
        mr_export_count_loss(run, MR_PART_SPLIT_NAMES, NULL, 1);
    mr_buf_printf(&path, "ImageSets/Main/%s.txt", name);
    const char *text = mr_buf_text(&path);
    MR_TRY(mr_buf_status(&path, err, "exporting"));
    return mr_out_text_open(&run->out, text, &v->list, err);
}

static mr_status end_split(mr_export_run *run, const mr_split *split, mr_error *err)
{
    voc *v = run->state;
    (void)split;
    return mr_out_text_close(&v->list, err);
}

/* ---- XML --------------------------------------------------------------------------------------------------------- */

/* XML 1.0 has no place for U+FFFE and U+FFFF, not even as references. */
static void add_text(const char *text, size_t len, mr_buf *out)
{
    for (size_t i = 0; i < len; i++) {
        const char *word = text[i] == '&' ? "&amp;" : text[i] == '<' ? "&lt;" : text[i] == '>' ? "&gt;" : NULL;
        if (mr_text_is_no_character(text + i, len - i)) {
            mr_buf_printf(out, "\\xEF\\xBF\\x%02X", (uint8_t)text[i + 2]);
            i += 2;
            continue;
        }
        mr_buf_add(out, word ? word : text + i, word ? strlen(word) : 1);
    }
}

static void add_number(const char *name, mr_milli value, mr_buf *out)
{
    mr_buf_printf(out, "<%s>", name);
    mr_milli_write(value, out);
    mr_buf_printf(out, "</%s>", name);
}

static void add_box(const mr_object *o, mr_buf *out)
{
    mr_buf_add_text(out, "\t\t<bndbox>");
    add_number("xmin", o->box[0] + 1000, out);
    add_number("ymin", o->box[1] + 1000, out);
    add_number("xmax", o->box[0] + o->box[2], out);
    add_number("ymax", o->box[1] + o->box[3], out);
    mr_buf_add_text(out, "</bndbox>\n");
}

static void add_polygon(const mr_outline *outline, mr_buf *out)
{
    char name[32];
    mr_buf_add_text(out, "\t\t<polygon>");
    for (size_t i = 0; i < outline->count; i++) {
        snprintf(name, sizeof name, "%c%zu", i & 1 ? 'y' : 'x', i / 2 + 1);
        add_number(name, outline->points[i], out);
    }
    mr_buf_add_text(out, "</polygon>\n");
}

static mr_status add_object(mr_export_run *run, const mr_export_sample *s, const mr_object *o, mr_error *err)
{
    voc *v = run->state;
    mr_buf *out = &v->xml;
    MR_AUTO(mr_buf_free) mr_buf name = {0};
    if (o->label < 0 || (size_t)o->label >= run->manifest->class_count) /* counted */
        return MR_OK;
    if (!o->has_box) {
        mr_export_count_loss(run, MR_PART_BOXLESS, s, 1);
        return MR_OK;
    }
    mr_export_class_text(&run->manifest->classes[o->label], &name);
    mr_buf_add_text(out, "\t<object>\n\t\t<name>");
    add_text(mr_buf_text(&name), name.len, out);
    mr_buf_printf(
        out, "</name>\n\t\t<pose>Unspecified</pose>\n\t\t<truncated>0</truncated>\n\t\t<difficult>%d</difficult>\n",
        o->crowd);
    add_box(o, out);
    if (o->ring_count) {
        if (!mr_outline_make(s->objects, o, &v->outline))
            return mr_fail_memory(err, "exporting");
        add_polygon(&v->outline, out);
    }
    mr_buf_add_text(out, "\t</object>\n");
    return mr_buf_status(&name, err, "exporting");
}

static mr_status write_xml(mr_export_run *run, const mr_export_sample *s, size_t stem, mr_error *err)
{
    voc *v = run->state;
    mr_buf *out = &v->xml;
    MR_AUTO(mr_buf_free) mr_buf path = {0};
    mr_buf_clear(out);
    mr_buf_add_text(out, "<annotation>\n\t<folder>JPEGImages</folder>\n\t<filename>");
    add_text(mr_buf_text(&v->name), v->name.len, out);
    mr_buf_printf(out,
                  "</filename>\n\t<size><width>%" PRIu32 "</width><height>%" PRIu32
                  "</height><depth>%d</depth></size>\n\t<segmented>0</segmented>\n",
                  s->view->width, s->view->height, s->view->components);
    for (size_t i = 0; i < s->objects->count; i++)
        MR_TRY(add_object(run, s, &s->objects->items[i], err));
    mr_buf_add_text(out, "</annotation>\n");
    mr_buf_printf(&path, "Annotations/%.*s.xml", (int)stem, mr_buf_text(&v->name));
    const char *text = mr_buf_text(&path);
    MR_TRY(mr_buf_status(&path, err, "exporting"));
    MR_TRY(mr_buf_status(out, err, "exporting"));
    return mr_out_file(&run->out, text, out->data, out->len, err);
}

static mr_status sample(mr_export_run *run, const mr_export_sample *s, mr_error *err)
{
    voc *v = run->state;
    MR_TRY(mr_export_picture_name(run, "JPEGImages", s, MR_NAME_STEM | MR_NAME_SOLID, &v->name, err));
    const char *name = mr_buf_text(&v->name), *dot = strrchr(name, '.');
    size_t stem = dot ? (size_t)(dot - name) : v->name.len;
    MR_TRY(mr_export_picture(run, "JPEGImages", name, s, err));
    mr_buf_printf(&v->list.text, "%.*s\n", (int)stem, name);
    MR_TRY(mr_out_text_push(&v->list, err));
    return s->objects->known ? write_xml(run, s, stem, err) : MR_OK;
}

static void free_state(void *state)
{
    voc *v = state;
    mr_out_text_free(&v->list);
    mr_outline_free(&v->outline);
    mr_buf_free(&v->name);
    mr_buf_free(&v->xml);
    free(v);
}

const mr_export_format mr_export_format_voc = {
    .name = "voc",
    .holds = MR_HOLDS(UNLABELLED) | MR_HOLDS(OBJECTS) | MR_HOLDS(BOXES) | MR_HOLDS(POLYGONS) | MR_HOLDS(OUTSIDE),
    .begin = begin,
    .begin_split = begin_split,
    .sample = sample,
    .end_split = end_split,
    .free_state = free_state,
};
