/* survey.c - one pass over all metas of an export, before the first sample is written.
 * Invariant: where ids are compared, memory is 16 bytes for each object with one, of one split at a time; otherwise it
 * does not grow with the number of samples. */
#include "shards/export/survey.h"

#include <stdlib.h>
#include <string.h>

#include "base/scope.h"
#include "base/text.h"
#include "shards/export/facts.h"

typedef struct ids { /* the ids of a split */
    int64_t *items;
    size_t count, capacity;
    bool bad; /* one is missing, or not a positive integer */
} ids;

typedef struct pass {
    const mr_dataset *dataset;
    mr_export_survey *out;
    ids images, objects;
    mr_objects found;
    mr_export_facts facts;
    mr_sample_view view;
    mr_error *err;
} pass;

static void free_pass(pass *p)
{
    free(p->images.items);
    free(p->objects.items);
    mr_objects_free(&p->found);
    mr_export_facts_free(&p->facts);
    mr_sample_view_free(&p->view);
}

void mr_export_survey_free(mr_export_survey *s)
{
    free(s->class_keypoints);
    free(s->splits);
    *s = (mr_export_survey){0};
}

/* ---- ids --------------------------------------------------------------------------------------------------------- */

static bool add_id(ids *list, const char *text, size_t len)
{
    char copy[20] = "";
    uint64_t value;
    if (list->bad)
        return true;
    if (!len || len >= sizeof copy) {
        list->bad = true;
        return true;
    }
    memcpy(copy, text, len);
    if (!mr_text_parse_u64(copy, &value) || !value || value > INT64_MAX) {
        list->bad = true;
        return true;
    }
    if (!MR_GROW(list->items, list->count, list->capacity))
        return false;
    list->items[list->count++] = (int64_t)value;
    return true;
}

static int by_value(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static bool all_differ(ids *list)
{
    if (list->count && !list->bad)
        qsort(list->items, list->count, sizeof *list->items, by_value);
    for (size_t i = 1; i < list->count && !list->bad; i++)
        list->bad = list->items[i] == list->items[i - 1];
    bool good = !list->bad;
    list->count = 0;
    list->bad = false;
    return good;
}

/* ---- samples ----------------------------------------------------------------------------------------------------- */

static bool take_object(pass *p, const mr_object *o, size_t classes)
{
    mr_export_survey *s = p->out;
    size_t points = 0;
    for (size_t i = 0; i < o->ring_count; i++)
        points += p->found.rings[o->ring + i].count / 2;
    s->objects++;
    s->polygons += o->ring_count > 0;
    s->oriented += o->oriented;
    s->keypoints += o->keypoint_count > 0;
    s->quads = s->quads && (!o->ring_count || (o->ring_count == 1 && points == 4));
    if (o->keypoint_count > s->most_keypoints)
        s->most_keypoints = o->keypoint_count;
    if (o->label >= 0 && (size_t)o->label < classes && o->keypoint_count > s->class_keypoints[o->label])
        s->class_keypoints[o->label] = o->keypoint_count;
    return add_id(&p->objects, o->id_len ? (const char *)p->found.ids.data + o->id_at : NULL, o->id_len);
}

static mr_status take_sample(pass *p, const mr_split *split, uint64_t n, size_t classes, mr_export_survey_split *facts)
{
    MR_TRY(mr_dataset_read_meta(p->dataset, split->name, n, &p->view, p->err));
    MR_TRY(mr_objects_parse(p->view.meta, p->view.meta_len, &p->found, p->err));
    MR_TRY(mr_export_facts_read(p->view.meta, p->view.meta_len, &p->facts, p->err));
    mr_export_survey *s = p->out;
    s->known += p->found.known;
    s->labelled = s->labelled || p->view.label >= 0;
    s->several = s->several || p->facts.has_labels;
    s->captioned = s->captioned || p->facts.caption_count;
    s->columns = s->columns || p->facts.columns.len;
    facts->captions = facts->captions || p->facts.caption_count;
    bool capacity = add_id(&p->images, p->view.meta + p->facts.image_id.at, p->facts.image_id.len);
    for (size_t i = 0; i < p->found.count && capacity; i++)
        capacity = take_object(p, &p->found.items[i], classes);
    return capacity ? MR_OK : mr_fail_memory(p->err, "exporting");
}

mr_status mr_export_survey_make(const mr_dataset *ds, const mr_export_options *o, bool with_ids, mr_export_survey *out,
                                mr_error *err)
{
    const mr_manifest *m = mr_dataset_manifest(ds);
    MR_AUTO(free_pass) pass p = {.dataset = ds, .out = out, .err = err};
    out->quads = true;
    out->class_keypoints = mr_alloc(m->class_count + 1, sizeof *out->class_keypoints);
    out->splits = mr_alloc(m->split_count + 1, sizeof *out->splits);
    if (!out->class_keypoints || !out->splits)
        return mr_fail_memory(err, "exporting");
    for (size_t i = 0; i < m->split_count; i++) {
        const mr_split *split = &m->splits[i];
        if (!mr_export_wants(o, split))
            continue;
        p.images.bad = p.objects.bad = !with_ids; /* none is kept once they are bad */
        for (uint64_t n = 0; n < split->samples; n++)
            MR_TRY(take_sample(&p, split, n, m->class_count, &out->splits[i]));
        out->splits[i].image_ids = all_differ(&p.images);
        out->splits[i].object_ids = all_differ(&p.objects);
    }
    return MR_OK;
}
