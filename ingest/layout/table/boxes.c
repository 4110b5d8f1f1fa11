/* boxes.c - tables with a row for each box: which columns are its sides, and the objects of an image.
 * Invariant: an image's objects are those of all its rows; a row whose sides are all empty is one without an object.
 *
 *      filename,width,height,class,xmin,ymin,xmax,ymax         TensorFlow, Roboflow's _annotations.csv
 *      path,x1,y1,x2,y2,class                                  RetinaNet, without a header (header.c)
 *      ImageID,LabelName,XMin,XMax,YMin,YMax                   Open Images: parts of the image's width and height
 *      image_id,width,height,"[x, y, width, height]"           bbox
 *      filename,...,region_shape_attributes,region_attributes  VIA (via.c) */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/scope.h"
#include "ingest/layout/common/label_census.h"
#include "ingest/layout/table/table.h"

enum { SIDES = 4, WORDS = 8 };

static const struct {
    mr_box_form form;
    const char *names[SIDES][WORDS]; /* the first that exists is used */
} forms[] = {
    {MR_BOX_CORNERS,
     {{"xmin", "x1", "left", "bbox_x1", "bbox_xmin"},
      {"ymin", "y1", "top", "bbox_y1", "bbox_ymin"},
      {"xmax", "x2", "right", "bbox_x2", "bbox_xmax"},
      {"ymax", "y2", "bottom", "bbox_y2", "bbox_ymax"}}},
    {MR_BOX_CORNERS, {{"x0"}, {"y0"}, {"x1"}, {"y1"}}},
    {MR_BOX_MIDDLE,
     {{"x_center", "cx", "center_x", "xc"},
      {"y_center", "cy", "center_y", "yc"},
      {"w", "bbox_width", "bbox_w", "box_width", "width"},
      {"h", "bbox_height", "bbox_h", "box_height", "height"}}},
    {MR_BOX_SIZE,
     {{"x", "bbox_x", "xmin", "x1", "left"},
      {"y", "bbox_y", "ymin", "y1", "top"},
      {"w", "bbox_width", "bbox_w", "box_width", "width"},
      {"h", "bbox_height", "bbox_h", "box_height", "height"}}},
};

static const char *const text_words[] = {"bbox", "bounding_box", "bndbox", "box", NULL};
static const char *const crowd_words[] = {"is_group_of", "is_crowd", "crowd", NULL};
static const char *const width_words[] = {"width", "image_width", "img_width", NULL};
static const char *const height_words[] = {"height", "image_height", "img_height", NULL};

/* Columns whose annotations a table's row cannot give. */
static const char *const unread_words[] = {"encodedpixels", "predictionstring", "boxesstring", "rle",
                                           "rle_mask",      "mask_rle",         "rle_masks",   NULL};
static const char *const shape_words[] = {"region_shape_attributes", NULL};
static const char *const attribute_words[] = {"region_attributes", NULL};

/* ... if their cells are lists. */
static const char *const list_words[] = {
    "polygon",   "polygons", "segmentation", "segmentations", "points",      "keypoints", "vertices",
    "landmarks", "boxes",    "bboxes",       "objects",       "annotations", NULL};

/* ---- columns ---------------------------------------------------------------------------------------------------- */

static bool find_sides(const mr_sheet *s, size_t form, int at[SIDES])
{
    for (size_t side = 0; side < SIDES; side++) {
        at[side] = -1;
        for (size_t w = 0; w < WORDS && forms[form].names[side][w] && at[side] < 0; w++) {
            const char *word[] = {forms[form].names[side][w], NULL};
            at[side] = mr_sheet_column_among(s, word);
        }
        if (at[side] < 0)
            return false;
    }
    return true;
}

bool mr_sheet_is_side(const mr_sheet *s, size_t column)
{
    const mr_box_columns *b = &s->boxes;
    bool is = b->form && ((int)column == b->width || (int)column == b->height || (int)column == b->crowd);
    for (size_t i = 0; b->form && i < SIDES; i++)
        is = is || b->at[i] == (int)column;
    return is;
}

/* ---- cells ------------------------------------------------------------------------------------------------------ */

static bool number_of(const char *cell, double *out)
{
    char *end;
    while (*cell == ' ')
        cell++;
    *out = strtod(cell, &end);
    while (*end == ' ')
        end++;
    return end != cell && !*end && isfinite(*out) && !strpbrk(cell, "xXpP");
}

static bool is_empty(const char *cell)
{
    bool digit = *cell >= '0' && *cell <= '9';
    return !digit && mr_value_of(cell, strlen(cell)).kind == MR_VALUE_NONE;
}

/* "[834.0, 222.0, 56.0, 36.0]" */
static bool four_of(const char *cell, double out[SIDES])
{
    size_t n = 0;
    for (; n < SIDES; n++) {
        char *end;
        cell += strspn(cell, " [(,;");
        out[n] = strtod(cell, &end);
        if (end == cell || !isfinite(out[n]))
            return false;
        cell = end;
    }
    return !cell[strspn(cell, " ])")];
}

mr_box_row mr_sheet_box(const mr_sheet *s, size_t row, double out[4])
{
    const mr_box_columns *b = &s->boxes;
    size_t empty = 0;
    if (b->form == MR_BOX_VIA)
        return mr_via_box(s, row, out);
    if (b->form == MR_BOX_TEXT) {
        const char *cell = mr_sheet_cell(s, row, (size_t)b->at[0]);
        return is_empty(cell) || !strcmp(cell, "[]") ? MR_BOX_ABSENT : four_of(cell, out) ? MR_BOX_THERE : MR_BOX_BAD;
    }
    for (size_t i = 0; i < SIDES; i++) {
        const char *cell = mr_sheet_cell(s, row, (size_t)b->at[i]);
        empty += is_empty(cell);
        if (!is_empty(cell) && !number_of(cell, &out[i]))
            return MR_BOX_BAD;
    }
    return empty == SIDES ? MR_BOX_ABSENT : empty ? MR_BOX_BAD : MR_BOX_THERE;
}

typedef struct measures {
    size_t there, bad, beyond;
    double most;
} measures;

static void measure_row(const mr_sheet *s, size_t row, measures *m)
{
    double v[SIDES], width = 0, height = 0;
    mr_box_row there = mr_csv_odd_row(&s->csv, row) ? MR_BOX_ABSENT : mr_sheet_box(s, row, v);
    m->there += there == MR_BOX_THERE;
    m->bad += there == MR_BOX_BAD;
    for (size_t i = 0; i < SIDES && there == MR_BOX_THERE; i++)
        m->most = fmax(m->most, fabs(v[i]));
    if (there == MR_BOX_THERE && s->boxes.width >= 0 &&
        number_of(mr_sheet_cell(s, row, (size_t)s->boxes.width), &width) &&
        number_of(mr_sheet_cell(s, row, (size_t)s->boxes.height), &height))
        m->beyond += v[0] + v[2] > width + 1 || v[1] + v[3] > height + 1;
}

/* Pixels or parts: no image's boxes all lie within its first two pixels. */
static mr_status measure(mr_sheet *s, mr_error *err)
{
    measures m = {0};
    for (size_t r = 0; r < s->csv.rows; r++)
        measure_row(s, r, &m);
    s->boxes.parts = m.there && m.most <= 2;
    if (s->boxes.form != MR_BOX_TEXT)
        return MR_OK;
    const char *column = s->csv.header[s->boxes.at[0]];
    if (m.bad && !m.there && !strcasecmp(column, "box")) {
        s->boxes.form = MR_BOX_NONE; /* a column that is merely called "box" */
        return MR_OK;
    }
    if (m.bad && !m.there)
        return mr_fail(err, MR_BAD_DATA, "%s: column %s holds no box of the form [x, y, width, height]", s->name,
                       column);
    if (!s->boxes.parts && m.beyond * 2 > m.there)
        return mr_fail(err, MR_BAD_DATA,
                       "%s: as [x, y, width, height], %zu of %zu boxes in column %s leave their images; write corners "
                       "into four columns: xmin, ymin, xmax, ymax",
                       s->name, m.beyond, m.there, column);
    return MR_OK;
}

/* A column beside those of a box that makes it another shape: a third corner, or an angle; -1: none. */
static int other_shape(const mr_sheet *s)
{
    static const char *const zeroth[] = {"x0", NULL}, *const second[] = {"x2", NULL}, *const third[] = {"x3", NULL};
    static const char *const angles[] = {"angle", "theta", "rotation", "bbox_angle", NULL};
    int corner = mr_sheet_column_among(s, mr_sheet_column_among(s, zeroth) >= 0 ? second : third);
    bool corners = s->boxes.form == MR_BOX_CORNERS; /* an angle beside them is of something else */
    int angle = corner < 0 && !corners ? mr_sheet_column_among(s, angles) : -1;
    double degrees = 0;
    for (size_t r = 0; angle >= 0 && r < s->csv.rows; r++)
        if (number_of(mr_sheet_cell(s, r, (size_t)angle), &degrees) && degrees != 0)
            return angle;
    return corner;
}

static int unread_column(const mr_sheet *s)
{
    int column = mr_sheet_column_among(s, list_words);
    const char *cell = column >= 0 && s->csv.rows ? mr_sheet_cell(s, 0, (size_t)column) : "";
    return *cell == '[' || *cell == '{' || *cell == '(' ? column : mr_sheet_column_among(s, unread_words);
}

mr_status mr_sheet_find_boxes(mr_sheet *s, const mr_layout_options *o, mr_error *err)
{
    mr_box_columns *b = &s->boxes;
    int unread = unread_column(s);
    *b = (mr_box_columns){.width = -1, .height = -1, .crowd = -1};
    for (size_t f = 0; f < MR_COUNT(forms) && !b->form; f++)
        b->form = find_sides(s, f, b->at) ? forms[f].form : MR_BOX_NONE;
    int other = b->form ? other_shape(s) : -1;
    if (other >= 0) {
        b->form = MR_BOX_NONE;
        unread = other;
    }
    if (!b->form && (b->at[0] = mr_sheet_column_among(s, shape_words)) >= 0) {
        b->form = MR_BOX_VIA;
        b->at[1] = mr_sheet_column_among(s, attribute_words);
        b->at[2] = b->at[3] = -1;
        return MR_OK;
    }
    if (!b->form && (b->at[0] = mr_sheet_column_among(s, text_words)) >= 0) {
        b->form = MR_BOX_TEXT;
        b->at[1] = b->at[2] = b->at[3] = -1;
    }
    if (!b->form && unread >= 0 && !o->label_column)
        return mr_fail(
            err, MR_BAD_DATA,
            "%s: column %s holds shapes that are not read from a table; convert it to COCO JSON, or take the "
            "images with a class of another column by --label-column",
            s->name, s->csv.header[unread]);
    if (!b->form)
        return MR_OK;
    int width = mr_sheet_column_among(s, width_words), height = mr_sheet_column_among(s, height_words);
    bool sizes = width >= 0 && height >= 0 && width != b->at[2] && height != b->at[3];
    b->crowd = mr_sheet_column_among(s, crowd_words);
    b->width = sizes ? width : -1;
    b->height = sizes ? height : -1;
    return measure(s, err);
}

/* ---- objects ---------------------------------------------------------------------------------------------------- */

static void state_size(const mr_sheet *s, size_t row, mr_objects *out)
{
    double width = 0, height = 0;
    if (s->boxes.width < 0 || !number_of(mr_sheet_cell(s, row, (size_t)s->boxes.width), &width) ||
        !number_of(mr_sheet_cell(s, row, (size_t)s->boxes.height), &height))
        return;
    if (width < 1 || height < 1 || width > 1e6 || height > 1e6)
        return;
    out->width = (uint32_t)width;
    out->height = (uint32_t)height;
}

/* In pixels: x, y, width and height. */
static void settle_box(const mr_sheet *s, const mr_stored *picture, mr_objects *out, double v[SIDES])
{
    if (s->boxes.parts) { /* relative to the image as its row states its size, which may be the turned one */
        bool turned = out->width == picture->height && out->height == picture->width;
        for (size_t i = 0; i < SIDES; i++)
            v[i] *= i % 2 ? (turned ? out->height : picture->height) : (turned ? out->width : picture->width);
    }
    if (s->boxes.form == MR_BOX_CORNERS) {
        v[2] -= v[0];
        v[3] -= v[1];
    } else if (s->boxes.form == MR_BOX_MIDDLE) {
        v[0] -= v[2] / 2;
        v[1] -= v[3] / 2;
    }
}

static void add_row(const mr_plan *plan, const mr_sheet *s, size_t row, const mr_stored *picture, mr_objects *out)
{
    const mr_table_state *st = plan->state;
    mr_table_labels l = {.sheet = s, .row = row, .separators = ""};
    const char *text;
    size_t len;
    double v[SIDES];
    mr_milli box[SIDES];
    mr_box_row there = mr_sheet_box(s, row, v);
    if (there != MR_BOX_THERE) {
        out->unreadable += there == MR_BOX_BAD;
        return;
    }
    settle_box(s, picture, out, v);
    for (size_t i = 0; i < SIDES; i++)
        if (!mr_milli_of(v[i], &box[i])) {
            out->unreadable++;
            return;
        }
    mr_object *o = mr_objects_add(out, mr_table_label(&l, &text, &len) ? mr_table_class(st, plan, text, len) : -1);
    if (!o)
        return;
    o->has_box = true;
    memcpy(o->box, box, sizeof o->box);
    if (s->boxes.form == MR_BOX_VIA)
        mr_via_polygon(s, row, out);
    o->crowd = s->boxes.crowd >= 0 && !strcmp(mr_sheet_cell(s, row, (size_t)s->boxes.crowd), "1");
}

mr_status mr_table_objects(const mr_tree *t, const mr_plan *plan, const mr_sample *sample, const mr_stored *picture,
                           mr_objects *out, mr_error *err)
{
    const mr_table_state *st = plan->state;
    const mr_sheet *s = sample->aux && !st->sidecars ? &st->sheets[sample->aux >> 32] : NULL;
    (void)t;
    if (!s || !s->boxes.form)
        return MR_OK;
    out->known = true;
    state_size(s, (uint32_t)sample->aux - 1, out);
    for (size_t r = (uint32_t)sample->aux; r && !out->failed; r = mr_sheet_next_row(s, r))
        add_row(plan, s, r - 1, picture, out);
    return out->failed ? mr_fail_memory(err, "reading boxes") : MR_OK;
}
