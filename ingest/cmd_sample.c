/* cmd_sample.c - `millrace sample`: a small dataset of drawn shapes in a layout, to try everything without a download.
 * Invariant: a folder that holds anything is never touched, and what a failed run began is removed again. */
#include "ingest/commands.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cli.h"
#include "base/file.h"
#include "base/path.h"
#include "base/term.h"
#include "base/text.h"
#include "ingest/cmd_lists.h"
#include "sample/sample.h"

enum { OPT_LAYOUT = 1000, OPT_VARIANT, OPT_IMAGES, OPT_SEED, OPT_SIZE, OPT_SIMPLE };

typedef struct request {
    mr_sketch sketch;
    const mr_sketch_layout *layout;
    bool quiet;
} request;

static const struct argp_option options[] = {
    {"layout", OPT_LAYOUT, "LAYOUT", 0, "imagenette, roboflow, coco or newyorker", 0},
    {"variant", OPT_VARIANT, "FORMAT", 0, "of roboflow: folder (default), multi-class, coco or clip", 0},
    {"images", OPT_IMAGES, "N", 0, "pictures to draw, 10 to 100000 (default 120)", 0},
    {"seed", OPT_SEED, "S", 0, "another seed, other pictures (default 1)", 0},
    {"size", OPT_SIZE, "MIN[:MAX]", 0, "shorter side in pixels, 32 to 4096 (default: as the layout has it)", 0},
    {"simple", OPT_SIMPLE, NULL, 0,
     "plain paper with what a small model learns in a minute or two: of imagenette one large "
     "figure in the middle, of newyorker one at each side",
     0},
    {"quiet", 'q', NULL, 0, "print nothing but errors", 0},
    {0},
};

static const char args_doc[] = "DIR --layout LAYOUT";
static const char doc[] =
    "Draws a dataset of shapes into DIR, in the exact names and files of a layout.\v"
    "The class of a picture is its shape; boxes, polygons and captions tell what was drawn. Equal arguments give equal "
    "bytes. DIR must be new or empty.\n\n"
    "  millrace sample shapes --layout imagenette\n"
    "  millrace sample signs --layout roboflow --variant multi-class --seed 7\n"
    "  millrace sample easy --layout imagenette --simple --size 32 --images 4000\n";

static const mr_sketch_layout *find_layout(struct argp_state *state, const char *name)
{
    const char *names[16] = {NULL};
    for (size_t i = 0; mr_sketch_layouts[i]; i++) {
        if (strcmp(mr_sketch_layouts[i]->name, name) == 0)
            return mr_sketch_layouts[i];
        names[i] = mr_sketch_layouts[i]->name;
    }
    mr_cli_no_such(state, "--layout", name, "layout to draw", names);
}

static uint64_t parse_number(struct argp_state *state, const char *option, const char *text, uint64_t low,
                             uint64_t high)
{
    uint64_t value = 0;
    mr_error err;
    mr_cli_must(state, mr_number_take(option, text, low, high, &value, &err), &err);
    return value;
}

/* Is `word` one of the blank-separated `words`? */
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

static void check(struct argp_state *state, request *q)
{
    if (!q->sketch.dir)
        mr_cli_misuse(state, "a folder to write to is missing");
    if (!q->layout)
        mr_cli_misuse(state, "--layout is missing: imagenette, roboflow, coco or newyorker");
    if (q->sketch.variant && !*q->layout->variants)
        mr_cli_misuse(state, "--variant: %s has only one form", q->layout->name);
    if (q->sketch.variant && !has_word(q->layout->variants, q->sketch.variant))
        mr_cli_misuse(state, "--variant %s: %s has %s", q->sketch.variant, q->layout->name, q->layout->variants);
    if (q->sketch.simple && !q->layout->has_simple)
        mr_cli_misuse(state, "--simple: %s is drawn in one way only", q->layout->name);
    if (!q->sketch.variant)
        q->sketch.variant = *q->layout->variants ? "folder" : "";
    if (!q->sketch.min_side) {
        q->sketch.min_side = q->layout->min_side;
        q->sketch.max_side = q->layout->max_side;
    }
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    request *q = state->input;
    mr_error err;
    switch (key) {
    case OPT_LAYOUT:
        q->layout = find_layout(state, arg);
        return 0;
    case OPT_VARIANT:
        q->sketch.variant = arg;
        return 0;
    case OPT_IMAGES:
        q->sketch.images = parse_number(state, "images", arg, MR_SKETCH_MIN_IMAGES, MR_SKETCH_MAX_IMAGES);
        return 0;
    case OPT_SEED:
        q->sketch.seed = parse_number(state, "seed", arg, 0, UINT64_MAX);
        return 0;
    case OPT_SIZE:
        mr_cli_must(state, mr_sides_take(arg, &q->sketch.min_side, &q->sketch.max_side, &err), &err);
        return 0;
    case OPT_SIMPLE:
        q->sketch.simple = true;
        return 0;
    case 'q':
        q->quiet = true;
        return 0;
    case ARGP_KEY_ARG:
        if (q->sketch.dir)
            mr_cli_misuse(state, "one folder is enough, got %s and %s", q->sketch.dir, arg);
        q->sketch.dir = arg;
        return 0;
    case ARGP_KEY_END:
        check(state, q);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

/* MR_OK: `dir` is not there (*is_new) or an empty folder. */
static mr_status check_folder(const char *dir, bool *is_new, mr_error *err)
{
    char text[2];
    DIR *d = opendir(dir);
    *is_new = !d && errno == ENOENT;
    char *bare = strndup(dir, mr_path_len(dir));
    bool link = *is_new && bare && readlink(bare, text, sizeof text) >= 0;
    free(bare);
    if (!*dir || link)
        return mr_fail(err, MR_MISUSE,
                       *dir ? "%s: is a link to what is not there; give the name of a new folder"
                            : "\"%s\": is no name for a folder",
                       dir);
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
    printf("%sDrew %s pictures of shapes%s as %s%s%s in %s\n", mr_sgr(stdout, MR_BOLD), mr_text_count(s->images, count),
           mr_sgr(stdout, MR_PLAIN), q->layout->name, *s->variant ? " " : "", s->variant, s->dir);
    for (int i = 0; i < 3 && splits[i]; i++)
        printf("%s%s %s", i ? ", " : "  ", splits[i], mr_text_count(s->in_split[i], count));
    printf("; %s, seed %llu\n", mr_text_bytes(s->bytes, bytes), (unsigned long long)s->seed);
    if (q->layout->remark)
        printf("  %s\n", q->layout->remark);
    printf("Next: %smillrace ingest %s %.*s-shards%s\n", mr_sgr(stdout, MR_CYAN), s->dir, (int)mr_path_len(s->dir),
           s->dir, mr_sgr(stdout, MR_PLAIN));
}

int cmd_sample(int argc, char **argv)
{
    const struct argp argp = {options, parse, args_doc, doc, NULL, NULL, NULL};
    request q = {.sketch = {.images = 120, .seed = 1}};
    mr_error err, ignored;
    bool is_new = false;
    mr_cli_parse(&argp, argc, argv, &q);
    mr_status status = check_folder(q.sketch.dir, &is_new, &err);
    if (status == MR_OK)
        status = mr_dir_make(q.sketch.dir, &err);
    if (status == MR_OK) {
        status = q.layout->draw(&q.sketch, &err);
        if (status != MR_OK && is_new)
            mr_dir_remove(AT_FDCWD, q.sketch.dir, &ignored);
    }
    if (status != MR_OK)
        mr_term_error(&err);
    else if (!q.quiet)
        print_summary(&q);
    free(q.sketch.last_folder);
    return mr_exit_code(status);
}
