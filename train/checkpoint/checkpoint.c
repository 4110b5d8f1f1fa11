/* checkpoint.c - writing a checkpoint: files, sync, rename, removal of older ones.
 * Invariant: under its own name a checkpoint is complete or absent, whenever the process or the machine stops.
 *
 *      .step-N.tmp-PID/weights.npz    \ written in parallel, with the others; each synced, then
 *                      optimizer.npz  / state.json with their digests, the directory, then
 *      step-N  <- rename, or an exchange with the older one of that name; then OUTPUT is synced */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/files/path.h"
#include "base/system/pool.h"
#include "base/scope.h"
#include "base/files/temp.h"
#include "train/checkpoint/parts.h"

typedef struct writing {
    const mr_checkpoint *c;
    const char *output;
    char name[MR_STEP_NAME], temp[MR_STEP_NAME]; /* step-N, .step-N.tmp-PID */
    int output_fd, fd;                           /* OUTPUT, and the temporary directory */
    mr_buf config;                               /* config.json; empty: none */
    mr_digest digests[MR_FILES];
    uint64_t bytes;
} writing;

/* ---- files ------------------------------------------------------------------------------------------------------- */

static mr_status create(const writing *w, const char *file, mr_buf *shown, int *fd, mr_error *err)
{
    mr_buf_printf(shown, "%s/%s/%s", w->output, w->name, file);
    MR_TRY(mr_buf_status(shown, err, file));
    *fd = openat(w->fd, file, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
    return *fd < 0 ? mr_fail_errno(err, errno, "%s: cannot create", mr_buf_text(shown)) : MR_OK;
}

static mr_status sync_and_close(int fd, const char *shown, mr_status status, mr_error *err)
{
    if (status == MR_OK && fsync(fd) != 0)
        status = mr_fail_errno(err, errno, "%s: cannot sync", shown);
    if (close(fd) != 0 && status == MR_OK)
        status = mr_fail_errno(err, errno, "%s: cannot close", shown);
    return status;
}

static mr_status write_text(const mr_buf *text, int fd, const char *shown, mr_digest *digest, mr_error *err)
{
    *digest = (mr_digest){.bytes = text->len};
    mr_hash128(text->data, text->len, digest->xxh3_128);
    return mr_file_write(fd, text->data, text->len, shown, err);
}

/* One of the files, if this checkpoint has it. */
static mr_status write_file(void *ctx, size_t file, unsigned worker, mr_error *err)
{
    writing *w = ctx;
    const char *name = mr_checkpoint_file(w->c->model.iface, file);
    const mr_buf *text = file == MR_FILE_CONFIG ? &w->config : file == MR_FILE_TOKENIZER ? &w->c->tokenizer : NULL;
    MR_AUTO(mr_buf_free) mr_buf shown = {0};
    int fd;
    (void)worker;
    if (!name || (text && text->len == 0))
        return MR_OK;
    MR_TRY(create(w, name, &shown, &fd, err));
    mr_status status = text ? write_text(text, fd, mr_buf_text(&shown), &w->digests[file], err)
                            : mr_arrays_write(w->c, file, fd, mr_buf_text(&shown), &w->digests[file], err);
    return sync_and_close(fd, mr_buf_text(&shown), status, err);
}

static mr_status write_state(writing *w, mr_error *err)
{
    MR_AUTO(mr_buf_free) mr_buf shown = {0}, text = {0};
    int fd;
    MR_TRY(mr_state_write(w->c, w->digests, &text, err));
    MR_TRY(create(w, "state.json", &shown, &fd, err));
    w->bytes = text.len;
    for (size_t i = 0; i < MR_FILES; i++)
        w->bytes += w->digests[i].bytes;
    mr_status status = mr_file_write(fd, text.data, text.len, mr_buf_text(&shown), err);
    return sync_and_close(fd, mr_buf_text(&shown), status, err);
}

/* ---- directories ------------------------------------------------------------------------------------------------- */

/* The OUTPUT that was claimed, even if its name now belongs to another folder; -1: see errno. */
static int open_folder(const mr_checkpoint *c, const char *output)
{
    int how = O_RDONLY | O_DIRECTORY | O_CLOEXEC;
    return c->claim ? openat(dirfd(c->claim), ".", how) : open(output, how);
}

/* OUTPUT itself must exist after a power cut: the directory that holds it is synced too. */
static mr_status open_output(writing *w, mr_error *err)
{
    MR_AUTO(mr_scope_free) char *dir = NULL, *name = NULL;
    MR_TRY(w->c->claim ? mr_checkpoint_held(w->c->claim, w->output, err) : mr_dir_make(w->output, err));
    MR_TRY(mr_path_split(w->output, &dir, &name, err));
    MR_AUTO(mr_scope_close) int parent = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (parent >= 0)
        MR_TRY(mr_dir_sync(parent, dir, err));
    w->output_fd = open_folder(w->c, w->output);
    return w->output_fd < 0 ? mr_fail_errno(err, errno, "%s: cannot open the directory", w->output) : MR_OK;
}

static mr_status make_temp(writing *w, mr_error *err)
{
    if (mkdirat(w->output_fd, w->temp, 0777) != 0)
        return mr_fail_errno(err, errno, "%s/%s: cannot create the directory", w->output, w->temp);
    w->fd = openat(w->output_fd, w->temp, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (w->fd < 0)
        return mr_fail_errno(err, errno, "%s/%s: cannot open the directory", w->output, w->temp);
    if (!mr_temp_claim(w->fd, w->output_fd, w->temp, false)) /* see owner_gone() */
        return mr_fail(err, MR_SYSTEM, "%s/%s: was removed or is locked by another process", w->output, w->temp);
    return MR_OK;
}

/* An older checkpoint that was moved aside is found under that name until it is removed. */
static mr_status publish(const writing *w, mr_error *err)
{
    char aside[MR_STEP_NAME];
    const char *gone;
    int fd = w->output_fd, failed = renameat(fd, w->temp, fd, w->name) == 0 ? 0 : errno;
    if (failed == ENOTEMPTY || failed == EEXIST)
        failed = mr_temp_replace(fd, w->temp, w->name, NULL, &gone);
    if (mr_temp_cannot_exchange(failed)) {
        mr_step_hidden(w->c->update, "old", aside);
        failed = mr_temp_replace(fd, w->temp, w->name, aside, &gone);
    }
    if (failed)
        return mr_fail_errno(err, failed, "%s/%s: cannot rename to %s", w->output, w->temp, w->name);
    return mr_dir_sync(fd, w->output, err);
}

/* The newest `keep` up to this one stay, and the best.  Newer ones, from before the run went back, are not ours. */
static mr_status remove_older(const mr_checkpoint *c, int fd, const char *output, unsigned keep, mr_error *err)
{
    mr_steps steps = {0};
    mr_status status = keep ? mr_steps_list(fd, output, &steps, err) : MR_OK;
    size_t end = 0;
    while (end < steps.count && steps.items[end].update <= c->update)
        end++;
    for (size_t i = 0; i + keep < end; i++)
        if (c->best_accuracy < 0 || steps.items[i].update != c->best_update)
            mr_step_remove(fd, &steps.items[i]);
    free(steps.items);
    return status;
}

/* Removes what killed runs left, and expired checkpoints. */
static mr_status tidy(const mr_checkpoint *c, int fd, const char *output, unsigned keep, mr_error *err)
{
    MR_TRY(mr_steps_sweep(fd, output, err));
    return remove_older(c, fd, output, keep, err);
}

static mr_status write_all(writing *w, mr_error *err)
{
    MR_TRY(make_temp(w, err));
    MR_TRY(mr_pool_run(MR_FILES, MR_FILES, write_file, w, err));
    MR_TRY(write_state(w, err));
    MR_TRY(mr_dir_sync(w->fd, w->output, err));
    return publish(w, err);
}

static mr_status write_and_publish(writing *w, mr_error *err)
{
    mr_status status = write_all(w, err);
    if (w->fd >= 0)
        close(w->fd);
    mr_dir_remove(w->output_fd, w->temp, NULL); /* what failed, or the one exchanged for ours */
    return status;
}

/* Everything that can be wrong with the checkpoint is reported before anything is written. */
static mr_status write_with(writing *w, unsigned keep, mr_error *err)
{
    const mr_checkpoint *c = w->c;
    MR_AUTO(mr_buf_free) mr_buf unused = {0};
    MR_TRY(mr_state_write(c, w->digests, &unused, err));
    for (unsigned i = 0; i < c->slots; i++)
        if (!c->values || !c->state[i])
            return mr_fail(err, MR_MISUSE, "checkpoint: values or the optimizer's state are missing");
    if (c->model.iface->describe)
        MR_TRY(c->model.iface->describe(&c->model, &w->config, err));
    MR_TRY(open_output(w, err));
    MR_TRY(mr_steps_sweep(w->output_fd, w->output, err));
    MR_TRY(write_and_publish(w, err));
    return tidy(c, w->output_fd, w->output, keep, err);
}

mr_status mr_checkpoint_write(const mr_checkpoint *c, const char *output, unsigned keep, uint64_t *bytes, mr_error *err)
{
    writing w = {.c = c, .output = output, .output_fd = -1, .fd = -1};
    mr_step_name(c->update, w.name);
    mr_step_hidden(c->update, "tmp", w.temp);
    mr_status status = write_with(&w, keep, err);
    if (w.output_fd >= 0)
        close(w.output_fd);
    mr_buf_free(&w.config);
    if (status == MR_OK && bytes)
        *bytes = w.bytes;
    return status;
}

/* The checkpoint in `dirfd`, called `dir`, with the result of its evaluation. */
static mr_status replace_state(const mr_checkpoint *c, const char *dir, int dirfd, mr_error *err)
{
    MR_AUTO(mr_checkpoint_release) mr_checkpoint kept = {0};
    MR_AUTO(mr_buf_free) mr_buf text = {0};
    mr_digest digests[MR_FILES];
    mr_error why;
    MR_TRY(mr_state_read(dir, dirfd, &kept, digests, err));
    kept.accuracy = c->accuracy;
    kept.best_accuracy = c->best_accuracy;
    kept.threshold = c->threshold;
    kept.best_update = c->best_update;
    kept.evaluation_due = false;
    MR_TRY(mr_state_write(&kept, digests, &text, err));
    if (mr_file_publish(dirfd, "state.json", text.data, text.len, &why) != MR_OK)
        return mr_fail(err, why.status, "%s/%s", dir, why.text);
    return MR_OK;
}

mr_status mr_checkpoint_evaluated(const mr_checkpoint *c, const char *output, unsigned keep, mr_error *err)
{
    char name[MR_STEP_NAME];
    MR_AUTO(mr_buf_free) mr_buf dir = {0};
    mr_step_name(c->update, name);
    mr_buf_printf(&dir, "%s/%s", output, name);
    const char *path = mr_buf_text(&dir);
    MR_TRY(mr_buf_status(&dir, err, output));
    MR_TRY(mr_checkpoint_sweep(c, output, 0, err)); /* it may have been moved aside */
    MR_AUTO(mr_scope_close) int folder = open_folder(c, output);
    MR_AUTO(mr_scope_close)
    int fd = folder >= 0 ? openat(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1;
    if (fd < 0)
        return mr_fail_errno(err, errno, "%s: cannot open the directory", path);
    MR_TRY(replace_state(c, path, fd, err));
    return mr_checkpoint_sweep(c, output, keep, err);
}

mr_status mr_checkpoint_sweep(const mr_checkpoint *c, const char *output, unsigned keep, mr_error *err)
{
    MR_TRY(mr_checkpoint_held(c->claim, output, err));
    MR_AUTO(mr_scope_close) int fd = open_folder(c, output);
    if (fd < 0)
        return errno == ENOENT ? MR_OK : mr_fail_errno(err, errno, "%s: cannot open the directory", output);
    return tidy(c, fd, output, keep, err);
}
