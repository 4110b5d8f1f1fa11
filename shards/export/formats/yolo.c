/* yolo.c - the export `yolo`: data.yaml, SPLIT/images/ and SPLIT/labels/.
 * Source: "Dataset format" of the tasks detect, segment, obb and pose in Ultralytics' documentation.
 *
 *      data.yaml  train/images/1.jpg  train/labels/1.txt  val/images/2.jpg  val/labels/2.txt
 *
 * Invariant: all labels are of one task, as readers require, and every coordinate is within the image as EXIF shows it,
 * which is the one that readers see: one beyond it makes Ultralytics drop the whole image. */
#include <stdlib.h>
#include <string.h>

#include "base/scope.h"
#include "base/text.h"
#include "shards/export/format.h"
#include "shards/export/formats/hub_yaml.h"
#include "shards/export/outline.h"

typedef struct yolo {
    mr_export_task task;
    char *images, *labels; /* the folders of the split */
    char **splits;         /* the folder of each split of the manifest; NULL: not exported */
    size_t split_count;
    mr_outline outline;
    mr_buf name, line;
} yolo;

static const char *const task_words[] = {
    [MR_TASK_DETECT] = "detect", [MR_TASK_SEGMENT] = "segment", [MR_TASK_OBB] = "obb", [MR_TASK_POSE] = "pose"};

/* What most objects have. */
static mr_export_task choose(const mr_export_run *run)
{
    const mr_export_survey *s = run->survey;
    uint64_t best = 0;
    mr_export_task task = MR_TASK_DETECT;
    const struct {
        uint64_t count;
        mr_export_task task;
    } found[] = {{s->oriented, MR_TASK_OBB}, {s->keypoints, MR_TASK_POSE}, {s->polygons, MR_TASK_SEGMENT}};
    for (size_t i = 0; i < MR_COUNT(found); i++)
        if (found[i].count > best) {
            best = found[i].count;
            task = found[i].task;
        }
    return run->options->task ? run->options->task : task;
}

static void state_holdings(mr_export_run *run, mr_export_task task)
{
    const char **instead = run->result->instead;
    static const unsigned holds[] = {
        [MR_TASK_DETECT] = MR_HOLDS(BOXES),
        [MR_TASK_SEGMENT] = MR_HOLDS(POLYGONS),
        [MR_TASK_OBB] = MR_HOLDS(ORIENTED),
        [MR_TASK_POSE] = MR_HOLDS(KEYPOINTS) | MR_HOLDS(BOXES),
    };
    run->holds |= holds[task];
    bool outlines = task == MR_TASK_SEGMENT;
    instead[MR_PART_BOXES] = outlines ? "polygons of four points" : "oriented boxes";
    instead[MR_PART_POLYGONS] = task == MR_TASK_OBB ? "oriented boxes" : "boxes";
    instead[MR_PART_ORIENTED] = outlines ? "polygons of four points" : "boxes";
    instead[MR_PART_KEYPOINTS] = task == MR_TASK_OBB ? "oriented boxes" : outlines ? "polygons" : "boxes";
    instead[MR_PART_RINGS] = "joined into one";
    instead[MR_PART_OUTSIDE] = "cut at its edge";
}

static mr_status begin(mr_export_run *run, mr_error *err)
{
    const mr_export_survey *s = run->survey;
    yolo *y = mr_alloc(1, sizeof *y);
    if (!y)
        return mr_fail_memory(err, "exporting");
    run->state = y;
    y->task = choose(run);
    y->split_count = run->manifest->split_count;
    y->splits = mr_alloc(y->split_count + 1, sizeof *y->splits);
    if (!y->splits)
        return mr_fail_memory(err, "exporting");
    if (y->task == MR_TASK_POSE && !s->most_keypoints)
        return mr_fail(err, MR_MISUSE, "--task pose: no object has keypoints");
    state_holdings(run, y->task);
    snprintf(run->result->remark, sizeof run->result->remark,
             "task %s%s: of %llu objects, %llu have polygons, %llu "
             "oriented boxes, %llu keypoints",
             task_words[y->task], run->options->task ? " (--task)" : "", (unsigned long long)s->objects,
             (unsigned long long)s->polygons, (unsigned long long)s->oriented, (unsigned long long)s->keypoints);
    return MR_OK;
}

static mr_status join(const char *folder, const char *inner, char **out, mr_error *err)
{
    free(*out);
    if (asprintf(out, "%s/%s", folder, inner) >= 0)
        return MR_OK;
    *out = NULL;
    return mr_fail_memory(err, "exporting");
}

static mr_status begin_split(mr_export_run *run, const mr_split *split, mr_error *err)
{
    yolo *y = run->state;
    char **folder = &y->splits[split - run->manifest->splits];
    MR_TRY(mr_export_folder_name(run, "", split->name, MR_PART_SPLIT_NAMES, folder, err));
    MR_TRY(join(*folder, "images", &y->images, err));
    MR_TRY(join(*folder, "labels", &y->labels, err));
    MR_TRY(mr_out_folder(&run->out, y->labels, err));
    return mr_out_folder(&run->out, y->images, err);
}

/* ---- labels ------------------------------------------------------------------------------------------------------ */

static void add_fraction(mr_milli value, uint32_t size, mr_buf *out)
{
    mr_buf_add(out, " ", 1);
    mr_outline_fraction(value, size, out);
}

/* False: nothing of the box is in the image. */
static bool add_box(const mr_object *o, const mr_stored *p, bool *cut, mr_buf *out)
{
    mr_milli x = o->box[0], y = o->box[1], right = x + o->box[2], bottom = y + o->box[3];
    bool first = mr_outline_clip(p, &x, &y), second = mr_outline_clip(p, &right, &bottom);
    *cut = *cut || first || second;
    if (!o->has_box || right <= x || bottom <= y)
        return false;
    /* The middle may be half a thousandth of a pixel, so the image is counted twice as large. */
    add_fraction(x + right, p->width * 2, out);
    add_fraction(y + bottom, p->height * 2, out);
    add_fraction(right - x, p->width, out);
    add_fraction(bottom - y, p->height, out);
    return true;
}

static void add_keypoints(const mr_objects *all, const mr_object *o, size_t most, const mr_stored *p, bool *cut,
                          mr_buf *out)
{
    for (size_t i = 0; i < most; i++) {
        mr_keypoint k = i < o->keypoint_count ? all->keypoints[o->keypoint + i] : (mr_keypoint){0};
        *cut = mr_outline_clip(p, &k.x, &k.y) || *cut;
        add_fraction(k.x, p->width, out);
        add_fraction(k.y, p->height, out);
        mr_buf_printf(out, " %d", k.visibility);
    }
}

static bool add_points(const mr_milli *points, size_t count, const mr_stored *p, bool *cut, mr_buf *out)
{
    mr_milli low[2] = {INT64_MAX, INT64_MAX}, high[2] = {INT64_MIN, INT64_MIN};
    for (size_t i = 0; i + 1 < count; i += 2) {
        mr_milli at[2] = {points[i], points[i + 1]};
        *cut = mr_outline_clip(p, &at[0], &at[1]) || *cut;
        for (int c = 0; c < 2; c++) {
            low[c] = at[c] < low[c] ? at[c] : low[c];
            high[c] = at[c] > high[c] ? at[c] : high[c];
        }
        add_fraction(at[0], p->width, out);
        add_fraction(at[1], p->height, out);
    }
    return low[0] < high[0] && low[1] < high[1];
}

static mr_status add_outline(yolo *y, const mr_export_run *run, const mr_export_sample *s, const mr_object *o,
                             const mr_stored *p, bool *cut, bool *good, mr_error *err)
{
    if (!mr_outline_make(s->objects, o, &y->outline))
        return mr_fail_memory(err, "exporting");
    *good = add_points(y->outline.points, y->outline.count, p, cut, &y->line);
    /* A reader that does not know the task reads four points in every line as oriented boxes. */
    if (*good && run->survey->quads && y->outline.count == 8)
        *good = add_points(y->outline.points, 2, p, cut, &y->line) || *good;
    return MR_OK;
}

static mr_status add_object(mr_export_run *run, const mr_export_sample *s, const mr_object *o, mr_error *err)
{
    yolo *y = run->state;
    const mr_stored p = mr_stored_shown(&(mr_stored){s->view->width, s->view->height, s->view->orientation});
    mr_milli corners[8];
    size_t before = y->line.len;
    bool good = false, cut = false;
    if (o->label < 0 || (size_t)o->label >= run->manifest->class_count || o->crowd) /* counted */
        return MR_OK;
    mr_buf_printf(&y->line, "%d", (int)o->label);
    if (y->task == MR_TASK_SEGMENT) {
        MR_TRY(add_outline(y, run, s, o, &p, &cut, &good, err));
    } else if (y->task == MR_TASK_OBB) {
        good = mr_outline_corners(o, corners) && add_points(corners, 8, &p, &cut, &y->line);
    } else {
        good = add_box(o, &p, &cut, &y->line);
        if (good && y->task == MR_TASK_POSE)
            add_keypoints(s->objects, o, run->survey->most_keypoints, &p, &cut, &y->line);
    }
    mr_buf_add(&y->line, "\n", 1);
    if (!good)
        y->line.len = before;
    mr_export_count_loss(run, MR_PART_BOXLESS, s, !good);
    mr_export_count_loss(run, MR_PART_OUTSIDE, s, good && cut);
    return mr_buf_status(&y->line, err, "exporting");
}

/* An image without objects gets an empty file; one whose objects are not known gets none. */
static mr_status write_label(mr_export_run *run, const mr_export_sample *s, mr_error *err)
{
    yolo *y = run->state;
    MR_AUTO(mr_buf_free) mr_buf path = {0};
    const char *name = mr_buf_text(&y->name), *dot = strrchr(name, '.');
    mr_buf_clear(&y->line);
    for (size_t i = 0; i < s->objects->count; i++)
        MR_TRY(add_object(run, s, &s->objects->items[i], err));
    mr_buf_printf(&path, "%s/%.*s.txt", y->labels, (int)(dot ? dot - name : (ptrdiff_t)y->name.len), name);
    const char *text = mr_buf_text(&path);
    MR_TRY(mr_buf_status(&path, err, "exporting"));
    return mr_out_file(&run->out, text, y->line.data, y->line.len, err);
}

static mr_status sample(mr_export_run *run, const mr_export_sample *s, mr_error *err)
{
    yolo *y = run->state;
    MR_TRY(mr_export_picture_name(run, y->images, s, MR_NAME_STEM, &y->name, err));
    MR_TRY(mr_export_picture(run, y->images, mr_buf_text(&y->name), s, err));
    return s->objects->known ? write_label(run, s, err) : MR_OK;
}

/* ---- data.yaml --------------------------------------------------------------------------------------------------- */

static void add_names(const mr_export_run *run, mr_buf *out)
{
    mr_buf_printf(out, "nc: %zu\nnames:%s\n", run->manifest->class_count, run->manifest->class_count ? "" : " []");
    for (size_t i = 0; i < run->manifest->class_count; i++) {
        MR_AUTO(mr_buf_free) mr_buf name = {0};
        mr_export_class_text(&run->manifest->classes[i], &name);
        mr_buf_printf(out, "  %zu: ", i);
        mr_yaml_add_string(out, mr_buf_text(&name), name.len);
        mr_buf_add_text(out, "\n");
        out->failed = out->failed || name.failed;
    }
}

static mr_status end(mr_export_run *run, mr_error *err)
{
    const yolo *y = run->state;
    MR_AUTO(mr_buf_free) mr_buf text = {0};
    static const char *const keys[] = {"train", "val", "test"}; /* other splits are found by their folders */
    for (size_t k = 0; k < MR_COUNT(keys); k++)
        for (size_t i = 0; i < y->split_count; i++)
            if (y->splits[i] && !strcmp(run->manifest->splits[i].name, keys[k]))
                mr_buf_printf(&text, "%s: %s/images\n", keys[k], y->splits[i]);
    add_names(run, &text);
    mr_buf_printf(&text, "task: %s\n", task_words[y->task]);
    if (y->task == MR_TASK_POSE)
        mr_buf_printf(&text, "kpt_shape: [%zu, 3]\n", run->survey->most_keypoints);
    MR_TRY(mr_buf_status(&text, err, "exporting"));
    return mr_out_file(&run->out, "data.yaml", text.data, text.len, err);
}

static void free_state(void *state)
{
    yolo *y = state;
    for (size_t i = 0; y->splits && i < y->split_count; i++)
        free(y->splits[i]);
    free(y->splits);
    free(y->images);
    free(y->labels);
    mr_outline_free(&y->outline);
    mr_buf_free(&y->name);
    mr_buf_free(&y->line);
    free(y);
}

const mr_export_format mr_export_format_yolo = {
    .name = "yolo",
    .holds =
        MR_HOLDS(UNLABELLED) | MR_HOLDS(OBJECTS) | MR_HOLDS(EMPTY_CLASSES) | MR_HOLDS(CLASS_NUMBERS) | MR_HOLDS(TURNED),
    .surveyed = true,
    .shown = true,
    .tasks = true,
    .begin = begin,
    .begin_split = begin_split,
    .sample = sample,
    .end = end,
    .free_state = free_state,
};
