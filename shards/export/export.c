/* export.c - from a dataset to OUT, for any format: samples in order, what is lost on the way, and the publication.
 * Invariant: OUT gets its name after the last sample; a failure before that removes what was written. */
#include "shards/export/export.h"

#include <stdlib.h>
#include <string.h>

#include "base/scope.h"
#include "base/cli/term.h"
#include "shards/export/format.h"

#define X(word, title) &mr_export_format_##word,
static const mr_export_format *const formats[] = {MR_EXPORTS(X)};
#undef X

/* ---- samples ----------------------------------------------------------------------------------------------------- */

mr_status mr_export_open(const char *dataset, const mr_export_options *o, mr_dataset **out, mr_error *err)
{
    MR_TRY(mr_dataset_open(dataset, out, err));
    return o->split ? mr_manifest_find_split(mr_dataset_manifest(*out), dataset, o->split, NULL, err) : MR_OK;
}

typedef struct walk {
    const mr_dataset *dataset;
    const mr_export_steps *steps;
    mr_export_result *result;
    mr_progress *progress;
    mr_sample_view view;
} walk;

static mr_status walk_split(walk *w, const mr_split *split, mr_error *err)
{
    if (w->steps->split)
        MR_TRY(w->steps->split(w->steps->ctx, split, true, err));
    for (uint64_t i = 0; i < split->samples; i++) {
        const mr_export_sample sample = {.split = split, .number = i, .view = &w->view};
        MR_TRY(mr_dataset_read(w->dataset, split->name, i, &w->view, err));
        MR_TRY(w->steps->sample(w->steps->ctx, &sample, err));
        w->result->samples++;
        mr_progress_add(w->progress, 1, w->view.image_len);
    }
    return w->steps->split ? w->steps->split(w->steps->ctx, split, false, err) : MR_OK;
}

mr_status mr_export_each(const mr_dataset *ds, const mr_export_options *o, const mr_export_steps *steps,
                         mr_export_result *result, mr_error *err)
{
    const mr_manifest *m = mr_dataset_manifest(ds);
    walk w = {.dataset = ds, .steps = steps, .result = result};
    uint64_t total = 0;
    for (size_t i = 0; i < m->split_count; i++)
        total += mr_export_wants(o, &m->splits[i]) ? m->splits[i].samples : 0;
    w.progress = mr_progress_begin("export", total, o->quiet);
    mr_status status = MR_OK;
    for (size_t i = 0; status == MR_OK && i < m->split_count; i++)
        if (mr_export_wants(o, &m->splits[i]))
            status = walk_split(&w, &m->splits[i], err);
    mr_progress_end(w.progress);
    mr_sample_view_free(&w.view);
    return status;
}

/* ---- one format -------------------------------------------------------------------------------------------------- */

typedef struct run {   /* a run, and what only this file needs */
    mr_export_run run; /* first: formats get its address */
    const mr_export_format *format;
    mr_export_facts facts;
    mr_objects objects;
    mr_export_losses losses;
} job;

static mr_status take_split(void *ctx, const mr_split *split, bool begins, mr_error *err)
{
    job *r = ctx;
    mr_status (*step)(mr_export_run *, const mr_split *, mr_error *) =
        begins ? r->format->begin_split : r->format->end_split;
    return step ? step(&r->run, split, err) : MR_OK;
}

static mr_status take_sample(void *ctx, const mr_export_sample *given, mr_error *err)
{
    job *r = ctx;
    mr_export_sample s = *given;
    if (!r->format->plain) {
        MR_TRY(mr_export_facts_read(s.view->meta, s.view->meta_len, &r->facts, err));
        MR_TRY(mr_objects_parse(s.view->meta, s.view->meta_len, &r->objects, err));
        s.facts = &r->facts;
        s.objects = &r->objects;
        if (!r->format->lossless)
            MR_TRY(mr_export_losses_take(&r->run, &r->losses, &s, err));
        if (r->format->shown)
            mr_objects_show(&r->objects, &(mr_stored){s.view->width, s.view->height, s.view->orientation});
    }
    return r->format->sample(&r->run, &s, err);
}

static mr_status write_all(job *r, mr_error *err)
{
    mr_export_run *run = &r->run;
    const mr_export_steps steps = {take_sample, take_split, r};
    const char **instead = run->result->instead;
    instead[MR_PART_NAMES] = instead[MR_PART_CLASS_NAMES] = instead[MR_PART_SPLIT_NAMES] = "changed";
    instead[MR_PART_TURNED] = "placed in the image as stored";
    if (r->format->begin)
        MR_TRY(r->format->begin(run, err));
    MR_TRY(mr_export_each(run->dataset, run->options, &steps, run->result, err));
    if (r->format->end)
        MR_TRY(r->format->end(run, err));
    run->result->files += run->out.files;
    run->result->bytes += run->out.bytes;
    return r->format->plain || r->format->lossless ? MR_OK : mr_export_losses_end(run, &r->losses, err);
}

static void free_job(job *r)
{
    if (r->run.state && r->format->free_state)
        r->format->free_state(r->run.state);
    else
        free(r->run.state);
    mr_names_free(&r->run.names);
    mr_export_facts_free(&r->facts);
    mr_objects_free(&r->objects);
    mr_export_losses_free(&r->losses);
}

static mr_status fill(const mr_dataset *ds, const mr_export_format *format, const mr_export_options *o,
                      const mr_export_temp *temp, mr_export_result *result, mr_error *err)
{
    MR_AUTO(mr_export_survey_free) mr_export_survey survey = {0};
    MR_AUTO(free_job)
    job r = {.run = {.dataset = ds,
                     .manifest = mr_dataset_manifest(ds),
                     .options = o,
                     .holds = format->holds,
                     .out = {.dirfd = temp->fd, .root = temp->path},
                     .result = result},
             .format = format};
    if (format->surveyed) {
        MR_TRY(mr_export_survey_make(ds, o, format->ids, &survey, err));
        r.run.survey = &survey;
    }
    return write_all(&r, err);
}

static mr_status find_format(const char *name, const mr_export_options *o, const mr_export_format **out, mr_error *err)
{
    const mr_export_format *f = NULL;
    for (size_t i = 0; i < MR_COUNT(formats); i++)
        if (!strcmp(formats[i]->name, name) || (formats[i]->alias && !strcmp(formats[i]->alias, name)))
            f = formats[i];
    if (!f)
        return mr_fail(err, MR_MISUSE, "%s: is not an export format", name);
    if (o->shard_size && !f->sharded)
        return mr_fail(err, MR_MISUSE, "--shard-size: %s writes one file per image", name);
    if (o->task && !f->tasks)
        return mr_fail(err, MR_MISUSE, "--task: is an option of --to yolo");
    if (o->link && (f->plain || f->sharded))
        return mr_fail(err, MR_MISUSE, "--link: %s does not link images", name);
    *out = f;
    return MR_OK;
}

mr_status mr_export_check_options(const char *format, const mr_export_options *o, mr_error *err)
{
    const mr_export_format *f;
    return find_format(format, o, &f, err);
}

static void free_target(mr_export_target *t)
{
    free(t->path);
}

mr_status mr_export(const char *dataset, const char *out, const char *format, const mr_export_options *o,
                    mr_export_result *result, mr_error *err)
{
    MR_AUTO(mr_dataset_release) mr_dataset *ds = NULL;
    MR_AUTO(free_target) mr_export_target target = {0};
    mr_export_temp temp = {.fd = -1};
    const mr_export_format *f = NULL;
    MR_TRY(find_format(format, o, &f, err));
    MR_TRY(mr_export_open(dataset, o, &ds, err));
    MR_TRY(mr_export_check_out(dataset, out, err));
    MR_TRY(mr_export_target_find(out, o->force, &target, err));
    mr_status status = mr_export_temp_open(target.path, true, &temp, err);
    if (status == MR_OK)
        status = fill(ds, f, o, &temp, result, err);
    if (status == MR_OK)
        status = mr_export_target_publish(&temp, &target, err);
    mr_status removed = mr_export_temp_close(&temp, status == MR_OK ? err : NULL);
    return status == MR_OK ? removed : status;
}
