/* test_retrieval.c - embeddings of all ranks: gathered in order, and searched both ways.
 * Invariant tested: the result is that of a plain double loop; a tie never counts as found.
 * Covers evaluate/embeddings.c. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "train/evaluate/retrieval.h"
#include "tests/support/training/model.h"

enum { EMBED = 16, MANY = 300 };

typedef struct fixture {
    mr_device *device;
    mr_ranks *ranks;
    mr_error err;
} fixture;

static int set_up(void **state)
{
    fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    f->device = support_device(2);
    assert_int_equal(mr_ranks_begin(&f->ranks, &f->err), MR_OK);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    fixture *f = *state;
    mr_device_close(f->device);
    mr_ranks_end(f->ranks);
    free(f);
    return 0;
}

static void unit(mr_random *r, float *row)
{
    double sum = 0;
    for (int k = 0; k < EMBED; k++) {
        row[k] = (float)mr_random_real(r, -1, 1);
        sum += (double)row[k] * (double)row[k];
    }
    for (int k = 0; k < EMBED; k++)
        row[k] = (float)(row[k] / sqrt(sum));
}

/* Samples in a shuffled order; every seventh shares the picture, every eleventh the text of an earlier one. */
static void fill(fixture *f, size_t count, mr_embeddings *out)
{
    mr_random r = support_random();
    mr_buf mine = {0};

    for (size_t i = 0; i < count; i++) {
        uint64_t sample = (i * 7919) % count;
        float text[EMBED], image[EMBED];
        const float *rows[] = {text, image};
        mr_embeddings_sample s = {.sample = sample,
                                  .image = sample % 7 ? 1000 + sample : 1000 + sample / 2,
                                  .text = sample % 11 ? 5000 + sample : 5000 + sample / 3,
                                  .loss = 1,
                                  .weight = 1};
        unit(&r, text);
        unit(&r, image);
        for (int k = 0; k < EMBED && sample % 2; k++) /* half of them belong together visibly */
            image[k] = text[k];
        mr_embeddings_add(&mine, &s, rows, 2, EMBED);
    }
    assert_int_equal(mr_embeddings_join(f->ranks, &mine, 2, EMBED, out, &f->err), MR_OK);
    mr_buf_free(&mine);
}

static double dot(const float *a, const float *b)
{
    double sum = 0;
    for (int k = 0; k < EMBED; k++)
        sum += (double)a[k] * (double)b[k];
    return sum;
}

static void expect(const mr_embeddings *g, unsigned from, unsigned to, const double *found)
{
    size_t right[MR_RECALLS] = {0};
    for (size_t r = 0; r < g->count; r++) {
        const float *query = g->embeddings[from] + r * EMBED;
        double best = -2;
        size_t others = 0;
        for (int pass = 0; pass < 2; pass++)
            for (size_t c = 0; c < g->count; c++) {
                bool answer =
                    r == c || g->samples[r].image == g->samples[c].image || g->samples[r].text == g->samples[c].text;
                double score = dot(query, g->embeddings[to] + c * EMBED);
                if (!pass && answer && score > best)
                    best = score;
                others += pass && !answer && score >= best;
            }
        for (int k = 0; k < MR_RECALLS; k++)
            right[k] += others < mr_recall_at[k];
    }
    for (int k = 0; k < MR_RECALLS; k++)
        assert_float_equal(found[k], (double)right[k] / (double)g->count, 1.5 / (double)g->count);
}

static void recall_is_that_of_a_plain_search(void **state)
{
    fixture *f = *state;
    mr_embeddings g = {0};
    mr_recall recall;
    fill(f, MANY, &g);
    assert_int_equal(g.count, MANY);
    for (size_t i = 0; i < g.count; i++)
        assert_int_equal(g.samples[i].sample, i);
    assert_int_equal(mr_recall_measure(f->device, f->ranks, &g, &recall, &f->err), MR_OK);
    expect(&g, MR_OF_TEXT, MR_OF_IMAGE, recall.text_to_image);
    expect(&g, MR_OF_IMAGE, MR_OF_TEXT, recall.image_to_text);
    assert_true(recall.text_to_image[0] > 0.4 && recall.text_to_image[0] < 0.8);
    mr_embeddings_release(&g);
}

static void equal_embeddings_find_nothing(void **state)
{
    fixture *f = *state;
    mr_embeddings g = {0};
    mr_recall recall;
    fill(f, 50, &g);
    for (size_t i = 0; i < g.count; i++) {
        g.samples[i].image = g.samples[i].text = i;
        memcpy(g.embeddings[0] + i * EMBED, g.embeddings[0], EMBED * sizeof(float));
        memcpy(g.embeddings[1] + i * EMBED, g.embeddings[0], EMBED * sizeof(float));
    }
    assert_int_equal(mr_recall_measure(f->device, f->ranks, &g, &recall, &f->err), MR_OK);
    for (int k = 0; k < MR_RECALLS; k++)
        assert_true(recall.text_to_image[k] == 0 && recall.image_to_text[k] == 0);
    for (size_t i = 0; i < g.count * EMBED; i++)
        g.embeddings[1][i] = NAN;
    assert_int_equal(mr_recall_measure(f->device, f->ranks, &g, &recall, &f->err), MR_OK);
    assert_true(recall.text_to_image[2] == 0 && recall.image_to_text[2] == 0);
    mr_embeddings_release(&g);
}

static void a_masked_sample_counts_for_nothing(void **state)
{
    fixture *f = *state;
    mr_embeddings g = {0};
    mr_recall recall;
    mr_buf mine = {0};
    float row[EMBED] = {1};
    const float *rows[] = {row, row};
    for (uint64_t i = 0; i < 4; i++) {
        mr_embeddings_sample s = {.sample = 3 - i, .image = i, .text = i, .weight = i == 1 ? 0 : 1};
        mr_embeddings_add(&mine, &s, rows, 2, EMBED);
    }
    assert_int_equal(mr_embeddings_join(f->ranks, &mine, 2, EMBED, &g, &f->err), MR_OK);
    assert_int_equal(g.count, 3);
    assert_int_equal(g.samples[1].sample, 1);
    mr_embeddings_release(&g);
    mr_buf_clear(&mine);
    assert_int_equal(mr_embeddings_join(f->ranks, &mine, 2, EMBED, &g, &f->err), MR_OK);
    assert_int_equal(mr_recall_measure(f->device, f->ranks, &g, &recall, &f->err), MR_OK);
    assert_true(recall.text_to_image[0] == 0);
    mr_embeddings_release(&g);
    mr_buf_free(&mine);
}

static void matches_are_the_nearest_best_first(void **state)
{
    fixture *f = *state;
    mr_embeddings g = {0};
    fill(f, MANY, &g);
    enum { TOP = 4, FIRST = 5, ROWS = 200 };
    mr_match *found = calloc(ROWS * TOP, sizeof *found);
    assert_non_null(found);
    assert_int_equal(mr_matches_find(f->device, &g, MR_OF_IMAGE, MR_OF_TEXT, FIRST, ROWS, TOP, found, &f->err), MR_OK);
    for (size_t r = 0; r < ROWS; r++) {
        const float *query = g.embeddings[MR_OF_IMAGE] + (FIRST + r) * EMBED;
        const mr_match *m = found + r * TOP;
        for (size_t k = 0; k < TOP; k++) {
            assert_float_equal(m[k].score, dot(query, g.embeddings[MR_OF_TEXT] + m[k].sample * EMBED), 1e-5);
            assert_true(k == 0 || m[k].score <= m[k - 1].score);
        }
        size_t nearer = 0;
        for (size_t c = 0; c < g.count; c++)
            nearer += dot(query, g.embeddings[MR_OF_TEXT] + c * EMBED) > (double)m[TOP - 1].score + 1e-5;
        assert_true(nearer < TOP);
    }
    free(found);
    mr_embeddings_release(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(recall_is_that_of_a_plain_search, set_up, tear_down),
        cmocka_unit_test_setup_teardown(equal_embeddings_find_nothing, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_masked_sample_counts_for_nothing, set_up, tear_down),
        cmocka_unit_test_setup_teardown(matches_are_the_nearest_best_first, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
