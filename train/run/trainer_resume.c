/* trainer_resume.c - the folder of a run, the checkpoint to resume from, and whether it is the same run.
 * Invariant: an update of a resumed run sees as many samples, and as many negatives, as one of the run before. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/scope.h"
#include "base/cli/term.h"
#include "train/run/trainer.h"

typedef unsigned long long ull;

uint64_t mr_trainer_negatives(const mr_trainer *t)
{
    return t->settings->batch * (t->settings->gather_negatives ? mr_ranks_world(t->ranks) : 1);
}

static uint64_t fact(const mr_trainer *t, const char *name)
{
    json_int_t value = json_integer_value(json_object_get(t->restored.facts, name));
    return value > 0 ? (uint64_t)value : 0;
}

/* ---- how an update is divided ------------------------------------------------------------------------------------ */

/* Samples per rank and micro-step if --batch is not given: as many negatives as before, or no more than before, for
 * which memory was sufficient. */
static uint64_t batch_of(const mr_trainer *t, uint64_t share)
{
    const mr_settings *s = t->settings;
    uint64_t batch = s->batch, negatives = fact(t, "negatives");
    if (negatives && t->restored.model.iface->text)
        return s->gather_negatives ? negatives / mr_ranks_world(t->ranks) : negatives;
    while (share % batch)
        batch--;
    return batch;
}

/* Names the numbers of ranks next to `world` that divide an update. */
static mr_status cannot_share(const char *output, uint64_t global, uint64_t world, mr_error *err)
{
    uint64_t fewer = world < global ? world - 1 : global, more = world + 1;
    char or_more[40] = "";
    while (global % fewer)
        fewer--;
    while (more < global && global % more)
        more++;
    if (more <= global)
        snprintf(or_more, sizeof or_more, " or %llu", (ull)more);
    return mr_fail(err, MR_MISUSE,
                   "%s: an update of this run is %llu samples, which %llu ranks cannot share evenly; "
                   "resume it on %llu%s, the nearest numbers that can",
                   output, (ull)global, (ull)world, (ull)fewer, or_more);
}

/* Those of --batch and --grad-accum that are not given follow from the samples per update and the number of ranks. */
static mr_status divide(mr_trainer *t, bool batch_given, bool accum_given, mr_error *err)
{
    mr_settings *s = t->settings;
    uint64_t global = fact(t, "global_batch"), world = mr_ranks_world(t->ranks), share = global / world;
    bool sane = s->batch && s->batch <= MR_MAX_BATCH && s->grad_accum && s->grad_accum <= MR_MAX_BATCH;
    if (!global || !sane || s->batch * s->grad_accum * world == global || (batch_given && accum_given))
        return MR_OK;
    if (global % world)
        return cannot_share(s->output, global, world, err);
    uint64_t batch = accum_given ? share / s->grad_accum : batch_given ? s->batch : batch_of(t, share);
    uint64_t accum = accum_given ? s->grad_accum : batch ? share / batch : 0;
    if (batch * accum != share) /* mr_trainer_same_run() refuses it */
        return MR_OK;
    s->batch = batch;
    s->grad_accum = accum;
    mr_buf_printf(&t->remarks, "An update stays %llu samples: --batch %llu x --grad-accum %llu x %llu rank%s\n",
                  (ull)global, (ull)batch, (ull)accum, (ull)world, world == 1 ? "" : "s");
    return MR_OK;
}

/* ---- the checkpoint ---------------------------------------------------------------------------------------------- */

/* A run that does not name its model is more likely a misspelt folder than a wish for the default. */
static mr_status begin_run(mr_trainer *t, mr_error *err)
{
    const mr_settings *s = t->settings;
    if (s->resume && !s->given.model && !s->given.pretrained)
        return mr_fail(
            err, MR_MISUSE,
            "%s: holds no checkpoint to resume from; check the name, or start a run there with --model or --pretrained",
            s->output);
    if (s->resume)
        mr_buf_printf(&t->remarks, "No checkpoint in %s: starting from scratch\n", s->output);
    return MR_OK;
}

/* Sets t->resumed if there is a checkpoint. */
static mr_status read_checkpoint(mr_trainer *t, mr_error *err)
{
    const mr_settings *s = t->settings;
    MR_AUTO(mr_scope_free) char *found = NULL;
    if (s->overwrite_output)
        return MR_OK;
    mr_error why;
    mr_status status = mr_checkpoint_read(s->output, false, true, &t->restored, &found, &why);
    if (!found && status == MR_MISUSE)
        return begin_run(t, err);
    if (found && !s->resume)
        return mr_fail(err, MR_MISUSE,
                       "%s: holds checkpoints of an earlier run (%s); continue with --resume, name another --output, "
                       "or remove them with --overwrite-output",
                       s->output, strrchr(found, '/') ? strrchr(found, '/') + 1 : found);
    if (found && status == MR_BAD_DATA)
        return mr_fail(err, status, "%s; move %s away to continue without it", why.text, found);
    if (status != MR_OK)
        return mr_fail(err, status, "%s", why.text);
    t->resumed = true;
    mr_buf_printf(&t->remarks, "Resuming from %s, %llu updates done", found, (ull)t->restored.update);
    if (strcmp(t->restored.version, MILLRACE_VERSION) != 0)
        mr_buf_printf(&t->remarks, " by millrace %s; this is %s", t->restored.version, MILLRACE_VERSION);
    mr_buf_add_text(&t->remarks, "\n");
    return MR_OK;
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
        return mr_fail(err, MR_MISUSE,
                       "%s: cannot be created: a component of this path is a file; name another --output", path);
    if (errno == ENOENT && lstat(path, &st) == 0)
        return mr_fail(err, MR_MISUSE, "%s: is a dangling link; remove it or name another --output", path);
    return MR_OK;
}

/* Against runs on other hosts, which the lock of the claim may not reach. */
static mr_status own(mr_trainer *t, mr_error *err)
{
    const mr_owner_options o = {.dirfd = dirfd(t->claim),
                                .name = MR_OWNER_IN_FOLDER,
                                .lock = dirfd(t->claim),
                                .path = t->settings->output,
                                .ranks = t->ranks,
                                .say = mr_term_warn,
                                .lost = mr_ranks_quit};
    mr_error who;
    mr_status status = mr_owner_take(&o, &t->owner, &who);
    if (status == MR_AGAIN)
        return mr_fail(err, MR_MISUSE, "%s: another run is using it, %s; wait until it ends, or name another --output",
                       o.path, who.text);
    return status == MR_OK ? MR_OK : mr_fail(err, status, "%s", who.text);
}

mr_status mr_trainer_claim(mr_trainer *t, bool fresh, mr_error *err)
{
    MR_TRY(check_output(t->settings->output, err));
    MR_TRY(mr_checkpoint_claim(t->settings->output, fresh, &t->claim, err));
    return t->claim ? own(t, err) : MR_OK;
}

/* Rank 0's part: OUTPUT is claimed before it is read.  A plan writes nothing. */
static mr_status find_run(mr_trainer *t, mr_error *err)
{
    const mr_settings *s = t->settings;
    if (!*s->output && s->resume)
        return mr_fail(err, MR_MISUSE, "--resume: give --output DIR, the folder with the run's checkpoints");
    if (!*s->output)
        return MR_OK;
    if (!mr_settings_plans(s))
        MR_TRY(mr_trainer_claim(t, false, err));
    if (mr_checkpoint_is(s->output))
        return mr_fail(
            err, MR_MISUSE,
            "%s: is a checkpoint, or named like one; set --output to the folder of the run, which contains it",
            s->output);
    return read_checkpoint(t, err);
}

static mr_status adopt(mr_trainer *t, mr_error *err)
{
    bool batch_given = t->settings->given.batch, accum_given = t->settings->given.grad_accum;
    MR_TRY(mr_settings_adopt(t->settings, json_object_get(t->restored.facts, "options"), err));
    return divide(t, batch_given, accum_given, err);
}

mr_status mr_trainer_resume(mr_trainer *t, mr_error *err)
{
    bool first = mr_ranks_rank(t->ranks) == 0;
    MR_TRY(mr_ranks_agree(t->ranks, first ? find_run(t, err) : MR_OK, err));
    uint64_t resumed = t->resumed;
    MR_TRY(mr_ranks_reduce(t->ranks, MR_RANKS_OR, &resumed, 1, err));
    t->resumed = resumed;
    if (!resumed)
        return MR_OK;
    MR_TRY(mr_checkpoint_share(t->ranks, &t->restored, err));
    return mr_ranks_agree(t->ranks, adopt(t, err), err);
}

mr_status mr_trainer_same_run(const mr_trainer *t, uint64_t global, const char *digest, mr_error *err)
{
    const char *dataset = json_string_value(json_object_get(t->restored.facts, "dataset"));
    uint64_t kept = fact(t, "global_batch"), among = fact(t, "negatives");
    if (kept != global)
        return mr_fail(err, MR_MISUSE,
                       "--batch x --grad-accum x ranks is %llu, and the run was started with %llu samples "
                       "per update; leave both out, or choose them so that the product is that number",
                       (ull)global, (ull)kept);
    if (among && t->restored.model.iface->text && among != mr_trainer_negatives(t))
        return mr_fail(err, MR_MISUSE,
                       "%s is %llu, and the negatives of this run are those of %llu samples; choose "
                       "that, and --grad-accum to fit",
                       t->settings->gather_negatives ? "--batch x ranks" : "--batch", (ull)mr_trainer_negatives(t),
                       (ull)among);
    if (!dataset || strcmp(dataset, digest) != 0)
        return mr_fail(err, MR_MISUSE,
                       "%s: is not the dataset this run was started with (digest %.16s..., then "
                       "%.16s...)",
                       t->settings->dataset, digest, dataset ? dataset : "unknown");
    return MR_OK;
}
