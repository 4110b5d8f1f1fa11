/* model_session.c - a checkpoint and a dataset brought together. */
#include "run/model_session.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/text.h"
#include "dataset/dataset.h"
#include "dataset/dataset_ranks.h"
#include "run/trainer.h"

enum {
    TRIES = 16, /* to read on all ranks what a run removes meanwhile */
    GONE = 1,
    THERE = 2, /* what ranks see of a checkpoint */
};

/* ---- classes ------------------------------------------------------------------------------------------------------
 */

const char *mr_session_class(const mr_session *t, int32_t class)
{
    const char *name = NULL;
    if (class >= 0)
        name = json_string_value(json_array_get(json_object_get(t->checkpoint.facts, "classes"), (size_t) class));
    return name ? name : "";
}

/* The column by --text-column, or the one that the model learned from. */
static mr_status open_pairs(const mr_session_request *q, mr_session *t, const char *split, mr_error *err)
{
    const char *column = json_string_value(json_object_get(t->checkpoint.facts, "text_column"));
    mr_status status = mr_pairs_restore(&t->checkpoint, t->path, &t->pairs, err);
    if (status == MR_OK)
        status = mr_pairs_open(&t->pairs, t->ds, split,
                               q->text_column ? q->text_column
                               : column       ? column
                                              : "",
                               t->checkpoint.model.text, err);
    return status == MR_OK ? mr_pairs_judge(&t->pairs, t->ds, split, err) : status;
}

/* Equal names in equal order are the same classes, even where some have one name. */
static bool same_classes(const mr_manifest *m, const mr_session *t, size_t known)
{
    bool same = m->class_count == known;
    for (size_t i = 0; same && i < known; i++)
        same = strcmp(m->classes[i].name, mr_session_class(t, (int32_t)i)) == 0;
    return same;
}

typedef struct known_class { /* of the model */
    const char *name;
    int32_t class;
} known_class;

static int by_name(const void *a, const void *b)
{
    const known_class *x = a, *y = b;
    int order = strcmp(x->name, y->name);
    return order ? order : (x->class > y->class) - (x->class < y->class);
}

/* The model's first class of this name, then the others; NULL: none. */
static const known_class *find_class(const known_class *known, size_t count, const char *name)
{
    size_t low = 0, high = count;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (strcmp(known[mid].name, name) < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return low < count && strcmp(known[low].name, name) == 0 ? &known[low] : NULL;
}

/* `at`: the model's class that has the name, NULL: none.  A name that several classes of it have says nothing. */
static mr_status check_class(const mr_session_request *q, const mr_session *t, const char *name, const known_class *at,
                             const known_class *end, mr_error *err)
{
    if (q->no_labels)
        return MR_OK;
    if (!at)
        return mr_fail(err, MR_MISUSE,
                       "%s: has a class \"%s\", and the model of %s was trained on %u others (\"%s\", "
                       "...); 'millrace predict --no-labels' predicts without comparing",
                       q->dataset, name, t->path, t->checkpoint.model.classes, mr_session_class(t, 0));
    if (at + 1 < end && strcmp(at[1].name, name) == 0)
        return mr_fail(err, MR_MISUSE,
                       "%s: several classes of its model are named \"%s\": which of them the dataset's "
                       "\"%s\" is cannot be told, as its classes are not the model's in number and order; "
                       "'millrace predict --no-labels' predicts without comparing",
                       t->path, name, name);
    return MR_OK;
}

/* Both lists may be a stranger's, and long. */
mr_status mr_session_map(const mr_session_request *q, const mr_manifest *m, mr_session *t, mr_error *err)
{
    mr_status status = MR_OK;
    size_t known = json_array_size(json_object_get(t->checkpoint.facts, "classes"));
    if (known != t->checkpoint.model.classes)
        return mr_fail(err, MR_BAD_DATA, "%s/state.json: names %zu classes of %u", t->path, known,
                       t->checkpoint.model.classes);
    t->classes = mr_alloc(m->class_count + 1, sizeof *t->classes);
    known_class *sorted = mr_alloc(known + 1, sizeof *sorted);
    if (!t->classes || !sorted) {
        free(sorted);
        return mr_fail_memory(err, "mapping classes");
    }
    for (size_t k = 0; k < known; k++)
        sorted[k] = (known_class){mr_session_class(t, (int32_t)k), (int32_t)k};
    qsort(sorted, known, sizeof *sorted, by_name);
    bool same = same_classes(m, t, known);
    for (size_t i = 0; i < m->class_count && status == MR_OK; i++) {
        const known_class *at = find_class(sorted, known, m->classes[i].name);
        t->classes[i] = same ? (int32_t)i : at ? at->class : -1;
        if (!same)
            status = check_class(q, t, m->classes[i].name, at, sorted + known, err);
    }
    free(sorted);
    return status;
}

/* ---- everything together ------------------------------------------------------------------------------------------
 */

mr_status mr_session_transform(const mr_session *t, mr_transform *out, mr_error *err)
{
    const json_t *facts = json_object_get(t->checkpoint.facts, "transform");
    const char *orientation = json_string_value(json_object_get(facts, "orientation"));
    const char *eval = json_string_value(json_object_get(facts, "eval"));
    json_int_t size = json_integer_value(json_object_get(facts, "size"));
    *out = mr_eval_transform(&t->checkpoint.model, orientation && strcmp(orientation, "apply") == 0);
    if (!orientation || !eval || strcmp(eval, mr_transform_word(out)) != 0 || size != t->checkpoint.model.image)
        return mr_fail(err, MR_BAD_DATA, "%s/state.json: does not say how pictures are shown to the model", t->path);
    return MR_OK;
}

static mr_status find_split(const mr_session_request *q, const mr_manifest *m, const char **out, mr_error *err)
{
    const mr_split *val = mr_manifest_split(m, "val"), *test = mr_manifest_split(m, "test");
    *out = q->split ? q->split : val && (val->samples || !test) ? "val" : "test";
    if (!q->split && !val && !test)
        return mr_fail(err, MR_MISUSE, "%s: has neither val nor test; name a --split", q->dataset);
    return mr_split_to_judge(m, q->dataset, *out, err);
}

static mr_status place(const mr_session_request *q, mr_session *t, unsigned threads, mr_error *err)
{
    mr_checkpoint *c = &t->checkpoint;
    mr_device_options device = {.threads = threads};
    size_t bytes = c->params.total * sizeof(float);
    c->model.dropout = c->model.attention_dropout = 0;
    mr_status status = mr_device_open(q->device, &device, &t->device, err);
    if (status == MR_OK)
        status = c->model.card->open(&c->model, &c->params, t->device, q->batch, false, &t->model, err);
    if (status == MR_OK)
        status = t->device->card->alloc(t->device, bytes, (void **)&t->values, err);
    if (status != MR_OK)
        return status;
    t->device->card->upload(t->device, t->values, c->values, bytes);
    return t->device->card->wait(t->device, err);
}

static mr_status read_one(const char *path, bool best, mr_session *t, mr_error *err)
{
    mr_error why;
    mr_status status = mr_checkpoint_read(path, best, false, &t->checkpoint, &t->path, &why);
    if (status == MR_OK)
        return status;
    return mr_fail(err, status, status == MR_BAD_DATA ? "%s; name another checkpoint" : "%s", why.text);
}

/* Rank 0 finds the checkpoint, and the others read that one: where a run goes on, another is the newest a moment later.
 * *gone: a rank found it removed, and it is. */
static mr_status read_together(const mr_session_request *q, mr_ranks *ranks, mr_session *t, uint64_t *gone,
                               mr_error *err)
{
    bool first = mr_ranks_rank(ranks) == 0;
    mr_error why;
    mr_buf path = {0};
    *gone = 0;
    mr_status status = first ? read_one(q->checkpoint, q->best, t, err) : MR_OK;
    if (first && status == MR_OK) {
        mr_buf_add(&path, t->path, strlen(t->path));
        status = mr_buf_status(&path, err, q->checkpoint);
    }
    status = mr_ranks_agree(ranks, status, err);
    if (status == MR_OK)
        status = mr_ranks_share(ranks, &path, err);
    if (status == MR_OK) {
        mr_status other = first ? MR_OK : read_one(mr_buf_text(&path), false, t, &why);
        if (other != MR_OK)
            mr_fail(err, other, "mpirun: rank %u: %s", mr_ranks_rank(ranks), why.text);
        status = mr_ranks_agree(ranks, other, err); /* now all have read it, or have not */
        *gone = other != MR_OK && access(mr_buf_text(&path), F_OK) != 0 ? GONE : 0;
        *gone |= first && access(t->path, F_OK) == 0 ? THERE : 0;
        mr_status told = mr_ranks_reduce(ranks, MR_RANKS_OR, gone, 1, err);
        *gone = *gone == GONE;
        status = told == MR_OK ? status : told;
    }
    mr_buf_free(&path);
    return status;
}

static mr_status read_checkpoint(const mr_session_request *q, mr_ranks *ranks, mr_session *t, mr_error *err)
{
    uint64_t gone;
    unsigned other;
    mr_status status = read_together(q, ranks, t, &gone, err);
    for (int again = 0; status != MR_OK && gone && again < TRIES; again++) {
        mr_checkpoint_release(&t->checkpoint);
        free(t->path);
        t->checkpoint = (mr_checkpoint){0};
        t->path = NULL;
        status = read_together(q, ranks, t, &gone, err);
    }
    if (status != MR_OK || mr_ranks_world(ranks) == 1)
        return status;
    char *facts = json_dumps(t->checkpoint.facts, JSON_COMPACT | JSON_SORT_KEYS); /* classes, transform ... */
    const uint64_t known[] = {
        mr_hash64(t->checkpoint.values, t->checkpoint.params.total * sizeof(float)),
        mr_hash64(facts, facts ? strlen(facts) : 0),
    };
    status = mr_ranks_agree(ranks, facts ? MR_OK : mr_fail_memory(err, t->path), err);
    free(facts);
    if (status == MR_OK)
        status = mr_ranks_compare(ranks, known, sizeof known, &other, NULL, err);
    if (status == MR_OK && other)
        status = mr_fail(err, MR_BAD_DATA,
                         "mpirun: rank %u has another checkpoint in %s than rank 0; give all of them "
                         "the same files",
                         other, t->path);
    return status;
}

/* What each rank does for itself. */
static mr_status bring_together(const mr_session_request *q, mr_ranks *ranks, mr_session *t, mr_error *err)
{
    unsigned threads = mr_rank_threads(q->threads, ranks);
    mr_transform transform;
    const char *split = NULL;
    mr_status status = find_split(q, mr_dataset_manifest(t->ds), &split, err);
    if (status == MR_OK)
        status = mr_session_transform(t, &transform, err);
    if (status == MR_OK)
        status = t->checkpoint.model.card->text ? open_pairs(q, t, split, err)
                                                : mr_session_map(q, mr_dataset_manifest(t->ds), t, err);
    if (status == MR_OK)
        status = place(q, t, threads, err);
    if (status != MR_OK)
        return status;
    t->evaluator = (mr_evaluator){
        .ds = t->ds,
        .ranks = ranks,
        .device = t->device,
        .config = &t->checkpoint.model,
        .model = t->model,
        .batch = q->batch,
        .classes = t->classes,
        .text = &t->pairs.text,
        .damage = &t->damage,
        .loader = {.split = split,
                   .items = t->pairs.judged,
                   .item_count = t->pairs.judged_count,
                   .threads = threads,
                   .transform = transform,
                   .on_bad = q->max_bad ? MR_ON_BAD_MASK : MR_ON_BAD_FAIL,
                   .max_bad = q->max_bad,
                   .max_pixels = q->max_pixels},
    };
    return MR_OK;
}

mr_status mr_session_open(const mr_session_request *q, mr_ranks *ranks, mr_session *t, mr_error *err)
{
    mr_status status = mr_ranks_agree(ranks, mr_dataset_open(q->dataset, &t->ds, err), err);
    if (status == MR_OK)
        status = mr_dataset_agree(ranks, mr_dataset_digest(t->ds), err);
    if (status == MR_OK)
        status = read_checkpoint(q, ranks, t, err);
    if (status == MR_OK)
        status = mr_ranks_agree(ranks, bring_together(q, ranks, t, err), err);
    return status == MR_OK ? mr_pairs_agree(&t->pairs, ranks, err) : status;
}

void mr_session_close(mr_session *t)
{
    if (t->model)
        t->checkpoint.model.card->close(t->model);
    if (t->device && t->values)
        t->device->card->free(t->device, t->values);
    mr_device_close(t->device);
    mr_checkpoint_release(&t->checkpoint);
    mr_dataset_free(t->ds);
    mr_pairs_close(&t->pairs);
    mr_damage_release(&t->damage);
    free(t->classes);
    free(t->path);
    memset(t, 0, sizeof *t);
}
