/* read.c - finding a checkpoint and reading it, as untrusted input.
 * Invariant: sizes and digests are checked before anything is parsed; no more memory is allocated than the files
 * hold. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/files/path.h"
#include "base/system/pool.h"
#include "base/scope.h"
#include "train/checkpoint/parts.h"

enum {
    LAYER_MIN = 1024, /* bytes that a layer of any model takes at least */
    TRIES = 1000,     /* while a run replaces its checkpoints; it writes a new one each time */
};

typedef struct reading {
    mr_checkpoint made;
    char *dir;   /* the checkpoint's directory; NULL: not found */
    int fd;      /* -1: not open */
    bool listed; /* found in an OUTPUT */
    bool with_state, only_state;
    mr_digest digests[MR_FILES];
} reading;

static void release(reading *r)
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
    MR_AUTO(mr_buf_free) mr_buf text = {0}, shown = {0};
    MR_AUTO(mr_scope_close) int fd = -1;
    uint64_t size;
    MR_TRY(open_file(dir, dirfd, "state.json", &fd, &size, err));
    mr_buf_printf(&shown, "%s/state.json", dir);
    const char *name = mr_buf_text(&shown);
    if (size > MR_STATE_MAX)
        return mr_fail(err, MR_BAD_DATA, "%s: is larger than %d MiB", name, MR_STATE_MAX >> 20);
    if (shown.failed || !mr_buf_reserve(&text, size))
        return mr_fail_memory(err, "reading a checkpoint");
    MR_TRY(mr_file_pread(fd, text.data, size, 0, name, err));
    return mr_state_parse(text.data, size, name, out, digests, err);
}

static mr_status none(const char *path, mr_error *err)
{
    return mr_fail(err, MR_MISUSE, "%s: holds no checkpoint (a directory step-NNNNNNNN)", path);
}

/* Opens `step` of the folder `fd`, called `path`, in place of what was open. */
static mr_status open_step(const char *path, int fd, const mr_step *step, reading *r, mr_error *err)
{
    release(r);
    if (asprintf(&r->dir, "%s/%s", path, step->name) < 0) {
        r->dir = NULL;
        return mr_fail_memory(err, path);
    }
    r->fd = openat(fd, step->name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return r->fd < 0 ? mr_fail_errno(err, errno, "%s", r->dir) : MR_OK;
}

/* The best of `steps`, according to the newest of them, which is open. */
static mr_status open_best(const char *path, int fd, const mr_steps *steps, reading *r, mr_error *err)
{
    MR_AUTO(mr_checkpoint_release) mr_checkpoint newest = {0};
    mr_digest digests[MR_FILES];
    char name[MR_STEP_NAME];
    MR_TRY(mr_state_read(r->dir, r->fd, &newest, digests, err));
    if (newest.best_accuracy < 0)
        return mr_fail(err, MR_MISUSE, "%s: no checkpoint was evaluated, so none is the best", path);
    for (size_t i = 0; i < steps->count; i++)
        if (steps->items[i].update == newest.best_update)
            return open_step(path, fd, &steps->items[i], r, err);
    mr_step_name(newest.best_update, name);
    return mr_fail(err, MR_MISUSE, "%s: the best checkpoint, %s, no longer exists; name another", path, name);
}

/* By its content or its name.  `fd`: the folder; -1: it does not exist. */
static bool is_checkpoint(int fd, const char *path)
{
    MR_AUTO(mr_scope_free) char *dir = NULL, *name = NULL;
    uint64_t update;
    if (fd >= 0 && faccessat(fd, "state.json", F_OK, 0) == 0)
        return true;
    return mr_path_split(path, &dir, &name, NULL) == MR_OK && mr_step_parse(name, &update);
}

bool mr_checkpoint_is(const char *path)
{
    MR_AUTO(mr_scope_close) int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return is_checkpoint(fd, path);
}

/* In the folder `fd`, called `path`. */
static mr_status find_step(const char *path, int fd, bool best, reading *r, mr_error *err)
{
    mr_steps steps = {0};
    r->listed = true;
    mr_status status = mr_steps_list(fd, path, &steps, err);
    if (status == MR_OK && steps.count == 0)
        status = none(path, err);
    if (status == MR_OK)
        status = open_step(path, fd, &steps.items[steps.count - 1], r, err);
    if (status == MR_OK && best)
        status = open_best(path, fd, &steps, r, err);
    free(steps.items);
    return status;
}

/* Opens the checkpoint's directory: `path` itself, or one in it. */
static mr_status find(const char *path, bool best, reading *r, mr_error *err)
{
    MR_AUTO(mr_scope_close) int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT || errno == ENOTDIR ? none(path, err) : mr_fail_errno(err, errno, "%s", path);
    if (!is_checkpoint(fd, path))
        return find_step(path, fd, best, r, err);
    r->fd = fd;
    fd = -1;
    r->dir = strdup(path);
    return r->dir ? MR_OK : mr_fail_memory(err, path);
}

/* Whether the directory that was listed was removed or replaced by a run that is in progress. */
static bool was_replaced(const reading *r)
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
    MR_TRY(mr_file_digest(fd, size, false, name, &have, err));
    if (memcmp(have.xxh3_128, want->xxh3_128, sizeof have.xxh3_128) != 0)
        return mr_fail(err, MR_BAD_DATA, "%s: does not match its digest in state.json; it is damaged", name);
    return MR_OK;
}

static mr_status read_tokenizer(reading *r, int fd, uint64_t size, const char *name, mr_error *err)
{
    mr_buf *text = &r->made.tokenizer;
    if (!mr_buf_reserve(text, (size_t)size))
        return mr_fail_memory(err, name);
    MR_TRY(mr_file_pread(fd, text->data, (size_t)size, 0, name, err));
    text->len = (size_t)size;
    return MR_OK;
}

/* One of the files, if this checkpoint has it; of config.json only the digest is checked. */
static mr_status read_file(void *ctx, size_t file, unsigned worker, mr_error *err)
{
    reading *r = ctx;
    const char *called = mr_checkpoint_file(r->made.model.iface, file);
    MR_AUTO(mr_buf_free) mr_buf shown = {0};
    MR_AUTO(mr_scope_close) int fd = -1;
    uint64_t size;
    (void)worker;
    if (!called || (file == MR_FILE_OPTIMIZER && !r->with_state) ||
        (file == MR_FILE_TOKENIZER && r->digests[file].bytes == 0))
        return MR_OK;
    mr_buf_printf(&shown, "%s/%s", r->dir, called);
    const char *name = mr_buf_text(&shown);
    MR_TRY(mr_buf_status(&shown, err, "reading a checkpoint"));
    MR_TRY(open_file(r->dir, r->fd, called, &fd, &size, err));
    MR_TRY(check_digest(fd, size, &r->digests[file], name, err));
    if (file == MR_FILE_CONFIG)
        return MR_OK;
    return file == MR_FILE_TOKENIZER ? read_tokenizer(r, fd, size, name, err)
                                     : mr_arrays_read(&r->made, file, fd, size, name, err);
}

/* The model's parameters; a shape that does not fit into the weights' file is rejected first. */
static mr_status lay_out(reading *r, mr_error *err)
{
    const mr_model_config *m = &r->made.model;
    mr_error why;
    if (m->layers > r->digests[MR_FILE_WEIGHTS].bytes / LAYER_MIN)
        return mr_fail(err, MR_BAD_DATA, "%s/state.json: \"layers\" is more than %s could hold", r->dir,
                       mr_checkpoint_file(m->iface, MR_FILE_WEIGHTS));
    mr_status status = m->iface->params(m, &r->made.params, &why);
    if (status == MR_MISUSE)
        return mr_fail(err, MR_BAD_DATA, "%s/state.json: \"model\" is not valid: %.600s", r->dir, why.text);
    if (status != MR_OK && err)
        *err = why;
    return status;
}

static mr_status read_once(const char *path, bool best, reading *r, mr_error *err)
{
    MR_TRY(find(path, best, r, err));
    MR_TRY(mr_state_read(r->dir, r->fd, &r->made, r->digests, err));
    if (r->only_state)
        return MR_OK;
    MR_TRY(lay_out(r, err));
    return mr_pool_run(MR_FILES, MR_FILES, read_file, r, err);
}

static mr_status read_checkpoint(const char *path, bool best, reading *r, mr_checkpoint *out, char **found,
                                 mr_error *err)
{
    mr_status status = read_once(path, best, r, err);
    for (int again = 0; status != MR_OK && was_replaced(r) && again < TRIES; again++) {
        release(r);
        status = read_once(path, best, r, err);
    }
    if (status == MR_OK) {
        *out = r->made;
        r->made = (mr_checkpoint){0};
    }
    if (found) {
        *found = r->dir;
        r->dir = NULL;
    }
    release(r);
    return status;
}

mr_status mr_checkpoint_read(const char *path, bool best, bool with_state, mr_checkpoint *out, char **found,
                             mr_error *err)
{
    reading r = {.fd = -1, .with_state = with_state};
    return read_checkpoint(path, best, &r, out, found, err);
}

mr_status mr_checkpoint_look(const char *path, bool best, mr_checkpoint *out, char **found, mr_error *err)
{
    reading r = {.fd = -1, .only_state = true};
    return read_checkpoint(path, best, &r, out, found, err);
}

void mr_checkpoint_release(mr_checkpoint *c)
{
    mr_params_release(&c->params);
    free(c->values);
    for (unsigned i = 0; i < MR_CHECKPOINT_STATES; i++)
        free(c->state[i]);
    json_decref(c->facts);
    mr_buf_free(&c->tokenizer);
    memset(c, 0, sizeof *c);
}
