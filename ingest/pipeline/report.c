/* report.c - what ingest did: the manifest, and report.json, which explains it.
 * Invariant: neither contains a time, host or path of this run; the manifest depends on the samples alone. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/scope.h"
#include "base/text.h"
#include "ingest/layout/folder_names.h"
#include "ingest/pipeline/ingest_state.h"

static json_t *options_json(const mr_ingest *in)
{
    const mr_ingest_options *o = in->options;
    json_t *maps = json_object();
    for (size_t i = 0; i < o->for_layout.map_count; i++)
        json_object_set_new(maps, o->for_layout.maps[i].from, json_string(o->for_layout.maps[i].to));
    json_t *doc = json_pack("{sIsososs?ss?sbso}", "shard_size", (json_int_t)in->shard_size, "order",
                            json_string(o->shuffle ? "shuffled" : "source"), "seed",
                            o->shuffle ? json_integer((json_int_t)o->seed) : json_null(), "label_column",
                            o->for_layout.label_column, "config", o->for_layout.config, "keep_unlisted",
                            (int)o->for_layout.keep_unlisted, "split_map", maps);
    json_t *shares = o->share_count ? json_object() : NULL;
    for (size_t i = 0; i < o->share_count; i++)
        json_object_set_new(shares, o->shares[i].name, json_real(o->shares[i].share));
    if (shares)
        json_object_set_new(doc, "split", shares);
    if (o->group_pattern)
        json_object_set_new(doc, "group_pattern", mr_json_path(o->group_pattern, strlen(o->group_pattern)));
    if (o->for_layout.image_column)
        json_object_set_new(doc, "image_column", json_string(o->for_layout.image_column));
    if (o->for_layout.text_column)
        json_object_set_new(doc, "text_column", json_string(o->for_layout.text_column));
    if (o->for_layout.root)
        json_object_set_new(doc, "root", mr_json_path(o->for_layout.root, strlen(o->for_layout.root)));
    if (o->for_layout.skip_unmatched)
        json_object_set_new(doc, "skip_unmatched", json_true());
    if (o->for_layout.class_depth)
        json_object_set_new(doc, "class_depth", json_integer(o->for_layout.class_depth));
    json_t *lists = o->for_layout.list_count ? json_object() : NULL;
    for (size_t i = 0; i < o->for_layout.list_count; i++)
        json_object_set_new(lists, o->for_layout.lists[i].from, json_string(o->for_layout.lists[i].to));
    if (lists)
        json_object_set_new(doc, "split_list", lists);
    json_t *annotations = o->for_layout.annotation_count ? json_array() : NULL;
    for (size_t i = 0; i < o->for_layout.annotation_count; i++)
        json_array_append_new(annotations,
                              mr_json_path(o->for_layout.annotations[i], strlen(o->for_layout.annotations[i])));
    if (annotations)
        json_object_set_new(doc, "annotations", annotations);
    json_t *left_out = o->for_source.leave_out_count ? json_array() : NULL;
    for (size_t i = 0; i < o->for_source.leave_out_count; i++)
        json_array_append_new(left_out, mr_json_path(o->for_source.leave_out[i], strlen(o->for_source.leave_out[i])));
    if (left_out)
        json_object_set_new(doc, "leave_out", left_out);
    return doc;
}

static mr_status copy_classes(const mr_plan *plan, mr_manifest *m, mr_error *err)
{
    m->classes = mr_alloc(plan->class_count, sizeof *m->classes);
    if (!m->classes)
        return mr_fail_memory(err, "writing the manifest");
    for (; m->class_count < plan->class_count; m->class_count++) {
        m->classes[m->class_count] = plan->classes[m->class_count];
        m->classes[m->class_count].name = strdup(plan->classes[m->class_count].name);
        if (!m->classes[m->class_count].name)
            return mr_fail_memory(err, "writing the manifest");
    }
    return MR_OK;
}

static int by_split_name(const void *a, const void *b)
{
    const mr_split *x = a, *y = b;
    size_t i = mr_split_rank(x->name), j = mr_split_rank(y->name);
    return i != j ? (i > j) - (i < j) : strcmp(x->name, y->name);
}

static mr_status fill_splits(const mr_ingest *in, const mr_shard *shards, mr_manifest *m, mr_error *err)
{
    m->splits = mr_alloc(in->plan.split_count, sizeof *m->splits);
    if (!m->splits)
        return mr_fail_memory(err, "writing the manifest");
    for (; m->split_count < in->plan.split_count; m->split_count++) {
        mr_split *split = &m->splits[m->split_count];
        size_t count = 0;
        memcpy(split->name, in->plan.splits[m->split_count].name, sizeof split->name);
        for (size_t i = 0; i < in->cut_count; i++)
            count += in->cuts[i].split == m->split_count;
        split->shards = mr_alloc(count, sizeof *split->shards);
        if (!split->shards)
            return mr_fail_memory(err, "writing the manifest");
        for (size_t i = 0; i < in->cut_count; i++) {
            if (in->cuts[i].split != m->split_count)
                continue;
            split->shards[split->shard_count++] = shards[i];
            split->samples += shards[i].samples;
            split->images += shards[i].images;
            split->image_bytes += shards[i].image_bytes;
        }
    }
    if (m->split_count)
        qsort(m->splits, m->split_count, sizeof *m->splits, by_split_name);
    return MR_OK;
}

static void free_manifest(mr_manifest **m)
{
    mr_manifest_free(*m);
}

/* `shards`: parallel to in->cuts. */
static mr_status make_manifest(const mr_ingest *in, const mr_shard *shards, mr_manifest **out, mr_error *err)
{
    MR_AUTO(free_manifest) mr_manifest *m = mr_alloc(1, sizeof *m);
    if (!m)
        return mr_fail_memory(err, "writing the manifest");
    m->layout = strdup(in->choice.layout->name);
    const char *variant = mr_plan_variant(&in->plan);
    m->variant = strdup(variant ? variant : "");
    m->licence = in->plan.licence ? strdup(in->plan.licence) : NULL;
    m->options = options_json(in);
    if (!m->layout || !m->variant || !m->options || (in->plan.licence && !m->licence))
        return mr_fail_memory(err, "writing the manifest");
    MR_TRY(copy_classes(&in->plan, m, err));
    MR_TRY(fill_splits(in, shards, m, err));
    *out = m;
    m = NULL;
    return MR_OK;
}

mr_status mr_ingest_manifest(mr_ingest *in, mr_error *err)
{
    return make_manifest(in, in->shards, &in->manifest, err);
}

/* Writes a manifest to memory and discards it; since no file exists yet, digests are zero and sizes as long as they can
 * be. */
mr_status mr_ingest_check_manifest(mr_ingest *in, mr_error *err)
{
    MR_AUTO(free_manifest) mr_manifest *m = NULL;
    MR_AUTO(mr_buf_free) mr_buf text = {0};
    MR_AUTO(mr_scope_free) mr_shard *shards = mr_alloc(in->cut_count, sizeof *shards);
    mr_error why;
    if (!shards)
        return mr_fail_memory(err, "planning shards");
    for (size_t i = 0; i < in->cut_count; i++) {
        const mr_shard_plan *cut = &in->cuts[i];
        shards[i] = (mr_shard){.first = cut->first,
                               .samples = cut->count,
                               .images = cut->images,
                               .image_bytes = cut->image_bytes,
                               .mdb.bytes = INT64_MAX,
                               .idx.bytes = INT64_MAX};
        memcpy(shards[i].name, cut->name, sizeof shards[i].name);
    }
    MR_TRY(make_manifest(in, shards, &m, err));
    mr_status status = mr_manifest_write(m, &text, &why);
    if (status == MR_OK)
        return MR_OK;
    if (why.status != MR_BAD_DATA)
        return mr_fail(err, why.status, "%s", why.text);
    return mr_fail(err, MR_BAD_DATA,
                   "%s; there are %zu classes and %zu shards, and a larger --shard-size makes fewer shards", why.text,
                   in->plan.class_count, in->cut_count);
}

static json_t *notes_of(const mr_notes *notes, mr_note_kind kind)
{
    json_t *list = json_array();
    for (size_t i = 0; i < notes->count; i++) {
        const mr_note *n = &notes->items[i];
        if (n->kind == kind)
            json_array_append_new(
                list, json_pack("{sssssI}", "file", n->path, "reason", n->detail, "bytes", (json_int_t)n->bytes));
    }
    return list;
}

mr_split_sums mr_ingest_split(const mr_ingest *in, uint32_t split)
{
    mr_split_sums sums = {0};
    for (size_t i = 0; i < in->cut_count; i++) {
        if (in->cuts[i].split != split)
            continue;
        sums.shards++;
        sums.samples += in->cuts[i].count;
        sums.images += in->manifest ? in->shards[i].images : in->cuts[i].images;
        sums.bytes += in->manifest ? in->shards[i].image_bytes : in->cuts[i].image_bytes;
    }
    return sums;
}

static json_t *aliases_json(const mr_plan_split *split)
{
    json_t *names = json_array();
    for (size_t i = 0; i < split->alias_count; i++)
        json_array_append_new(names, mr_json_path(split->aliases[i].name, split->aliases[i].len));
    return names;
}

/* The samples of one split that are not rejected: all, those without a label, and those of each class. */
static json_t *samples_json(const mr_ingest *in, uint32_t split)
{
    const mr_plan *plan = &in->plan;
    json_int_t samples = 0, unlabelled = 0;
    MR_AUTO(mr_scope_free) json_int_t *by_class = mr_alloc(plan->class_count, sizeof *by_class);
    if (!by_class)
        return NULL;
    for (size_t i = 0; i < plan->sample_count; i++) {
        const mr_sample *s = &plan->samples[i];
        if (s->split != split || (in->examined && in->examined[in->file_of[s->entry]].why))
            continue;
        samples++;
        if (s->label >= 0)
            by_class[s->label]++;
        else
            unlabelled++;
    }
    json_t *classes = json_object();
    for (size_t c = 0; c < plan->class_count; c++)
        if (by_class[c])
            json_object_set_new(classes, plan->classes[c].name, json_integer(by_class[c]));
    return json_pack("{sIsIso}", "samples", samples, "unlabelled", unlabelled, "classes", classes);
}

static json_t *splits_json(const mr_ingest *in)
{
    json_t *splits = json_object();
    for (uint32_t s = 0; s < in->plan.split_count; s++) {
        json_t *split = samples_json(in, s);
        json_object_set_new(split, "called", aliases_json(&in->plan.splits[s]));
        mr_split_sums sums = mr_ingest_split(in, s);
        if (split && in->cut_count)
            json_object_update_new(split, json_pack("{sIsIsI}", "images", (json_int_t)sums.images, "bytes",
                                                    (json_int_t)sums.bytes, "shards", (json_int_t)sums.shards));
        json_object_set_new(splits, in->plan.splits[s].name, split);
    }
    return splits;
}

/* What the user can change, and how. */
static json_t *decide_json(const mr_notes *notes)
{
    json_t *list = json_array();
    for (int kind = 0; kind < MR_NOTE_COUNT; kind++)
        if (notes->counts[kind] && mr_note_advice[kind])
            json_array_append_new(list, json_pack("{sssIssss}", "kind", mr_note_words[kind], "count",
                                                  (json_int_t)notes->counts[kind], "what", mr_note_heads[kind], "do",
                                                  mr_note_advice[kind]));
    return list;
}

/* What became of the files of the source: their numbers, and those of companions by kind. */
static json_t *ledger_json(const mr_ledger *l)
{
    json_t *doc = json_object(), *kinds = json_object();
    for (int fate = 0; fate < MR_FATE_COUNT; fate++)
        json_object_set_new(doc, mr_fate_words[fate], json_integer((json_int_t)l->fates[fate]));
    for (int kind = 0; kind < MR_COMPANION_COUNT; kind++)
        if (l->companions[kind].count)
            json_object_set_new(kinds, mr_companion_words[kind], json_integer((json_int_t)l->companions[kind].count));
    json_object_set_new(doc, "companions_by_kind", kinds);
    return doc;
}

json_t *mr_ingest_report(const mr_ingest *in, bool complete)
{
    MR_AUTO(mr_buf_free) mr_buf root = {0};
    mr_text_escape(&root, in->choice.tree.root ? in->choice.tree.root : "", in->choice.tree.root_len);
    json_t *doc =
        json_pack("{sbsoss?ss?ssss?sIsIsoso}", "complete", (int)complete, "decide", decide_json(&in->notes), "layout",
                  in->choice.layout ? in->choice.layout->name : NULL, "variant", mr_plan_variant(&in->plan), "root",
                  mr_buf_text(&root), "evidence", in->choice.layout ? in->choice.bid.why : NULL, "files",
                  (json_int_t)(in->source ? mr_source_count(in->source) : 0), "images_examined",
                  (json_int_t)in->file_count, "splits", splits_json(in), "counts", json_object());
    json_object_set_new(doc, "rejected", json_integer((json_int_t)in->rejects));
    json_object_set_new(doc, "ledger", ledger_json(&in->ledger));
    mr_object_tally objects = mr_ingest_objects(in);
    if (objects.pictures)
        json_object_set_new(doc, "objects", mr_ingest_objects_json(&objects));
    if (in->options && in->options->near)
        json_object_set_new(doc, "near_duplicates",
                            json_pack("{sIsIsIsIsI}", "distance", (json_int_t)in->options->near_distance, "pictures",
                                      (json_int_t)in->near.pictures, "single_tone", (json_int_t)in->near.plain,
                                      "unreadable", (json_int_t)in->near.unreadable, "crowded",
                                      (json_int_t)in->near.crowded));
    json_t *counts = json_object_get(doc, "counts");
    for (int kind = 0; doc && kind < MR_NOTE_COUNT; kind++) {
        json_object_set_new(counts, mr_note_words[kind], json_integer((json_int_t)in->notes.counts[kind]));
        json_object_set_new(doc, mr_note_words[kind], notes_of(&in->notes, (mr_note_kind)kind));
    }
    return doc;
}
