/* cmd_tokenizer.c - `millrace tokenizer DATASET`: learns a tokenizer from the captions of a prepared dataset.
 * Invariant: a tokenizer is a function of the captions of the split and of --size alone, and its file appears whole. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cli/cli.h"
#include "base/files/file.h"
#include "base/files/path.h"
#include "base/scope.h"
#include "base/cli/term.h"
#include "base/text.h"
#include "shards/dataset/dataset.h"
#include "shards/dataset/captions.h"
#include "train/text/tokenizer.h"
#include "train/commands.h"

typedef unsigned long long ull;

enum { MIN_SIZE = 261, /* the bytes and the special tokens */ MAX_SIZE = (1 << 24) - 1 };

typedef struct request {
    const char *dataset, *column, *split, *output;
    uint64_t size;
    bool force, quiet;
    mr_dataset *ds;
    uint64_t texts, bytes, tokens;
} request;

static const mr_option options[] = {
    {"text-column", 0, MR_ARG_TEXT, MR_FIELD(request, column), .value = "NAME",
     .help = "column with the texts (default: image_description, otherwise captions)"},
    {"split", 0, MR_ARG_TEXT, MR_FIELD(request, split), .value = "SPLIT", .standard = "train",
     .help = "training split"},
    {"size", 0, MR_ARG_COUNT, MR_FIELD(request, size), .value = "N", .low = MIN_SIZE, .high = MAX_SIZE,
     .standard = "8000", .help = "vocabulary size, at least 261; smaller if no pair is left that occurs twice"},
    {"output", 'o', MR_ARG_PATH, MR_FIELD(request, output), .value = "FILE", .standard = "tokenizer.json",
     .help = "output file"},
    {"force", 0, MR_ARG_FLAG, MR_FIELD(request, force), .help = "replace FILE, if it is a tokenizer"},
    {"quiet", 'q', MR_ARG_FLAG, MR_FIELD(request, quiet), .own = true, .help = "no progress, no summary"},
    {0},
};

static const mr_option arguments[] = {{.value = "DATASET", .kind = MR_ARG_PATH, MR_FIELD(request, dataset)}, {0}};

/* ---- captions ---------------------------------------------------------------------------------------------------- */

typedef mr_status (*take_text)(void *ctx, const char *text, size_t len, mr_error *err);

static mr_status take_sample(const request *q, const mr_sample_view *v, mr_buf *text, take_text take, void *ctx,
                             mr_error *err)
{
    mr_captions captions;
    MR_TRY(mr_captions_find(q->column, v->meta, v->meta_len, &captions, err));
    for (size_t i = 0; i < captions.count; i++) {
        mr_buf_clear(text);
        MR_TRY(mr_captions_read(&captions, i, text, err));
        MR_TRY(take(ctx, mr_buf_text(text), text->len, err));
    }
    return MR_OK;
}

/* Every caption of the split, in the order of the samples. */
static mr_status each_caption(const request *q, const char *what, take_text take, void *ctx, mr_error *err)
{
    uint64_t samples = mr_dataset_samples(q->ds, q->split);
    mr_progress *progress = mr_progress_begin(what, samples, q->quiet);
    MR_AUTO(mr_sample_view_free) mr_sample_view view = {0};
    MR_AUTO(mr_buf_free) mr_buf text = {0};
    mr_status status = MR_OK;
    for (uint64_t n = 0; n < samples && status == MR_OK; n++) {
        status = mr_dataset_read_meta(q->ds, q->split, n, &view, err);
        if (status != MR_OK)
            break;
        status = take_sample(q, &view, &text, take, ctx, err);
        if (status != MR_OK)
            status = mr_fail(err, status, "%s, sample %llu of %s: %s", q->dataset, (ull)n, q->split, err->text);
        mr_progress_add(progress, 1, view.meta_len);
    }
    mr_progress_end(progress);
    return status;
}

typedef struct learning {
    request *q;
    mr_tokenizer_maker *maker;
} learning;

static mr_status learn_text(void *ctx, const char *text, size_t len, mr_error *err)
{
    learning *l = ctx;
    l->q->texts++;
    l->q->bytes += len;
    return mr_tokenizer_maker_add(l->maker, text, len, err);
}

typedef struct counting {
    request *q;
    const mr_tokenizer *tokenizer;
    mr_tokenizer_scratch *scratch;
    int32_t *ids;
    size_t capacity;
} counting;

static mr_status count_text(void *ctx, const char *text, size_t len, mr_error *err)
{
    counting *c = ctx;
    size_t most = len + 2, count = 0; /* no byte of a caption, which is UTF-8, has more than one */
    if (most > c->capacity) {
        int32_t *grown = mr_realloc(c->ids, 2 * most, sizeof *grown);
        if (!grown)
            return mr_fail_memory(err, "counting tokens");
        c->ids = grown;
        c->capacity = 2 * most;
    }
    mr_status status = mr_tokenizer_encode(c->tokenizer, c->scratch, text, len, most, c->ids, &count, err);
    c->q->tokens += count;
    return status;
}

/* ---- from the dataset to the file -------------------------------------------------------------------------------- */

/* The columns of the first sample that hold text, in `names`, and the one to take. */
static mr_status look_at_first(const request *q, mr_buf *names, const char **guess, mr_error *err)
{
    MR_AUTO(mr_sample_view_free) mr_sample_view view = {0};
    *guess = NULL;
    if (mr_dataset_samples(q->ds, q->split))
        MR_TRY(mr_dataset_read_meta(q->ds, q->split, 0, &view, err));
    if (view.meta)
        *guess = mr_captions_guess(view.meta, view.meta_len, names);
    return MR_OK;
}

static mr_status choose_column(request *q, mr_error *err)
{
    MR_AUTO(mr_buf_free) mr_buf names = {0};
    MR_TRY(look_at_first(q, &names, &q->column, err));
    if (q->column)
        return MR_OK;
    if (!names.len)
        return mr_fail(err, MR_BAD_DATA, "%s: its first sample has no text to train on", q->dataset);
    return mr_fail(err, MR_MISUSE, "%s: choose a --text-column; the first sample has text in %s", q->dataset,
                   mr_buf_text(&names));
}

static mr_status fail_without_text(const request *q, mr_error *err)
{
    MR_AUTO(mr_buf_free) mr_buf names = {0};
    const char *guess;
    MR_TRY(look_at_first(q, &names, &guess, err));
    return mr_fail(err, MR_BAD_DATA, "%s: no sample of %s has text in column \"%s\"%s%s", q->dataset, q->split,
                   q->column, names.len ? "; the first has it in " : "", mr_buf_text(&names));
}

static mr_status check_output(const request *q, mr_error *err)
{
    struct stat st;
    MR_TRY(mr_path_keep_out(q->output, q->dataset, err));
    if (stat(q->output, &st) != 0)
        return MR_OK; /* writing reports anything else that is wrong with it */
    if (S_ISDIR(st.st_mode))
        return mr_fail(err, MR_MISUSE, "%s: is a directory; name a file", q->output);
    if (!S_ISREG(st.st_mode)) /* a pipe loses nothing */
        return MR_OK;
    if (!q->force)
        return mr_fail(err, MR_MISUSE, "%s: exists already; --force replaces it", q->output);
    mr_tokenizer *old = NULL;
    mr_error why;
    mr_status status = st.st_size ? mr_tokenizer_open(q->output, &old, &why) : MR_OK;
    mr_tokenizer_free(old);
    if (status == MR_OK || status == MR_SYSTEM)
        return status == MR_OK ? MR_OK : mr_fail(err, status, "%s", why.text);
    return mr_fail(err, MR_MISUSE,
                   "%s: is not a tokenizer, and --force replaces nothing else; choose another name, or remove it "
                   "yourself",
                   q->output);
}

static mr_status learn(request *q, mr_tokenizer **out, mr_error *err)
{
    learning l = {.q = q, .maker = mr_tokenizer_maker_new()};
    if (!l.maker)
        return mr_fail_memory(err, "learning a tokenizer");
    mr_status status = each_caption(q, "reading", learn_text, &l, err);
    if (status == MR_OK && q->bytes == 0)
        status = fail_without_text(q, err);
    if (status == MR_OK)
        status = mr_tokenizer_maker_finish(l.maker, (uint32_t)q->size, out, err);
    mr_tokenizer_maker_free(l.maker);
    return status;
}

static mr_status count_tokens(request *q, const mr_tokenizer *t, mr_error *err)
{
    counting c = {.q = q, .tokenizer = t, .scratch = mr_tokenizer_scratch_new()};
    mr_status status =
        c.scratch ? each_caption(q, "counting", count_text, &c, err) : mr_fail_memory(err, "counting tokens");
    mr_tokenizer_scratch_free(c.scratch);
    free(c.ids);
    return status;
}

static mr_status publish(const request *q, const mr_tokenizer *t, mr_error *err)
{
    MR_AUTO(mr_buf_free) mr_buf json = {0};
    MR_TRY(mr_tokenizer_write(t, &json, err));
    MR_TRY(check_output(q, err)); /* another run may have been faster */
    return mr_file_publish(AT_FDCWD, q->output, json.data, json.len, err);
}

static void print(const request *q, const mr_tokenizer *t)
{
    char numbers[3][40];
    uint32_t size = mr_tokenizer_size(t);
    if (q->quiet)
        return;
    const char *why = size < q->size ? ", as no pair is left that occurs twice" : "";
    printf("%s: %s%s tokens%s learned from %s text%s (%s) in \"%s\" of %s%s; %.1f tokens per text\n", q->output,
           mr_sgr(stdout, MR_BOLD), mr_text_count(size, numbers[0]), mr_sgr(stdout, MR_PLAIN),
           mr_text_count(q->texts, numbers[1]), q->texts == 1 ? "" : "s", mr_text_bytes(q->bytes, numbers[2]),
           q->column, q->split, why, (double)q->tokens / (double)q->texts);
}

static mr_status make(request *q, mr_tokenizer **t, mr_error *err)
{
    MR_TRY(mr_dataset_open(q->dataset, &q->ds, err));
    MR_TRY(mr_manifest_find_split(mr_dataset_manifest(q->ds), q->dataset, q->split, NULL, err));
    MR_TRY(check_output(q, err));
    if (!q->column)
        MR_TRY(choose_column(q, err));
    MR_TRY(learn(q, t, err));
    MR_TRY(count_tokens(q, *t, err));
    MR_TRY(publish(q, *t, err));
    print(q, *t);
    return MR_OK;
}

static int start(int argc, char **argv)
{
    request q = {.dataset = NULL};
    mr_tokenizer *t = NULL;
    MR_AUTO(mr_cli_release) mr_cli cli = {0};
    mr_error err = {0};
    if (!mr_cli_parse(&cli, &mr_cmd_tokenizer, argc, argv, &q))
        return cli.code;
    mr_status status = make(&q, &t, &err);
    mr_tokenizer_free(t);
    mr_dataset_free(q.ds);
    return mr_cli_end(NULL, status, &err);
}

const mr_command mr_cmd_tokenizer = {
    .name = "tokenizer",
    .title = "learn a tokenizer from a dataset's captions",
    .usage = "DATASET",
    .example = "millrace tokenizer cartoons",
    .summary = "Learns a byte-level BPE tokenizer from all captions of a split, and writes it as a "
               "tokenizer.json that training and the Python package tokenizers read.  The same captions and size give "
               "the same file.",
    .notes = "Examples:\n"
             "  millrace tokenizer cartoons --text-column image_description\n"
             "  millrace tokenizer coco --text-column captions --size 16000 --output coco.json\n"
             "\n"
             "Exit status: 0 done; 1 the data is bad, or has no text; 2 usage error; 3 system error.",
    .options = options,
    .arguments = arguments,
    .run = start,
};
