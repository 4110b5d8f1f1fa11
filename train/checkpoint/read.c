/* read.c - finding a checkpoint and reading it back, believing nothing that was not checked.
 * Invariant: sizes and digests first, then parsing; memory is taken only for what the files were seen to hold. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/path.h"
#include "base/pool.h"
#include "checkpoint/parts.h"

enum {
    LAYER_MIN = 1024, /* bytes: no layer of any model is saved in less */
    TRIES = 1000,     /* to read what a run replaces meanwhile; each time it has written one more */
};

typedef struct reading {
    mr_checkpoint made;
    char *dir;   /* of the checkpoint; NULL: none was found */
    int fd;      /* -1: it could not be opened */
    bool listed; /* it was found in an OUTPUT */
    bool with_state;
    mr_digest digests[MR_FILES];
} reading;

static void put_down(reading *r)
{
    mr_checkpoint_release(&r->made);
    free(r->dir);
    if (r->fd >= 0)
        close(r->fd);
    r->dir = NULL;
    r->fd = -1;
}

/* ---- finding ----------------------------------------------------------------------------------------------------- */

static mr_status open_file(const char *dir, int dirfd, const char *file, int *fd, uint64_t *size, mr_error *err)
{
    mr_error why;
    mr_status status = mr_file_open(dirfd, file, false, fd, size, &why);
    if (status == MR_OK)
        return MR_OK;
    if (faccessat(dirfd, file, F_OK, AT_SYMLINK_NOFOLLOW) != 0 && errno == ENOENT)
        return mr_fail(err, MR_BAD_DATA, "%s/%s: is missing", dir, file);
    return mr_fail(err, status, "%s/%s", dir, why.text);
}

mr_status mr_state_read(const char *dir, int dirfd, mr_checkpoint *out, mr_digest digests[MR_FILES], mr_error *err)
{
    mr_buf text = {0}, shown = {0};
    int fd;
    uint64_t size;
    mr_status status = open_file(dir, dirfd, "state.json", &fd, &size, err);
    if (status != MR_OK)
        return status;
    mr_buf_printf(&shown, "%s/state.json", dir);
    const char *name = mr_buf_text(&shown);
    if (size > MR_STATE_MAX)
        status = mr_fail(err, MR_BAD_DATA, "%s: is larger than %d MiB", name, MR_STATE_MAX >> 20);
    else if (shown.failed || !mr_buf_reserve(&text, size))
        status = mr_fail_memory(err, "reading a checkpoint");
    else
        status = mr_file_pread(fd, text.data, size, 0, name, err);
    if (status == MR_OK)
        status = mr_state_parse(text.data, size, name, out, digests, err);
    close(fd);
    mr_buf_free(&shown);
    mr_buf_free(&text);
    return status;
}

static mr_status none(const char *path, mr_error *err)
{
    return mr_fail(err, MR_MISUSE, "%s: holds no checkpoint (a directory step-NNNNNNNN)", path);
}

/* Opens `step` of the folder `fd`, called `path`, in place of the one before. */
static mr_status open_step(const char *path, int fd, const mr_step *step, reading *r, mr_error *err)
{
    mr_buf dir = {0};
    mr_buf_printf(&dir, "%s/%s", path, step->name);
    mr_buf_text(&dir);
    mr_status status = mr_buf_status(&dir, err, path);
    if (status != MR_OK) {
        mr_buf_free(&dir);
        return status;
    }
    put_down(r);
    r->dir = (char *)dir.data;
    r->fd = openat(fd, step->name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return r->fd < 0 ? mr_fail_errno(err, errno, "%s", r->dir) : MR_OK;
}

/* The best of `steps`, as the newest of them says, which is open. */
static mr_status open_best(const char *path, int fd, const mr_steps *steps, reading *r, mr_error *err)
{
    mr_checkpoint newest = {0};
    mr_digest digests[MR_FILES];
    char name[MR_STEP_NAME];
    mr_status status = mr_state_read(r->dir, r->fd, &newest, digests, err);
    if (status == MR_OK && newest.best_accuracy < 0)
        status = mr_fail(err, MR_MISUSE, "%s: no checkpoint was evaluated, so none is the best", path);
    size_t i = 0;
    while (status == MR_OK && i < steps->count && steps->items[i].update != newest.best_update)
        i++;
    mr_step_name(newest.best_update, name);
    if (status == MR_OK && i == steps->count)
        status =
            mr_fail(err, MR_MISUSE, "%s: the best checkpoint, %s, is not there any more; name another", path, name);
    if (status == MR_OK)
        status = open_step(path, fd, &steps->items[i], r, err);
    mr_checkpoint_release(&newest);
    return status;
}

/* A path is a checkpoint if it looks like one inside, or is called like one.  `fd`: of the folder; -1: none is there.
 */
static bool is_checkpoint(int fd, const char *path)
{
    char *dir = NULL, *name = NULL;
    uint64_t update;
    if (fd >= 0 && faccessat(fd, "state.json", F_OK, 0) == 0)
        return true;
    bool called = mr_path_split(path, &dir, &name, NULL) == MR_OK && mr_step_parse(name, &update);
    free(dir);
    free(name);
    return called;
}

bool mr_checkpoint_is(const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool is = is_checkpoint(fd, path);
    if (fd >= 0)
        close(fd);
    return is;
}

/* Opens the checkpoint's directory: `path` itself, or one in it. */
static mr_status find(const char *path, bool best, reading *r, mr_error *err)
{
    mr_steps steps = {0};
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT || errno == ENOTDIR ? none(path, err) : mr_fail_errno(err, errno, "%s", path);
    if (is_checkpoint(fd, path)) {
        r->fd = fd;
        r->dir = strdup(path);
        return r->dir ? MR_OK : mr_fail_memory(err, path);
    }
    r->listed = true;
    mr_status status = mr_steps_list(fd, path, &steps, err);
    if (status == MR_OK && steps.count == 0)
        status = none(path, err);
    if (status == MR_OK)
        status = open_step(path, fd, &steps.items[steps.count - 1], r, err);
    if (status == MR_OK && best)
        status = open_best(path, fd, &steps, r, err);
    free(steps.items);
    close(fd);
    return status;
}

/* Whether another directory, or none, has by now the name of the one that was listed: its run goes on meanwhile. */
static bool has_gone(const reading *r)
{
    struct stat listed, there;
    if (!r->listed || !r->dir)
        return false;
    return stat(r->dir, &there) != 0 || r->fd < 0 || fstat(r->fd, &listed) != 0 || listed.st_ino != there.st_ino ||
           listed.st_dev != there.st_dev;
}

/* ---- files ------------------------------------------------------------------------------------------------------- */

static mr_status check_digest(int fd, uint64_t size, const mr_digest *want, const char *name, mr_error *err)
{
    mr_digest have;
    if (size != want->bytes)
        return mr_fail(err, MR_BAD_DATA, "%s: has %" PRIu64 " bytes, state.json says %" PRIu64 "; it is damaged", name,
                       size, want->bytes);
    mr_status status = mr_digest_file(fd, size, false, name, &have, err);
    if (status == MR_OK && memcmp(have.xxh3_128, want->xxh3_128, sizeof have.xxh3_128) != 0)
        status = mr_fail(err, MR_BAD_DATA, "%s: does not have the digest that state.json says; it is damaged", name);
    return status;
}

static mr_status read_tokenizer(reading *r, int fd, uint64_t size, const char *name, mr_error *err)
{
    mr_buf *text = &r->made.tokenizer;
    if (!mr_buf_reserve(text, (size_t)size))
        return mr_fail_memory(err, name);
    mr_status status = mr_file_pread(fd, text->data, (size_t)size, 0, name, err);
    if (status == MR_OK)
        text->len = (size_t)size;
    return status;
}

/* One of the files, if this checkpoint has it; config.json only has to be what was written. */
static mr_status read_file(void *ctx, size_t file, unsigned worker, mr_error *err)
{
    reading *r = ctx;
    const char *called = mr_checkpoint_file(r->made.model.card, file);
    mr_buf shown = {0};
    int fd;
    uint64_t size;
    (void)worker;
    if (!called || (file == MR_FILE_OPTIMIZER && !r->with_state) ||
        (file == MR_FILE_TOKENIZER && r->digests[file].bytes == 0))
        return MR_OK;
    mr_buf_printf(&shown, "%s/%s", r->dir, called);
    const char *name = mr_buf_text(&shown);
    mr_status status = mr_buf_status(&shown, err, "reading a checkpoint");
    if (status == MR_OK)
        status = open_file(r->dir, r->fd, called, &fd, &size, err);
    if (status == MR_OK) {
        status = check_digest(fd, size, &r->digests[file], name, err);
        if (status == MR_OK && file == MR_FILE_TOKENIZER)
            status = read_tokenizer(r, fd, size, name, err);
        else if (status == MR_OK && file != MR_FILE_CONFIG)
            status = mr_arrays_read(&r->made, file, fd, size, name, err);
        close(fd);
    }
    mr_buf_free(&shown);
    return status;
}

/* The model's parameters; a shape that the weights' file could not hold is refused before it is laid out. */
static mr_status lay_out(reading *r, mr_error *err)
{
    const mr_model_config *m = &r->made.model;
    mr_error why;
    if (m->layers > r->digests[MR_FILE_WEIGHTS].bytes / LAYER_MIN)
        return mr_fail(err, MR_BAD_DATA, "%s/state.json: \"layers\" is more than %s could hold", r->dir,
                       mr_checkpoint_file(m->card, MR_FILE_WEIGHTS));
    mr_status status = m->card->params(m, &r->made.params, &why);
    if (status == MR_MISUSE)
        return mr_fail(err, MR_BAD_DATA, "%s/state.json: \"model\" makes no sense: %.600s", r->dir, why.text);
    if (status != MR_OK && err)
        *err = why;
    return status;
}

static mr_status read_once(const char *path, bool best, reading *r, mr_error *err)
{
    mr_status status = find(path, best, r, err);
    if (status == MR_OK)
        status = mr_state_read(r->dir, r->fd, &r->made, r->digests, err);
    if (status == MR_OK)
        status = lay_out(r, err);
    return status == MR_OK ? mr_pool_run(MR_FILES, MR_FILES, read_file, r, err) : status;
}

mr_status mr_checkpoint_read(const char *path, bool best, bool with_state, mr_checkpoint *out, char **found,
                             mr_error *err)
{
    reading r = {.fd = -1, .with_state = with_state};
    mr_status status = read_once(path, best, &r, err);
    for (int again = 0; status != MR_OK && has_gone(&r) && again < TRIES; again++) {
        put_down(&r);
        status = read_once(path, best, &r, err);
    }
    if (status == MR_OK) {
        *out = r.made;
        r.made = (mr_checkpoint){0};
    }
    if (found) {
        *found = r.dir;
        r.dir = NULL;
    }
    put_down(&r);
    return status;
}
