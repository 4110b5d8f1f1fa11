/* parquet.c - the export `parquet`: the hub's form, data/SPLIT-00000-of-00002.parquet with the images inside.
 *
 *      this process --a pipe: lines of JSON, images--> parquet_write.py --> data/train-00000.parquet
 *
 * croissant.json and README.md describe the files (description.h, hub_card.h).
 *
 * A file gets its final name with the number of files when its split is complete.  parquet_write.py may be replaced by
 * any program that reads the same rows: MILLRACE_PARQUET_WRITER names it.
 * Invariant: every file is written by one run of the program, which has ended well before the next begins. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/system/program.h"
#include "base/scope.h"
#include "base/system/script.h"
#include "base/text.h"
#include "shards/export/formats/description.h"
#include "shards/export/formats/hub_card.h"

enum { FILES_MAX = 100000, PIPE_SIZE = 1 << 20 };
#define STANDARD ((uint64_t)500 * 1000 * 1000) /* as the hub's own tools */

typedef struct parquet {
    mr_script script;
    mr_export_row_kind kind;
    uint64_t most;       /* bytes of images in a file */
    char *split;         /* its part of the files' names */
    uint32_t files;      /* files of the split, including the current one */
    mr_program *program; /* NULL: no file is open */
    int pipe;
    uint64_t bytes, rows; /* in the current file */
    mr_buf name, line, file;
    mr_description description;
    mr_hub_card card;
} parquet;

static mr_status begin(mr_export_run *run, mr_error *err)
{
    parquet *p = mr_alloc(1, sizeof *p);
    if (!p)
        return mr_fail_memory(err, "exporting");
    run->state = p;
    p->pipe = -1;
    p->kind = mr_export_row_kind_of(run);
    p->kind.numbers = true;
    p->most = run->options->shard_size ? run->options->shard_size : STANDARD;
    MR_TRY(mr_script_find("parquet_write.py", "MILLRACE_PARQUET_WRITER", "the Parquet writer", &p->script, err));
    MR_TRY(mr_description_open(run, &p->description, err));
    MR_TRY(mr_hub_card_open(run, false, &p->card, err));
    return mr_out_folder(&run->out, "data", err);
}

static mr_status begin_split(mr_export_run *run, const mr_split *split, mr_error *err)
{
    parquet *p = run->state;
    free(p->split);
    p->split = NULL;
    p->files = 0;
    return mr_export_folder_name(run, "/splits", split->name, MR_PART_SPLIT_NAMES, &p->split, err);
}

/* ---- one file ---------------------------------------------------------------------------------------------------- */

/* Ends the program.  `written`: the status of the last write; if the program has stopped reading, it says why. */
static mr_status stop(parquet *p, mr_status written, bool broken, mr_error *err)
{
    mr_error why;
    close(p->pipe);
    p->pipe = -1;
    mr_status ended = mr_program_end(p->program, broken ? MR_OK : written, mr_buf_text(&p->file), &why);
    p->program = NULL;
    if (written != MR_OK && !broken)
        return written;
    if (ended != MR_OK && err)
        *err = why;
    return ended != MR_OK ? ended : written;
}

static mr_status put(parquet *p, const void *bytes, size_t len, mr_error *err)
{
    errno = 0;
    mr_status status = mr_file_write(p->pipe, bytes, len, mr_buf_text(&p->file), err);
    return status == MR_OK ? MR_OK : stop(p, status, errno == EPIPE, err);
}

/* The class names, and the members of the rows. */
static void add_head(const parquet *p, mr_buf *out)
{
    const struct {
        const char *name;
        bool there;
    } members[] = {{"label", p->kind.label},
                   {"labels", p->kind.labels},
                   {"captions", p->kind.captions},
                   {"columns", p->kind.columns},
                   {"objects", p->kind.objects}},
      parts[] = {{"bbox", true},
                 {"categories", true},
                 {"polygons", p->kind.polygons},
                 {"oriented", p->kind.oriented},
                 {"keypoints", p->kind.keypoints},
                 {"crowd", true}};
    const char *comma = "";
    mr_buf_add_text(out, "{\"names\":[");
    for (size_t i = 0; i < p->card.names.count; i++) {
        size_t len;
        const char *name = mr_class_name(&p->card.names, i, &len);
        mr_buf_add_text(out, i ? "," : "");
        mr_json_add_string(out, name, len);
    }
    mr_buf_add_text(out, "],\"members\":[");
    for (size_t i = 0; i < MR_COUNT(members); i++)
        if (members[i].there) {
            mr_buf_printf(out, "%s\"%s\"", comma, members[i].name);
            comma = ",";
        }
    comma = "";
    mr_buf_add_text(out, "],\"objects\":[");
    for (size_t i = 0; i < MR_COUNT(parts); i++)
        if (parts[i].there) {
            mr_buf_printf(out, "%s\"%s\"", comma, parts[i].name);
            comma = ",";
        }
    mr_buf_add_text(out, "]}\n");
}

static mr_status start(mr_export_run *run, parquet *p, mr_error *err)
{
    MR_AUTO(mr_buf_free) mr_buf path = {0};
    const char *argv[4] = {NULL};
    int ends[2];
    mr_buf_clear(&p->file);
    mr_buf_printf(&p->file, "data/%s-%05" PRIu32 ".parquet", p->split, p->files);
    mr_buf_printf(&path, "%s/%s", run->out.root, mr_buf_text(&p->file));
    size_t n = 0;
    while (n < p->script.argc) {
        argv[n] = p->script.argv[n];
        n++;
    }
    argv[n] = mr_buf_text(&path);
    MR_TRY(mr_buf_status(&path, err, "exporting"));
    MR_TRY(mr_buf_status(&p->file, err, "exporting"));
    if (p->files == FILES_MAX)
        return mr_fail(err, MR_MISUSE, "--shard-size: split %s would be in more than %d files", p->split, FILES_MAX);
    if (pipe2(ends, O_CLOEXEC) != 0)
        return mr_fail_errno(err, errno, "%s: cannot make a pipe", argv[0]);
    fcntl(ends[1], F_SETPIPE_SZ, PIPE_SIZE); /* best effort: fewer context switches */
    mr_status status = mr_program_start(argv, ends[0], &p->program, err);
    close(ends[0]);
    if (status != MR_OK) {
        p->program = NULL;
        close(ends[1]);
        return status;
    }
    p->pipe = ends[1];
    p->files++;
    p->rows = p->bytes = 0;
    mr_buf_clear(&p->line);
    add_head(p, &p->line);
    MR_TRY(mr_buf_status(&p->line, err, "exporting"));
    return put(p, p->line.data, p->line.len, err);
}

static mr_status finish(mr_export_run *run, parquet *p, const mr_split *split, mr_error *err)
{
    struct stat st;
    mr_buf_clear(&p->line);
    mr_buf_printf(&p->line, "{\"rows\":%" PRIu64 "}\n", p->rows);
    MR_TRY(mr_buf_status(&p->line, err, "exporting"));
    MR_TRY(put(p, p->line.data, p->line.len, err));
    MR_TRY(stop(p, MR_OK, false, err));
    if (fstatat(run->out.dirfd, mr_buf_text(&p->file), &st, AT_SYMLINK_NOFOLLOW) != 0)
        return mr_fail_errno(err, errno, "%s: the Parquet writer produced no file", mr_buf_text(&p->file));
    run->out.files++;
    run->out.bytes += (uint64_t)st.st_size;
    mr_hub_card_split(run, &p->card, split)->file_bytes += (uint64_t)st.st_size;
    return MR_OK;
}

/* ---- samples and splits ------------------------------------------------------------------------------------------ */

static mr_status sample(mr_export_run *run, const mr_export_sample *s, mr_error *err)
{
    parquet *p = run->state;
    mr_buf *out = &p->line;
    if (p->program && p->bytes && p->bytes + s->view->image_len > p->most)
        MR_TRY(finish(run, p, s->split, err));
    if (!p->program)
        MR_TRY(start(run, p, err));
    MR_TRY(mr_export_picture_name(run, p->split, s, 0, &p->name, err));
    mr_buf_clear(out);
    mr_buf_add_text(out, "{\"path\":");
    mr_json_add_string(out, mr_buf_text(&p->name), p->name.len);
    mr_buf_printf(out, ",\"bytes\":%zu", s->view->image_len);
    mr_export_row_add(run, s, p->kind, out);
    mr_buf_add_text(out, "}\n");
    MR_TRY(mr_buf_status(out, err, "exporting"));
    MR_TRY(put(p, out->data, out->len, err));
    MR_TRY(put(p, s->view->image, s->view->image_len, err));
    mr_hub_card_take(run, &p->card, s, p->kind, p->name.len);
    p->rows++;
    p->bytes += s->view->image_len;
    return MR_OK;
}

/* Gives a file its final name. */
static mr_status rename_file(mr_export_run *run, parquet *p, uint32_t number, mr_error *err)
{
    MR_AUTO(mr_buf_free) mr_buf from = {0}, to = {0};
    mr_buf_printf(&from, "data/%s-%05" PRIu32 ".parquet", p->split, number);
    mr_buf_printf(&to, "data/%s-%05" PRIu32 "-of-%05" PRIu32 ".parquet", p->split, number, p->files);
    const char *old = mr_buf_text(&from), *new = mr_buf_text(&to);
    if (from.failed || to.failed)
        return mr_fail_memory(err, "exporting");
    if (renameat(run->out.dirfd, old, run->out.dirfd, new) != 0)
        return mr_fail_errno(err, errno, "%s: cannot rename", old);
    return mr_description_file(run, &p->description, new, "application/x-parquet", err);
}

/* The split's files as one set. */
static mr_status describe(mr_export_run *run, parquet *p, const mr_split *split, mr_error *err)
{
    mr_hub_split *s = mr_hub_card_split(run, &p->card, split);
    MR_AUTO(mr_buf_free) mr_buf files = {0};
    mr_buf_printf(&files, "data/%s-%s-of-%05" PRIu32 ".parquet", p->split, "?????", p->files); /* no trigraph */
    s->files = strdup(mr_buf_text(&files));
    if (files.failed || !s->files)
        return mr_fail_memory(err, "exporting");
    mr_buf *out = mr_description_item(&p->description);
    mr_buf_printf(out, "{\"@type\":\"cr:FileSet\",\"@id\":\"%s/files\",\"name\":\"%s\",", split->name, split->name);
    mr_buf_add_text(out, "\"encodingFormat\":\"application/x-parquet\",\"includes\":");
    mr_json_add_string(out, s->files, files.len);
    mr_buf_add_text(out, "}");
    return mr_out_text_push(&p->description.files, err);
}

static mr_status end_split(mr_export_run *run, const mr_split *split, mr_error *err)
{
    parquet *p = run->state;
    if (p->program)
        MR_TRY(finish(run, p, split, err));
    for (uint32_t i = 0; i < p->files; i++)
        MR_TRY(rename_file(run, p, i, err));
    return p->files ? describe(run, p, split, err) : MR_OK;
}

static mr_status end(mr_export_run *run, mr_error *err)
{
    parquet *p = run->state;
    MR_TRY(mr_description_close(run, &p->description, p->kind, false, err));
    return mr_hub_card_write(run, &p->card, p->kind, err);
}

static void free_state(void *state)
{
    parquet *p = state;
    if (p->program)
        stop(p, MR_SYSTEM, false, NULL);
    mr_script_free(&p->script);
    free(p->split);
    mr_buf_free(&p->name);
    mr_buf_free(&p->line);
    mr_buf_free(&p->file);
    mr_description_free(&p->description);
    mr_hub_card_free(&p->card);
    free(p);
}

const mr_export_format mr_export_format_parquet = {
    .name = "parquet",
    .holds = MR_EXPORT_ROW_HOLDS | MR_HOLDS(EMPTY_CLASSES) | MR_HOLDS(CLASS_NUMBERS),
    .surveyed = true,
    .sharded = true,
    .begin = begin,
    .begin_split = begin_split,
    .sample = sample,
    .end_split = end_split,
    .end = end,
    .free_state = free_state,
};
