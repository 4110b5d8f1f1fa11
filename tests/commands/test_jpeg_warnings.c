/* test_jpeg_warnings.c - sources with one defective JPEG each, through the commands.
 * Invariant tested: ingest, verify, replay and train reject the same images; a harmless oddity is reported once per
 * kind, with the same text for any number of threads and ranks. */
#include <stdlib.h>
#include <string.h>

#include "base/json/json.h"
#include "tests/support/images/jpeg_odd.h"

typedef struct scene {
    char *dir, *source, *dst;
    unsigned odd[MR_ODDITY_COUNT];   /* images of each kind of oddity in the source */
    char first[MR_ODDITY_COUNT][64]; /* and the first of them by name */
    unsigned damaged, refused, fine;
} scene;

/* train/c0/ok-031-5.jpg is case 31 done to a file of kind 5; bad-...: damaged; no-...: refused.  Two kinds a case. */
static void write_case(scene *s, mr_random *rnd, size_t n, bool harmless)
{
    static const char *const words[] = {"ok", "ok", "ok", "bad", "no"};
    const odd_case *c = &odd_cases[n];
    unsigned done = 0;
    for (unsigned i = 0; i < ODD_KINDS && done < 2; i++) {
        picture good = odd_good(rnd, i), p;
        if (c->verdict != ODD_QUIET && !(harmless && c->verdict > ODD_TOLD) && odd_make(c, 1u << i, good, &p)) {
            char name[64], *path, *first = s->first[c->oddity];
            snprintf(name, sizeof name, "train/c%zu/%s-%03zu-%u.jpg", n % 2, words[c->verdict], n, i);
            path = support_path("%s/%s", s->source, name);
            support_write(path, p.bytes, p.len);
            if (c->verdict == ODD_TOLD && (!s->odd[c->oddity]++ || strcmp(name, first) < 0))
                memcpy(first, name, sizeof name);
            s->damaged += c->verdict == ODD_DAMAGED;
            s->refused += c->verdict == ODD_REFUSED;
            s->fine += c->verdict < ODD_DAMAGED;
            picture_free(&p);
            free(path);
            done++;
        }
        picture_free(&good);
    }
}

static scene make(char *dir, bool harmless)
{
    mr_random rnd = support_random();
    scene s = {.dir = dir, .source = support_path("%s/source", dir), .dst = support_path("%s/dst", dir)};
    for (size_t n = 0; n < odd_case_count; n++)
        write_case(&s, &rnd, n, harmless);
    return s;
}

static void end(scene *s)
{
    free(s->source);
    free(s->dst);
}

enum { ALONE_1 = 1, ALONE_4 = 4, RANKS_3 = -3 }; /* threads, or ranks */

/* What the command prints as JSON. */
static json_t *run(int how, int status, const char *const *args)
{
    const char *argv[24] = {support_millrace_path()};
    json_t *doc;
    mr_error err;
    size_t n = 1;
    while (*args)
        argv[n++] = *args++;
    argv[n++] = "--jobs";
    argv[n++] = how == ALONE_4 ? "4" : "1";
    support_result r = how < 0 ? support_mpirun((unsigned)-how, argv) : support_run(argv, NULL);
    support_assert_status(&r, status);
    if (mr_json_parse(r.out, r.out_len, "output", &doc, &err) != MR_OK)
        fail_msg("%s", err.text);
    support_result_free(&r);
    return doc;
}
#define RUN(how, status, ...) run(how, status, (const char *const[]){__VA_ARGS__, NULL})

static const char *text(const json_t *o, const char *key)
{
    const char *value = json_string_value(json_object_get(o, key));
    return value ? value : "";
}

/* One entry in the list for each kind that is there: these words, this many images, and the first of them. */
static void expect_told(const scene *s, const json_t *list, const char *file, const char *key)
{
    size_t told = 0;
    for (int i = 0; i < MR_ODDITY_COUNT; i++) {
        char *words = support_path("%s, in %u images", mr_oddity_words[i], s->odd[i]);
        size_t found = 0, k;
        json_t *entry;
        json_array_foreach(list, k, entry)
        {
            found += strstr(text(entry, key), words) && strcmp(text(entry, file), s->first[i]) == 0;
        }
        if (found != (s->odd[i] > 0))
            fail_msg("\"%s\" is told %zu times", words, found);
        told += found;
        free(words);
    }
    assert_int_equal(json_array_size(list), told);
}

/* Each of `list` has a source of these kinds. */
static void expect_sources(const json_t *list, const char *key, const char *one, const char *other, size_t count)
{
    size_t k;
    json_t *entry;
    json_array_foreach(list, k, entry) if (!strstr(text(entry, key), one) && !strstr(text(entry, key), other))
        fail_msg("%s: %s%s", text(entry, key), text(entry, "reason"), text(entry, "detail"));
    assert_int_equal(json_array_size(list), count);
}

static void ingest_decodes(void **state)
{
    static const int hows[] = {ALONE_1, ALONE_4, RANKS_3};
    scene s = make(*state, false);
    json_t *first = NULL;
    for (size_t i = 0; i < MR_COUNT(hows); i++) {
        json_t *r = RUN(hows[i], 0, "ingest", s.source, s.dst, "--check", "decode", "--max-rejects", "90%", "--json",
                        "--force");
        expect_sources(json_object_get(r, "rejects"), "file", "/bad-", "/no-", s.damaged + s.refused);
        expect_told(&s, json_object_get(r, "notes"), "file", "reason");
        assert_int_equal(
            json_integer_value(json_object_get(json_object_get(json_object_get(r, "splits"), "train"), "samples")),
            s.fine);
        if (!first)
            first = json_incref(r);
        assert_true(json_equal(json_object_get(first, "notes"), json_object_get(r, "notes")));
        json_decref(r);
    }
    json_decref(first);
    SAYS(s.dir, 0, NULL, NULL, "verify", "dst", "--decode");
    end(&s);
}

static void verify_decodes(void **state)
{
    static const int hows[] = {ALONE_1, ALONE_4, RANKS_3};
    scene s = make(*state, false);
    json_t *first = NULL;
    json_decref(RUN(ALONE_1, 0, "ingest", s.source, s.dst, "--max-rejects", "90%", "--json", "--shard-size", "64KiB"));
    for (size_t i = 0; i < MR_COUNT(hows); i++) {
        json_t *r = RUN(hows[i], 1, "verify", s.dst, "--decode", "--json");
        assert_true(json_integer_value(json_object_get(r, "shards")) > 3);
        expect_sources(json_object_get(r, "problems"), "source", "/bad-", "/bad-", s.damaged);
        expect_told(&s, json_object_get(r, "warnings"), "source", "detail");
        if (!first)
            first = json_incref(r);
        assert_true(json_equal(json_object_get(first, "warnings"), json_object_get(r, "warnings")));
        assert_true(json_equal(json_object_get(first, "problems"), json_object_get(r, "problems")));
        json_decref(r);
    }
    json_decref(first);
    support_expect(0, "verify", s.dst, "--deep", "--quiet", (char *)NULL);
    end(&s);
}

/* Whole pictures: the loader passes over the very images that verify --decode names. */
static void loaders_decode(void **state)
{
    static const char *const decoders[] = {"auto", "libjpeg"};
    scene s = make(*state, false);
    char all[16];
    snprintf(all, sizeof all, "%u", s.fine + s.damaged);
    json_decref(RUN(ALONE_1, 0, "ingest", s.source, s.dst, "--max-rejects", "90%", "--json"));
    for (size_t i = 0; i < MR_COUNT(decoders); i++) {
        support_result r =
            support_millrace("replay", s.dst, "--global-batch", all, "--augment", "eval", "--size", "32", "--on-bad",
                             "mask", "--max-bad", "10000", "--json", "--list", "--decoder", decoders[i], (char *)NULL);
        char *words = support_path("\"damaged\":%u}", s.damaged);
        support_assert_status(&r, 0);
        if (!strstr(r.out, words))
            fail_msg("%s: not %s, but %s", decoders[i], words, strrchr(r.out, ']'));
        free(words);
        support_result_free(&r);
    }
    support_expect_refusal(
        support_millrace("replay", s.dst, "--global-batch", all, "--augment", "eval", "--size", "32", (char *)NULL),
        "/bad-");
    end(&s);
}

static void harmless_images_are_used(void **state)
{
    scene s = make(*state, true);
    json_decref(RUN(ALONE_1, 0, "ingest", s.source, s.dst, "--max-rejects", "0", "--check", "decode", "--json"));
    support_result r = support_millrace("verify", s.dst, "--decode", (char *)NULL);
    support_assert_status(&r, 0);
    assert_non_null(strstr(r.out, "dst: intact\n"));
    for (int i = 0; i < MR_ODDITY_COUNT; i++)
        assert_int_equal(support_occurrences(r.err, mr_oddity_words[i]), s.odd[i] > 0);
    support_result_free(&r);
    SAYS(s.dir, 0, "", "", "verify", "dst", "--decode", "--quiet");
    SAYS(s.dir, 0, NULL, "", "replay", "dst", "--global-batch", "8", "--size", "32");
    SAYS(s.dir, 0, NULL, "", "replay", "dst", "--global-batch", "8", "--size", "32", "--augment", "eval");
    SAYS(s.dir, 0, NULL, NULL, "train", "dst", "--model", "vit", "--image-size", "24", "--patch", "8", "--hidden", "16",
         "--layers", "1", "--heads", "2", "--mlp", "32", "--batch", "8", "--epochs", "1", "--output", "run");
    end(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_TMPDIR(ingest_decodes),
        IN_TMPDIR(verify_decodes),
        IN_TMPDIR(loaders_decode),
        IN_TMPDIR(harmless_images_are_used),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
