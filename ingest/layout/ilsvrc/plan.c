/* plan.c - ImageNet: class folders, and flat folders whose labels are in tables.
 * Invariant: an image is a sample, in a note, or left to the check of what would be left out; a val without labels is
 * an error unless the options allow it. */
#include <stdlib.h>
#include <string.h>

#include "base/scope.h"
#include "shards/manifest/format.h"
#include "ingest/source/names.h"
#include "ingest/layout/ilsvrc/ilsvrc.h"
#include "ingest/layout/common/class_set.h"

typedef struct place { /* a run of entries of one split */
    const char *name;  /* the split's name in the source */
    size_t name_len;
    mr_ilsvrc_kind kind;
    size_t skip; /* bytes of their paths before a class folder */
    uint32_t begin, end;
    uint32_t split;
} place;

typedef struct build {
    const mr_tree *tree;
    const mr_layout_options *options;
    mr_plan *plan;
    mr_ilsvrc_state *state;
    mr_ilsvrc_places where;
    place *places;
    size_t place_count, place_capacity;
    mr_class_set classes;
    bool labels; /* a table has some */
    mr_ilsvrc_counts counts;
    mr_error *err;
} build;

/* ---- places ------------------------------------------------------------------------------------------------------ */

static bool continues(const place *last, const place *p)
{
    return last->end == p->begin && last->kind == p->kind && last->skip == p->skip && last->name_len == p->name_len &&
           !memcmp(last->name, p->name, p->name_len);
}

static mr_status add_place(build *b, const place *p)
{
    if (b->place_count && continues(&b->places[b->place_count - 1], p)) {
        b->places[b->place_count - 1].end = p->end;
        return MR_OK;
    }
    if (!MR_GROW(b->places, b->place_count, b->place_capacity))
        return mr_fail_memory(b->err, "listing the splits");
    b->places[b->place_count++] = *p;
    return MR_OK;
}

static mr_status find_places(build *b)
{
    static const char *const words[] = {"train", "val", "test"};
    size_t len = strlen(b->where.data);
    mr_child child = {0};
    while (mr_tree_next(b->tree, b->where.data, len ? len - 1 : 0, &child)) {
        place p = {.name = child.name, .name_len = child.name_len, .begin = child.entry, .end = child.end, .skip = len};
        if (child.is_dir && mr_name_is_synset(child.name, child.name_len))
            p.kind = MR_ILSVRC_TRAIN;
        else if (!child.is_dir)
            p.kind = mr_ilsvrc_image_kind(child.name, child.name_len);
        else if (child.name[0] != '.' && mr_ilsvrc_split(b->options, &p.name, &p.name_len, &p.kind))
            p.skip += child.name_len + 1;
        else
            continue;
        if (p.skip == len && p.kind == MR_ILSVRC_OTHER)
            continue;
        if (p.skip == len) {
            p.name = words[p.kind];
            p.name_len = strlen(p.name);
        }
        MR_TRY(add_place(b, &p));
    }
    return MR_OK;
}

/* torchvision unpacks the archives into the folder that holds them: ingest would read both. */
static mr_status check_twice(const build *b)
{
    size_t top = strlen(b->where.data);
    for (size_t i = 0; i < b->place_count; i++)
        for (size_t k = 0; k < b->place_count; k++) {
            const place *loose = &b->places[i], *folder = &b->places[k];
            if (loose->skip == top && folder->skip > top && loose->split == folder->split &&
                loose->split != MR_NO_ENTRY)
                return mr_fail(b->err, MR_BAD_DATA,
                               "split %s occurs twice: in the folder %.*s, and at the top (from an archive, perhaps); "
                               "--exclude '%s%s' keeps only the folder",
                               b->plan->splits[folder->split].name, (int)folder->name_len, folder->name, b->where.data,
                               loose->kind == MR_ILSVRC_TRAIN ? "n[0-9]*" : "ILSVRC2012_*.JPEG");
        }
    return MR_OK;
}

/* Gives each place its split: train, val, test, then others. */
static mr_status open_splits(build *b)
{
    for (mr_ilsvrc_kind kind = MR_ILSVRC_TRAIN; kind <= MR_ILSVRC_OTHER; kind++)
        for (size_t i = 0; i < b->place_count; i++) {
            place *p = &b->places[i];
            if (p->kind != kind)
                continue;
            MR_TRY(mr_plan_split_get(b->plan, b->options, p->name, p->name_len, &p->split, b->err));
            if (p->split == MR_NO_ENTRY)
                mr_plan_leave_out(b->plan, b->tree->source, p->name, p->name_len, p->begin, p->end);
        }
    return check_twice(b);
}

/* ---- classes ----------------------------------------------------------------------------------------------------- */

/* The synset of the class folder that holds the entry, NULL: none; *end: the end of its run of entries. */
static const char *class_folder(const build *b, const place *p, uint32_t entry, uint32_t *end)
{
    size_t len;
    const char *path = mr_tree_path(b->tree, entry, &len);
    if (len <= p->skip + MR_SYNSET_LEN || path[p->skip + MR_SYNSET_LEN] != '/' ||
        !mr_name_is_synset(path + p->skip, MR_SYNSET_LEN))
        return NULL;
    *end = mr_tree_run_end(b->tree, entry, p->skip + MR_SYNSET_LEN + 1);
    if (*end > p->end)
        *end = p->end;
    return path + p->skip;
}

static const mr_ilsvrc_row *row_of(const build *b, uint32_t entry)
{
    size_t len;
    const char *path = mr_tree_path(b->tree, entry, &len);
    return mr_ilsvrc_row_of(b->state, path, len);
}

static bool has_image(const build *b, const place *p, uint32_t begin, uint32_t end)
{
    while (begin < end && !mr_folder_image(b->tree, begin, p->skip))
        begin++;
    return begin < end;
}

static mr_status add_classes(build *b, const place *p)
{
    uint32_t end;
    for (uint32_t e = p->begin; e < p->end; e = end) {
        const char *synset = class_folder(b, p, e, &end);
        if (synset) {
            if (has_image(b, p, e, end))
                MR_TRY(mr_class_set_add(&b->classes, b->plan, synset, MR_SYNSET_LEN, b->err));
            continue;
        }
        end = e + 1;
        const mr_ilsvrc_row *row = mr_folder_image(b->tree, e, p->skip) ? row_of(b, e) : NULL;
        if (row && row->synset)
            MR_TRY(mr_class_set_add(&b->classes, b->plan, row->synset, MR_SYNSET_LEN, b->err));
    }
    return MR_OK;
}

static mr_status list_classes(build *b)
{
    for (size_t i = 0; i < b->place_count; i++)
        if (b->places[i].split != MR_NO_ENTRY)
            MR_TRY(add_classes(b, &b->places[i]));
    mr_plan_classes_sort(b->plan);
    b->counts.labeled = mr_alloc(b->plan->split_count * b->plan->class_count + 1, sizeof *b->counts.labeled);
    b->counts.unlabeled = mr_alloc(b->plan->split_count + 1, sizeof *b->counts.unlabeled);
    return b->counts.labeled && b->counts.unlabeled ? MR_OK : mr_fail_memory(b->err, "numbering the classes");
}

/* ---- samples ----------------------------------------------------------------------------------------------------- */

/* Whether two tables, or the folder and a table, say different things of an image, which is then rejected. */
static bool is_contradicted(const build *b, uint32_t entry, const char *folder, const mr_ilsvrc_row *row)
{
    size_t len;
    const char *path = mr_tree_path(b->tree, entry, &len);
    uint64_t size = mr_source_entry(b->tree->source, entry)->size;
    bool other_class = folder && row && row->synset && memcmp(folder, row->synset, MR_SYNSET_LEN) != 0;
    if (!row || (!row->rivals && !other_class))
        return false;
    b->plan->used[entry] = MR_USE_TAKEN;
    if (other_class)
        mr_note_add(b->plan->notes, MR_NOTE_REJECT, path, len, size, "%s says %.9s, its folder %.9s", row->file,
                    row->synset, folder);
    else if (row->rival)
        mr_note_add(b->plan->notes, MR_NOTE_REJECT, path, len, size, "%s says %.9s, %s says %.9s", row->file,
                    row->synset, row->rivals == row->file ? "another row of it" : row->rivals, row->rival);
    else
        mr_note_add(b->plan->notes, MR_NOTE_REJECT, path, len, size, "%s and %s have different boxes for it", row->file,
                    row->rivals == row->file ? "another row of it" : row->rivals);
    return true;
}

static mr_status add_sample(build *b, const place *p, uint32_t entry, int32_t label, const mr_ilsvrc_row *row)
{
    mr_sample s = {.split = p->split, .entry = entry, .label = label, .flags = label < 0 ? MR_FLAG_UNANNOTATED : 0};
    const mr_ilsvrc_synset *words =
        label < 0 ? NULL : mr_ilsvrc_words(b->state, b->plan->classes[label].name, MR_SYNSET_LEN);
    if (row)
        s.aux = (uint64_t)(row - b->state->rows) + 1;
    if (label >= 0)
        b->counts.labeled[p->split * b->plan->class_count + (size_t)label]++;
    else
        b->counts.unlabeled[p->split]++;
    s.meta_bytes = 32 + (words ? words->words_len : 0) + (row ? 4 * row->boxes_len : 0);
    return mr_plan_add(b->plan, &s, b->err);
}

static mr_status need_labels(const build *b, const place *p)
{
    uint32_t truth = mr_ilsvrc_find(b->tree, &b->where, "ILSVRC2012_validation_ground_truth.txt");
    if (truth != MR_NO_ENTRY)
        return mr_fail(b->err, MR_BAD_DATA,
                       "%s: its numbers are ILSVRC2012_IDs, and no file here says which synsets they stand for (their "
                       "order is not that of a sorted list): add meta.mat of ILSVRC2012_devkit_t12.tar.gz, or "
                       "LOC_val_solution.csv",
                       mr_source_entry(b->tree->source, truth)->path);
    return mr_fail(
        b->err, MR_BAD_DATA,
        "%.*s: its images are in no class folder, and no table has their labels: add "
        "LOC_val_solution.csv, or ILSVRC2012_devkit_t12.tar.gz as another SRC%s; --keep-unlisted includes the "
        "images without labels, --split-map %.*s= leaves the split out",
        (int)p->name_len, p->name, b->where.tiny ? ", or for Tiny ImageNet val/val_annotations.txt" : "",
        (int)p->name_len, p->name);
}

/* An image in no class folder. */
static mr_status add_flat(build *b, const place *p, uint32_t entry)
{
    size_t len;
    const mr_ilsvrc_row *row = row_of(b, entry);
    const char *path = mr_tree_path(b->tree, entry, &len), *slash = memrchr(path, '/', len);
    const char *name = slash ? slash + 1 : path;
    if (is_contradicted(b, entry, NULL, row))
        return MR_OK;
    if (row && row->synset)
        return add_sample(b, p, entry, mr_plan_class_find(b->plan, row->synset, MR_SYNSET_LEN), row);
    if (p->kind == MR_ILSVRC_TEST || mr_ilsvrc_image_kind(name, len - (size_t)(name - path)) == MR_ILSVRC_TEST)
        return add_sample(b, p, entry, -1, NULL);
    if (p->kind == MR_ILSVRC_TRAIN && !b->options->keep_unlisted) /* reported as left out */
        return MR_OK;
    if (!b->labels && !b->options->keep_unlisted)
        return need_labels(b, p);
    return mr_folder_unlisted(b->tree, b->options, b->plan, p->split, entry, "no table has its label", NULL, b->err);
}

static mr_status add_samples(build *b, const place *p)
{
    uint32_t end;
    for (uint32_t e = p->begin; e < p->end;) {
        const char *synset = class_folder(b, p, e, &end);
        int32_t label = synset ? mr_plan_class_find(b->plan, synset, MR_SYNSET_LEN) : -1;
        for (end = synset ? end : e + 1; e < end; e++) {
            if (!mr_folder_image(b->tree, e, p->skip))
                continue;
            if (label >= 0 && is_contradicted(b, e, synset, row_of(b, e)))
                continue;
            if (label >= 0)
                MR_TRY(add_sample(b, p, e, label, row_of(b, e)));
            else if (!synset)
                MR_TRY(add_flat(b, p, e));
        }
    }
    return MR_OK;
}

/* ---- the plan ---------------------------------------------------------------------------------------------------- */

static mr_status plan_all(build *b)
{
    mr_ilsvrc_look(b->tree, b->options, &b->where);
    b->plan->variant = b->where.tiny ? "tiny-imagenet" : "ilsvrc2012";
    b->plan->by_folder = true;
    MR_TRY(mr_ilsvrc_synsets(b->tree, &b->where, b->plan, b->state, b->err));
    MR_TRY(mr_ilsvrc_tables(b->tree, &b->where, b->plan, b->state, b->err));
    for (size_t i = 0; i < b->state->row_count && !b->labels; i++)
        b->labels = b->state->rows[i].synset != NULL;
    MR_TRY(find_places(b));
    if (!b->place_count)
        return mr_fail(b->err, MR_BAD_DATA, "no images of ImageNet: needs " MR_ILSVRC_NEEDS);
    MR_TRY(open_splits(b));
    MR_TRY(list_classes(b));
    for (uint32_t split = 0; split < b->plan->split_count; split++)
        for (size_t i = 0; i < b->place_count; i++)
            if (b->places[i].split == split)
                MR_TRY(add_samples(b, &b->places[i]));
    return mr_ilsvrc_notes(b->tree, &b->where, b->plan, &b->counts, b->err);
}

mr_status mr_ilsvrc_plan(const mr_tree *t, const mr_layout_options *o, mr_plan *plan, mr_error *err)
{
    mr_ilsvrc_state *st = mr_alloc(1, sizeof *st);
    build b = {.tree = t, .options = o, .plan = plan, .state = st, .err = err};
    if (!st)
        return mr_fail_memory(err, "reading ImageNet");
    plan->state = st;
    mr_status status = plan_all(&b);
    mr_class_set_free(&b.classes);
    free(b.places);
    free(b.counts.labeled);
    free(b.counts.unlabeled);
    return status;
}
