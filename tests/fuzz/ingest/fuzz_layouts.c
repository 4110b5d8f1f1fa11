/* fuzz_layouts.c - a whole tree of files (trees.h): bids, plan and the meta of every sample, for each layout.
 * Promises: samples name files, splits and classes that are there; a meta is JSON and hides none of millrace's own
 * members. */
#include "shards/manifest/format.h"
#include "shards/format/meta.h"
#include "ingest/source/expand.h"
#include "tests/fuzz/trees.h"

/* In a picture of some size: what is written can be read back. */
static mr_status add_objects(const mr_choice *c, const mr_plan *plan, const mr_sample *s, mr_buf *meta, mr_error *err)
{
    mr_objects objects = {0};
    const mr_stored picture = {640, 480, 6};
    mr_status status = c->layout->objects(&c->tree, plan, s, &picture, &objects, err);
    mr_objects_settle(&objects, &picture);
    if (status == MR_OK && objects.known)
        mr_objects_write(&objects, plan->classes, plan->class_count, meta);
    mr_objects_free(&objects);
    return status;
}

static void check_objects(const mr_buf *meta)
{
    mr_objects objects = {0};
    mr_object_tally tally = {0};
    mr_error err;
    FUZZ_MUST(mr_objects_parse(meta->data, meta->len, &objects, &err) == MR_OK);
    FUZZ_MUST(mr_objects_count(&objects, &(mr_stored){640, 480, 1}, 0, &tally));
    mr_objects_free(&objects);
}

static void check_masks(const mr_choice *c, const mr_plan *plan, const mr_sample *s)
{
    mr_mask masks[MR_MASKS_MAX];
    size_t count = c->layout->masks(&c->tree, plan, s, masks);
    FUZZ_MUST(count <= MR_MASKS_MAX);
    for (size_t i = 0; i < count; i++) {
        FUZZ_MUST(masks[i].entry >= c->tree.begin && masks[i].entry < c->tree.end && plan->used[masks[i].entry]);
        FUZZ_MUST(i == 0 || strcmp(masks[i].name, masks[i - 1].name) != 0);
    }
}

static void check_sample(const mr_choice *c, const mr_plan *plan, const mr_sample *s, mr_buf *meta)
{
    const mr_entry *e = mr_source_entry(c->tree.source, s->entry);
    mr_meta_facts facts = {.label = s->flags & MR_FLAG_MULTI_LABEL ? -1 : s->label}, read;
    mr_error err;
    size_t len;
    FUZZ_MUST(s->entry >= c->tree.begin && s->entry < c->tree.end && plan->used[s->entry]);
    FUZZ_MUST(s->split < plan->split_count && mr_split_name_ok(plan->splits[s->split].name));
    FUZZ_MUST(s->label >= -1 && (s->label < 0 || (size_t)s->label < plan->class_count));
    if (c->layout->masks)
        check_masks(c, plan, s);
    FUZZ_MUST(s->group_at <= e->path_len && s->group_len <= e->path_len - s->group_at);
    const char *path = mr_tree_path(&c->tree, s->entry, &len);
    mr_buf_clear(meta);
    mr_meta_begin(meta, path, len, &facts, facts.label >= 0 ? plan->classes[facts.label].name : NULL);
    mr_status status = c->layout->meta ? c->layout->meta(&c->tree, plan, s, meta, &err) : MR_OK;
    if (status == MR_OK && c->layout->objects)
        status = add_objects(c, plan, s, meta, &err);
    if (status != MR_OK)
        return fuzz_refused(status, &err);
    mr_buf_add(meta, "}", 1);
    FUZZ_MUST(mr_meta_scan(meta->data, meta->len, &read, NULL, &err) == MR_OK);
    if (c->layout->objects)
        check_objects(meta);
    FUZZ_MUST(read.label == facts.label && read.multi_label == ((s->flags & MR_FLAG_MULTI_LABEL) != 0));
}

static mr_status open_files(mr_source *s, mr_source *opened, mr_choice *c, const mr_layout_options *o, mr_plan *plan,
                            mr_error *err)
{
    mr_layout_files files = {0};
    mr_status status = c->layout->open(&c->tree, o, plan, &files, err);
    for (size_t i = 0; status == MR_OK && i < files.count; i++)
        FUZZ_MUST(files.entries[i] < mr_source_count(s));
    FUZZ_MUST(status != MR_OK || files.argv[0]);
    free(files.entries);
    for (size_t i = 0; i < MR_COUNT(files.owned); i++)
        free(files.owned[i]);
    if (status == MR_OK)
        status = mr_source_join(s, &opened, 1, &(mr_source_options){0}, plan->notes, err);
    c->tree = mr_tree_at(s, c->tree.root, c->tree.root_len);
    return status;
}

static void try_layout(mr_source *s, mr_source *opened, const char *forced, const mr_layout_options *o)
{
    mr_choice choice = {0};
    mr_notes notes = {0};
    mr_error err;
    mr_buf meta = {0};
    mr_status status = mr_layout_choose(s, forced, &(mr_layout_options){0}, &choice, &err);
    if (status != MR_OK)
        return fuzz_refused(status, &err);
    mr_plan plan = {.notes = &notes};
    if (choice.layout->open)
        status = open_files(s, opened, &choice, o, &plan, &err);
    plan.used = mr_alloc(mr_source_count(s), 1);
    if (status == MR_OK)
        status = choice.layout->plan(&choice.tree, o, &plan, &err);
    if (status != MR_OK)
        fuzz_refused(status, &err);
    for (size_t i = 0; status == MR_OK && i < plan.sample_count; i++)
        check_sample(&choice, &plan, &plan.samples[i], &meta);
    mr_plan_free(choice.layout, &plan);
    mr_notes_free(&notes);
    mr_buf_free(&meta);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_tree tree;
    fuzz_tree_make(data, size, &tree);
    setenv("MILLRACE_PARQUET_READER", "none", 1); /* it is not run */
    try_layout(tree.files, tree.nothing, NULL, &tree.options);
    for (const mr_layout *const *l = mr_layouts; *l; l++)
        try_layout(tree.files, (*l)->open ? tree.opened : NULL, (*l)->name, &tree.options);
    fuzz_tree_free(&tree);
    return 0;
}
