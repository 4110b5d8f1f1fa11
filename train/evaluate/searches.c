/* searches.c - retrieval examples of an evaluation on images and text.
 * Invariant: the choice depends on the number of samples alone. */
#include "base/scope.h"
#include "shards/dataset/dataset.h"
#include "train/evaluate/evaluation.h"

static mr_status search(const mr_evaluator *e, const mr_embeddings *g, size_t row, mr_sample_view *view,
                        mr_outcomes *out, mr_error *err)
{
    const mr_embeddings_sample *s = &g->samples[row];
    mr_match found[MR_FOUND];
    mr_search made = {.sample = s->sample, .words = out->text.len, .count = g->count < MR_FOUND ? g->count : MR_FOUND};
    MR_TRY(mr_matches_find(e->device, g, MR_OF_TEXT, MR_OF_IMAGE, row, 1, made.count, found, err));
    MR_TRY(mr_dataset_read_meta(e->ds, e->loader.split, s->sample, view, err));
    MR_TRY(mr_feed_words(e->text->column, s->item, view->meta, view->meta_len, &out->text, err));
    made.words_len = out->text.len - made.words;
    for (size_t i = 0; i < made.count; i++) {
        made.found[i] = g->samples[found[i].sample].sample;
        made.scores[i] = found[i].score;
        made.right[i] = mr_answers(g, row, found[i].sample);
    }
    if (!MR_GROW(out->searches, out->search_count, out->search_capacity))
        return mr_fail_memory(err, "evaluating");
    out->searches[out->search_count++] = made;
    return mr_buf_status(&out->text, err, "evaluating");
}

mr_status mr_searches_keep(const mr_evaluator *e, const mr_embeddings *g, mr_outcomes *out, mr_error *err)
{
    MR_AUTO(mr_sample_view_free) mr_sample_view view = {0};
    size_t each = g->count < MR_SEARCHES_MOST ? 1 : g->count / MR_SEARCHES_MOST;
    for (size_t i = 0; i < MR_SEARCHES_MOST && i * each < g->count; i++)
        MR_TRY(search(e, g, i * each, &view, out, err));
    return MR_OK;
}
