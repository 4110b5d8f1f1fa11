/* work.c - what the threads of a loader share, and what each of them owns; see work.h.
 *
 *   work_read.c      number -> row -> bytes, checked
 *   work_pixels.c    bytes -> pixels of a view, or what a device needs to compute them
 *   work_objects.c   meta -> objects and masks of a view */
#include "loader/batch/work.h"

#include "base/scope.h"
#include "loader/batch/options.h"

mr_status mr_work_open(mr_work *w, const mr_dataset *ds, const mr_loader_options *options, mr_error *err)
{
    mr_order order;
    *w = (mr_work){.cold = MR_WORK_COLD};
    MR_TRY(mr_loader_options_fill(options, mr_dataset_manifest(ds), &w->o, err));
    const mr_split *split = w->split = mr_manifest_split(mr_dataset_manifest(ds), w->o.split);
    w->o.split = split->name; /* the caller's text may be freed */
    MR_TRY(mr_order_make(w->o.shuffle, w->o.items ? w->o.item_count : mr_draw_items(split, w->o.shuffle), w->o.seed,
                         w->o.window_bytes, mr_split_mean_bytes(split), &order, err));
    MR_TRY(mr_schedule_make(&order, w->o.global_batch, w->o.world, w->o.tail, &w->schedule, err));
    if (!w->o.items)
        w->schedule.draw = mr_draw_of(split, w->o.shuffle);
    mr_dataset_fetch_indexes(ds, split, NULL);
    return mr_shard_files_new(ds, split, 0, &w->files, err);
}

void mr_work_close(mr_work *w)
{
    mr_shard_files_free(w->files);
    w->files = NULL;
}

mr_status mr_worker_init(mr_worker *worker, const mr_work *w, mr_error *err)
{
    bool coded = mr_work_is_coded(w);
    *worker = (mr_worker){.pixels = mr_pixels_scratch_new(), .resizer = mr_resizer_new()};
    if (coded)
        worker->planner = mr_coded_planner_new();
    if (!worker->pixels || !worker->resizer || (coded && !worker->planner)) {
        mr_worker_free(worker);
        return mr_fail_memory(err, "opening a loader");
    }
    if (w->o.transform.libjpeg)
        mr_pixels_scratch_libraries(worker->pixels);
    mr_pixels_scratch_stop(worker->pixels, &w->stop);
    mr_resizer_stop(worker->resizer, &w->stop);
    return MR_OK;
}

void mr_worker_free(mr_worker *worker)
{
    mr_slab_free(&worker->bytes, NULL);
    mr_slab_free(&worker->seek, NULL);
    mr_pixels_scratch_free(worker->pixels);
    mr_resizer_free(worker->resizer);
    mr_coded_planner_free(worker->planner);
    mr_mover_free(&worker->mover);
    mr_slab_free(&worker->changed, NULL);
    *worker = (mr_worker){0};
}
