/* describe.c - labels, weights, keys and texts of a batch's samples; see describe.h. */
#include "train/feed/describe.h"

#include <string.h>

#include "base/cli/term.h"
#include "base/scope.h"
#include "loader/order/mix.h"

/* The key of an item's random choices: its dropout, and which of several captions is drawn (key % count). */
static uint64_t choice_key(uint64_t seed, uint64_t epoch, uint64_t item)
{
    return mr_mix(mr_mix(mr_mix(seed) ^ epoch) ^ item);
}

static uint64_t key_of(const mr_feed *f, const mr_sample_facts *s)
{
    return choice_key(f->seed, f->batch->epoch, s->item);
}

/* ---- text -------------------------------------------------------------------------------------------------------- */

static size_t caption_number(const mr_feed *f, const mr_sample_facts *s, size_t count)
{
    if (!f->text.expanded)
        return count ? key_of(f, s) % count : 0;
    uint64_t first = s->item;
    while (f->items && first > 0 && f->items[first - 1] == s->sample)
        first--;
    return s->item - first;
}

static mr_status find_caption(mr_feed *f, const mr_sample_facts *s, mr_error *err)
{
    mr_captions found;
    mr_error why;
    mr_buf_clear(&f->caption);
    if (!s->meta) /* masked */
        return MR_OK;
    mr_status status = mr_captions_find(f->text.column, s->meta, s->meta_len, &found, &why);
    size_t n = status == MR_OK ? caption_number(f, s, found.count) : 0;
    if (status == MR_OK && n < found.count)
        status = mr_captions_read(&found, n, &f->caption, &why);
    else if (status == MR_OK) /* its error lists them */
        status = mr_captions_get(f->text.column, s->meta, s->meta_len, n, &f->caption, &why);
    if (status == MR_OK)
        return status;
    return mr_fail(err, status == MR_BAD_SAMPLE ? MR_BAD_DATA : status, "%s sample %llu: %s", f->split,
                   (unsigned long long)s->sample, why.text);
}

mr_status mr_feed_words(const char *column, uint64_t item, const char *meta, size_t len, mr_buf *out, mr_error *err)
{
    mr_captions found;
    MR_TRY(mr_captions_find(column, meta, len, &found, err));
    if (!found.count)
        return MR_OK;
    return mr_captions_read(&found, (size_t)(choice_key(0, 0, item) % found.count), out, err);
}

/* Texts are `most` apart while the longest is not known, then move to be `length` apart. */
static void pad(mr_feed *f, size_t row)
{
    int32_t none = mr_tokenizer_pad(f->text.tokenizer), place = none;
    int32_t *tokens = f->host.tokens + row * f->length, *places = f->host.places + row * f->length;
    uint8_t *seen = f->host.seen + row * f->length;
    memmove(tokens, f->host.tokens + row * f->text.most, f->lengths[row] * sizeof *tokens);
    for (size_t i = 0; i < f->length; i++) {
        seen[i] = i < f->lengths[row];
        if (!seen[i])
            tokens[i] = none;
        places[i] = tokens[i] == none ? none : ++place; /* a text that contains the pad token has no position there */
    }
}

static mr_status read_texts(mr_feed *f, mr_error *err)
{
    const mr_batch *b = f->batch;
    f->length = 1;
    for (size_t i = 0; i < b->count; i++) {
        const mr_sample_facts *s = &b->samples[i];
        MR_TRY(find_caption(f, s, err));
        MR_TRY(mr_tokenizer_encode(f->text.tokenizer, f->scratch, mr_buf_text(&f->caption), f->caption.len,
                                   f->text.most, f->host.tokens + i * f->text.most, &f->lengths[i], err));
        f->length = f->lengths[i] > f->length ? f->lengths[i] : f->length;
        /* Hashes of the images, so that all ranks have the same.  A collision (1 in 2^31) costs one negative. */
        f->host.groups[i] = (int32_t)(s->hash & INT32_MAX);
    }
    for (size_t i = 0; i < b->count; i++)
        pad(f, i);
    return MR_OK;
}

static mr_status describe_pairs(mr_feed *f, double *weight, mr_error *err)
{
    const mr_batch *b = f->batch;
    double start = mr_seconds();
    mr_status status = read_texts(f, err);
    f->reading += mr_seconds() - start;
    *weight = 0;
    for (size_t i = 0; i < b->count; i++) {
        f->host.labels[i] = -1;
        f->host.weights[i] = b->samples[i].weight;
        f->host.keys[i] = key_of(f, &b->samples[i]);
        *weight += (double)f->host.weights[i];
    }
    return status;
}

/* ---- labels ------------------------------------------------------------------------------------------------------ */

/* Each label of a sample once; `share` is the sample's part of a mixed image. */
static void add_targets(const mr_feed *f, uint64_t sample, float share, float *row)
{
    const mr_targets *t = f->learn.targets;
    for (uint64_t k = t->at[sample]; k < t->at[sample + 1]; k++) {
        int32_t class = f->classes ? f->classes[t->classes[k]] : t->classes[k];
        if (class >= 0)
            row[class] += share * (1 - f->learn.smoothing);
    }
}

static void set_targets(mr_feed *f, size_t i)
{
    const mr_sample_facts *s = &f->batch->samples[i];
    float *row = f->host.targets + i * f->learn.classes;
    for (size_t c = 0; c < f->learn.classes; c++)
        row[c] = f->learn.smoothing / 2;
    add_targets(f, s->sample, s->share, row);
    if (s->share < 1)
        add_targets(f, s->other, 1 - s->share, row);
}

static void describe_several(mr_feed *f, double *weight)
{
    const mr_batch *b = f->batch;
    *weight = 0;
    for (size_t i = 0; i < b->count; i++) {
        set_targets(f, i);
        f->host.labels[i] = -1;
        f->host.weights[i] = b->samples[i].weight;
        f->host.keys[i] = key_of(f, &b->samples[i]);
        *weight += (double)f->host.weights[i];
    }
}

/* The model's label for a dataset's, and its weight. */
static void set_label(const mr_feed *f, int32_t label, float weight, int32_t *to, float *to_weight)
{
    *to = label >= 0 && f->classes ? f->classes[label] : label;
    *to_weight = *to < 0 ? 0 : weight;
    if (f->learn.weights && *to >= 0)
        *to_weight *= f->learn.weights[*to];
}

static mr_status describe_labels(mr_feed *f, double *weight, mr_error *err)
{
    const mr_batch *b = f->batch;
    *weight = 0;
    if (f->learn.targets) {
        describe_several(f, weight);
        return MR_OK;
    }
    for (size_t i = 0; i < b->count; i++) {
        const mr_sample_facts *s = &b->samples[i];
        if (s->label < 0 && s->weight > 0 && !f->unlabelled)
            return mr_fail(err, MR_BAD_DATA, "%s sample %llu: has no label, and training a classifier requires labels",
                           f->split, (unsigned long long)s->sample);
        if (s->label >= 0 && (size_t)s->label >= f->class_count)
            return mr_fail(err, MR_BAD_DATA, "%s sample %llu: has class %d of %zu; run 'millrace verify'", f->split,
                           (unsigned long long)s->sample, (int)s->label, f->class_count);
        set_label(f, s->label, s->weight * s->share, &f->host.labels[i], &f->host.weights[i]);
        f->host.keys[i] = key_of(f, s);
        *weight += (double)f->host.weights[i];
        if (!f->host.other_labels)
            continue;
        set_label(f, s->other_label, s->weight * (1 - s->share), &f->host.other_labels[i], &f->host.other_weights[i]);
        *weight += (double)f->host.other_weights[i];
    }
    return MR_OK;
}

mr_status mr_feed_describe(mr_feed *f, double *weight, mr_error *err)
{
    return f->text.tokenizer ? describe_pairs(f, weight, err) : describe_labels(f, weight, err);
}
