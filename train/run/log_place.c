/* log_place.c - where a run's --log may be.
 * Invariant: only a log, or a new file, is appended to; never a file that the run reads or writes otherwise. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/files/file.h"
#include "base/files/path.h"
#include "base/scope.h"
#include "train/checkpoint/checkpoint.h"
#include "train/run/trainer.h"

/* `name`: one of the run's own files, in OUTPUT. */
static mr_status keep_out_of(const mr_settings *s, const char *name, mr_error *err)
{
    MR_AUTO(mr_scope_free) char *path = NULL;
    if (asprintf(&path, "%s/%s", s->output, name) < 0) {
        path = NULL;
        return mr_fail_memory(err, s->log);
    }
    if (mr_path_inside(s->log, path))
        return mr_fail(err, MR_MISUSE, "--log %s: is reserved for the run's %s; name another file", s->log, name);
    return MR_OK;
}

/* A complete one anywhere, or any of this run. */
static mr_status keep_out_of_checkpoints(const mr_settings *s, mr_error *err)
{
    MR_AUTO(mr_scope_free) char *dir = NULL, *name = NULL;
    MR_TRY(mr_path_split(s->log, &dir, &name, err));
    if (mr_checkpoint_is(dir) && (mr_checkpoint_has_weights(dir) || mr_path_inside(dir, s->output)))
        return mr_fail(err, MR_MISUSE, "--log %s: is in a checkpoint; name another file", s->log);
    return MR_OK;
}

mr_status mr_log_place(const mr_settings *s, mr_error *err)
{
    const char *const read[] = {s->pretrained, s->pretrained_classes, s->config, s->tokenizer};
    if (!*s->log)
        return MR_OK;
    MR_TRY(mr_path_keep_out(s->log, s->dataset, err));
    for (size_t i = 0; i < MR_COUNT(read); i++)
        if (!mr_dir_is(read[i])) /* a folder may have a log beside its files */
            MR_TRY(mr_path_keep_out(s->log, read[i], err));
    if (*s->output) {
        MR_TRY(keep_out_of(s, MR_RUN_RESULTS, err));
        MR_TRY(keep_out_of(s, MR_RUN_EVENTS, err));
        MR_TRY(keep_out_of(s, MR_RUN_OUTCOMES, err));
    }
    MR_TRY(keep_out_of_checkpoints(s, err));
    bool device = strncmp(s->log, "/dev/", 5) == 0; /* /dev/stdout may be redirected to any file */
    return device ? MR_OK : mr_log_check(s->log, err);
}
