/* test_damage_everywhere.c - datasets with one thing wrong, picked by chance, before every kind of reader.  Covers
 * dataset/index_trust.c, manifest/manifest.c.
 * Invariant tested: nothing is delivered in silence: what a reader gives is what it gives of the whole dataset, or it
 * says which file is wrong and what to run. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files/file.h"
#include "tests/support/shards/loader.h"
#include "tests/support/training/train.h"

enum { FILES_MAX = 64, SAMPLES_MAX = 128, LIBRARY = 110, LOADER = 111, COPIES = 40, EXPORT = 25, TRAIN = 15 };

typedef struct scene {
    char *dir, *whole, *twin, *again, *damaged; /* twin: other pictures; again: these, ingested in another order */
    char *names[FILES_MAX];                     /* files of `whole` */
    size_t count;
    mr_random random;
    char what[200]; /* was done last */
} scene;

static uint64_t below(scene *s, uint64_t n)
{
    return mr_random_below(&s->random, n);
}

/* ---- damage ------------------------------------------------------------------------------------------------------ */

static char *path_in(const char *folder, const char *name)
{
    return support_path("%s/%s", folder, name);
}

static void copy_file(const char *from, const char *name, const char *to, const char *as)
{
    size_t len;
    char *source = path_in(from, name), *target = path_in(to, as);
    uint8_t *bytes = support_read(source, &len);
    support_write(target, bytes, len);
    free(bytes);
    free(source);
    free(target);
}

static void change_bytes(scene *s, const char *path)
{
    size_t len;
    uint8_t *bytes = support_read(path, &len);
    size_t at = below(s, len), span = below(s, 3) ? 1 : 1 + below(s, len - at < 4096 ? len - at : 4096);
    if (span == 1)
        bytes[at] ^= (uint8_t)(1u << below(s, 8));
    else
        memset(bytes + at, below(s, 2) ? 0 : 0xA5, span);
    support_write(path, bytes, len);
    free(bytes);
}

static const char *suffix_of(const char *name)
{
    return strrchr(name, '.');
}

/* Another file of the same kind, of this or another dataset, in its place; with an .mdb, now and then, its index. */
static void exchange(scene *s, const char *name)
{
    const char *const from[] = {s->whole, s->twin, s->again};
    const char *other = s->names[below(s, s->count)], *folder = from[below(s, 3)];
    char *there = path_in(folder, other);
    bool same_kind = strcmp(suffix_of(name), suffix_of(other)) == 0;
    if (same_kind && support_exists(there)) {
        copy_file(folder, other, s->damaged, name);
        if (strcmp(suffix_of(name), ".mdb") == 0 && below(s, 2)) {
            char *idx = support_path("%.*s.idx", (int)(suffix_of(other) - other), other);
            char *as = support_path("%.*s.idx", (int)(suffix_of(name) - name), name);
            copy_file(folder, idx, s->damaged, as);
            free(idx);
            free(as);
        }
    }
    snprintf(s->what, sizeof s->what, "%s is %s of %s", name, other, folder);
    free(there);
}

/* s->damaged becomes the whole dataset but for one thing. */
static void damage(scene *s)
{
    for (size_t i = 0; i < s->count; i++)
        copy_file(s->whole, s->names[i], s->damaged, s->names[i]);
    const char *name = below(s, 6) ? s->names[below(s, s->count)] : "manifest.json";
    char *path = path_in(s->damaged, name);
    uint64_t kind = below(s, 10), size = support_size(path);
    snprintf(s->what, sizeof s->what, "%s: %s", name,
             kind < 5   ? "changed"
             : kind < 8 ? "exchanged"
             : kind < 9 ? "cut or longer"
                        : "removed");
    if (kind < 5)
        change_bytes(s, path);
    else if (kind < 8)
        exchange(s, name);
    else if (kind < 9)
        assert_int_equal(truncate(path, (off_t)below(s, size + size / 4 + 2)), 0);
    else
        assert_int_equal(unlink(path), 0);
    free(path);
}

/* A sentence with the file, and what to run or to do. */
static void expect_said(const scene *s, const char *text)
{
    static const char *const ways[] = {"`millrace reindex`", "`millrace verify", "`millrace seek", "ingest again",
                                       "name the folder that `millrace ingest` wrote"};
    bool file = strstr(text, ".mdb") || strstr(text, ".idx") || strstr(text, "manifest.json"), way = false;
    for (size_t i = 0; i < MR_COUNT(ways); i++)
        way = way || strstr(text, ways[i]);
    if (!file || !way)
        fail_msg("%s: \"%s\" lacks the %s", s->what, text, file ? "way out" : "file");
}

/* ---- readers ----------------------------------------------------------------------------------------------------- */

/* What the library gives of single samples: a hash for each, and of the classes; 0: a failure that said what is
 * wrong. */
typedef struct singles {
    uint64_t classes, items[SAMPLES_MAX], metas[SAMPLES_MAX], labels;
} singles;

static uint64_t view_hash(const mr_sample_view *v)
{
    const uint64_t facts[] = {v->width,
                              v->height,
                              (uint32_t)v->label,
                              v->codec,
                              v->orientation,
                              v->components,
                              v->bits,
                              v->flags,
                              v->meta_len,
                              mr_hash64(v->meta, v->meta_len),
                              v->image ? mr_hash64(v->image, v->image_len) : 0};
    return mr_hash64(facts, sizeof facts) | 1;
}

static uint64_t classes_hash(const mr_dataset *ds)
{
    uint64_t hash = mr_hash64(mr_dataset_layout(ds), strlen(mr_dataset_layout(ds)));
    for (size_t i = 0; i < mr_dataset_class_count(ds); i++)
        hash = hash * 31 + mr_hash64(mr_dataset_class_name(ds, i), strlen(mr_dataset_class_name(ds, i)));
    return hash | 1;
}

static singles read_singles(const scene *s, const char *folder)
{
    singles got = {0};
    mr_dataset *ds = NULL;
    mr_sample_view v = {0};
    mr_error err;
    int32_t labels[SAMPLES_MAX];
    if (mr_dataset_open(folder, &ds, &err) != MR_OK) {
        expect_said(s, err.text);
        return got;
    }
    got.classes = classes_hash(ds);
    uint64_t samples = mr_dataset_samples(ds, "train");
    assert_true(samples > 0 && samples <= SAMPLES_MAX);
    for (uint64_t n = 0; n < samples; n++) {
        if (mr_dataset_read(ds, "train", n, &v, &err) == MR_OK)
            got.items[n] = view_hash(&v);
        else
            expect_said(s, err.text);
        if (mr_dataset_read_meta(ds, "train", n, &v, &err) == MR_OK)
            got.metas[n] = view_hash(&v);
        else
            expect_said(s, err.text);
    }
    if (mr_dataset_labels(ds, "train", labels, &err) == MR_OK)
        got.labels = mr_hash64(labels, samples * sizeof *labels) | 1;
    else
        expect_said(s, err.text);
    mr_sample_view_free(&v);
    mr_dataset_free(ds);
    return got;
}

static void expect_equal_or_none(const scene *s, uint64_t got, uint64_t want, const char *what)
{
    if (got && got != want)
        fail_msg("%s: %s is another, in silence", s->what, what);
}

static void single_samples(void **state)
{
    scene *s = *state;
    const singles want = read_singles(s, s->whole);
    size_t refused = 0;
    for (int trial = 0; trial < LIBRARY; trial++) {
        damage(s);
        singles got = read_singles(s, s->damaged);
        expect_equal_or_none(s, got.classes, want.classes, "a class");
        expect_equal_or_none(s, got.labels, want.labels, "a label");
        for (size_t n = 0; n < SAMPLES_MAX; n++) {
            expect_equal_or_none(s, got.items[n], want.items[n], "a sample");
            expect_equal_or_none(s, got.metas[n], want.metas[n], "a meta");
            refused += got.items[n] != want.items[n];
        }
    }
    assert_true(refused > 0);
}

static seen_list load(const scene *s, const char *folder, mr_delivery deliver, const char *copies)
{
    mr_loader_options o = usual_options(deliver, MR_TAIL_PAD);
    mr_dataset *ds = NULL;
    seen_list list = {.status = MR_OK};
    o.epochs = 1;
    list.status = mr_dataset_open(folder, &ds, &list.error);
    if (list.status != MR_OK) {
        expect_said(s, list.error.text);
        return list;
    }
    if (copies)
        assert_int_equal(mr_dataset_stage(ds, copies, 0, 0, NULL), MR_OK);
    list = run_loader(ds, &o, 0);
    if (list.status != MR_END)
        expect_said(s, list.error.text);
    mr_dataset_free(ds);
    return list;
}

/* All that came, up to a failure. */
static void expect_beginning(const scene *s, const seen_list *got, const seen_list *want)
{
    assert_true(got->count <= want->count && (got->status != MR_END || got->count == want->count));
    for (size_t i = 0; i < got->count; i++) {
        const seen *g = &got->items[i], *w = &want->items[i];
        if (g->sample != w->sample || g->facts != w->facts || g->bytes != w->bytes || g->meta != w->meta)
            fail_msg("%s: sample %llu of the loader is another, in silence", s->what, (unsigned long long)w->sample);
    }
}

static void the_loader(void **state)
{
    scene *s = *state;
    const mr_delivery ways[] = {MR_DELIVER_ENCODED, MR_DELIVER_U8_NHWC, MR_DELIVER_CODED};
    size_t whole = 0;
    for (size_t w = 0; w < MR_COUNT(ways); w++) {
        seen_list want = load(s, s->whole, ways[w], NULL);
        assert_int_equal(want.status, MR_END);
        for (int trial = 0; trial < LOADER / (int)MR_COUNT(ways); trial++) {
            damage(s);
            seen_list got = load(s, s->damaged, ways[w], NULL);
            expect_beginning(s, &got, &want);
            whole += got.status == MR_END;
            seen_free(&got);
        }
        seen_free(&want);
    }
    assert_true(whole > 0 && whole < LOADER);
}

/* Copies of shards on a disk of this host: whatever they hold, the samples are those of the dataset. */
static void copies(void **state)
{
    scene *s = *state;
    char *folder = path_in(s->dir, "copies");
    mr_digest digest;
    seen_list want = load(s, s->whole, MR_DELIVER_ENCODED, NULL);
    for (int trial = 0; trial < COPIES; trial++) {
        char *names[3], *sources[3];
        for (int i = 0; i < 3; i++) {
            char hex[65], *mdb = support_path("train-%05d.mdb", i), *path = path_in(s->whole, mdb);
            int fd = open(path, O_RDONLY);
            assert_int_equal(mr_file_digest(fd, support_size(path), true, path, &digest, NULL), MR_OK);
            close(fd);
            mr_hex(digest.sha256, 32, hex);
            names[i] = support_path("%s.mdb", hex);
            sources[i] = mdb;
            copy_file(s->whole, mdb, folder, names[i]);
            free(path);
        }
        size_t hurt = below(s, 3);
        char *path = path_in(folder, names[hurt]);
        snprintf(s->what, sizeof s->what, "the copy of %s", sources[hurt]);
        if (below(s, 4))
            change_bytes(s, path);
        else
            copy_file(s->whole, sources[(hurt + 1) % 3], folder, names[hurt]);
        seen_list got = load(s, s->whole, MR_DELIVER_ENCODED, folder);
        assert_int_equal(got.status, MR_END);
        expect_beginning(s, &got, &want);
        seen_free(&got);
        free(path);
        for (int i = 0; i < 3; i++) {
            free(names[i]);
            free(sources[i]);
        }
    }
    seen_free(&want);
    free(folder);
}

static void exported(void **state)
{
    scene *s = *state;
    char *want = path_in(s->dir, "want"), *out = path_in(s->dir, "out");
    support_expect(0, "export", "--quiet", s->whole, want, (char *)NULL);
    uint64_t hash = support_tree_hash(want);
    for (int trial = 0; trial < EXPORT; trial++) {
        damage(s);
        support_result r = support_millrace("export", "--quiet", s->damaged, out, (char *)NULL);
        if (r.status == 0 && support_tree_hash(out) != hash)
            fail_msg("%s: other files were exported, in silence", s->what);
        if (r.status)
            expect_said(s, r.err);
        support_result_free(&r);
        if (support_exists(out))
            support_tmpdir_remove(support_path("%s", out)); /* which frees it */
    }
    free(want);
    free(out);
}

/* A hash of the weights after a few steps; 0: the run ended with a failure that said what is wrong. */
static uint64_t train(const scene *s, const char *folder)
{
    char *run = path_in(s->dir, "run"), *weights = path_in(run, "step-00000004/weights.npz");
    uint64_t hash = 0;
    size_t len;
    support_result r =
        support_millrace("train", folder, "--model", "vit", "--image-size", "16", "--patch", "8", "--hidden", "8",
                         "--layers", "1", "--heads", "1", "--mlp", "8", "--dropout", "0", "--batch", "12", "--steps",
                         "4", "--threads", "1", "--eval-every", "0", "--quiet", "--output", run, (char *)NULL);
    if (r.status == 0) {
        uint8_t *bytes = support_read(weights, &len);
        hash = mr_hash64(bytes, len) | 1;
        free(bytes);
    } else {
        expect_said(s, r.err);
    }
    support_result_free(&r);
    if (support_exists(run))
        support_tmpdir_remove(support_path("%s", run));
    free(run);
    free(weights);
    return hash;
}

static void trained(void **state)
{
    scene *s = *state;
    uint64_t want = train(s, s->whole), got;
    assert_true(want != 0);
    for (int trial = 0; trial < TRAIN; trial++) {
        damage(s);
        got = train(s, s->damaged);
        expect_equal_or_none(s, got, want, "what was trained");
    }
}

/* ---- the datasets ------------------------------------------------------------------------------------------------ */

static void make(const char *dir, const char *seed, const char *shuffle, char **out)
{
    char *source = support_path("%s/source-%s", dir, seed);
    *out = support_path("%s/ds-%s-%s", dir, seed, shuffle);
    if (!support_exists(source))
        support_expect(0, "sample", source, "--layout", "imagenette", "--images", "60", "--size", "32:48", "--seed",
                       seed, "--quiet", (char *)NULL);
    support_expect(0, "ingest", source, *out, "--shard-size", "16KiB", "--shuffle", shuffle, "--quiet", (char *)NULL);
    free(source);
}

static int set_up(void **state)
{
    static scene s;
    s = (scene){.dir = support_tmpdir(), .random = support_random(), .what = "nothing"};
    make(s.dir, "1", "1", &s.whole);
    make(s.dir, "2", "1", &s.twin);
    make(s.dir, "1", "2", &s.again);
    s.damaged = path_in(s.dir, "damaged");
    char *list = support_list(s.whole), *rest = NULL;
    for (char *name = strtok_r(list, "\n", &rest); name; name = strtok_r(NULL, "\n", &rest))
        if (strcmp(name, "report.json") != 0) {
            assert_true(s.count < FILES_MAX);
            s.names[s.count++] = support_path("%s", name);
        }
    free(list);
    assert_true(s.count >= 3 * 4 + 1);
    *state = &s;
    return 0;
}

static int tear_down(void **state)
{
    scene *s = *state;
    for (size_t i = 0; i < s->count; i++)
        free(s->names[i]);
    free(s->whole);
    free(s->twin);
    free(s->again);
    free(s->damaged);
    support_tmpdir_remove(s->dir);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(single_samples), cmocka_unit_test(the_loader), cmocka_unit_test(copies),
        cmocka_unit_test(exported),       cmocka_unit_test(trained),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
