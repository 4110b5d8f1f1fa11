/* cmd_predict_pairs.c - `millrace predict` of a model of pictures and words: for each text the nearest pictures of the
 * split, or for each picture the nearest texts; and all embeddings as .npz.
 * Invariant: an --embeddings file is there whole or not at all. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/path.h"
#include "base/term.h"
#include "dataset/dataset.h"
#include "files/npz.h"
#include "format/meta.h"
#include "text/captions.h"
#include "train/predict.h"

typedef unsigned long long ull;

enum { ROWS = 128 }; /* that are matched, and printed, at a time */

typedef struct prediction {
    const mr_predict_request *q;
    const mr_session *t;
    mr_embeddings gallery;
    mr_output output;  /* of --embeddings, on the first rank */
    mr_buf names;      /* source and words of each row, one after the other */
    size_t (*at)[3];   /* where they begin, and where the words end */
    mr_match *matches; /* [ROWS][top] */
    size_t top;
    mr_buf out;
} prediction;

/* ---- what people call a sample ------------------------------------------------------------------------------------
 */

static mr_status name_row(prediction *p, mr_sample_view *view, size_t row, mr_error *err)
{
    const mr_pairs *pairs = &p->t->pairs;
    const mr_embeddings_sample *s = &p->gallery.samples[row];
    uint64_t key = mr_feed_key(0, 0, s->item); /* as evaluation draws, whose seed is 0 */
    mr_meta_facts facts;
    size_t count = 0;
    mr_status status = mr_dataset_read_meta(p->t->ds, p->t->evaluator.loader.split, s->sample, view, err);
    p->at[row][0] = p->names.len;
    if (status == MR_OK)
        status = mr_meta_scan(view->meta, view->meta_len, &facts, &p->names, err);
    p->at[row][1] = p->names.len;
    if (status == MR_OK)
        status = mr_captions_count(pairs->column, view->meta, view->meta_len, &count, err);
    if (status == MR_OK && count)
        status = mr_captions_get(pairs->column, view->meta, view->meta_len, (size_t)(key % count), &p->names, err);
    p->at[row][2] = p->names.len;
    return status;
}

static mr_status name_rows(prediction *p, mr_error *err)
{
    mr_sample_view view = {0};
    mr_status status = MR_OK;
    p->at = mr_alloc(p->gallery.count + 1, sizeof *p->at);
    if (!p->at)
        return mr_fail_memory(err, "predicting");
    for (size_t i = 0; i < p->gallery.count && status == MR_OK; i++)
        status = name_row(p, &view, i, err);
    mr_sample_view_free(&view);
    return status == MR_OK ? mr_buf_status(&p->names, err, "predicting") : status;
}

static void add_name(prediction *p, size_t row, bool words)
{
    const size_t *at = p->at[row] + words;
    mr_predict_cell(p->q, &p->out, (const char *)p->names.data + at[0], at[1] - at[0]);
}

/* ---- lines --------------------------------------------------------------------------------------------------------
 */

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

static size_t at_a_time(size_t left)
{
    return left < ROWS ? left : ROWS;
}

static mr_status print_rows(prediction *p, mr_error *err)
{
    unsigned from = p->q->words ? MR_OF_IMAGE : MR_OF_TEXT, to = p->q->words ? MR_OF_TEXT : MR_OF_IMAGE;
    size_t count = p->gallery.count;
    mr_status status = MR_OK;
    print_head(p);
    for (size_t first = 0; first < count && status == MR_OK; first += ROWS) {
        size_t rows = at_a_time(count - first);
        status = mr_matches_find(p->t->device, &p->gallery, from, to, first, rows, p->top, p->matches, err);
        mr_buf_clear(&p->out);
        for (size_t i = 0; i < rows && status == MR_OK; i++)
            add_line(p, first + i, p->matches + i * p->top);
        if (status == MR_OK)
            status = mr_buf_status(&p->out, err, "printing predictions");
        if (status == MR_OK) {
            fwrite(p->out.data, 1, p->out.len, stdout);
            status = mr_term_flush(err);
        }
    }
    return status;
}

/* ---- embeddings ---------------------------------------------------------------------------------------------------
 */

static mr_status add_arrays(mr_npz_writer *npz, const mr_embeddings *g, mr_error *err)
{
    static const char *const names[MR_EMBEDDINGS] = {"text", "image", "both"};
    mr_npz_array numbers = {.name = "sample", .type = MR_NPZ_I64, .dims = 1, .shape = {g->count}, .count = g->count};
    int64_t *samples = mr_alloc(g->count + 1, sizeof *samples);
    if (!samples)
        return mr_fail_memory(err, "writing embeddings");
    for (size_t i = 0; i < g->count; i++)
        samples[i] = (int64_t)g->samples[i].sample;
    mr_status status = mr_npz_add(npz, &numbers, samples, err);
    for (int k = 0; k < MR_EMBEDDINGS && status == MR_OK; k++) {
        mr_npz_array array = {
            .type = MR_NPZ_F32, .dims = 2, .shape = {g->count, g->embed}, .count = g->count * g->embed};
        snprintf(array.name, sizeof array.name, "%s", names[k]);
        status = mr_npz_add(npz, &array, g->embeddings[k], err);
    }
    free(samples);
    return status;
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

/* ---- all of it ----------------------------------------------------------------------------------------------------
 */

static mr_status hand_out(prediction *p, mr_error *err)
{
    p->top = p->q->top < p->gallery.count ? (size_t)p->q->top : p->gallery.count;
    p->matches = mr_alloc(ROWS * (p->top ? p->top : 1), sizeof *p->matches);
    if (!p->matches)
        return mr_fail_memory(err, "predicting");
    mr_status status = p->output.path ? write_embeddings(&p->gallery, &p->output, err) : MR_OK;
    if (status == MR_OK)
        status = name_rows(p, err);
    return status == MR_OK ? print_rows(p, err) : status;
}

mr_status mr_predict_pairs(const mr_predict_request *q, mr_session *t, mr_error *err)
{
    prediction p = {.q = q, .t = t};
    mr_evaluation ignored;
    mr_evaluator e = t->evaluator;
    e.gallery = &p.gallery;
    bool first = mr_ranks_rank(e.ranks) == 0, keeps = first && q->embeddings;
    /* Opened first: where no file can be is said before an hour's work. */
    mr_status status = keeps ? mr_path_keep_out(q->embeddings, q->trained.dataset, err) : MR_OK;
    if (status == MR_OK && keeps)
        status = mr_path_keep_out(q->embeddings, t->path, err);
    if (status == MR_OK && keeps)
        status = mr_output_open(AT_FDCWD, q->embeddings, &p.output, err);
    bool opened = status == MR_OK && p.output.path;
    status = mr_ranks_agree(e.ranks, status, err);
    if (status == MR_OK)
        status = mr_evaluate(&e, t->values, &ignored, err);
    bool judged = status == MR_OK;
    if (judged && first)
        status = hand_out(&p, err);
    if (opened)
        status = mr_output_close(&p.output, status, err);
    if (judged)
        status = mr_ranks_agree(e.ranks, status, err);
    mr_embeddings_release(&p.gallery);
    mr_buf_free(&p.names);
    mr_buf_free(&p.out);
    free(p.at);
    free(p.matches);
    return status;
}
