/* cmd_sample.c - `millrace sample`: a small dataset of drawn shapes in a layout, to try everything without a download.
 * Invariant: a folder that is not empty is never touched, and what a failed run has written is removed. */
#include "ingest/commands.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cli/cli.h"
#include "base/files/file.h"
#include "base/files/path.h"
#include "base/scope.h"
#include "base/cli/term.h"
#include "base/text.h"
#include "ingest/cmd_lists.h"
#include "ingest/sample/sample.h"

typedef struct request {
    mr_sketch sketch;
    const char *layout_name;
    const mr_sketch_layout *layout;
    bool quiet;
} request;

static mr_status take_sides(void *field, const char *text, mr_error *err)
{
    mr_sketch *s = field;
    return mr_sides_take(text, &s->min_side, &s->max_side, err);
}

#define LAYOUT_NAME(name) #name,

static const mr_option options[] = {
    {"layout", 0, MR_ARG_TEXT, MR_FIELD(request, layout_name),
     .words = (const char *const[]){MR_SKETCH_LAYOUTS(LAYOUT_NAME) NULL}, .help = "layout of the files"},
    {"variant", 0, MR_ARG_TEXT, MR_FIELD(request, sketch.variant), .value = "FORMAT",
     .help = "roboflow: folder (default), multi-class, coco or clip"},
    {"images", 0, MR_ARG_COUNT, MR_FIELD(request, sketch.images), .value = "N", .low = MR_SKETCH_MIN_IMAGES,
     .high = MR_SKETCH_MAX_IMAGES, .standard = "120", .help = "number of images, 10 to 100000"},
    {"seed", 0, MR_ARG_COUNT, MR_FIELD(request, sketch.seed), .value = "S", .standard = "1", .help = "random seed"},
    {"size", 0, MR_ARG_OTHER, MR_FIELD(request, sketch), .take = take_sides, .value = "MIN[:MAX]",
     .help = "shorter side in pixels, 32 to 4096 (default: depends on the layout)"},
    {"simple", 0, MR_ARG_FLAG, MR_FIELD(request, sketch.simple),
     .help = "easy images, for a small model: one large shape on a plain background, or one at a side or both"},
    {"quiet", 'q', MR_ARG_FLAG, MR_FIELD(request, quiet), .own = true, .help = "print nothing but errors"},
    {0},
};

static const mr_option arguments[] = {{.value = "DIR", .kind = MR_ARG_PATH, MR_FIELD(request, sketch.dir)}, {0}};

static const mr_sketch_layout *find_layout(const char *name)
{
    size_t i = 0;
    while (strcmp(mr_sketch_layouts[i]->name, name) != 0) /* it is one of them: MR_SKETCH_LAYOUTS */
        i++;
    return mr_sketch_layouts[i];
}

/* Whether `word` is one of the space-separated `words`. */
static bool has_word(const char *words, const char *word)
{
    size_t len = strlen(word);
    for (const char *at = words; *at; at += strspn(at, " ")) {
        size_t n = strcspn(at, " ");
        if (n == len && memcmp(at, word, n) == 0)
            return true;
        at += n;
    }
    return false;
}

static mr_status check(void *ctx, mr_error *err)
{
    request *q = ctx;
    mr_sketch *s = &q->sketch;
    if (!q->layout_name)
        return mr_fail(err, MR_MISUSE, "--layout is missing, for example: %s", mr_cmd_sample.example);
    const mr_sketch_layout *layout = q->layout = find_layout(q->layout_name);
    if (s->variant && !*layout->variants)
        return mr_fail(err, MR_MISUSE, "--variant: %s has only one form", layout->name);
    if (s->variant && !has_word(layout->variants, s->variant))
        return mr_fail(err, MR_MISUSE, "--variant %s: %s has %s", s->variant, layout->name, layout->variants);
    if (!s->variant)
        s->variant = *layout->variants ? "folder" : "";
    if (!s->min_side) {
        s->min_side = layout->min_side;
        s->max_side = layout->max_side;
    }
    return MR_OK;
}

/* MR_OK: `dir` does not exist (*is_new) or is an empty folder. */
static mr_status check_folder(const char *dir, bool *is_new, mr_error *err)
{
    char text[2];
    DIR *d = opendir(dir);
    *is_new = !d && errno == ENOENT;
    char *bare = strndup(dir, mr_path_len(dir));
    bool link = *is_new && bare && readlink(bare, text, sizeof text) >= 0;
    free(bare);
    if (!*dir || link)
        return mr_fail(
            err, MR_MISUSE,
            *dir ? "%s: is a dangling link; give the name of a new folder" : "\"%s\": is not a name for a folder", dir);
    if (*is_new)
        return MR_OK;
    if (!d && errno == ENOTDIR)
        return mr_fail(err, MR_MISUSE, "%s: is not a folder; give the name of a new one", dir);
    if (!d)
        return mr_fail_errno(err, errno, "%s", dir);
    bool empty = true;
    for (struct dirent *e; empty && (e = readdir(d));)
        empty = mr_is_dots(e->d_name);
    closedir(d);
    return empty ? MR_OK : mr_fail(err, MR_MISUSE, "%s: is not empty; give the name of a new folder", dir);
}

static void print_summary(const request *q)
{
    char count[32], bytes[32];
    const mr_sketch *s = &q->sketch;
    const char *const *splits = q->layout->splits;
    printf("%sDrew %s images of shapes%s as %s%s%s in %s\n", mr_sgr(stdout, MR_BOLD), mr_text_count(s->images, count),
           mr_sgr(stdout, MR_PLAIN), q->layout->name, *s->variant ? " " : "", s->variant, s->dir);
    for (int i = 0; i < 3 && splits[i]; i++)
        printf("%s%s %s", i ? ", " : "  ", splits[i], mr_text_count(s->in_split[i], count));
    printf("; %s, seed %llu\n", mr_text_bytes(s->bytes, bytes), (unsigned long long)s->seed);
    if (q->layout->remark)
        printf("  %s\n", q->layout->remark);
    printf("Next: %smillrace ingest %s %.*s-shards%s\n", mr_sgr(stdout, MR_CYAN), s->dir, (int)mr_path_len(s->dir),
           s->dir, mr_sgr(stdout, MR_PLAIN));
}

static mr_status draw(request *q, mr_error *err)
{
    mr_error ignored;
    bool is_new = false;
    MR_TRY(check_folder(q->sketch.dir, &is_new, err));
    MR_TRY(mr_dir_make(q->sketch.dir, err));
    mr_status status = q->layout->draw(&q->sketch, err);
    if (status != MR_OK && is_new)
        mr_dir_remove(AT_FDCWD, q->sketch.dir, &ignored);
    return status;
}

static int start(int argc, char **argv)
{
    request q = {.quiet = false};
    MR_AUTO(mr_cli_release) mr_cli cli = {0};
    mr_error err;
    if (!mr_cli_parse(&cli, &mr_cmd_sample, argc, argv, &q))
        return cli.code;
    mr_status status = draw(&q, &err);
    if (status == MR_OK && !q.quiet)
        print_summary(&q);
    free(q.sketch.last_folder);
    return mr_cli_end(NULL, status, &err);
}

const mr_command mr_cmd_sample = {
    .name = "sample",
    .title = "draw a small dataset for tests and demos",
    .usage = "DIR --layout LAYOUT",
    .example = "millrace sample shapes --layout imagenette",
    .summary = "Draws a dataset of shapes into DIR, in the exact names and files of a layout.",
    .notes = "The class of an image is its shape; boxes, polygons and captions describe what was drawn. "
             "The same arguments give the same bytes. DIR must be new or empty.\n"
             "\n"
             "  millrace sample shapes --layout imagenette\n"
             "  millrace sample signs --layout roboflow --variant multi-class --seed 7\n"
             "  millrace sample easy --layout imagenette --simple --size 32 --images 4000",
    .options = options,
    .arguments = arguments,
    .check = check,
    .run = start,
};
