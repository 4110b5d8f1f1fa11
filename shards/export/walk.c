/* walk.c - the samples of an export, in the order of their splits.
 * Invariant: a sample was counted only if its format took it. */
#include "shards/export/card.h"

#include <string.h>

#include "base/cli/term.h"
#include "base/scope.h"

mr_status mr_export_open(const char *dataset, const mr_export_options *o, mr_dataset **out, mr_error *err)
{
    MR_TRY(mr_dataset_open(dataset, out, err));
    return o->split ? mr_manifest_find_split(mr_dataset_manifest(*out), dataset, o->split, NULL, err) : MR_OK;
}

bool mr_export_wants(const mr_export_options *o, const mr_split *split)
{
    return !o->split || strcmp(o->split, split->name) == 0;
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
