/* cmd_view.c - `millrace view OUT DATASET[:SPLIT]...`: selects samples of datasets, without copying them.
 * Invariant: a view that is written opens, and has at least one sample in each split. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/cli/cli.h"
#include "base/cli/term.h"
#include "base/files/file.h"
#include "base/scope.h"
#include "base/text.h"
#include "shards/commands.h"
#include "shards/view_maker.h"

typedef struct request {
    const char *out;
    mr_cli_list from, renames, weights, splits, places;
    uint64_t repeat;
    unsigned balance;
#define X(word, name, value, meta, prepare, help) const char *word;
    MR_CONDITIONS(X)
#undef X
    bool force;
} request;

static const mr_option options[] = {
#define X(word, option, text, meta, prepare, what)                                                                     \
    {option, 0, MR_ARG_TEXT, MR_FIELD(request, word), .value = text, .help = what},
    MR_CONDITIONS(X)
#undef X
        {"rename-class", 0, MR_ARG_LIST, MR_FIELD(request, renames), .value = "OLD=NEW",
         .help = "rename a class; if NEW exists, the two are merged; may be repeated"},
    {"split", 0, MR_ARG_LIST, MR_FIELD(request, splits), .value = "NEW=OLD",
     .help = "rename a split; if NEW exists, the two are joined; may be repeated"},
    {"at", 0, MR_ARG_LIST, MR_FIELD(request, places), .value = "DIGEST=PATH",
     .help = "new path of one of a view's datasets, by its digest (at least 8 digits); may be repeated"},
    {"weight", 0, MR_ARG_LIST, MR_FIELD(request, weights), .value = "DATASET=W",
     .group = "Sampling:", .help = "draw each sample of DATASET W times per epoch, such as 0.5 or 3; may be repeated"},
    {"balance", 0, MR_ARG_WORD, MR_FIELD(request, balance), .words = MR_WORDS("none", "class"), .standard = "none",
     .help = "class: draw each class equally often"},
    {"repeat", 0, MR_ARG_COUNT, MR_FIELD(request, repeat), .value = "N", .low = 1, .high = MR_VIEW_REPEAT,
     .help = "repeat all samples N times per epoch"},
    {"force", 0, MR_ARG_FLAG, MR_FIELD(request, force), .help = "replace OUT, if it is a view"},
    MR_OPTION_QUIET_IGNORED,
    {0},
};

static const mr_option arguments[] = {{.value = "OUT", .kind = MR_ARG_PATH, MR_FIELD(request, out)},
                                      {.value = "DATASET[:SPLIT]", .kind = MR_ARG_LIST, MR_FIELD(request, from)},
                                      {0}};

static mr_status make(const request *q, mr_view_file **v, mr_error *err)
{
    const char *const given[] = {
#define X(word, name, value, meta, prepare, help) q->word,
        MR_CONDITIONS(X)
#undef X
    };
    const mr_view_request asked = {.out = q->out,
                                   .from = (const char *const *)q->from.items,
                                   .from_count = q->from.count,
                                   .arguments = given,
                                   .renames = (const char *const *)q->renames.items,
                                   .rename_count = q->renames.count,
                                   .splits = (const char *const *)q->splits.items,
                                   .split_count = q->splits.count,
                                   .places = (const char *const *)q->places.items,
                                   .place_count = q->places.count,
                                   .weights = (const char *const *)q->weights.items,
                                   .weight_count = q->weights.count,
                                   .repeat = q->repeat,
                                   .balance = q->balance != 0};
    return mr_view_make(&asked, v, err);
}

/* A run may be pinned to the view that is there; another file is never replaced, such as where OUT and DATASET were
 * given in the wrong order. */
static mr_status check_replaced(const request *q, mr_error *err)
{
    MR_AUTO(mr_view_file_release) mr_view_file *old = NULL;
    mr_error why;
    if (!mr_view_is_at(q->out))
        return MR_OK; /* writing reports anything else that is wrong with it */
    if (mr_view_read(q->out, &old, &why) != MR_OK)
        return mr_fail(err, MR_MISUSE, "%s: exists and is not a view; choose another name", q->out);
    return q->force ? MR_OK : mr_fail(err, MR_MISUSE, "%s: exists already; --force replaces it", q->out);
}

static uint64_t samples_of(const mr_view_split *s)
{
    uint64_t samples = 0;
    for (size_t i = 0; i < s->part_count; i++)
        samples += s->parts[i].samples;
    return samples;
}

static mr_status write_view(const request *q, mr_error *err)
{
    MR_AUTO(mr_view_file_release) mr_view_file *v = NULL;
    MR_AUTO(mr_buf_free) mr_buf bytes = {0};
    char digest[65], count[32];
    MR_TRY(check_replaced(q, err));
    MR_TRY(mr_output_check(q->out, err));
    MR_TRY(make(q, &v, err));
    MR_TRY(mr_view_write(v, &bytes, err));
    MR_TRY(mr_file_publish(AT_FDCWD, q->out, bytes.data, bytes.len, err));
    for (size_t i = 0; i < v->split_count; i++)
        printf("%s  %s samples\n", v->splits[i].name, mr_text_count(samples_of(&v->splits[i]), count));
    mr_hex(v->digest, sizeof v->digest, digest);
    printf("digest %s\n", digest);
    return mr_term_flush(err);
}

static int start(int argc, char **argv)
{
    request q = {0};
    MR_AUTO(mr_cli_release) mr_cli cli = {0};
    mr_error err = {0};
    int code;
    if (mr_cli_parse(&cli, &mr_cmd_view, argc, argv, &q))
        code = mr_cli_end(NULL, write_view(&q, &err), &err);
    else
        code = cli.code;
    free(q.from.items);
    free(q.renames.items);
    free(q.weights.items);
    free(q.splits.items);
    free(q.places.items);
    return code;
}

const mr_command mr_cmd_view = {
    .name = "view",
    .title = "select a part of datasets, or combine several, without copying",
    .usage = "OUT DATASET[:SPLIT]...",
    .example = "millrace view small.view flowers --first 100",
    .summary =
        "Writes a small file that selects samples of datasets: those that meet all conditions.  Splits of the same "
        "name "
        "are concatenated, and classes are joined by name.  "
        "inspect, show, verify, diff, plan, replay, bench, train, eval, predict and export accept it in place of the "
        "dataset, and Python and C open it.  Its digest pins the dataset and the samples.",
    .notes = "Examples:\n"
             "  millrace view small.view flowers:train --class rose,tulip --first 100\n"
             "  millrace view fold1.view flowers:train --fold -1/5\n"
             "  millrace view both.view flowers more-flowers --rename-class tulipa=tulip\n"
             "\n"
             "Exit status: 0 written; 1 the dataset is damaged; 2 usage error, or no sample is left; 3 system error.",
    .options = options,
    .arguments = arguments,
    .run = start,
};
