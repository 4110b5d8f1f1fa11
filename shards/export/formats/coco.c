/* coco.c - the export `coco`: annotations/instances_SPLIT.json and captions_SPLIT.json, images in SPLIT/.
 * Invariant: ids of the source are kept where all of a split are integers from 1 and differ; otherwise images
 * and annotations are numbered from 1, in the dataset's order. */
#include "shards/export/formats/coco.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/scope.h"
#include "base/text.h"

typedef struct coco {
    int64_t *categories; /* the id of each class */
    char *folder;        /* the split's folder */
    mr_out_text instances, captions, images;
    const mr_export_survey_split *survey;
    int64_t image, object, caption; /* the number of the last one */
    bool labels;                    /* the dataset has labels and no objects: annotations are without a place */
    mr_export_raws raws;
    mr_buf name;
} coco;

static int by_value(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* The classes' own ids, if all have one and they differ. */
static mr_status number_categories(mr_export_run *run, coco *c, mr_error *err)
{
    const mr_manifest *m = run->manifest;
    MR_AUTO(mr_scope_free) int64_t *sorted = mr_alloc(m->class_count + 1, sizeof *sorted);
    c->categories = mr_alloc(m->class_count + 1, sizeof *c->categories);
    if (!sorted || !c->categories)
        return mr_fail_memory(err, "exporting");
    bool own = true;
    for (size_t i = 0; i < m->class_count; i++) {
        own = own && m->classes[i].has_id && m->classes[i].id >= 0;
        sorted[i] = m->classes[i].id;
    }
    qsort(sorted, m->class_count, sizeof *sorted, by_value);
    for (size_t i = 1; i < m->class_count; i++)
        own = own && sorted[i] != sorted[i - 1];
    for (size_t i = 0; i < m->class_count; i++)
        c->categories[i] = own ? m->classes[i].id : (int64_t)i + 1;
    return MR_OK;
}

static mr_status begin(mr_export_run *run, mr_error *err)
{
    coco *c = mr_alloc(1, sizeof *c);
    if (!c)
        return mr_fail_memory(err, "exporting");
    run->state = c;
    run->result->instead[MR_PART_ORIENTED] = "polygons of four points";
    run->result->instead[MR_PART_IDS] = "numbered from 1";
    c->labels = !run->survey->known && (run->survey->labelled || run->survey->several);
    if (c->labels)
        run->holds |= MR_HOLDS(LABEL) | MR_HOLDS(LABELS);
    return number_categories(run, c, err);
}

/* ---- a split ----------------------------------------------------------------------------------------------------- */

static void add_category(const mr_export_run *run, const coco *c, size_t i, mr_buf *out)
{
    MR_AUTO(mr_buf_free) mr_buf name = {0};
    size_t keypoints = run->survey->class_keypoints[i];
    mr_export_class_text(&run->manifest->classes[i], &name);
    mr_buf_printf(out, "%s\n{\"id\":%" PRId64 ",\"name\":", i ? "," : "", c->categories[i]);
    mr_json_add_string(out, mr_buf_text(&name), name.len);
    for (size_t k = 0; k < keypoints; k++)
        mr_buf_printf(out, "%s\"%zu\"", k ? "," : ",\"keypoints\":[", k + 1);
    mr_buf_add_text(out, keypoints ? "],\"skeleton\":[]}" : "}");
    out->failed = out->failed || name.failed;
}

static mr_status open_file(mr_export_run *run, const char *kind, const char *split, mr_out_text *t, mr_error *err)
{
    MR_AUTO(mr_buf_free) mr_buf path = {0};
    const char *licence = run->manifest->licence;
    mr_buf_printf(&path, "annotations/%s_%s.json", kind, split);
    const char *text = mr_buf_text(&path);
    MR_TRY(mr_buf_status(&path, err, "exporting"));
    MR_TRY(mr_out_text_open(&run->out, text, t, err));
    mr_buf_add_text(&t->text, "{\"info\":{},\"licenses\":[");
    if (licence) {
        mr_buf_add_text(&t->text, "{\"id\":1,\"url\":\"\",\"name\":");
        mr_json_add_string(&t->text, licence, strlen(licence));
        mr_buf_add_text(&t->text, "}");
    }
    mr_buf_add_text(&t->text, "],\n");
    return MR_OK;
}

static mr_status begin_split(mr_export_run *run, const mr_split *split, mr_error *err)
{
    coco *c = run->state;
    c->survey = &run->survey->splits[split - run->manifest->splits];
    c->image = c->object = c->caption = 0;
    free(c->folder);
    c->folder = NULL;
    MR_TRY(mr_export_folder_name(run, "", split->name, MR_PART_SPLIT_NAMES, &c->folder, err));
    MR_TRY(mr_out_folder(&run->out, c->folder, err));
    MR_TRY(mr_out_text_scratch(&run->out, &c->images, err));
    if (c->survey->captions) {
        MR_TRY(open_file(run, "captions", c->folder, &c->captions, err));
        mr_buf_add_text(&c->captions.text, "\"annotations\":[");
    }
    if (c->survey->captions && !run->survey->known && !c->labels)
        return MR_OK;
    MR_TRY(open_file(run, "instances", c->folder, &c->instances, err));
    mr_buf_add_text(&c->instances.text, "\"categories\":[");
    for (size_t i = 0; i < run->manifest->class_count; i++)
        add_category(run, c, i, &c->instances.text);
    mr_buf_add_text(&c->instances.text, "],\n\"annotations\":[");
    return MR_OK;
}

static mr_status close_text(mr_out_text *t, mr_out_text *images, mr_error *err)
{
    if (!t->path)
        return MR_OK;
    mr_buf_add_text(&t->text, "],\n\"images\":[");
    MR_TRY(mr_out_text_copy(t, images, err));
    mr_buf_add_text(&t->text, "]}\n");
    return mr_out_text_close(t, err);
}

static mr_status end_split(mr_export_run *run, const mr_split *split, mr_error *err)
{
    coco *c = run->state;
    (void)split;
    MR_TRY(close_text(&c->instances, &c->images, err));
    MR_TRY(close_text(&c->captions, &c->images, err));
    mr_out_text_free(&c->images);
    return MR_OK;
}

/* ---- samples ----------------------------------------------------------------------------------------------------- */

static void add_image(const mr_export_sample *s, coco *c)
{
    mr_buf *out = &c->images.text;
    mr_buf_printf(out, "%s\n{\"id\":%" PRId64 ",\"file_name\":", s->number ? "," : "", c->image);
    mr_json_add_string(out, mr_buf_text(&c->name), c->name.len);
    mr_buf_printf(out, ",\"width\":%" PRIu32 ",\"height\":%" PRIu32 "}", s->view->width, s->view->height);
}

static void add_captions(const mr_export_sample *s, coco *c)
{
    const mr_export_facts *f = s->facts;
    for (size_t i = 0; i < f->caption_count; i++) {
        mr_buf *out = &c->captions.text;
        mr_buf_printf(out, "%s\n{\"id\":%" PRId64 ",\"image_id\":%" PRId64 ",\"caption\":", c->caption ? "," : "",
                      c->caption + 1, c->image);
        mr_json_add_string(out, (const char *)f->texts.data + f->captions[i].at, f->captions[i].len);
        mr_buf_add_text(out, "}");
        c->caption++;
    }
}

/* As in JSON of iNaturalist: a category, and nothing that it marks. */
static void add_label(const mr_export_run *run, uint32_t label, coco *c)
{
    if (label >= run->manifest->class_count)
        return;
    mr_buf_printf(&c->instances.text, "%s{\"id\":%" PRId64 ",\"image_id\":%" PRId64 ",\"category_id\":%" PRId64 "}",
                  c->object ? ",\n" : "\n", c->object + 1, c->image, c->categories[label]);
    c->object++;
}

/* The value of an id that the survey has found to be a number. */
static int64_t number_of(const char *text, size_t len)
{
    int64_t value = 0;
    for (size_t i = 0; i < len; i++)
        value = value * 10 + (text[i] - '0');
    return value;
}

static void add_object(mr_export_run *run, const mr_export_sample *s, const mr_object *o)
{
    coco *c = run->state;
    mr_buf *out = &c->instances.text;
    const char *id = o->id_len ? (const char *)s->objects->ids.data + o->id_at : "";
    mr_export_annotation a = {.meta = s->view->meta, .objects = s->objects, .object = o, .image = c->image};
    if (o->label < 0 || (size_t)o->label >= run->manifest->class_count) /* counted */
        return;
    a.raw = o->id_len ? mr_export_raws_find(&c->raws, s->view->meta, id, o->id_len) : NULL;
    a.category = c->categories[o->label];
    a.id = c->survey->object_ids ? number_of(id, o->id_len) : c->object + 1;
    size_t before = out->len;
    mr_buf_add_text(out, c->object ? ",\n" : "\n");
    if (!mr_export_annotation_write(&a, out)) {
        out->len = before;
        mr_export_count_loss(run, MR_PART_BOXLESS, s, 1);
        return;
    }
    c->object++;
    if (!c->survey->object_ids && o->id_len)
        mr_export_count_loss(run, MR_PART_IDS, s, 1);
}

static mr_status sample(mr_export_run *run, const mr_export_sample *s, mr_error *err)
{
    coco *c = run->state;
    const mr_export_facts *f = s->facts;
    MR_TRY(mr_export_picture_name(run, c->folder, s, 0, &c->name, err));
    MR_TRY(mr_export_picture(run, c->folder, mr_buf_text(&c->name), s, err));
    c->image =
        c->survey->image_ids ? number_of(s->view->meta + f->image_id.at, f->image_id.len) : (int64_t)s->number + 1;
    add_image(s, c);
    if (c->captions.path)
        add_captions(s, c);
    if (c->labels && s->view->label >= 0)
        add_label(run, (uint32_t)s->view->label, c);
    for (size_t i = 0; c->labels && i < f->label_count; i++)
        add_label(run, f->labels[i], c);
    if (c->instances.path && s->objects->count) {
        MR_TRY(mr_export_raws_read(s->view->meta, f, &c->raws, err));
        for (size_t i = 0; i < s->objects->count; i++)
            add_object(run, s, &s->objects->items[i]);
    }
    MR_TRY(mr_out_text_push(&c->images, err));
    if (c->captions.path)
        MR_TRY(mr_out_text_push(&c->captions, err));
    return c->instances.path ? mr_out_text_push(&c->instances, err) : MR_OK;
}

static void free_state(void *state)
{
    coco *c = state;
    mr_out_text_free(&c->instances);
    mr_out_text_free(&c->captions);
    mr_out_text_free(&c->images);
    free(c->raws.items);
    free(c->categories);
    free(c->folder);
    mr_buf_free(&c->name);
    free(c);
}

const mr_export_format mr_export_format_coco = {
    .name = "coco",
    .holds = MR_HOLDS(UNLABELLED) | MR_HOLDS(CAPTIONS) | MR_HOLDS(OBJECTS) | MR_HOLDS(BOXES) | MR_HOLDS(POLYGONS) |
             MR_HOLDS(RINGS) | MR_HOLDS(MASKS) | MR_HOLDS(KEYPOINTS) | MR_HOLDS(CROWDS) | MR_HOLDS(OUTSIDE) |
             MR_HOLDS(IDS) | MR_HOLDS(EMPTY_CLASSES) | MR_HOLDS(CLASS_NUMBERS),
    .surveyed = true,
    .ids = true,
    .begin = begin,
    .begin_split = begin_split,
    .sample = sample,
    .end_split = end_split,
    .free_state = free_state,
};
