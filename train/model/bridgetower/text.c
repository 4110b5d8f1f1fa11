/* text.c - the tower of words: embeddings of tokens and places, then RoBERTa's layers.
 * Invariant: padding is never looked at as a key, so it changes no row of a token, and gets no gradient. */
#include "bridgetower/pass.h"

static mr_lookup table(const mr_bt *m, uint64_t at, uint32_t entries, const int32_t *ids)
{
    return (mr_lookup){.type = m->config.compute,
                       .rows = mr_bt_rows(m, MR_BT_TEXT),
                       .width = m->config.hidden,
                       .entries = entries,
                       .ids = ids,
                       .table = m->values + at,
                       .skip = MR_BT_PAD};
}

void mr_bt_words_forward(mr_bt *m)
{
    const mr_device_card *card = m->device->card;
    const mr_model_config *c = &m->config;
    size_t rows = mr_bt_rows(m, MR_BT_TEXT);
    mr_lookup l[] = {table(m, m->layout.words, c->vocab, m->in.tokens), table(m, m->layout.word_type, 1, NULL),
                     table(m, m->layout.positions, c->positions, m->in.places)};
    mr_dropout dropout = mr_bt_dropout(m, c->dropout, 0);
    for (size_t i = 0; i < MR_COUNT(l); i++) {
        l[i].y = m->words.total;
        l[i].accumulate = i > 0;
        card->lookup(m->device, &l[i]);
    }
    mr_bt_norm_forward(m, &m->layout.word_norm, &m->words, rows, m->words.total, NULL, m->tokens[MR_BT_TEXT],
                       (mr_dropout){0});
    if (dropout.rate > 0)
        card->drop(m->device, c->compute, rows, c->hidden, m->tokens[MR_BT_TEXT], &dropout, m->words.y, m->words.y);
}

void mr_bt_text_forward(mr_bt *m, size_t i)
{
    mr_bt_layer_forward(m, &m->layout.text[i], &m->text[i], i ? m->text[i - 1].norm.y : m->words.y, NULL);
}

void mr_bt_text_back(mr_bt *m, size_t i)
{
    const mr_bt_layer_way way = {.d = &m->d_stream[MR_BT_TEXT]};
    mr_bt_layer_back(m, &m->layout.text[i], &m->text[i], &way);
}

void mr_bt_words_back(mr_bt *m)
{
    const mr_device_card *card = m->device->card;
    const mr_model_config *c = &m->config;
    size_t rows = mr_bt_rows(m, MR_BT_TEXT);
    void *d = m->d_stream[MR_BT_TEXT], *d_total = m->d_spare[MR_BT_TEXT];
    mr_lookup words = table(m, m->layout.words, c->vocab, m->in.tokens);
    mr_lookup places = table(m, m->layout.positions, c->positions, m->in.places);
    mr_dropout dropout = mr_bt_dropout(m, c->dropout, 0);
    if (dropout.rate > 0)
        card->drop(m->device, c->compute, rows, c->hidden, m->tokens[MR_BT_TEXT], &dropout, d, d);
    mr_bt_norm_back(m, &m->layout.word_norm, &m->words, rows, d, NULL, d_total);
    words.d_y = places.d_y = d_total;
    words.d_table = m->gradients + m->layout.words;
    places.d_table = m->gradients + m->layout.positions;
    card->lookup_back(m->device, &words);
    card->lookup_back(m->device, &places);
    card->sum_rows(m->device, c->compute, rows, c->hidden, d_total, m->gradients + m->layout.word_type);
}
