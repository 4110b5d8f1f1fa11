/* trainer_resume.c - the folder of a run, the checkpoint that it goes on from, and whether it is the same run.
 * Invariant: an update of a resumed run sees as many samples, and as many negatives, as one of the run before. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/text.h"
#include "run/trainer.h"

typedef unsigned long long ull;

uint64_t mr_trainer_negatives(const mr_trainer *t)
{
    return t->settings->batch * (t->settings->gather_negatives ? mr_ranks_world(t->ranks) : 1);
}

static uint64_t fact(const mr_trainer *t, const char *name)
{
    json_int_t value = json_integer_value(json_object_get(t->restored->facts, name));
    return value > 0 ? (uint64_t)value : 0;
}

/* ---- how an update is shared out --------------------------------------------------------------------------------- */

/* The samples a rank and micro-step where --batch does not say it: no more than before, as memory was enough for those;
 * as many negatives as before. */
static uint64_t batch_of(const mr_trainer *t, uint64_t share)
{
    const mr_settings *s = t->settings;
    uint64_t batch = s->batch, negatives = fact(t, "negatives");
    if (negatives && t->restored->model.card->text)
        return s->gather_negatives ? negatives / mr_ranks_world(t->ranks) : negatives;
    while (share % batch)
        batch--;
    return batch;
}

/* What is not given of --batch and --grad-accum follows from the samples of an update and the ranks that are here. */
static mr_status divide(mr_trainer *t, bool batch_given, bool accum_given, mr_error *err)
{
    mr_settings *s = t->settings;
    uint64_t global = fact(t, "global_batch"), world = mr_ranks_world(t->ranks), share = global / world;
    bool sane = s->batch && s->batch <= MR_MAX_BATCH && s->grad_accum && s->grad_accum <= MR_MAX_BATCH;
    if (!global || !sane || s->batch * s->grad_accum * world == global || (batch_given && accum_given))
        return MR_OK;
    if (global % world)
        return mr_fail(err, MR_MISUSE,
                       "%s: an update of this run is %llu samples, which %llu ranks cannot share evenly; "
                       "go on with a number of ranks that divides it",
                       s->output, (ull)global, (ull)world);
    uint64_t batch = accum_given ? share / s->grad_accum : batch_given ? s->batch : batch_of(t, share);
    uint64_t accum = accum_given ? s->grad_accum : batch ? share / batch : 0;
    if (batch * accum != share) /* refused below, with what was given */
        return MR_OK;
    s->batch = batch;
    s->grad_accum = accum;
    mr_buf_printf(&t->said, "An update stays %llu samples: --batch %llu x --grad-accum %llu x %llu rank%s\n",
                  (ull)global, (ull)batch, (ull)accum, (ull)world, world == 1 ? "" : "s");
    return MR_OK;
}

/* ---- the checkpoint ---------------------------------------------------------------------------------------------- */

/* A run without a name of a model is more likely a folder that was misspelt than a wish for the default. */
static mr_status begin_anew(mr_trainer *t, mr_error *err)
{
    const mr_settings *s = t->settings;
    free(t->restored);
    t->restored = NULL;
    if (!s->resume)
        return MR_OK;
    if (!s->given.model && !s->given.pretrained)
        return mr_fail(err, MR_MISUSE,
                       "%s: holds no checkpoint to go on from; look for another name, or begin a run "
                       "there by --model or --pretrained",
                       s->output);
    mr_buf_printf(&t->said, "No checkpoint in %s: the run starts from the beginning\n", s->output);
    return MR_OK;
}

/* What was `found`, and what reading it came to: `status`, and `why` if it was not read. */
static mr_status take_up(mr_trainer *t, const char *found, mr_status status, const mr_error *why, mr_error *err)
{
    mr_settings *s = t->settings;
    bool batch_given = s->given.batch, accum_given = s->given.grad_accum;
    if (found && !s->resume)
        return mr_fail(err, MR_MISUSE,
                       "%s: holds checkpoints of an earlier run (%s); go on with --resume, or name "
                       "another --output",
                       s->output, strrchr(found, '/') ? strrchr(found, '/') + 1 : found);
    if (found && status == MR_BAD_DATA)
        return mr_fail(err, status, "%s; move %s away to go on without it", why->text, found);
    if (status != MR_OK)
        return mr_fail(err, status, "%s", why->text);
    mr_buf_printf(&t->said, "Going on from %s, %llu updates done\n", found, (ull)t->restored->update);
    status = mr_settings_adopt(s, json_object_get(t->restored->facts, "options"), err);
    return status == MR_OK ? divide(t, batch_given, accum_given, err) : status;
}

static mr_status check_output(const char *path, mr_error *err)
{
    struct stat st;
    if (stat(path, &st) == 0)
        return S_ISDIR(st.st_mode) ? MR_OK
                                   : mr_fail(err, MR_MISUSE,
                                             "%s: exists and is not a folder; name another "
                                             "--output",
                                             path);
    if (errno == ENOTDIR)
        return mr_fail(err, MR_MISUSE, "%s: cannot be made: a part of this path is a file; name another --output",
                       path);
    if (errno == ENOENT && lstat(path, &st) == 0)
        return mr_fail(err, MR_MISUSE, "%s: is a link to what is not there; remove it or name another --output", path);
    return MR_OK;
}

/* Rank 0 is the one that writes there.  A plan writes nothing. */
mr_status mr_trainer_claim(mr_trainer *t, bool fresh, mr_error *err)
{
    const mr_settings *s = t->settings;
    if (!*s->output || s->plan || mr_ranks_rank(t->ranks) != 0)
        return MR_OK;
    mr_status status = check_output(s->output, err);
    return status == MR_OK ? mr_checkpoint_claim(s->output, fresh, &t->claim, err) : status;
}

mr_status mr_trainer_resume(mr_trainer *t, mr_error *err)
{
    mr_settings *s = t->settings;
    if (!*s->output)
        return !s->resume ? MR_OK
                          : mr_fail(err, MR_MISUSE, "--resume: say by --output DIR where the run's checkpoints are");
    if (mr_checkpoint_is(s->output))
        return mr_fail(err, MR_MISUSE,
                       "%s: is a checkpoint, or called like one; name by --output the folder of the "
                       "run, which holds them",
                       s->output);
    t->restored = mr_alloc(1, sizeof *t->restored);
    if (!t->restored)
        return mr_fail_memory(err, "reading the checkpoint");
    char *found = NULL;
    mr_error why;
    mr_status status = mr_checkpoint_read(s->output, false, true, t->restored, &found, &why);
    status = found || status != MR_MISUSE ? take_up(t, found, status, &why, err) : begin_anew(t, err);
    free(found);
    return status;
}

mr_status mr_trainer_same_run(const mr_trainer *t, uint64_t global, const char *digest, mr_error *err)
{
    const char *dataset = json_string_value(json_object_get(t->restored->facts, "dataset"));
    uint64_t kept = fact(t, "global_batch"), among = fact(t, "negatives");
    if (kept != global)
        return mr_fail(err, MR_MISUSE,
                       "--batch x --grad-accum x ranks is %llu, and the run was begun with %llu samples "
                       "an update; leave both out, or choose them so that the product is that again",
                       (ull)global, (ull)kept);
    if (among && t->restored->model.card->text && among != mr_trainer_negatives(t))
        return mr_fail(err, MR_MISUSE,
                       "%s is %llu, and the negatives of this run are those of %llu samples; choose "
                       "that, and --grad-accum to fit",
                       t->settings->gather_negatives ? "--batch x ranks" : "--batch", (ull)mr_trainer_negatives(t),
                       (ull)among);
    if (!dataset || strcmp(dataset, digest) != 0)
        return mr_fail(err, MR_MISUSE,
                       "%s: is not the dataset this run was begun with (digest %.16s..., then "
                       "%.16s...)",
                       t->settings->dataset, digest, dataset ? dataset : "unknown");
    return MR_OK;
}
