/* log_place.c - where a run's --log may be.
 * Invariant: a file that is appended to is a log, or none was there: what a run reads, or makes otherwise, is never. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "checkpoint.h"
#include "path.h"
#include "trainer.h"

enum { LOOKED_AT = 64 * 1024 };     /* bytes of a file that is there */

static bool is_folder(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* One of the run's own, in OUTPUT. */
static mr_status keep_out_of(const mr_settings *s, const char *name, mr_error *err)
{
    char *path;
    if (asprintf(&path, "%s/%s", s->output, name) < 0)
        return mr_fail_memory(err, s->log);
    bool inside = mr_path_inside(s->log, path);
    free(path);
    return !inside ? MR_OK : mr_fail(err, MR_MISUSE, "--log %s: the run's own %s is there; name another file", s->log, name);
}

static bool holds(const char *dir, const char *name)
{
    char *path;
    if (asprintf(&path, "%s/%s", dir, name) < 0)
        return false;
    bool there = access(path, F_OK) == 0;
    free(path);
    return there;
}

/* A whole one, wherever it is, or what is one of this run, or will be. */
static mr_status keep_out_of_checkpoints(const mr_settings *s, mr_error *err)
{
    char *dir = NULL, *name = NULL;
    mr_status status = mr_path_split(s->log, &dir, &name, err);
    if (status == MR_OK && mr_checkpoint_is(dir) &&
        (holds(dir, "weights.npz") || holds(dir, "model.safetensors") || mr_path_inside(dir, s->output)))
        status = mr_fail(err, MR_MISUSE, "--log %s: lies in a checkpoint; name another file", s->log);
    free(dir);
    free(name);
    return status;
}

/* Whether the text is lines of JSON, of updates or of others; one object alone is some other file's, if it has no step. */
static bool has_lines(const char *text, size_t len)
{
    size_t objects = 0;
    bool step = false;
    for (const char *end = text + len, *next; text < end && !step; text = next) {
        const char *stop = memchr(text, '\n', (size_t)(end - text));
        next = stop ? stop + 1 : end;
        json_t *line = json_loadb(text, (size_t)(next - text), 0, NULL);
        objects += json_is_object(line);
        step = json_object_get(line, "step") != NULL;
        json_decref(line);
    }
    return step || objects > 1;
}

/* Lines of updates or of others, or somebody's notes: no other JSON, which begins with a brace too, and no binary file.
 * Zeros are what a power loss leaves of what was written last, or first. */
static bool could_be_log(const char *text, size_t len)
{
    static const char begin[] = "{\"step\": ";
    size_t most = strlen(begin);
    while (len && text[len - 1] == '\0')
        len--;
    if (memmem(text, len, begin, most) || memcmp(text, begin, len < most ? len : most) == 0)
        return true;
    return !memchr(text, '\0', len) && (*text != '{' || has_lines(text, len));
}

static mr_status look_into(const char *path, mr_error *err)
{
    struct stat st;
    char *text = malloc(LOOKED_AT);
    int fd = stat(path, &st) == 0 && S_ISREG(st.st_mode) ? open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK) : -1;
    ssize_t len = text && fd >= 0 ? pread(fd, text, LOOKED_AT, 0) : 0;
    bool log = len <= 0 || could_be_log(text, (size_t)len);
    if (fd >= 0)
        close(fd);
    free(text);
    if (!text)
        return mr_fail_memory(err, path);
    return log ? MR_OK : mr_fail(err, MR_MISUSE, "--log %s: is there, and is no log of a run; name another file", path);
}

mr_status mr_log_place(const mr_settings *s, mr_error *err)
{
    const char *const read[] = {s->pretrained, s->config, s->tokenizer};
    if (!*s->log)
        return MR_OK;
    mr_status status = mr_path_keep_out(s->log, s->dataset, err);
    for (size_t i = 0; status == MR_OK && i < MR_COUNT(read); i++)
        if (!is_folder(read[i]))    /* which may well have a log beside its files */
            status = mr_path_keep_out(s->log, read[i], err);
    if (status == MR_OK && *s->output)
        status = keep_out_of(s, MR_RUN_RESULTS, err);
    if (status == MR_OK && *s->output)
        status = keep_out_of(s, MR_RUN_EVENTS, err);
    if (status == MR_OK)
        status = keep_out_of_checkpoints(s, err);
    bool open_already = strncmp(s->log, "/dev/", 5) == 0;       /* /dev/stdout: whatever the user sends it to */
    return status == MR_OK && !open_already ? look_into(s->log, err) : status;
}
