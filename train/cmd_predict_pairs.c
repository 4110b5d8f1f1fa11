/* cmd_predict_pairs.c - `millrace predict` of a model of images and words: for each text the nearest images of the
 * split, or for each image the nearest texts; and all embeddings as .npz.
 * Invariant: an --embeddings file is complete or absent. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/files/file.h"
#include "base/files/path.h"
#include "base/scope.h"
#include "base/cli/term.h"
#include "shards/dataset/dataset.h"
#include "train/files/npz.h"
#include "shards/format/meta.h"
#include "shards/dataset/captions.h"
#include "train/predict.h"

typedef unsigned long long ull;

enum { ROWS = 128 }; /* that are matched, and printed, at a time */

typedef struct prediction {
    const mr_predict_request *q;
    const mr_session *t;
    mr_embeddings gallery;
    mr_output output;  /* the file of --embeddings, on the first rank */
    mr_buf names;      /* source and words of each row, one after another */
    size_t (*at)[3];   /* where they begin, and where the words end */
    mr_match *matches; /* [ROWS][top] */
    size_t top;
    mr_buf out;
} prediction;

/* ---- what people call a sample ----------------------------------------------------------------------------------- */

static mr_status name_row(prediction *p, mr_sample_view *view, size_t row, mr_error *err)
{
    const mr_pairs *pairs = &p->t->pairs;
    const mr_embeddings_sample *s = &p->gallery.samples[row];
    mr_meta_facts facts;
    MR_TRY(mr_dataset_read_meta(p->t->ds, p->t->evaluator.loader.split, s->sample, view, err));
    p->at[row][0] = p->names.len;
    MR_TRY(mr_meta_scan(view->meta, view->meta_len, &facts, &p->names, err));
    p->at[row][1] = p->names.len;
    MR_TRY(mr_feed_words(pairs->column, s->item, view->meta, view->meta_len, &p->names, err));
    p->at[row][2] = p->names.len;
    return MR_OK;
}

static mr_status name_rows(prediction *p, mr_error *err)
{
    MR_AUTO(mr_sample_view_free) mr_sample_view view = {0};
    p->at = mr_alloc(p->gallery.count + 1, sizeof *p->at);
    if (!p->at)
        return mr_fail_memory(err, "predicting");
    for (size_t i = 0; i < p->gallery.count; i++)
        MR_TRY(name_row(p, &view, i, err));
    return mr_buf_status(&p->names, err, "predicting");
}

static void add_name(prediction *p, size_t row, bool words)
{
    const size_t *at = p->at[row] + words;
    mr_predict_cell(p->q, &p->out, (const char *)p->names.data + at[0], at[1] - at[0]);
}

/* ---- lines ------------------------------------------------------------------------------------------------------- */

static void print_head(const prediction *p)
{
    const char *what = p->q->words ? "words" : "source";
    if (p->q->json)
        return;
    printf("sample,source,words");
    for (size_t k = 1; k <= p->top; k++)
        printf(",sample_%zu,%s_%zu,score_%zu", k, what, k, k);
    printf("\n");
}

static void add_line(prediction *p, size_t row, const mr_match *matches)
{
    bool json = p->q->json;
    mr_buf_printf(&p->out, json ? "{\"sample\":%llu,\"source\":" : "%llu,", (ull)p->gallery.samples[row].sample);
    add_name(p, row, false);
    mr_buf_add_text(&p->out, json ? ",\"words\":" : ",");
    add_name(p, row, true);
    mr_buf_add_text(&p->out, json ? ",\"top\":[" : "");
    for (size_t k = 0; k < p->top; k++) {
        const char *before = json ? k ? ",{\"sample\":" : "{\"sample\":" : ",";
        mr_buf_printf(&p->out, "%s%llu", before, (ull)p->gallery.samples[matches[k].sample].sample);
        mr_buf_add_text(&p->out, !json ? "," : p->q->words ? ",\"words\":" : ",\"source\":");
        add_name(p, matches[k].sample, p->q->words);
        mr_buf_printf(&p->out, json ? ",\"score\":%.6f}" : ",%.6f", (double)matches[k].score);
    }
    mr_buf_add_text(&p->out, json ? "]}\n" : "\n");
}

static mr_status print_rows(prediction *p, mr_error *err)
{
    unsigned from = p->q->words ? MR_OF_IMAGE : MR_OF_TEXT, to = p->q->words ? MR_OF_TEXT : MR_OF_IMAGE;
    size_t count = p->gallery.count;
    print_head(p);
    for (size_t first = 0; first < count; first += ROWS) {
        size_t rows = count - first < ROWS ? count - first : ROWS;
        MR_TRY(mr_matches_find(p->t->device, &p->gallery, from, to, first, rows, p->top, p->matches, err));
        mr_buf_clear(&p->out);
        for (size_t i = 0; i < rows; i++)
            add_line(p, first + i, p->matches + i * p->top);
        MR_TRY(mr_buf_status(&p->out, err, "printing predictions"));
        fwrite(p->out.data, 1, p->out.len, stdout);
        MR_TRY(mr_term_flush(err));
    }
    return MR_OK;
}

/* ---- embeddings -------------------------------------------------------------------------------------------------- */

static mr_status add_arrays(mr_npz_writer *npz, const mr_embeddings *g, mr_error *err)
{
    static const char *const names[MR_EMBEDDINGS] = {"text", "image", "both"};
    mr_npz_array numbers = {.name = "sample", .type = MR_NPZ_I64, .dims = 1, .shape = {g->count}, .count = g->count};
    MR_AUTO(mr_scope_free) int64_t *samples = mr_alloc(g->count + 1, sizeof *samples);
    if (!samples)
        return mr_fail_memory(err, "writing embeddings");
    for (size_t i = 0; i < g->count; i++)
        samples[i] = (int64_t)g->samples[i].sample;
    MR_TRY(mr_npz_add(npz, &numbers, samples, err));
    for (int k = 0; k < MR_EMBEDDINGS; k++) {
        mr_npz_array array = {
            .type = MR_NPZ_F32, .dims = 2, .shape = {g->count, g->embed}, .count = g->count * g->embed};
        snprintf(array.name, sizeof array.name, "%s", names[k]);
        MR_TRY(mr_npz_add(npz, &array, g->embeddings[k], err));
    }
    return MR_OK;
}

static mr_status write_embeddings(const mr_embeddings *g, const mr_output *output, mr_error *err)
{
    mr_npz_writer *npz = NULL;
    mr_error why;
    mr_status status = mr_npz_create(output->fd, output->path, &npz, err);
    if (status == MR_OK)
        status = add_arrays(npz, g, err);
    if (mr_npz_finish(npz, NULL, &why) != MR_OK && status == MR_OK) {
        status = why.status;
        if (err)
            *err = why;
    }
    return status;
}

/* ---- all of it --------------------------------------------------------------------------------------------------- */

static mr_status print_and_write(prediction *p, mr_error *err)
{
    p->top = p->q->top < p->gallery.count ? (size_t)p->q->top : p->gallery.count;
    p->matches = mr_alloc(ROWS * (p->top ? p->top : 1), sizeof *p->matches);
    if (!p->matches)
        return mr_fail_memory(err, "predicting");
    if (p->output.path)
        MR_TRY(write_embeddings(&p->gallery, &p->output, err));
    MR_TRY(name_rows(p, err));
    return print_rows(p, err);
}

static mr_status open_embeddings(prediction *p, mr_error *err)
{
    const char *path = p->q->embeddings;
    MR_TRY(mr_path_keep_out(path, p->q->trained.dataset, err));
    MR_TRY(mr_path_keep_out(path, p->t->path, err));
    return mr_output_open(AT_FDCWD, path, &p->output, err);
}

mr_status mr_predict_pairs(const mr_predict_request *q, mr_session *t, mr_error *err)
{
    prediction p = {.q = q, .t = t};
    mr_evaluation ignored;
    mr_evaluator e = t->evaluator;
    e.gallery = &p.gallery;
    bool first = mr_ranks_rank(e.ranks) == 0;
    /* Opened first: an unusable path is reported before an hour's work. */
    mr_status status = first && q->embeddings ? open_embeddings(&p, err) : MR_OK;
    bool opened = status == MR_OK && p.output.path;
    status = mr_ranks_agree(e.ranks, status, err);
    if (status == MR_OK)
        status = mr_evaluate(&e, t->values, &ignored, err);
    bool evaluated = status == MR_OK;
    if (evaluated && first)
        status = print_and_write(&p, err);
    if (opened)
        status = mr_output_close(&p.output, status, err);
    if (evaluated)
        status = mr_ranks_agree(e.ranks, status, err);
    mr_embeddings_release(&p.gallery);
    mr_buf_free(&p.names);
    mr_buf_free(&p.out);
    free(p.at);
    free(p.matches);
    return status;
}
