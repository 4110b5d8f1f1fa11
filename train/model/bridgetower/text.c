/* text.c - the text tower: embeddings of tokens and positions, then RoBERTa's layers.
 * Invariant: padding is never a key of attention, so it changes no row of a token and gets no gradient. */
#include "train/model/bridgetower/pass.h"

static mr_lookup table(const mr_bt *m, uint64_t at, uint32_t entries, const int32_t *ids)
{
    return (mr_lookup){.type = m->t.config.compute,
                       .rows = mr_bt_rows(m, MR_BT_TEXT),
                       .width = m->t.config.hidden,
                       .entries = entries,
                       .ids = ids,
                       .table = m->t.values + at,
                       .skip = MR_BT_PAD};
}

void mr_bt_text_embedding_forward(mr_bt *m)
{
    const mr_model_config *c = &m->t.config;
    size_t rows = mr_bt_rows(m, MR_BT_TEXT);
    mr_lookup l[] = {table(m, m->layout.words, c->vocab, m->t.in.tokens), table(m, m->layout.word_type, 1, NULL),
                     table(m, m->layout.positions, c->positions, m->t.in.places)};
    mr_dropout dropout = mr_dropout_at(&m->t, c->dropout, 0);
    for (size_t i = 0; i < MR_COUNT(l); i++) {
        l[i].y = m->words.total;
        l[i].accumulate = i > 0;
        mr_run_lookup(m->t.device, &l[i]);
    }
    mr_norm_forward(&m->t, &m->layout.word_norm, &m->words, m->tokens[MR_BT_TEXT], m->words.total, NULL,
                    (mr_dropout){0});
    if (dropout.rate > 0)
        mr_run_drop(m->t.device,
                    &(mr_drop){c->compute, rows, c->hidden, m->tokens[MR_BT_TEXT], dropout, m->words.y, m->words.y});
}

void mr_bt_text_forward(mr_bt *m, size_t i)
{
    mr_bt_layer_forward(m, &m->layout.text[i], &m->text[i], i ? m->text[i - 1].norm.y : m->words.y, NULL);
}

void mr_bt_text_backward(mr_bt *m, size_t i)
{
    const mr_bt_layer_gradients self = {.d = &m->d_stream[MR_BT_TEXT]};
    if (m->again[MR_BT_TEXT] && i + 1 < m->t.config.layers)
        mr_bt_text_forward(m, i);
    mr_bt_layer_backward(m, &m->layout.text[i], &m->text[i], &self, NULL);
}

void mr_bt_text_embedding_backward(mr_bt *m)
{
    const mr_model_config *c = &m->t.config;
    size_t rows = mr_bt_rows(m, MR_BT_TEXT);
    void *d = m->d_stream[MR_BT_TEXT], *d_total = m->d_spare[MR_BT_TEXT];
    mr_lookup words = table(m, m->layout.words, c->vocab, m->t.in.tokens);
    mr_lookup places = table(m, m->layout.positions, c->positions, m->t.in.places);
    mr_dropout dropout = mr_dropout_at(&m->t, c->dropout, 0);
    if (dropout.rate > 0)
        mr_run_drop(m->t.device, &(mr_drop){c->compute, rows, c->hidden, m->tokens[MR_BT_TEXT], dropout, d, d});
    mr_norm_backward(&m->t, &m->layout.word_norm, &m->words, rows, d, NULL, d_total);
    words.d_y = places.d_y = d_total;
    words.d_table = m->t.gradients + m->layout.words;
    places.d_table = m->t.gradients + m->layout.positions;
    mr_run_lookup_back(m->t.device, &words);
    mr_run_lookup_back(m->t.device, &places);
    mr_run_sum_rows(m->t.device,
                    &(mr_sum_rows){c->compute, rows, c->hidden, d_total, m->t.gradients + m->layout.word_type});
}
