/* run_facts.c - reads a run's folder: checkpoint, results, TensorBoard files, the last evaluation.
 * Invariant: after a resume, points of updates that were done again are dropped, as TensorBoard does. */
#include "train/report/run_facts.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/hash.h"
#include "base/files/path.h"
#include "base/scope.h"
#include "train/journal/events.h"
#include "base/json/json.h"
#include "train/run/trainer.h"

enum { RESULTS_MAX = 1 << 20 };

static const struct {
    mr_curve_kind kind;
    const char *tag;
} tags[] = {
    {MR_CURVE_LOSS, "train/loss"},
    {MR_CURVE_EVAL_LOSS, "test/loss"},
    {MR_CURVE_EVAL, "test/accuracy"},
    {MR_CURVE_EVAL, "test/recall_at_1"},
    {MR_CURVE_EVAL, "test/mean_average_precision"},
    {MR_CURVE_EVAL_5, "test/text_to_image_recall_at_5"},
    {MR_CURVE_LR, "train/lr"},
    {MR_CURVE_RATE, "train/images_per_sec"},
    {MR_CURVE_WAIT, "train/wait_ms"},
};

static mr_status join(const char *folder, const char *name, mr_buf *out, mr_error *err)
{
    mr_buf_clear(out);
    mr_buf_printf(out, "%s/%s", folder, name);
    return mr_buf_status(out, err, folder);
}

mr_status mr_run_is(const char *path, bool *out, mr_error *err)
{
    static const char *const names[] = {MR_RUN_RESULTS, MR_RUN_EVENTS, MR_RUN_OUTCOMES};
    MR_AUTO(mr_scope_close) int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    MR_AUTO(mr_checkpoint_release) mr_checkpoint ignored = {0};
    *out = false;
    if (fd < 0)
        return errno == ENOENT || errno == ENOTDIR ? MR_OK : mr_fail_errno(err, errno, "%s", path);
    mr_status status = mr_checkpoint_look(path, false, &ignored, NULL, err);
    if (status == MR_SYSTEM)
        return status;
    *out = status != MR_MISUSE || mr_checkpoint_is(path);
    for (size_t i = 0; i < MR_COUNT(names) && !*out; i++)
        *out = faccessat(fd, names[i], F_OK, 0) == 0;
    return MR_OK;
}

/* ---- curves ------------------------------------------------------------------------------------------------------ */

static void drop_from(mr_curve *c, uint64_t step)
{
    while (c->count && c->points[c->count - 1].step >= step)
        c->count--;
}

static mr_status take_scalar(void *ctx, uint64_t step, const char *tag, float value, mr_error *err)
{
    mr_run_facts *f = ctx;
    for (size_t i = 0; i < MR_CURVES && !tag; i++)
        drop_from(&f->curves[i], step);
    for (size_t i = 0; i < MR_COUNT(tags) && tag; i++) {
        mr_curve *c = &f->curves[tags[i].kind];
        if (strcmp(tag, tags[i].tag) != 0)
            continue;
        drop_from(c, step);
        if (!isfinite(value)) {
            c->left_out++;
            continue;
        }
        if (!MR_GROW(c->points, c->count, c->capacity))
            return mr_fail_memory(err, "reading a run's curves");
        c->points[c->count++] = (mr_point){step, value};
    }
    return MR_OK;
}

static mr_status read_curves(const char *run, mr_run_facts *f, mr_error *err)
{
    MR_AUTO(mr_buf_free) mr_buf path = {0};
    MR_TRY(join(run, MR_RUN_EVENTS, &path, err));
    mr_status status = mr_events_read(mr_buf_text(&path), take_scalar, f, err);
    return status == MR_END ? MR_OK : status;
}

/* ---- results and outcomes ---------------------------------------------------------------------------------------- */

static mr_status read_results(const char *run, mr_run_facts *f, mr_error *err)
{
    MR_AUTO(mr_buf_free) mr_buf path = {0}, text = {0};
    MR_TRY(join(run, MR_RUN_RESULTS, &path, err));
    const char *name = mr_buf_text(&path);
    if (access(name, F_OK) != 0)
        return MR_OK;
    MR_TRY(mr_file_read_all(AT_FDCWD, name, RESULTS_MAX, &text, err));
    return mr_json_parse(text.data, text.len, name, &f->results, err);
}

static mr_status read_outcomes(const char *run, mr_run_facts *f, mr_error *err)
{
    MR_AUTO(mr_buf_free) mr_buf path = {0};
    size_t count = json_array_size(f->classes);
    MR_AUTO(mr_scope_free) const char **names = mr_alloc(count + 1, sizeof *names);
    if (!names)
        return mr_fail_memory(err, run);
    for (size_t i = 0; i < count; i++) {
        const char *name = json_string_value(json_array_get(f->classes, i));
        names[i] = name ? name : "";
    }
    MR_TRY(join(run, MR_RUN_OUTCOMES, &path, err));
    mr_status status = mr_outcomes_read(mr_buf_text(&path), names, count, &f->outcomes, err);
    return status == MR_END ? MR_OK : status;
}

/* ---- the dataset, for its images ------------------------------------------------------------------------------- */

/* Where the run says, seen from here or from the run's folder. */
static mr_status find_dataset(const char *run, const mr_run_facts *f, mr_buf *out, mr_error *err)
{
    const char *said = json_string_value(json_object_get(f->results, "dataset"));
    MR_AUTO(mr_scope_free) char *dir = NULL, *name = NULL;
    mr_buf_add_text(out, said ? said : "");
    if (!said || *said == '/' || mr_dir_is(said))
        return mr_buf_status(out, err, run);
    MR_TRY(mr_path_split(run, &dir, &name, err));
    return join(dir, said, out, err);
}

static mr_status open_dataset(const char *path, mr_run_facts *f, mr_error *err)
{
    const char *digest = json_string_value(json_object_get(f->checkpoint.facts, "dataset"));
    mr_error why;
    mr_status status = mr_dataset_open(path, &f->ds, &why);
    if (status == MR_SYSTEM) {
        if (err)
            *err = why;
        return status;
    }
    if (status != MR_OK)
        mr_buf_printf(&f->no_dataset, "No images: %.500s; give the dataset's location with --dataset.",
                      *path ? why.text : "the run does not record where its dataset was");
    if (status == MR_OK && (!digest || strcmp(digest, mr_dataset_sha256(f->ds)) != 0)) {
        mr_buf_printf(&f->no_dataset, "No images: %s is not the dataset that this run was trained on.", path);
        mr_dataset_free(f->ds);
        f->ds = NULL;
    }
    if (f->ds)
        f->split = mr_manifest_split(mr_dataset_manifest(f->ds), f->outcomes.split);
    return mr_buf_status(&f->no_dataset, err, path);
}

mr_status mr_run_facts_read(const char *run, const char *dataset, mr_run_facts *out, mr_error *err)
{
    MR_AUTO(mr_buf_free) mr_buf path = {0};
    MR_TRY(mr_checkpoint_look(run, false, &out->checkpoint, NULL, err));
    out->classes = json_object_get(out->checkpoint.facts, "classes");
    out->options = json_object_get(out->checkpoint.facts, "options");
    MR_TRY(read_results(run, out, err));
    MR_TRY(read_curves(run, out, err));
    MR_TRY(read_outcomes(run, out, err));
    if (!dataset)
        MR_TRY(find_dataset(run, out, &path, err));
    return open_dataset(dataset ? dataset : mr_buf_text(&path), out, err);
}

void mr_run_facts_free(mr_run_facts *f)
{
    mr_checkpoint_release(&f->checkpoint);
    json_decref(f->results);
    for (size_t i = 0; i < MR_CURVES; i++)
        free(f->curves[i].points);
    mr_outcomes_release(&f->outcomes);
    mr_dataset_free(f->ds);
    mr_buf_free(&f->no_dataset);
    *f = (mr_run_facts){0};
}
