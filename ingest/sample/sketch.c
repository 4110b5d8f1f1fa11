/* sketch.c - what the drawn layouts share: splits, sizes, random numbers, files.
 * Invariant: the random numbers of image n come from (seed, n) alone, so no image depends on another. */
#include "ingest/sample/sample.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files/file.h"

uint64_t mr_sketch_share(const mr_sketch *s, enum mr_sketch_split split, bool has_test)
{
    uint64_t train = s->images * 7 / 10, test = has_test ? s->images / 10 : 0;
    switch (split) {
    case MR_TRAIN:
        return train;
    case MR_VAL:
        return s->images - train - test;
    case MR_TEST:
        break;
    }
    return test;
}

mr_random mr_sketch_random(const mr_sketch *s, uint64_t n)
{
    mr_random r;
    mr_random_stream(&r, s->seed, n);
    return r;
}

void mr_sketch_size(const mr_sketch *s, double wide, mr_random *r, uint32_t *width, uint32_t *height)
{
    uint32_t side = (uint32_t)mr_random_between(r, s->min_side, s->max_side);
    uint32_t longer = (uint32_t)(side * wide + .5);
    bool lying = mr_random_below(r, 3) > 0;
    *width = lying ? longer : side;
    *height = lying ? side : longer;
}

/* ---- files ---------------------------------------------------------------------------------------------------- */

static mr_status path_of(mr_sketch *s, mr_buf *path, mr_error *err, const char *format, va_list args)
{
    char name[400];
    vsnprintf(name, sizeof name, format, args);
    mr_buf_clear(path);
    mr_buf_printf(path, "%s/%s", s->dir, name);
    mr_status status = mr_buf_status(path, err, "naming a file");
    if (status != MR_OK)
        return status;
    char *folder = strdup(mr_buf_text(path));
    if (!folder)
        return mr_fail_memory(err, "naming a folder");
    *strrchr(folder, '/') = '\0';
    if (s->last_folder && strcmp(folder, s->last_folder) == 0) {
        free(folder);
        return MR_OK;
    }
    status = mr_dir_make(folder, err);
    free(s->last_folder);
    s->last_folder = folder;
    return status;
}

mr_status mr_sketch_path(mr_sketch *s, mr_buf *path, mr_error *err, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    mr_status status = path_of(s, path, err, format, args);
    va_end(args);
    return status;
}

mr_status mr_sketch_write(mr_sketch *s, const mr_buf *bytes, mr_error *err, const char *format, ...)
{
    mr_buf path = {0};
    int fd = -1;
    mr_status status = mr_buf_status(bytes, err, "drawing a dataset");
    if (status != MR_OK)
        return status;
    va_list args;
    va_start(args, format);
    status = path_of(s, &path, err, format, args);
    va_end(args);
    if (status != MR_OK)
        goto done;
    /* O_EXCL: two images of one name would be a mistake of ours, not a file to lose. */
    fd = open(mr_buf_text(&path), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0) {
        status = mr_fail_errno(err, errno, "%s: cannot create", mr_buf_text(&path));
        goto done;
    }
    status = mr_file_write(fd, bytes->data, bytes->len, mr_buf_text(&path), err);
    if (close(fd) != 0 && status == MR_OK)
        status = mr_fail_errno(err, errno, "%s: cannot close", mr_buf_text(&path));
    s->files++;
    s->bytes += bytes->len;
done:
    mr_buf_free(&path);
    return status;
}

/* ---- images ------------------------------------------------------------------------------------------------- */

mr_status mr_sketch_jpeg(const mr_scene *scene, mr_random *r, mr_buf *out, mr_error *err)
{
    mr_picture p = {0};
    mr_jpeg_style style = mr_jpeg_style_random(r);
    mr_status status = mr_scene_draw(scene, r, &p, err);
    if (status == MR_OK)
        status = mr_picture_jpeg(&p, &style, out, err);
    mr_picture_free(&p);
    return status;
}

mr_status mr_sketch_png(const mr_scene *scene, mr_random *r, mr_buf *out, mr_error *err)
{
    mr_picture p = {0};
    mr_status status = mr_scene_draw(scene, r, &p, err);
    if (status == MR_OK)
        status = mr_picture_png(&p, out, err);
    mr_picture_free(&p);
    return status;
}

/* ---- text ----------------------------------------------------------------------------------------------------- */

void mr_sketch_hex(mr_random *r, size_t bytes, mr_buf *out)
{
    for (size_t i = 0; i < bytes; i++)
        mr_buf_printf(out, "%02x", (unsigned)mr_random_below(r, 256));
}

void mr_sketch_number(mr_buf *out, double value)
{
    long long hundredths = llround(value * 100), whole = hundredths / 100, rest = llabs(hundredths % 100);
    mr_buf_printf(out, "%s%lld", hundredths < 0 && whole == 0 ? "-" : "", whole);
    if (rest)
        mr_buf_printf(out, rest % 10 ? ".%02lld" : ".%lld", rest % 10 ? rest : rest / 10);
}
