/* log_place.c - where a run's --log may be.
 * Invariant: a file that is appended to is a log, or none was there: what a run reads, or makes otherwise, is never. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/path.h"
#include "checkpoint/checkpoint.h"
#include "run/trainer.h"

/* One of the run's own, in OUTPUT. */
static mr_status keep_out_of(const mr_settings *s, const char *name, mr_error *err)
{
    char *path;
    if (asprintf(&path, "%s/%s", s->output, name) < 0)
        return mr_fail_memory(err, s->log);
    bool inside = mr_path_inside(s->log, path);
    free(path);
    return !inside ? MR_OK
                   : mr_fail(err, MR_MISUSE, "--log %s: the run's own %s is there; name another file", s->log, name);
}

/* A whole one, wherever it is, or what is one of this run, or will be. */
static mr_status keep_out_of_checkpoints(const mr_settings *s, mr_error *err)
{
    char *dir = NULL, *name = NULL;
    mr_status status = mr_path_split(s->log, &dir, &name, err);
    if (status == MR_OK && mr_checkpoint_is(dir) && (mr_checkpoint_has_weights(dir) || mr_path_inside(dir, s->output)))
        status = mr_fail(err, MR_MISUSE, "--log %s: lies in a checkpoint; name another file", s->log);
    free(dir);
    free(name);
    return status;
}

mr_status mr_log_place(const mr_settings *s, mr_error *err)
{
    const char *const read[] = {s->pretrained, s->config, s->tokenizer};
    if (!*s->log)
        return MR_OK;
    mr_status status = mr_path_keep_out(s->log, s->dataset, err);
    for (size_t i = 0; status == MR_OK && i < MR_COUNT(read); i++)
        if (!mr_dir_is(read[i])) /* which may well have a log beside its files */
            status = mr_path_keep_out(s->log, read[i], err);
    if (status == MR_OK && *s->output)
        status = keep_out_of(s, MR_RUN_RESULTS, err);
    if (status == MR_OK && *s->output)
        status = keep_out_of(s, MR_RUN_EVENTS, err);
    if (status == MR_OK)
        status = keep_out_of_checkpoints(s, err);
    bool open_already = strncmp(s->log, "/dev/", 5) == 0; /* /dev/stdout: whatever the user sends it to */
    return status == MR_OK && !open_already ? mr_log_check(s->log, err) : status;
}
