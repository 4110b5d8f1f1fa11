/* model_session.c - a checkpoint and a dataset, opened for eval and predict. */
#include "train/run/model_session.h"

#include <stdlib.h>
#include <string.h>

#include "base/scope.h"
#include "base/text.h"
#include "shards/dataset/dataset.h"
#include "shards/dataset/dataset_ranks.h"
#include "train/setup/known_classes.h"
#include "train/run/trainer.h"

/* ---- classes ----------------------------------------------------------------------------------------------------- */

const char *mr_session_class(const mr_session *t, int32_t class)
{
    return mr_known_class_name(&t->checkpoint, class);
}

const char *mr_session_trained_on(const mr_session *t)
{
    return json_string_value(json_object_get(t->checkpoint.facts, "dataset"));
}

void mr_session_origin_json(const mr_session *t, json_t *doc)
{
    const char *trained = mr_session_trained_on(t);
    json_object_set_new(doc, "dataset_digest", json_string(mr_dataset_sha256(t->ds)));
    json_object_set_new(doc, "trained_on", trained ? json_string(trained) : json_null());
    json_object_set_new(doc, "trained_by", json_string(t->checkpoint.version));
}

/* Equal names in equal order are the same classes, even if several share a name. */
static bool same_classes(const mr_manifest *m, const mr_session *t, size_t known)
{
    bool same = m->class_count == known;
    for (size_t i = 0; same && i < known; i++)
        same = strcmp(m->classes[i].name, mr_session_class(t, (int32_t)i)) == 0;
    return same;
}

/* `at`: the model's first class of this name; NULL: none.  A name that several of its classes have is ambiguous. */
static mr_status check_class(const mr_session_request *q, const mr_session *t, const char *name,
                             const mr_known_class *at, const mr_known_class *end, mr_error *err)
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
                       "%s: several classes of its model are named \"%s\", so it is unclear which of them is the "
                       "dataset's \"%s\", because the dataset's classes differ from the model's; "
                       "'millrace predict --no-labels' predicts without comparing",
                       t->path, name, name);
    return MR_OK;
}

mr_status mr_session_map(const mr_session_request *q, const mr_manifest *m, mr_session *t, mr_error *err)
{
    MR_AUTO(mr_known_classes_release) mr_known_classes known = {0};
    MR_TRY(mr_known_classes_list(&t->checkpoint, t->path, &known, err));
    t->classes = mr_alloc(m->class_count + 1, sizeof *t->classes);
    if (!t->classes)
        return mr_fail_memory(err, "mapping classes");
    bool same = same_classes(m, t, known.count);
    for (size_t i = 0; i < m->class_count; i++) {
        const mr_known_class *at = mr_known_classes_find(&known, m->classes[i].name);
        t->classes[i] = same ? (int32_t)i : at ? at->class : -1;
        if (!same)
            MR_TRY(check_class(q, t, m->classes[i].name, at, known.sorted + known.count, err));
    }
    return MR_OK;
}

/* ---- several labels ---------------------------------------------------------------------------------------------- */

enum { HALF = 50 }; /* percent: the threshold of a model that was never evaluated in its training */

static mr_status choose_threshold(const mr_session_request *q, mr_session *t, mr_error *err)
{
    const char *loss = json_string_value(json_object_get(t->checkpoint.facts, "loss"));
    t->several = loss && strcmp(loss, "bce") == 0;
    if (!t->several && q->threshold > 0)
        return mr_fail(err, MR_MISUSE, "--threshold: %s is not a multi-label model", t->path);
    t->threshold = q->threshold > 0              ? q->threshold
                   : t->checkpoint.threshold > 0 ? t->checkpoint.threshold
                                                 : HALF / 100.0;
    return MR_OK;
}

static mr_status read_targets(mr_session *t, mr_ranks *ranks, const char *split, unsigned threads, mr_error *err)
{
    if (!t->several)
        return MR_OK;
    return mr_targets_read(t->ds, mr_manifest_split(mr_dataset_manifest(t->ds), split), threads, ranks, &t->targets,
                           err);
}

/* ---- opening ----------------------------------------------------------------------------------------------------- */

mr_status mr_session_transform(const mr_session *t, mr_transform *out, mr_error *err)
{
    const json_t *facts = json_object_get(t->checkpoint.facts, "transform");
    const char *orientation = json_string_value(json_object_get(facts, "orientation"));
    const char *eval = json_string_value(json_object_get(facts, "eval"));
    json_int_t size = json_integer_value(json_object_get(facts, "size"));
    *out = mr_eval_transform(&t->checkpoint.model, orientation && strcmp(orientation, "apply") == 0);
    if (!orientation || !eval || strcmp(eval, mr_transform_word(out)) != 0 || size != t->checkpoint.model.image)
        return mr_fail(err, MR_BAD_DATA, "%s/state.json: does not record the image transform", t->path);
    return MR_OK;
}

static mr_status find_split(const mr_session_request *q, const mr_manifest *m, const char **out, mr_error *err)
{
    const mr_split *val = mr_manifest_split(m, "val"), *test = mr_manifest_split(m, "test");
    *out = q->split ? q->split : val && (val->samples || !test) ? "val" : "test";
    if (!q->split && !val && !test)
        return mr_fail(err, MR_MISUSE, "%s: has neither val nor test; name a --split", q->dataset);
    return mr_split_check_eval(m, q->dataset, *out, err);
}

static mr_status open_model(const mr_session_request *q, mr_session *t, const mr_device_options *device, mr_error *err)
{
    mr_checkpoint *c = &t->checkpoint;
    size_t bytes = c->params.total * sizeof(float);
    c->model.dropout = c->model.attention_dropout = 0;
    if (q->precision)
        c->model.compute = mr_type_of(q->precision);
    MR_TRY(mr_device_open(q->device, device, &t->device, err));
    MR_TRY(c->model.iface->open(&c->model, &c->params, t->device, q->batch, false, &t->model, err));
    MR_TRY(t->device->iface->alloc(t->device, bytes, "parameters", (void **)&t->values, err));
    t->device->iface->upload(t->device, t->values, c->values, bytes);
    return t->device->iface->wait(t->device, err);
}

static mr_status find_checkpoint(const mr_session_request *q, mr_session *t, mr_error *err)
{
    mr_error why;
    mr_status status = mr_checkpoint_read(q->checkpoint, q->best, false, &t->checkpoint, &t->path, &why);
    if (status == MR_OK)
        return MR_OK;
    return mr_fail(err, status, status == MR_BAD_DATA ? "%s; name another checkpoint" : "%s", why.text);
}

/* By rank 0, for all. */
static mr_status read_checkpoint(const mr_session_request *q, mr_ranks *ranks, mr_session *t, mr_error *err)
{
    bool first = mr_ranks_rank(ranks) == 0;
    MR_TRY(mr_ranks_agree(ranks, first ? find_checkpoint(q, t, err) : MR_OK, err));
    MR_TRY(mr_checkpoint_share(ranks, &t->checkpoint, err));
    mr_buf path = {.data = (uint8_t *)t->path, .len = first ? strlen(t->path) + 1 : 0};
    mr_status status = mr_ranks_share(ranks, &path, err);
    t->path = (char *)path.data;
    return status;
}

/* The column by --text-column, or the one that the model learned from. */
static mr_status open_pairs(const mr_session_request *q, mr_ranks *ranks, mr_session *t, const char *split,
                            mr_error *err)
{
    const char *column = json_string_value(json_object_get(t->checkpoint.facts, "text_column"));
    const mr_pairs_options options = {.column = q->text_column ? q->text_column
                                                : column       ? column
                                                               : "",
                                      .eval_split = split,
                                      .tokens = t->checkpoint.model.text};
    MR_TRY(mr_ranks_agree(ranks, mr_pairs_restore(&t->checkpoint, t->path, &t->pairs, err), err));
    return mr_pairs_open(&t->pairs, t->ds, &options, ranks, err);
}

static mr_status match(const mr_session_request *q, mr_session *t, const char **split, mr_transform *transform,
                       mr_error *err)
{
    const mr_manifest *m = mr_dataset_manifest(t->ds);
    MR_TRY(find_split(q, m, split, err));
    MR_TRY(mr_session_transform(t, transform, err));
    MR_TRY(choose_threshold(q, t, err));
    return t->checkpoint.model.iface->text ? MR_OK : mr_session_map(q, m, t, err);
}

mr_status mr_session_open(const mr_session_request *q, mr_ranks *ranks, mr_session *t, mr_error *err)
{
    unsigned threads = mr_rank_threads(q->threads, ranks);
    mr_device_options device = {.threads = threads, .local_rank = mr_ranks_local_rank(ranks)};
    mr_transform transform = {0};
    const char *split = NULL;
    if (q->precision)
        MR_TRY(mr_device_computes(q->device, mr_type_of(q->precision), err));
    MR_TRY(mr_dataset_open_all(q->dataset, ranks, &t->ds, err));
    MR_TRY(mr_dataset_agree(ranks, mr_dataset_digest(t->ds), err));
    MR_TRY(mr_ranks_agree(ranks, mr_dataset_stage_here(t->ds, q->local, q->local_size, ranks, err), err));
    MR_TRY(read_checkpoint(q, ranks, t, err));
    MR_TRY(mr_ranks_agree(ranks, match(q, t, &split, &transform, err), err));
    MR_TRY(read_targets(t, ranks, split, threads, err));
    if (t->checkpoint.model.iface->text)
        MR_TRY(open_pairs(q, ranks, t, split, err));
    MR_TRY(mr_ranks_agree(ranks, open_model(q, t, &device, err), err));
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
        .threshold = t->threshold,
        .loader = {.split = split,
                   .items = t->pairs.eval_items,
                   .item_count = t->pairs.eval_count,
                   .threads = threads,
                   .deliver = mr_feed_delivery(t->device, threads),
                   .transform = transform,
                   .on_bad = q->max_bad ? MR_ON_BAD_MASK : MR_ON_BAD_FAIL,
                   .max_bad = q->max_bad,
                   .max_pixels = q->max_pixels},
    };
    return MR_OK;
}

void mr_session_close(mr_session *t)
{
    if (t->model)
        t->checkpoint.model.iface->close(t->model);
    if (t->device && t->values)
        t->device->iface->free(t->device, t->values);
    mr_device_close(t->device);
    mr_checkpoint_release(&t->checkpoint);
    mr_dataset_free(t->ds);
    mr_pairs_close(&t->pairs);
    mr_damage_release(&t->damage);
    mr_targets_release(&t->targets);
    free(t->classes);
    free(t->path);
    memset(t, 0, sizeof *t);
}
