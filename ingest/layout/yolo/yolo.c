/* yolo.c - YOLO: data.yaml, folders of images, and a text file of labels for each image.
 * Invariant: a label file is read again for the meta of its image, by the rules that the plan determined. */
#include "ingest/layout/yolo/yolo.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/scope.h"
#include "base/text.h"
#include "ingest/source/names.h"

enum { SCORE_OF_CLASSES = 19 }; /* below that of any folders of classes */

/* ---- bid --------------------------------------------------------------------------------------------------------- */

static bool is_in_images(const mr_tree *t)
{
    static const char name[] = "images/";
    size_t len = strlen(name);
    return t->root_len >= len && !strncasecmp(t->root + t->root_len - len, name, len) &&
           (t->root_len == len || t->root[t->root_len - len - 1] == '/');
}

static mr_status yolo_bid(const mr_tree *t, const mr_layout_options *o, mr_bid *bid, mr_error *err)
{
    mr_yolo_dirs dirs;
    size_t len = 0;
    const char *name = NULL;
    (void)o;
    mr_yolo_dirs_find(t, &dirs);
    bool settings = mr_yolo_settings_found(t, &name, &len);
    if (!dirs.count && settings) {
        mr_yolo_settings read;
        mr_status status = mr_yolo_settings_read(t, &read, err);
        if (status == MR_OK)
            mr_yolo_dirs_named(t, &read, &dirs);
        mr_yaml_free(&read.yaml);
        if (status == MR_SYSTEM)
            return status;
    }
    bool list = settings && mr_name_ends(name, len, ".txt"); /* many datasets have image lists */
    if (!dirs.count || (!dirs.labels && !dirs.masks && (!settings || list)))
        return MR_OK;
    bid->score = (dirs.labels ? 80 : 60) + 5 * settings + 4 * (dirs.items[0].name != NULL);
    if (dirs.deep && !dirs.labels && !dirs.masks)
        bid->score = SCORE_OF_CLASSES;
    bid->score -= is_in_images(t); /* the folder above may have data.yaml */
    snprintf(bid->why, sizeof bid->why, "%s%s%.150s", *dirs.seen ? dirs.seen : "images", name ? ", " : "",
             name ? name : "");
    return MR_OK;
}

/* ---- meta and objects -------------------------------------------------------------------------------------------- */

typedef struct label { /* the file of one sample */
    mr_buf bytes;
    mr_yolo_reader reader;
    mr_yolo_rules rules;
} label;

static void close_label(label *l)
{
    mr_buf_free(&l->bytes);
    mr_yolo_reader_free(&l->reader);
}

static mr_status open_label(const mr_tree *t, const mr_plan *plan, const mr_sample *sample, label *l, mr_error *err)
{
    const mr_yolo_state *st = plan->state;
    MR_TRY(mr_texts_read(&st->texts, t->source, (uint32_t)(sample->aux >> 1), &l->bytes, err));
    l->reader.lines = mr_lines_of(l->bytes.data, l->bytes.len);
    l->rules = (mr_yolo_rules){plan, st->keypoints, st->dims, sample->aux & 1, false};
    return MR_OK;
}

static mr_status end_label(const mr_tree *t, const mr_sample *sample, mr_status status, mr_error *err)
{
    if (status == MR_SYSTEM)
        return mr_fail_memory(err, "reading labels");
    return status == MR_END ? MR_OK
                            : mr_fail(err, MR_BAD_DATA, "%s: changed while being ingested; run the command again",
                                      mr_source_entry(t->source, (uint32_t)(sample->aux >> 1))->path);
}

/* Its lines, verbatim. */
static mr_status yolo_meta(const mr_tree *t, const mr_plan *plan, const mr_sample *sample, mr_buf *out, mr_error *err)
{
    MR_AUTO(close_label) label l = {0};
    mr_yolo_line line;
    mr_status status;
    if (sample->aux == MR_YOLO_NO_LABEL)
        return MR_OK;
    MR_TRY(open_label(t, plan, sample, &l, err));
    mr_buf_add_text(out, ",\"yolo\":[");
    for (bool first = true; (status = mr_yolo_next(&l.reader, &l.rules, &line)) == MR_OK; first = false) {
        mr_buf_add_text(out, first ? "" : ",");
        mr_json_add_path(out, line.text, line.len);
    }
    mr_buf_add_text(out, "]");
    MR_TRY(end_label(t, sample, status, err));
    return mr_buf_status(out, err, "writing a sample's labels");
}

/* Within range: the line has been checked. */
static mr_milli milli(double pixels)
{
    mr_milli value = 0;
    mr_milli_of(pixels, &value);
    return value;
}

static void add_box(mr_object *o, const double *n, const mr_stored *p)
{
    mr_milli x = milli((n[0] - n[2] / 2) * p->width), y = milli((n[1] - n[3] / 2) * p->height);
    mr_milli right = milli((n[0] + n[2] / 2) * p->width), bottom = milli((n[1] + n[3] / 2) * p->height);
    o->has_box = true;
    memcpy(o->box, (mr_milli[]){x, y, right - x, bottom - y}, sizeof o->box);
}

static void add_keypoints(const mr_yolo_state *st, const mr_yolo_line *line, const mr_stored *p, mr_objects *out)
{
    for (size_t i = 4; i + st->dims <= line->count; i += st->dims) {
        const double *n = line->numbers + i;
        int visibility = st->dims == 3 ? (int)n[2] : n[0] != 0 || n[1] != 0 ? 2 : 0;
        mr_objects_keypoint(out, out->count - 1,
                            (mr_keypoint){milli(n[0] * p->width), milli(n[1] * p->height), visibility});
    }
}

static void add_corners(mr_objects *out, mr_object *o, const mr_yolo_line *line, double width, double height)
{
    o->oriented = true;
    for (size_t i = 0; i < 8; i++)
        o->corners[i] = milli(line->numbers[i] * (i & 1 ? height : width));
    mr_objects_box_around(out, o->corners, 8);
}

static void add_object(const mr_yolo_state *st, const mr_yolo_line *line, const mr_stored *p, mr_objects *out)
{
    mr_object *o = mr_objects_add(out, (int32_t)line->class);
    if (!o)
        return;
    if (line->kind == MR_YOLO_TEXT)
        add_corners(out, o, line, 1, 1);
    else if (line->kind == MR_YOLO_POLYGON && st->oriented)
        add_corners(out, o, line, p->width, p->height);
    else if (line->kind == MR_YOLO_POLYGON) {
        mr_objects_ring(out);
        size_t at = out->point_count;
        for (size_t i = 0; i + 1 < line->count && !out->failed; i += 2)
            mr_objects_point(out, milli(line->numbers[i] * p->width), milli(line->numbers[i + 1] * p->height));
        if (!out->failed)
            mr_objects_box_around(out, out->points + at, out->point_count - at);
    } else {
        add_box(o, line->numbers, p);
        if (line->kind == MR_YOLO_POSE)
            add_keypoints(st, line, p, out);
    }
}

static mr_status yolo_objects(const mr_tree *t, const mr_plan *plan, const mr_sample *sample, const mr_stored *picture,
                              mr_objects *out, mr_error *err)
{
    const mr_yolo_state *st = plan->state;
    const mr_stored shown = mr_stored_shown(picture); /* whose parts the lines state: readers turn it first */
    MR_AUTO(close_label) label l = {0};
    mr_yolo_line line;
    mr_status status;
    out->known = st->known[sample->split];
    if (sample->aux == MR_YOLO_NO_LABEL)
        return MR_OK;
    MR_TRY(open_label(t, plan, sample, &l, err));
    while ((status = mr_yolo_next(&l.reader, &l.rules, &line)) == MR_OK && !out->failed)
        add_object(st, &line, &shown, out);
    mr_objects_turn_back(out, picture);
    return out->failed ? mr_fail_memory(err, "reading labels") : end_label(t, sample, status, err);
}

static void free_state(void *state)
{
    mr_yolo_state *st = state;
    if (st)
        mr_texts_free(&st->texts);
    free(st);
}

const mr_layout mr_layout_yolo = {
    .name = "yolo",
    .title = "YOLO: data.yaml, images/ and labels/, of Roboflow and Ultralytics",
    .needs =
        "SPLIT/images/ and SPLIT/labels/, or images/SPLIT/ and labels/SPLIT/, with data.yaml or classes.txt; folders "
        "that data.yaml or a Darknet *.data names; or images with labels beside them",
    .options = MR_OPTION_UNLISTED,
    .bid = yolo_bid,
    .plan = mr_yolo_plan,
    .meta = yolo_meta,
    .objects = yolo_objects,
    .masks = mr_yolo_masks,
    .free_state = free_state,
};
