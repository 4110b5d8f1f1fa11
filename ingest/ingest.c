/* ingest.c - from source to dataset, step by step, on every rank.
 * Invariant: each step ends with an agreement of all ranks, so a failure anywhere ends all of them together. */
#include "ingest/ingest.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files/path.h"
#include "base/system/pool.h"
#include "base/scope.h"
#include "base/text.h"
#include "ingest/layout/table/split_lists.h"
#include "ingest/leaks/leaks.h"
#include "ingest/source/sight.h"

static bool leader(const mr_ingest *in)
{
    return mr_ranks_rank(in->ranks) == 0;
}

/* Lists and unpacks the source; fills `listing` for other ranks, unless it is NULL. */
static mr_status list_source(mr_ingest *in, mr_stage *stage, mr_buf *listing, mr_error *err)
{
    const mr_ingest_options *o = in->options;
    MR_AUTO(mr_scope_close) int spool = -1;
    if (stage)
        MR_TRY(mr_stage_spool(stage, &spool, err));
    if (stage && !listing) /* other ranks open it by its name */
        mr_stage_spool_unlink(stage);
    MR_TRY(mr_source_open(o->sources, o->source_count, spool, &o->for_source, &in->notes, &in->source, err));
    return listing ? mr_source_pack(in->source, listing, err) : MR_OK;
}

/* The source takes over the spool's descriptor. */
static mr_status adopt_listing(mr_ingest *in, mr_stage *stage, const mr_buf *listing, mr_error *err)
{
    int spool = -1;
    MR_TRY(mr_stage_spool(stage, &spool, err));
    return mr_source_unpack(listing, spool, &in->source, err);
}

/* Rank 0 lists and unpacks; the others open the files in its listing. */
static mr_status open_on_all(mr_ingest *in, mr_stage *stage, mr_error *err)
{
    MR_AUTO(mr_buf_free) mr_buf listing = {0};
    bool alone = mr_ranks_world(in->ranks) == 1;
    MR_TRY(mr_ranks_agree(in->ranks, leader(in) ? list_source(in, stage, alone ? NULL : &listing, err) : MR_OK, err));
    if (alone)
        return MR_OK;
    MR_TRY(mr_ranks_share(in->ranks, &listing, err));
    MR_TRY(mr_ranks_agree(in->ranks, leader(in) ? MR_OK : adopt_listing(in, stage, &listing, err), err));
    return mr_sight_agree(in->source, in->options->sources, in->options->source_count, in->ranks, err);
}

static mr_status open_source(mr_ingest *in, mr_stage *stage, mr_error *err)
{
    mr_status status = open_on_all(in, stage, err);
    if (stage && leader(in))
        mr_stage_spool_unlink(stage);
    return status;
}

/* The listing's notes have full paths; from here on paths start at the layout's root. */
static mr_status shorten_notes(mr_ingest *in, mr_error *err)
{
    MR_AUTO(mr_buf_free) mr_buf root = {0};
    mr_text_escape(&root, in->choice.tree.root, in->choice.tree.root_len);
    for (size_t i = 0; i < in->notes.count && root.len && !root.failed; i++) {
        mr_note *n = &in->notes.items[i];
        if (n->kind != MR_NOTE_BAD_NAME && n->kind != MR_NOTE_INFO &&
            strncmp(n->path, (const char *)root.data, root.len) == 0)
            memmove(n->path, n->path + root.len, strlen(n->path + root.len) + 1);
    }
    return mr_buf_status(&root, err, "planning");
}

static mr_status choose_layout(mr_ingest *in, mr_error *err)
{
    const mr_ingest_options *o = in->options;
    mr_status status = mr_layout_choose(in->source, o->layout, &o->for_layout, &in->choice, err);
    /* What a layout could not read may have been what it looked for. */
    if (status != MR_SYSTEM && mr_source_check(in->source, err) != MR_OK)
        return MR_BAD_DATA;
    if (status == MR_BAD_DATA && err)
        return mr_fail(err, status, "%s%s: %s", o->sources[0], o->source_count > 1 ? " and the other sources" : "",
                       err->text);
    MR_TRY(status);
    in->plan.notes = &in->notes;
    return mr_layout_check(in->choice.layout, &o->for_layout, err);
}

static mr_status make_plan(mr_ingest *in, mr_error *err)
{
    const mr_ingest_options *o = in->options;
    in->plan.used = mr_alloc(mr_source_count(in->source), 1);
    if (!in->plan.used)
        return mr_fail_memory(err, "planning");
    MR_TRY(shorten_notes(in, err));
    size_t notes = in->notes.count;
    MR_TRY(in->choice.layout->plan(&in->choice.tree, &o->for_layout, &in->plan, err));
    MR_TRY(mr_split_lists_apply(&in->choice.tree, &o->for_layout, &in->plan, err));
    MR_TRY(mr_source_check(in->source, err));
    MR_TRY(mr_classes_check(in->plan.classes, in->plan.class_count, o->sources[0], err));
    MR_TRY(mr_plan_review(&in->choice.tree, &in->plan, &o->for_layout, err));
    MR_TRY(mr_check_links(in, err));
    mr_note_near_names(in);
    MR_TRY(mr_note_class_order(in, err));
    mr_status status = mr_ledger_settle(in, notes, err);
    in->rejects_listed = mr_rejects(in);
    MR_TRY(in->plan.sample_count ? status : MR_OK);
    MR_TRY(mr_plan_check(&in->plan, &o->for_layout, in->choice.layout, o->sources[0], err));
    MR_TRY(mr_divide_check(in, err));
    return mr_check_metas(in, err);
}

static mr_status check_rejects(const mr_ingest *in, mr_error *err)
{
    const mr_ingest_options *o = in->options;
    uint64_t rejects = in->rejects, files = in->file_count + in->rejects_listed;
    char limit[64], rejected[32], of[32];
    bool too_many;
    if (o->max_rejects_percent >= 0) {
        too_many = (double)rejects * 100 > o->max_rejects_percent * (double)files;
        snprintf(limit, sizeof limit, "%g %%", o->max_rejects_percent);
    } else {
        too_many = rejects > o->max_rejects;
        snprintf(limit, sizeof limit, "%llu", (unsigned long long)o->max_rejects);
    }
    if (too_many)
        return mr_fail(err, MR_BAD_DATA,
                       "%s of %s images are rejected, more than --max-rejects %s allows; nothing was written",
                       mr_text_count(rejects, rejected), mr_text_count(files, of), limit);
    if (in->order_count == 0)
        return mr_fail(err, MR_BAD_DATA, "all %s images are rejected; nothing was written", mr_text_count(files, of));
    return MR_OK;
}

static mr_status check_leaks(const mr_ingest *in, mr_error *err)
{
    bool alike = in->options->fail_on_leak == MR_LEAK_ALIKE;
    uint64_t leaks = alike ? in->leaks : in->equal_leaks;
    if (in->options->fail_on_leak == MR_LEAK_NONE || leaks == 0)
        return MR_OK;
    return mr_fail(err, MR_BAD_DATA, "%llu leak%s between splits%s, and --fail-on-leak%s is given; nothing was written",
                   (unsigned long long)leaks, leaks == 1 ? "" : "s", alike ? "" : " by equal bytes",
                   alike ? "=alike" : "");
}

typedef struct pass {
    mr_ingest *in;
    const mr_stage *stage;
    uint8_t *resumed; /* one per shard */
} pass;

static mr_status build_one(void *ctx, size_t number, unsigned worker, mr_error *err)
{
    pass *p = ctx;
    bool resumed = false;
    (void)worker;
    if (number % mr_ranks_world(p->in->ranks) != mr_ranks_rank(p->in->ranks))
        return MR_OK;
    mr_status status = mr_build_shard(p->in, p->stage, number, &resumed, err);
    p->resumed[number] = resumed;
    return status;
}

/* Every rank's shards, joined on all. */
static mr_status exchange_shards(mr_ingest *in, uint8_t *resumed, mr_error *err)
{
    unsigned world = mr_ranks_world(in->ranks), rank = mr_ranks_rank(in->ranks);
    MR_AUTO(mr_buf_free) mr_buf mine = {0};
    MR_AUTO(mr_buf_free) mr_buf all = {0};
    if (world == 1)
        return MR_OK;
    for (size_t i = rank; i < in->cut_count; i += world) {
        mr_buf_add(&mine, &in->shards[i], sizeof in->shards[i]);
        mr_buf_add(&mine, &in->tallies[i], sizeof in->tallies[i]);
        mr_buf_add(&mine, &resumed[i], 1);
    }
    MR_TRY(mr_ranks_agree(in->ranks, mr_buf_status(&mine, err, "joining shards"), err));
    MR_TRY(mr_ranks_gather(in->ranks, &mine, &all, NULL, err));
    if (all.len != in->cut_count * (sizeof in->shards[0] + sizeof in->tallies[0] + 1))
        return mr_fail(err, MR_SYSTEM, MR_RANKS_DIFFER("planned different shards"));
    size_t at = 0;
    for (unsigned r = 0; r < world; r++) {
        for (size_t i = r; i < in->cut_count; i += world) {
            memcpy(&in->shards[i], all.data + at, sizeof in->shards[i]);
            at += sizeof in->shards[i];
            memcpy(&in->tallies[i], all.data + at, sizeof in->tallies[i]);
            at += sizeof in->tallies[i];
            resumed[i] = all.data[at++];
        }
    }
    return MR_OK;
}

static mr_status build_all(mr_ingest *in, const mr_stage *stage, mr_error *err)
{
    MR_AUTO(mr_scope_free) uint8_t *resumed = mr_alloc(in->cut_count, 1);
    pass p = {.in = in, .stage = stage, .resumed = resumed};
    if (!resumed)
        return mr_ranks_agree(in->ranks, mr_fail_memory(err, "building shards"), err);
    in->progress = mr_progress_begin("writing", in->order_count / mr_ranks_world(in->ranks), mr_ingest_progress(in));
    mr_status status = mr_pool_run(in->cut_count, in->options->jobs, build_one, &p, err);
    mr_progress_end(in->progress);
    in->progress = NULL;
    MR_TRY(mr_ranks_agree(in->ranks, status, err));
    MR_TRY(exchange_shards(in, resumed, err));
    for (size_t i = 0; i < in->cut_count; i++)
        in->resumed += resumed[i];
    mr_ingest_note_objects(in);
    return MR_OK;
}

/* Everything before the first shard is written; may fail on some ranks only. */
static mr_status plan_dataset(mr_ingest *in, mr_stage *stage, mr_error *err)
{
    MR_TRY(open_source(in, stage, err));
    MR_TRY(mr_ranks_agree(in->ranks, choose_layout(in, err), err));
    if (in->choice.layout->open)
        MR_TRY(mr_open_files(in, stage, err));
    MR_TRY(mr_ranks_agree(in->ranks, make_plan(in, err), err));
    MR_TRY(mr_examine(in, err));
    MR_TRY(mr_divide(in, err));
    MR_TRY(mr_find_leaks(in, err));
    MR_TRY(mr_plan_shards(in, err));
    if (in->notes.failed)
        return mr_fail_memory(err, "writing the report");
    MR_TRY(check_rejects(in, err));
    MR_TRY(mr_check_splits(in, err));
    return check_leaks(in, err);
}

/* Removes what an earlier run left in the stage and this one does not use. */
static mr_status sweep_stage(const mr_ingest *in, mr_stage *stage, mr_error *err)
{
    const char **shards = mr_alloc(in->cut_count, sizeof *shards);
    if (!shards)
        return mr_fail_memory(err, mr_stage_path(stage));
    for (size_t i = 0; i < in->cut_count; i++)
        shards[i] = in->cuts[i].name;
    mr_names_sort(shards, in->cut_count);
    mr_status status = mr_stage_sweep(stage, shards, in->cut_count, err);
    free(shards);
    return status;
}

/* May fail on some ranks only. */
static mr_status write_dataset(mr_ingest *in, mr_stage *stage, mr_error *err)
{
    bool first = leader(in);
    MR_TRY(mr_ranks_agree(in->ranks, first ? sweep_stage(in, stage, err) : MR_OK, err));
    MR_TRY(build_all(in, stage, err));
    if (in->options->seek)
        MR_TRY(mr_build_seeks(in, stage, err));
    return first ? mr_publish(in, stage, err) : MR_OK;
}

static mr_status run_steps(mr_ingest *in, mr_stage *stage, mr_error *err)
{
    MR_TRY(mr_ranks_agree(in->ranks, plan_dataset(in, stage, err), err));
    return in->options->dry_run ? MR_OK : mr_ranks_agree(in->ranks, write_dataset(in, stage, err), err);
}

/* Whether there is a dataset that cannot be opened because its format is newer. */
static bool is_newer_dataset(const char *path)
{
    MR_AUTO(mr_scope_close) int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return dir >= 0 && mr_manifest_is_there(dir);
}

/* A dataset inside its source would be ingested as a part of it the next time. */
static mr_status check_paths(const mr_ingest_options *o, mr_error *err)
{
    for (size_t i = 0; i < o->source_count; i++) {
        const char *source = o->sources[i];
        mr_manifest *dataset = NULL;
        mr_error why;
        mr_status status = mr_manifest_open(source, &dataset, NULL, &why);
        mr_manifest_free(dataset);
        if (status == MR_MISUSE && is_newer_dataset(source))
            return mr_fail(err, status, "%s", why.text);
        if (status == MR_OK)
            return mr_fail(err, MR_MISUSE,
                           "%s: is already a millrace dataset; `millrace inspect` shows what is in it, `millrace "
                           "export` writes its files again",
                           source);
        if (o->target && mr_path_inside(o->target, source))
            return mr_fail(err, MR_MISUSE, "%s: is inside the source %s; choose a DATASET outside it", o->target,
                           source);
    }
    return MR_OK;
}

/* Rank 0 makes the folder that the others open. */
static mr_status open_stage(const mr_ingest *in, mr_stage **stage, mr_error *err)
{
    const mr_ingest_options *o = in->options;
    bool first = leader(in);
    MR_TRY(mr_ranks_agree(in->ranks, first ? mr_stage_open(o->target, o->force, in->ranks, stage, err) : MR_OK, err));
    MR_TRY(mr_stage_seen(*stage, o->target, in->ranks, err));
    return mr_ranks_agree(in->ranks, first ? MR_OK : mr_stage_open(o->target, o->force, in->ranks, stage, err), err);
}

mr_status mr_ingest_run(const mr_ingest_options *o, mr_ranks *ranks, mr_ingest *in, mr_error *err)
{
    double started = mr_seconds();
    mr_stage *stage = NULL;
    *in = (mr_ingest){.options = o, .ranks = ranks};
    mr_status status = mr_ranks_agree(ranks, leader(in) ? check_paths(o, err) : MR_OK, err);
    if (status == MR_OK && !o->dry_run)
        status = open_stage(in, &stage, err);
    if (status == MR_OK)
        status = run_steps(in, stage, err);
    mr_stage_close(stage);
    in->seconds = mr_seconds() - started;
    return status;
}
