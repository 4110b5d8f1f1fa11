/* test_pairs_evaluated.c - `millrace eval` and `predict` of a model of pictures and text, on one and several
 * ranks.
 * Invariant tested: the result for a split depends only on the checkpoint, the split and --batch, with every sample
 * counted once; lines, recall and embeddings agree. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "shards/dataset/dataset.h"
#include "train/files/npz.h"
#include "train/run/pairs.h"
#include "tests/support/faults.h"
#include "tests/support/training/train.h"

/* DIR/e: a run, judged at its end in batches of 4; DIR/coco the same kind of folder for captions. */
static int set_up(void **state)
{
    char *dir = support_tmpdir();
    TRAIN_PATH(captions, dir, "coco");
    train_make_pairs(dir);
    train_make_captions(captions);
    train_pairs_expect(0, dir, 0, "--steps", "24", "--batch", "4", "--log", "e.jsonl", "--output", "e", (char *)NULL);
    *state = dir;
    return 0;
}

/* ---- eval -------------------------------------------------------------------------------------------------------- */

static json_t *judged(const char *dir, unsigned ranks, const char *data, const char *split, const char *batch)
{
    support_result r = train_command(0, dir, ranks, "eval", data, "e", "--split", split, "--batch", batch, "--json",
                                     "--threads", "1", (char *)NULL);
    json_t *doc = json_loads(r.out, JSON_DISABLE_EOF_CHECK, NULL);
    if (!doc)
        fail_msg("no JSON: %s", r.out);
    json_object_del(doc, "seconds");
    support_result_free(&r);
    return doc;
}

/* 96 by 7 leaves 5, which two ranks and three do not share, nor what they say about each sample. */
static void any_number_of_ranks_evaluates_alike(void **state)
{
    const char *dir = *state;
    IN(log, "e.jsonl");
    json_t *one = judged(dir, 0, "data", "train", "7"), *lines = train_log(log, "eval_loss");
    support_result all = train_command(0, dir, 0, "predict", "data", "e", "--split", "train", "--batch", "7",
                                       "--threads", "1", (char *)NULL);
    assert_int_equal(json_integer_value(json_object_get(one, "samples")), 96);
    for (unsigned ranks = 2; ranks <= 3; ranks++) {
        json_t *many = judged(dir, ranks, "data", "train", "7");
        assert_true(json_equal(one, many));
        support_result r = train_command(0, dir, ranks, "predict", "data", "e", "--split", "train", "--batch", "7",
                                         "--threads", "1", (char *)NULL);
        assert_string_equal(r.out, all.out);
        support_result_free(&r);
        json_decref(many);
    }
    /* Training judged in batches of 4 by two ranks. */
    json_t *again = judged(dir, 0, "data", "val", "4"), *then = json_array_get(lines, 0);
    assert_float_equal(json_number_value(json_object_get(again, "loss")),
                       json_number_value(json_object_get(then, "eval_loss")), 1e-9);
    json_t *recall = json_object_get(again, "text_to_image_recall");
    assert_true(json_number_value(json_object_get(recall, "5")) ==
                json_number_value(json_object_get(then, "eval_text_to_image_recall_at_5")));
    support_result_free(&all);
    json_decref(again);
    json_decref(one);
    json_decref(lines);
}

/* A picture without words is not a pair; what becomes of the others is the same for all ranks. */
static void samples_without_text_are_not_evaluated(void **state)
{
    TRAIN_PATH(dir, *state, "coco");
    support_result r = train_pairs_run(dir, 0, "--steps", "4", "--expand-captions", "--output", "e", (char *)NULL);
    support_assert_status(&r, 0);
    assert_non_null(strstr(r.out, "1 sample without a caption is left out\n"));
    assert_non_null(strstr(r.out, "val is evaluated on 4 of its samples, the others have no caption\n"));
    assert_non_null(strstr(r.out, "50 samples, 8 per update, 7 updates per epoch, 4 in total\n"));
    support_result_free(&r);
    json_t *one = judged(dir, 0, "data", "val", "3");
    assert_int_equal(json_integer_value(json_object_get(one, "samples")), 4);
    for (unsigned ranks = 2; ranks <= 3; ranks++) {
        json_t *many = judged(dir, ranks, "data", "val", "3");
        assert_true(json_equal(one, many));
        json_decref(many);
    }
    json_decref(one);
}

/* How captions and equal pictures come to the learner is not part of the verdict, which chooses the best checkpoint. */
static void evaluation_does_not_depend_on_training_options(void **state)
{
    const char *const ways[][2] = {{".", "--unique-images"}, {"coco", "--expand-captions"}};
    for (size_t i = 0; i < 2; i++) {
        TRAIN_PATH(dir, *state, ways[i][0]);
        IN(log, "way.jsonl");
        train_pairs_expect(0, dir, 0, "--steps", "4", "--batch", "2", ways[i][1], "--log", log, "--output", "way",
                           (char *)NULL);
        support_result r =
            train_command(0, dir, 0, "eval", "data", "way", "--split", "val", "--batch", "2", "--json", (char *)NULL);
        json_t *doc = json_loads(r.out, 0, NULL), *lines = train_log(log, "eval_loss");
        assert_float_equal(json_number_value(json_object_get(doc, "loss")),
                           json_number_value(json_object_get(json_array_get(lines, 0), "eval_loss")), 1e-9);
        json_decref(doc);
        json_decref(lines);
        support_result_free(&r);
    }
}

/* One caption of five is drawn for each sample: the words that are shown must be those that the model saw. */
static void expect_drawn_words(const char *dir, const uint64_t *items, char *const *shown, size_t count)
{
    IN(data, "data");
    IN(words, "tok.json");
    mr_error err = {0};
    mr_dataset *ds = NULL;
    mr_device *device = NULL;
    mr_tokenizer *tokenizer = NULL;
    mr_feed feed = {0};
    mr_model_input in;
    double weight;
    bool ok = mr_dataset_open(data, &ds, &err) == MR_OK && mr_tokenizer_open(words, &tokenizer, &err) == MR_OK &&
              mr_device_open("cpu", &(mr_device_options){.threads = 1}, &device, &err) == MR_OK;
    mr_loader_options o = {.split = "val",
                           .global_batch = count,
                           .shuffle = MR_SHUFFLE_NONE,
                           .tail = MR_TAIL_PARTIAL,
                           .items = items,
                           .item_count = count,
                           .transform = mr_pairs_transform(32, false)};
    mr_feed_text text = {.tokenizer = tokenizer, .column = "captions", .most = 16};
    mr_tokenizer_scratch *scratch = mr_tokenizer_scratch_new();
    if (!ok || mr_feed_open(ds, &o, &text, count, device, &feed, &err) != MR_OK ||
        mr_feed_next(&feed, &in, &weight, &err) != MR_OK)
        fail_msg("%s", err.text);
    for (size_t i = 0; i < count; i++) {
        int32_t tokens[16];
        size_t length;
        assert_int_equal(mr_tokenizer_encode(tokenizer, scratch, shown[i], strlen(shown[i]), 16, tokens, &length, &err),
                         MR_OK);
        assert_memory_equal(tokens, in.tokens + i * in.length, length * sizeof *tokens);
    }
    mr_tokenizer_scratch_free(scratch);
    mr_feed_close(&feed);
    mr_tokenizer_free(tokenizer);
    mr_device_close(device);
    mr_dataset_free(ds);
}

static void words_shown_are_those_that_were_read(void **state)
{
    TRAIN_PATH(dir, *state, "coco");
    train_pairs_expect(0, dir, 0, "--steps", "1", "--expand-captions", "--output", "w", (char *)NULL);
    support_result r = train_command(0, dir, 0, "predict", "data", "w", "--format", "json", "--top", "1", (char *)NULL);
    uint64_t items[8];
    char *shown[8];
    size_t n = 0;
    bool gap = false;
    for (char *rest = r.out, *line; (line = strsep(&rest, "\n")) && *line && n < 8; n++) {
        json_t *one = json_loads(line, 0, NULL);
        items[n] = (uint64_t)json_integer_value(json_object_get(one, "sample"));
        shown[n] = support_path("%s", json_string_value(json_object_get(one, "words")));
        gap = gap || items[n] != n;
        json_decref(one);
    }
    assert_int_equal(n, 4);
    assert_true(gap); /* else the sample without words ranks below all others, and tells nothing */
    expect_drawn_words(dir, items, shown, n);
    while (n--)
        free(shown[n]);
    support_result_free(&r);
}

static void eval_names_what_it_evaluated(void **state)
{
    const char *dir = *state;
    support_result r = train_command(0, dir, 0, "eval", "data", "e", "--batch", "4", "--threads", "1", (char *)NULL);
    assert_non_null(strstr(r.out, "e/step-00000024, val: 6 pairs, loss "));
    assert_non_null(strstr(r.out, " in batches of 4\n"));
    assert_non_null(strstr(r.out, "text to image"));
    support_result_free(&r);
    json_t *usual = judged(dir, 0, "data", "train", "8"), *other;
    r = train_command(0, dir, 0, "eval", "data", "e", "--split", "train", "--batch", "8", "--text-column",
                      "image_uncanny_description", "--json", (char *)NULL);
    other = json_loads(r.out, 0, NULL);
    assert_int_equal(json_integer_value(json_object_get(other, "samples")), 96);
    assert_true(fabs(json_number_value(json_object_get(other, "loss")) -
                     json_number_value(json_object_get(usual, "loss"))) > 1e-4);
    assert_null(json_object_get(other, "accuracy"));
    json_decref(other);
    json_decref(usual);
    support_result_free(&r);
    r = train_command(2, dir, 0, "eval", "data", "e", "--text-column", "nothing", (char *)NULL);
    assert_non_null(strstr(r.err, "--text-column nothing: no sample of val has text there; columns: "
                                  "caption_choices, entities, "));
    support_result_free(&r);
    r = train_command(2, dir, 0, "eval", "data", "e", "--split", "tset", (char *)NULL);
    assert_non_null(strstr(r.err, "split \"tset\": data has no such split; it has "));
    support_result_free(&r);
}

/* ---- predict ----------------------------------------------------------------------------------------------------- */

enum { EMBED = 16 };

typedef struct embeddings {
    size_t count;
    int64_t *samples;
    float *of[3]; /* text, image, both */
} embeddings;

static embeddings read_embeddings(const char *path)
{
    static const char *const names[] = {"sample", "text", "image", "both"};
    embeddings e = {0};
    mr_npz_reader *r = NULL;
    const mr_npz_array *a;
    mr_error err;
    if (mr_npz_open(path, &r, &err) != MR_OK)
        fail_msg("%s", err.text);
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(mr_npz_next(r, &a, &err), MR_OK);
        assert_string_equal(a->name, names[i]);
        assert_int_equal(a->type, i ? MR_NPZ_F32 : MR_NPZ_I64);
        e.count = i ? e.count : (size_t)a->count;
        assert_int_equal(a->count, e.count * (i ? EMBED : 1));
        void *to = calloc((size_t)a->count, i ? sizeof(float) : sizeof(int64_t));
        assert_int_equal(mr_npz_take(r, to, (size_t)mr_npz_bytes(a), &err), MR_OK);
        if (i)
            e.of[i - 1] = to;
        else
            e.samples = to;
    }
    assert_int_equal(mr_npz_next(r, &a, &err), MR_END);
    mr_npz_reader_free(r);
    return e;
}

static void free_embeddings(embeddings *e)
{
    free(e->samples);
    for (int k = 0; k < 3; k++)
        free(e->of[k]);
}

static double cosine(const embeddings *e, int from, size_t i, int to, size_t k)
{
    double sum = 0, length = 0;
    for (size_t j = 0; j < EMBED; j++) {
        sum += (double)e->of[from][i * EMBED + j] * (double)e->of[to][k * EMBED + j];
        length += (double)e->of[from][i * EMBED + j] * (double)e->of[from][i * EMBED + j];
    }
    assert_float_equal(length, 1, 1e-5);
    return sum;
}

/* Every line of `text` against the embeddings: all samples of the split, best first, with the scores they have. */
static void expect_lines(char *text, const embeddings *e, int from, int to, const char *shown)
{
    size_t n = 0;
    for (char *rest = text, *line; (line = strsep(&rest, "\n")) && *line; n++) {
        json_t *one = json_loads(line, 0, NULL), *top = json_object_get(one, "top");
        assert_int_equal(json_integer_value(json_object_get(one, "sample")), e->samples[n]);
        assert_non_null(json_string_value(json_object_get(one, "source")));
        assert_memory_equal(json_string_value(json_object_get(one, "words")), "The cartoon shows ", 18);
        assert_int_equal(json_array_size(top), e->count);
        double before = 2;
        for (size_t k = 0; k < e->count; k++) {
            json_t *match = json_array_get(top, k);
            size_t other = (size_t)json_integer_value(json_object_get(match, "sample"));
            double score = json_number_value(json_object_get(match, "score"));
            assert_float_equal(score, cosine(e, from, n, to, other), 2e-6);
            assert_true(score <= before);
            assert_non_null(json_string_value(json_object_get(match, shown)));
            before = score;
        }
        json_decref(one);
    }
    assert_int_equal(n, e->count);
}

static void lines_agree_with_the_embeddings(void **state)
{
    const char *dir = *state;
    IN(path, "e.npz");
    support_result r = train_command(0, dir, 0, "predict", "data", "e", "--top", "1000", "--format", "json",
                                     "--embeddings", "e.npz", "--threads", "1", (char *)NULL);
    embeddings e = read_embeddings(path);
    assert_int_equal(e.count, 6);
    expect_lines(r.out, &e, 0, 1, "source");
    support_result_free(&r);
    r = train_command(0, dir, 0, "predict", "data", "e", "--top", "1000", "--format", "json", "--find", "words",
                      "--threads", "1", (char *)NULL);
    expect_lines(r.out, &e, 1, 0, "words");
    support_result_free(&r);
    free_embeddings(&e);
    r = train_command(0, dir, 0, "predict", "data", "e", "--top", "2", "--find", "words", "--threads", "1",
                      (char *)NULL);
    assert_non_null(strstr(r.out, "sample,source,words,sample_1,words_1,score_1,sample_2,words_2,score_2\n0,"));
    support_result_free(&r);
    r = train_command(0, dir, 0, "predict", "data", "e", "--split", "test", "--threads", "1", (char *)NULL);
    assert_non_null(strstr(r.out, "sample,source,words,sample_1,source_1,score_1,sample_2,source_2,score_2\n0,"));
    support_result_free(&r);
}

/* Known before anything is judged, which the split here would not survive; and nothing is left behind. */
static void an_unwritable_place_is_reported_at_once(void **state)
{
    static const struct {
        const char *place, *words;
    } cases[] = {
        {"none/x.npz", "none/x.npz: its folder does not exist"},
        {"e", "e: is a directory; name a file"},
        {"tok.json/x.npz", "tok.json/x.npz: its folder does not exist"},
    };
    const char *dir = *state;
    support_result r;
    IN(shard, "hit/val-00000.mdb");
    support_shell(dir, "cp -r data hit");
    size_t len;
    uint8_t *bytes = support_read(shard, &len), *picture = memmem(bytes, len, "\xFF\xD8\xFF", 3);
    assert_non_null(picture);
    picture[300] ^= 1;
    support_write(shard, bytes, len);
    free(bytes);
    r = train_command(1, dir, 0, "predict", "hit", "e", "--embeddings", "x.npz", (char *)NULL);
    support_result_free(&r);
    for (size_t i = 0; i < MR_COUNT(cases); i++) {
        r = train_command(2, dir, 0, "predict", "hit", "e", "--embeddings", cases[i].place, (char *)NULL);
        assert_non_null(strstr(r.err, cases[i].words));
        assert_int_equal(r.out_len, 0);
        support_result_free(&r);
    }
    char *files = support_list(dir);
    assert_null(strstr(files, ".tmp"));
    assert_null(strstr(files, "x.npz"));
    free(files);
}

static void numpy_reads_the_embeddings(void **state)
{
    const char *dir = *state;
    support_result r =
        train_command(0, dir, 0, "predict", "data", "e", "--embeddings", "numpy.npz", "--threads", "1", (char *)NULL);
    support_result_free(&r);
    r = support_python("commands/embeddings_numpy.py", (const char *[]){"numpy.npz", NULL},
                       &(support_limits){.directory = dir});
    assert_non_null(strstr(r.out, "sample int64 (6,)\ntext float32 (6, 16)\n"
                                  "image float32 (6, 16)\nboth float32 (6, 16)\n"));
    support_result_free(&r);
}

static void a_classifier_reads_no_text(void **state)
{
    const char *dir = *state;
    train_expect(0, dir, 0, "--steps", "2", "--batch", "8", "--eval-every", "0", "--output", "classes", (char *)NULL);
    static const char *const asked[][2] = {{"--find", "words"}, {"--find", "images"}, {"--embeddings", "c.npz"}};
    for (size_t i = 0; i < 3; i++) {
        support_result r =
            train_command(2, dir, 0, "predict", "data", "classes", asked[i][0], asked[i][1], (char *)NULL);
        assert_non_null(strstr(r.err, "is a classifier; --embeddings and --find are for image-text models"));
        support_result_free(&r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_number_of_ranks_evaluates_alike),
        cmocka_unit_test(samples_without_text_are_not_evaluated),
        cmocka_unit_test(evaluation_does_not_depend_on_training_options),
        cmocka_unit_test(words_shown_are_those_that_were_read),
        cmocka_unit_test(eval_names_what_it_evaluated),
        cmocka_unit_test(lines_agree_with_the_embeddings),
        cmocka_unit_test(an_unwritable_place_is_reported_at_once),
        cmocka_unit_test(numpy_reads_the_embeddings),
        cmocka_unit_test(a_classifier_reads_no_text),
    };
    return cmocka_run_group_tests(tests, set_up, support_tmpdir_tear_down);
}
