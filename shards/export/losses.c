/* losses.c - counts what a format cannot hold, by its interface.
 * Invariant: an object that is left out as a whole is counted once, not again for each of its parts. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/scope.h"
#include "shards/export/format.h"

void mr_export_count_loss(mr_export_run *run, mr_export_part part, const mr_export_sample *s, uint64_t count)
{
    mr_export_loss *loss = &run->result->losses[part];
    if (!loss->count && s && count) {
        memcpy(loss->split, s->split->name, sizeof loss->split);
        loss->sample = s->number;
    }
    loss->count += count;
}

static void lose(mr_export_run *run, mr_export_part part, const mr_export_sample *s, uint64_t count)
{
    if (!(run->holds & 1u << part))
        mr_export_count_loss(run, part, s, count);
}

static void take_object(mr_export_run *run, const mr_export_sample *s, const mr_object *o)
{
    bool outlined = o->ring_count || o->oriented || o->keypoint_count;
    if (!(run->holds & MR_HOLDS(OBJECTS)))
        mr_export_count_loss(run, MR_PART_OBJECTS, s, 1);
    else if (o->label < 0 && !(run->holds & MR_HOLDS(CLASSLESS)))
        mr_export_count_loss(run, MR_PART_CLASSLESS, s, 1);
    else if (o->crowd && !(run->holds & MR_HOLDS(CROWDS)) && !run->result->instead[MR_PART_CROWDS])
        mr_export_count_loss(run, MR_PART_CROWDS, s, 1);
    else {
        lose(run, MR_PART_BOXES, s, o->has_box && !outlined);
        lose(run, MR_PART_POLYGONS, s, o->ring_count > 0);
        lose(run, MR_PART_RINGS, s, o->ring_count > 1 && run->holds & MR_HOLDS(POLYGONS));
        lose(run, MR_PART_ORIENTED, s, o->oriented);
        lose(run, MR_PART_KEYPOINTS, s, o->keypoint_count > 0);
        lose(run, MR_PART_CROWDS, s, o->crowd);
        lose(run, MR_PART_IDS, s, o->id_len > 0);
    }
}

mr_status mr_export_losses_take(mr_export_run *run, mr_export_losses *l, const mr_export_sample *s, mr_error *err)
{
    const mr_export_facts *f = s->facts;
    size_t classes = run->manifest->class_count;
    if (!l->seen)
        l->seen = mr_alloc(classes + 1, sizeof *l->seen);
    if (!l->seen)
        return mr_fail_memory(err, "exporting");
    lose(run, MR_PART_UNLABELLED, s, s->view->label < 0 && !f->label_count);
    lose(run, MR_PART_LABEL, s, s->view->label >= 0);
    lose(run, MR_PART_LABELS, s, f->label_count > 0);
    lose(run, MR_PART_CAPTIONS, s, f->caption_count);
    lose(run, MR_PART_COLUMNS, s, f->columns.len > 0);
    l->known = l->known || s->objects->known;
    if (s->view->orientation > 1 && run->holds & MR_HOLDS(OBJECTS))
        lose(run, MR_PART_TURNED, s, s->objects->count);
    l->seen[s->view->label >= 0 && (size_t)s->view->label < classes ? (size_t)s->view->label : classes]++;
    for (size_t i = 0; i < f->label_count; i++)
        l->seen[f->labels[i] < classes ? f->labels[i] : classes]++;
    for (size_t i = 0; i < s->objects->count; i++) {
        const mr_object *o = &s->objects->items[i];
        l->seen[o->label >= 0 && (size_t)o->label < classes ? (size_t)o->label : classes]++;
        take_object(run, s, o);
    }
    return MR_OK;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Classes that a reader who sorts them by name numbers differently. */
static mr_status count_moved(mr_export_run *run, mr_error *err)
{
    const mr_manifest *m = run->manifest;
    MR_AUTO(mr_scope_free) const char **names = mr_alloc(m->class_count + 1, sizeof *names);
    uint64_t moved = 0;
    if (!names)
        return mr_fail_memory(err, "exporting");
    for (size_t i = 0; i < m->class_count; i++)
        names[i] = m->classes[i].name;
    qsort(names, m->class_count, sizeof *names, by_name);
    for (size_t i = 0; i < m->class_count; i++)
        moved += strcmp(names[i], m->classes[i].name) != 0;
    lose(run, MR_PART_CLASS_NUMBERS, NULL, moved);
    return MR_OK;
}

mr_status mr_export_losses_end(mr_export_run *run, const mr_export_losses *l, mr_error *err)
{
    uint64_t empty = 0;
    for (size_t i = 0; i < run->manifest->class_count; i++)
        empty += !l->seen || !l->seen[i];
    lose(run, MR_PART_EMPTY_CLASSES, NULL, empty);
    if (run->holds & MR_HOLDS(OBJECTS) && !(run->holds & MR_HOLDS(LABEL)) && !l->known)
        snprintf(run->result->remark, sizeof run->result->remark, "the dataset has no objects");
    return run->manifest->class_count && !(run->holds & MR_HOLDS(CLASS_NUMBERS)) ? count_moved(run, err) : MR_OK;
}

void mr_export_losses_free(mr_export_losses *l)
{
    free(l->seen);
    l->seen = NULL;
}
