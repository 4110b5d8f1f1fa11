/* safetensors.c - opening a model's files, finding a tensor, and its elements as float32.
 * Invariant: every byte is read by pread, none through a mapping: a file that is truncated meanwhile is an error, not a
 * signal. */
#include "train/files/safetensors.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/files/path.h"
#include "base/scope.h"
#include "train/files/safetensors_parts.h"

static const char MODEL[] = "model.safetensors", INDEX[] = "model.safetensors.index.json";

typedef struct file {
    char *name; /* in messages */
    int fd;
    bool own; /* fd is ours to close */
} file;

struct mr_safetensors {
    file *files;
    size_t file_count, file_capacity;
    mr_tensor_item *items; /* by name; `at` is the place in the file */
    size_t count;
};

void mr_safetensors_free(mr_safetensors *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < s->file_count; i++) {
        file *f = &s->files[i];
        if (f->own)
            close(f->fd);
        free(f->name);
    }
    free(s->files);
    free(s->items);
    free(s);
}

/* ---- one file ---------------------------------------------------------------------------------------------------- */

/* Reads and checks the header; *items get their places in the file. */
static mr_status read_file(file *f, size_t number, mr_tensor_item **items, size_t *count, mr_error *err)
{
    uint8_t head[8];
    uint64_t len = 0;
    struct stat st;
    MR_AUTO(mr_buf_free) mr_buf text = {0};
    if (fstat(f->fd, &st) != 0)
        return mr_fail_errno(err, errno, "%s", f->name);
    uint64_t size = (uint64_t)st.st_size;
    if (size < sizeof head)
        return mr_fail(err, MR_BAD_DATA, "%s: not a .safetensors file: it has less than 8 bytes", f->name);
    MR_TRY(mr_file_pread(f->fd, head, sizeof head, 0, f->name, err));
    for (int i = 7; i >= 0; i--)
        len = len << 8 | head[i];
    if (len > MR_TENSORS_HEADER || len > size - sizeof head)
        return mr_fail(err, MR_BAD_DATA, "%s: not a .safetensors file, or truncated: its header would have %llu bytes",
                       f->name, (unsigned long long)len);
    if (!mr_buf_reserve(&text, (size_t)len))
        return mr_fail_memory(err, f->name);
    MR_TRY(mr_file_pread(f->fd, text.data, (size_t)len, sizeof head, f->name, err));
    MR_TRY(mr_tensors_header(text.data, (size_t)len, size - sizeof head - len, f->name, items, count, err));
    (void)posix_fadvise(f->fd, 0, 0, POSIX_FADV_SEQUENTIAL);
    for (size_t i = 0; i < *count; i++) {
        mr_tensor_item *item = &(*items)[i];
        item->at += sizeof head + len;
        item->file = number;
    }
    return MR_OK;
}

/* One more file of the model; `fd` is closed with it, or now if that fails, if it is `own`. */
static mr_status add_file(mr_safetensors *s, int fd, bool own, const char *name, mr_error *err)
{
    char *copy = strdup(name);
    if (!copy || !MR_GROW(s->files, s->file_count, s->file_capacity)) {
        free(copy);
        if (own)
            close(fd);
        return mr_fail_memory(err, name);
    }
    s->files[s->file_count++] = (file){.name = copy, .fd = fd, .own = own};
    return MR_OK;
}

static mr_status add_path(mr_safetensors *s, const char *path, mr_error *err)
{
    int fd;
    MR_TRY(mr_file_open(AT_FDCWD, path, true, &fd, NULL, err));
    return add_file(s, fd, true, path, err);
}

/* ---- several ----------------------------------------------------------------------------------------------------- */

static mr_status join(mr_buf *out, const char *dir, const char *name, mr_error *err)
{
    mr_buf_clear(out);
    mr_buf_printf(out, "%s/%s", dir, name);
    mr_buf_text(out);
    return mr_buf_status(out, err, dir);
}

static bool is_named(const file *f, const char *name)
{
    const char *slash = strrchr(f->name, '/');
    return strcmp(slash ? slash + 1 : f->name, name) == 0;
}

/* Opens each file that the map names, once. */
static mr_status open_named(mr_safetensors *s, json_t *map, const char *index, const char *dir, mr_error *err)
{
    const char *key;
    json_t *value;
    MR_AUTO(mr_buf_free) mr_buf path = {0};
    json_object_foreach(map, key, value)
    {
        const char *name = json_string_value(value);
        size_t i = s->file_count;
        while (i > 0 && !is_named(&s->files[i - 1], name))
            i--;
        if (i > 0)
            continue;
        if (s->file_count == MR_TENSORS_FILES)
            return mr_fail(err, MR_BAD_DATA, "%s: names more than %d files", index, MR_TENSORS_FILES);
        MR_TRY(join(&path, dir, name, err));
        if (access(mr_buf_text(&path), F_OK) != 0 && errno == ENOENT)
            return mr_fail(err, MR_BAD_DATA, "%s: '%.255s' is in '%.255s', which is missing; get that file too", index,
                           key, name);
        MR_TRY(add_path(s, mr_buf_text(&path), err));
    }
    return MR_OK;
}

/* Keeps the tensors that the map places in this file; duplicates of a name are in files that it does not name. */
static void keep_named(mr_safetensors *s, const json_t *map, const mr_tensor_item *items, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const char *where = json_string_value(json_object_get(map, items[i].tensor.name));
        if (where && is_named(&s->files[items[i].file], where))
            s->items[s->count++] = items[i];
    }
}

static int by_name(const void *a, const void *b)
{
    const mr_tensor_item *x = a, *y = b;
    return strcmp(x->tensor.name, y->tensor.name);
}

static mr_status check_all_there(const mr_safetensors *s, json_t *map, const char *index, mr_error *err)
{
    const char *key;
    json_t *value;
    if (s->count == json_object_size(map))
        return MR_OK;
    json_object_foreach(map, key, value) if (!mr_safetensors_find(s, key)) return mr_fail(
        err, MR_BAD_DATA, "%s: '%.255s' is not in '%.255s', where the index places it", index, key,
        json_string_value(value));
    return MR_OK;
}

static mr_status read_map(const char *index, json_t **map, mr_error *err)
{
    MR_AUTO(mr_buf_free) mr_buf text = {0};
    MR_TRY(mr_file_read_all(AT_FDCWD, index, MR_TENSORS_INDEX, &text, err));
    return mr_tensors_index(text.data, text.len, index, map, err);
}

static mr_status read_index(mr_safetensors *s, const char *index, mr_error *err)
{
    MR_AUTO(mr_scope_free) char *dir = NULL;
    MR_AUTO(mr_scope_free) char *name = NULL;
    MR_AUTO(json_decrefp) json_t *map = NULL;
    MR_TRY(read_map(index, &map, err));
    MR_TRY(mr_path_split(index, &dir, &name, err));
    s->items = mr_alloc(json_object_size(map), sizeof *s->items);
    if (!s->items)
        return mr_fail_memory(err, index);
    MR_TRY(open_named(s, map, index, dir, err));
    for (size_t i = 0; i < s->file_count; i++) {
        MR_AUTO(mr_scope_free) mr_tensor_item *items = NULL;
        size_t count = 0;
        MR_TRY(read_file(&s->files[i], i, &items, &count, err));
        keep_named(s, map, items, count);
    }
    if (s->count)
        qsort(s->items, s->count, sizeof *s->items, by_name);
    return check_all_there(s, map, index, err);
}

/* ---- opening ----------------------------------------------------------------------------------------------------- */

static bool ends_with(const char *path, const char *end)
{
    size_t len = strlen(path), n = strlen(end);
    return len >= n && strcmp(path + len - n, end) == 0;
}

static mr_status open_file(mr_safetensors *s, const char *path, mr_error *err)
{
    if (ends_with(path, ".index.json"))
        return read_index(s, path, err);
    MR_TRY(add_path(s, path, err));
    return read_file(&s->files[0], 0, &s->items, &s->count, err);
}

static mr_status open_dir(mr_safetensors *s, const char *dir, mr_error *err)
{
    MR_AUTO(mr_buf_free) mr_buf path = {0};
    MR_TRY(join(&path, dir, MODEL, err));
    if (access(mr_buf_text(&path), F_OK) != 0)
        MR_TRY(join(&path, dir, INDEX, err));
    if (access(mr_buf_text(&path), F_OK) != 0)
        return mr_fail(err, MR_BAD_DATA, "%s: has neither %s nor %s", dir, MODEL, INDEX);
    return open_file(s, mr_buf_text(&path), err);
}

mr_status mr_safetensors_open(const char *path, mr_safetensors **out, mr_error *err)
{
    mr_safetensors *s = mr_alloc(1, sizeof *s);
    if (!s)
        return mr_fail_memory(err, path);
    mr_status status = mr_dir_is(path) ? open_dir(s, path, err) : open_file(s, path, err);
    if (status == MR_OK)
        *out = s;
    else
        mr_safetensors_free(s);
    return status;
}

mr_status mr_safetensors_open_fd(int fd, const char *name, mr_safetensors **out, mr_error *err)
{
    mr_safetensors *s = mr_alloc(1, sizeof *s);
    mr_status status = s ? add_file(s, fd, false, name, err) : mr_fail_memory(err, name);
    if (status == MR_OK)
        status = read_file(&s->files[0], 0, &s->items, &s->count, err);
    if (status == MR_OK)
        *out = s;
    else
        mr_safetensors_free(s);
    return status;
}

/* ---- tensors ----------------------------------------------------------------------------------------------------- */

size_t mr_safetensors_count(const mr_safetensors *s)
{
    return s->count;
}

const mr_tensor *mr_safetensors_at(const mr_safetensors *s, size_t i)
{
    return i < s->count ? &s->items[i].tensor : NULL;
}

static const mr_tensor_item *find(const mr_safetensors *s, const char *name)
{
    size_t from = 0, to = s->count;
    while (from < to) {
        size_t middle = from + (to - from) / 2;
        int order = strcmp(name, s->items[middle].tensor.name);
        if (order == 0)
            return &s->items[middle];
        if (order < 0)
            to = middle;
        else
            from = middle + 1;
    }
    return NULL;
}

const mr_tensor *mr_safetensors_find(const mr_safetensors *s, const char *name)
{
    const mr_tensor_item *item = find(s, name);
    return item ? &item->tensor : NULL;
}

mr_status mr_safetensors_take(const mr_safetensors *s, const mr_tensor *t, float *to, mr_error *err)
{
    const mr_tensor_item *item = find(s, t->name);
    if (!item)
        return mr_fail(err, MR_MISUSE, "'%s' is not a tensor of these files", t->name);
    const file *f = &s->files[item->file];
    if (item->tensor.type == MR_TENSOR_OTHER)
        return mr_fail(err, MR_BAD_DATA, "%s: '%s' has none of the types F32, F16 and BF16", f->name, t->name);
    if (item->tensor.type != MR_TENSOR_F32)
        return mr_tensors_widen(f->fd, f->name, item, to, err);
    return item->len ? mr_file_pread(f->fd, to, (size_t)item->len, item->at, f->name, err) : MR_OK;
}
