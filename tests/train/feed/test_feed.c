/* test_feed.c - pairs of pictures and text on their way to a model.
 * Invariant tested: the caption, tokens, key and group of a sample do not depend on its batch, rank or the threads;
 * padding ends with the longest text of the batch.  Covers feed/describe.c. */
#include <stdlib.h>
#include <string.h>

#include "tests/support/shards/dataset_maker.h"
#include "train/feed/feed.h"
#include "loader/order/mix.h"
#include "tests/support/shards/loader.h"
#include "tests/support/training/model.h"
#include "shards/dataset/captions.h"

enum { SAMPLES = 22, SIZE = 8 };

/* ---- a dataset --------------------------------------------------------------------------------------------------- */

/* Sample n has n % 4 + 1 captions, of some words; pictures repeat: n and n + 20 are equal, and so are all PNGs. */
static void make_pairs(const char *dir, int without)
{
    static const char *const words[] = {"a dog", "two cats on a couch", "Ein B\xC3\xA4r", "it's 5 o'clock",
                                        "a <pad> b"};
    made samples[SAMPLES];
    mr_buf more[SAMPLES] = {{0}};
    for (int n = 0; n < SAMPLES; n++) {
        unsigned side = 20 + (unsigned)(n % 20);
        samples[n] = (made){.source = "a.jpg"};
        samples[n].image = n % 5 == 4 ? make_png(24, 24, 2, 8, false)
                                      : make_jpeg((jpeg_kind){.width = side, .height = 30, .components = 3});
        mr_buf_printf(&more[n], ",\"columns\":{\"title\":\"t %d\",\"words\":[", n);
        for (int k = 0; k <= n % 4 && n != without; k++)
            mr_buf_printf(&more[n], "%s\"%s, %d of %d\"", k ? "," : "", words[(n + k) % 5], k, n);
        mr_buf_add_text(&more[n], "]}");
        samples[n].more = mr_buf_text(&more[n]);
    }
    made_split split = {.name = "train", .samples = samples, .count = SAMPLES, .per_shard = 9};
    dataset_make(dir, &split, 1);
    for (int n = 0; n < SAMPLES; n++) {
        picture_free(&samples[n].image);
        mr_buf_free(&more[n]);
    }
}

static mr_tokenizer *tokenizer_of(const mr_dataset *ds)
{
    mr_tokenizer_maker *m = mr_tokenizer_maker_new();
    mr_tokenizer *t = NULL;
    mr_sample_view v = {0};
    mr_error err;
    assert_non_null(m);
    for (uint64_t n = 0; n < mr_dataset_samples(ds, "train"); n++) {
        assert_int_equal(mr_dataset_read_meta(ds, "train", n, &v, &err), MR_OK);
        assert_int_equal(mr_tokenizer_maker_add(m, v.meta, v.meta_len, &err), MR_OK);
    }
    if (mr_tokenizer_maker_finish(m, 300, &t, &err) != MR_OK)
        fail_msg("%s", err.text);
    mr_tokenizer_maker_free(m);
    mr_sample_view_free(&v);
    return t;
}

typedef struct pairs {
    char *dir;
    mr_dataset *ds;
    mr_tokenizer *tokenizer;
    mr_device *device;
    mr_loader_options o;
    mr_feed_text text;
} pairs;

static pairs pairs_open(int without)
{
    pairs p = {.dir = support_tmpdir(), .device = support_device(1)};
    make_pairs(p.dir, without);
    p.ds = open_dataset_at(p.dir);
    p.tokenizer = tokenizer_of(p.ds);
    p.o = (mr_loader_options){.split = "train",
                              .global_batch = 8,
                              .seed = 5,
                              .epochs = 2,
                              .tail = MR_TAIL_PARTIAL,
                              .transform = {.kind = MR_TRANSFORM_SQUARE, .size = SIZE}};
    p.text = (mr_feed_text){.tokenizer = p.tokenizer, .column = "words", .most = 40, .groups = true};
    return p;
}

static void pairs_close(pairs *p)
{
    mr_tokenizer_free(p->tokenizer);
    mr_device_close(p->device);
    mr_dataset_free(p->ds);
    support_tmpdir_remove(p->dir);
}

/* ---- what a feed gave -------------------------------------------------------------------------------------------- */

typedef struct pair { /* of one item */
    uint64_t epoch, item, sample, key, hash;
    int32_t ids[64], group;
    float weight; /* no gaps: pairs are compared bytewise */
    size_t count;
} pair;

typedef struct taken {
    pair *items;
    size_t count, capacity;
    size_t pads; /* spelled out by texts */
    mr_status status;
    mr_error error;
} taken;

static void *from_device(mr_device *d, const void *there, size_t bytes)
{
    void *here = malloc(bytes ? bytes : 1);
    assert_non_null(here);
    d->iface->download(d, here, there, bytes);
    assert_int_equal(d->iface->wait(d, NULL), MR_OK);
    return here;
}

/* Adds the batch's items, having looked at how they are laid out. */
static void take_batch(taken *t, const pairs *p, const mr_feed *f, const mr_model_input *in, double weight)
{
    size_t n = in->count, length = in->length, longest = 1;
    int32_t pad = mr_tokenizer_pad(p->tokenizer);
    int32_t *tokens = from_device(p->device, in->tokens, n * length * sizeof *tokens);
    int32_t *places = from_device(p->device, in->places, n * length * sizeof *places);
    uint8_t *real = from_device(p->device, in->seen, n * length);
    int32_t *groups = in->groups ? from_device(p->device, in->groups, n * sizeof *groups) : NULL;
    float *weights = from_device(p->device, in->weights, n * sizeof *weights);
    uint64_t *keys = from_device(p->device, in->keys, n * sizeof *keys);
    float *images = from_device(p->device, in->images, n * 3 * SIZE * SIZE * sizeof *images);
    assert_memory_equal(images, f->batch->data, n * 3 * SIZE * SIZE * sizeof *images);
    for (size_t i = 0; i < n; i++) {
        const mr_sample_facts *s = &f->batch->samples[i];
        pair q = {.epoch = f->batch->epoch,
                  .item = s->item,
                  .sample = s->sample,
                  .key = keys[i],
                  .hash = s->hash,
                  .weight = weights[i],
                  .group = groups ? groups[i] : -1};
        int32_t place = pad;
        for (size_t k = 0; k < length; k++) {
            size_t at = i * length + k;
            assert_true(real[at] <= 1 && (k == 0 || real[at] <= real[at - 1]));
            assert_true(real[at] || tokens[at] == pad);
            assert_int_equal(places[at], tokens[at] == pad ? pad : ++place);
            if (real[at])
                q.ids[q.count++] = tokens[at];
            t->pads += real[at] && tokens[at] == pad;
        }
        longest = q.count > longest ? q.count : longest;
        weight -= (double)weights[i];
        assert_true(MR_GROW(t->items, t->count, t->capacity));
        t->items[t->count++] = q;
    }
    assert_int_equal(longest, length);
    assert_true(weight == 0);
    free(tokens);
    free(places);
    free(real);
    free(groups);
    free(weights);
    free(keys);
    free(images);
}

/* All batches of all ranks, sorted by epoch and place in the plan. */
static taken take_all(const pairs *p, unsigned world, unsigned threads)
{
    taken t = {0};
    mr_feed *feeds = calloc(world, sizeof *feeds);
    mr_loader_options o = p->o;
    o.world = world;
    o.threads = threads;
    for (o.rank = 0; o.rank < world; o.rank++)
        if (mr_feed_open(p->ds, &o, &p->text, 8, p->device, &feeds[o.rank], &t.error) != MR_OK)
            fail_msg("%s", t.error.text);
    for (unsigned rank = 0; t.status == MR_OK; rank = (rank + 1) % world) {
        mr_model_input in;
        double weight;
        t.status = mr_feed_next(&feeds[rank], &in, &weight, &t.error);
        if (t.status == MR_OK)
            take_batch(&t, p, &feeds[rank], &in, weight);
    }
    for (unsigned rank = 0; rank < world; rank++)
        mr_feed_close(&feeds[rank]);
    free(feeds);
    return t;
}

static void assert_same_taken(const taken *a, const taken *b)
{
    assert_int_equal(a->count, b->count);
    for (size_t i = 0; i < a->count; i++)
        assert_memory_equal(&a->items[i], &b->items[i], sizeof a->items[i]);
}

/* The number of the caption that these ids say; checks that there is one. */
static size_t caption_of(const pairs *p, const pair *q)
{
    mr_tokenizer_scratch *scratch = mr_tokenizer_scratch_new();
    mr_sample_view v = {0};
    size_t count, ids_count, found = SIZE_MAX;
    int32_t ids[64];
    mr_buf text = {0};
    assert_int_equal(mr_dataset_read_meta(p->ds, "train", q->sample, &v, NULL), MR_OK);
    assert_int_equal(mr_captions_count("words", v.meta, v.meta_len, &count, NULL), MR_OK);
    for (size_t k = 0; k < count; k++) {
        mr_buf_clear(&text);
        assert_int_equal(mr_captions_get("words", v.meta, v.meta_len, k, &text, NULL), MR_OK);
        assert_int_equal(mr_tokenizer_encode(p->tokenizer, scratch, mr_buf_text(&text), text.len, p->text.most, ids,
                                             &ids_count, NULL),
                         MR_OK);
        if (ids_count == q->count && memcmp(ids, q->ids, ids_count * sizeof *ids) == 0)
            found = k;
    }
    assert_true(found < count);
    mr_buf_free(&text);
    mr_sample_view_free(&v);
    mr_tokenizer_scratch_free(scratch);
    return found;
}

/* ---- tests ------------------------------------------------------------------------------------------------------- */

static void test_batches(void **state)
{
    (void)state;
    pairs p = pairs_open(-1);
    taken t = take_all(&p, 1, 0);
    size_t numbers[4] = {0};
    assert_int_equal(t.status, MR_END);
    assert_int_equal(t.count, 2 * SAMPLES);
    for (size_t i = 0; i < t.count; i++) {
        const pair *q = &t.items[i];
        assert_true(q->item == q->sample && q->weight == 1 && q->group >= 0);
        assert_true(q->key == mr_mix(mr_mix(mr_mix(5) ^ q->epoch) ^ q->sample));
        size_t k = caption_of(&p, q);
        assert_int_equal(k, q->key % (q->sample % 4 + 1));
        numbers[k]++;
        for (size_t n = 0; n < t.count; n++)
            assert_true((t.items[n].hash == q->hash) == (t.items[n].group == q->group));
    }
    for (size_t k = 0; k < 4; k++)
        assert_true(numbers[k]);
    assert_true(t.pads);
    free(t.items);
    pairs_close(&p);
}

/* Joined step by step in rank order, the ranks' batches are those of one. */
static void test_ranks_and_threads(void **state)
{
    (void)state;
    static const unsigned shapes[][2] = {{2, 0}, {4, 2}, {1, 3}};
    pairs p = pairs_open(-1);
    for (int expanded = 0; expanded < 2; expanded++) {
        uint64_t *items = NULL, count = 0, without;
        if (expanded) {
            assert_int_equal(mr_captions_expand(p.ds, "train", "words", &items, &count, &without, NULL), MR_OK);
            p.o.items = items;
            p.o.item_count = count;
            p.text.expanded = true;
        }
        taken one = take_all(&p, 1, 0);
        assert_int_equal(one.status, MR_END);
        for (size_t i = 0; i < MR_COUNT(shapes); i++) {
            taken many = take_all(&p, shapes[i][0], shapes[i][1]);
            assert_int_equal(many.status, MR_END);
            assert_same_taken(&one, &many);
            free(many.items);
        }
        free(one.items);
        free(items);
    }
    pairs_close(&p);
}

/* Every caption once an epoch. */
static void test_expanded(void **state)
{
    (void)state;
    pairs p = pairs_open(7);
    uint64_t *items, count, without;
    assert_int_equal(mr_captions_expand(p.ds, "train", "words", &items, &count, &without, NULL), MR_OK);
    assert_true(without == 1 && count == 5 * (1 + 2 + 3 + 4) + 1 + 2 - 4);
    p.o.items = items;
    p.o.item_count = count;
    p.text.expanded = true;
    taken t = take_all(&p, 1, 2);
    unsigned times[2][SAMPLES][4] = {{{0}}};
    assert_int_equal(t.status, MR_END);
    assert_int_equal(t.count, 2 * count);
    for (size_t i = 0; i < t.count; i++) {
        const pair *q = &t.items[i];
        assert_true(q->key == mr_mix(mr_mix(mr_mix(5) ^ q->epoch) ^ q->item));
        times[q->epoch][q->sample][caption_of(&p, q)]++;
    }
    for (int e = 0; e < 2; e++)
        for (unsigned n = 0; n < SAMPLES; n++)
            for (unsigned k = 0; k < 4; k++)
                assert_int_equal(times[e][n][k], n != 7 && k <= n % 4);
    free(t.items);
    free(items);
    pairs_close(&p);
}

/* A device that cannot see the host's memory gets all of it by uploads. */
static void test_uploads(void **state)
{
    (void)state;
    pairs p = pairs_open(-1);
    taken direct = take_all(&p, 1, 0);
    const mr_device_iface *iface = p.device->iface;
    mr_device_iface apart = *iface;
    apart.host_memory = false;
    p.device->iface = &apart;
    taken sent = take_all(&p, 2, 1);
    assert_int_equal(sent.status, MR_END);
    assert_same_taken(&direct, &sent);
    p.device->iface = iface;
    free(direct.items);
    free(sent.items);
    pairs_close(&p);
}

static void test_short_texts_and_no_groups(void **state)
{
    (void)state;
    pairs p = pairs_open(-1);
    p.text.most = 3;
    p.text.groups = false;
    taken t = take_all(&p, 1, 0);
    assert_true(t.status == MR_END && t.count == 2 * SAMPLES);
    for (size_t i = 0; i < t.count; i++)
        assert_true(t.items[i].count == 3 && t.items[i].ids[0] == 0 && t.items[i].ids[2] == 2 &&
                    t.items[i].group == -1);
    free(t.items);
    p.text.most = 1;
    mr_feed f = {0};
    mr_error err;
    assert_int_equal(mr_feed_open(p.ds, &p.o, &p.text, 8, p.device, &f, &err), MR_MISUSE);
    p.text.most = UINT32_MAX;
    assert_int_equal(mr_feed_open(p.ds, &p.o, &p.text, 8, p.device, &f, &err), MR_MISUSE);
    mr_feed_close(&f);
    pairs_close(&p);
}

static void expect_failure(const pairs *p, const char *words)
{
    taken t = take_all(p, 1, 0);
    assert_int_equal(t.status, MR_BAD_DATA);
    if (!strstr(t.error.text, words))
        fail_msg("\"%s\" does not say \"%s\"", t.error.text, words);
    free(t.items);
}

static void test_failures(void **state)
{
    (void)state;
    pairs p = pairs_open(7);
    expect_failure(&p, "train sample 7: meta: no caption in column \"words\"; there is text in title");
    p.text.column = "wrods";
    expect_failure(&p, "no caption in column \"wrods\"; there is text in title, words");
    /* a list that has a sample more often than it has captions */
    static const uint64_t items[] = {1, 1, 1, 5, 6, 9, 10, 11};
    p.text.column = "words";
    p.text.expanded = true;
    p.o.items = items;
    p.o.item_count = MR_COUNT(items);
    expect_failure(&p, "train sample 1: meta: column \"words\" has 2 captions, but not number 2");
    pairs_close(&p);
}

/* A picture that cannot be decoded: the pair has no weight and the empty text. */
static void test_masked(void **state)
{
    (void)state;
    pairs p = pairs_open(-1);
    hurt_image(p.dir, 3, 9);
    p.o.on_bad = MR_ON_BAD_MASK;
    taken t = take_all(&p, 1, 0);
    assert_true(t.status == MR_END && t.count == 2 * SAMPLES);
    for (size_t i = 0; i < t.count; i++) {
        const pair *q = &t.items[i];
        assert_true((q->sample == 3) == (q->weight == 0));
        if (q->sample == 3)
            assert_true(q->count == 2 && q->ids[0] == 0 && q->ids[1] == 2);
        else
            caption_of(&p, q);
    }
    free(t.items);
    pairs_close(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_batches),
        cmocka_unit_test(test_ranks_and_threads),
        cmocka_unit_test(test_expanded),
        cmocka_unit_test(test_uploads),
        cmocka_unit_test(test_short_texts_and_no_groups),
        cmocka_unit_test(test_failures),
        cmocka_unit_test(test_masked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
