/* synsets.c - the words of synsets, and the numbers that the ground truth of ILSVRC2012 uses for them.
 * Source: LOC_synset_mapping.txt of Kaggle, synset_words.txt of Caffe, words.txt of Tiny ImageNet, map_clsloc.txt of
 * later development kits, meta.mat of ILSVRC2012_devkit_t12 (mat.h).
 *
 *      n01440764 tench, Tinca tinca            sorted by synset: a line's number is not its ILSVRC2012_ID
 *      n02119789 1 kit_fox                     states it
 *
 * Invariant: an id comes from a file that states it, never from the order of a list, and all files agree on it. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/scope.h"
#include "ingest/tables/lines.h"
#include "ingest/source/names.h"
#include "ingest/layout/ilsvrc/ilsvrc.h"
#include "ingest/layout/ilsvrc/mat.h"

typedef struct stated { /* an id that a line states; 0: it states none */
    size_t id;
    const char *synset; /* MR_SYNSET_LEN bytes */
    const char *file;
    uint64_t line;
} stated;

typedef struct listed {
    stated *ids; /* ids from all files that state them */
    size_t count, capacity;
    size_t first; /* the first id of the current file */
} listed;

static mr_status add_synset(mr_ilsvrc_state *st, const char *name, const char *words, size_t len, mr_error *err)
{
    if (!MR_GROW(st->synsets, st->synset_count, st->synset_capacity))
        return mr_fail_memory(err, "reading the synsets");
    st->synsets[st->synset_count] = (mr_ilsvrc_synset){name, words, len, st->synset_count};
    st->synset_count++;
    return MR_OK;
}

/* The id between a synset and its words; 0: none. */
static size_t take_id(const char **words, size_t *len)
{
    size_t digits = strspn(*words, "0123456789"), id = 0;
    if (!digits || digits > 6 || (digits < *len && (*words)[digits] != ' ' && (*words)[digits] != '\t'))
        return 0;
    for (size_t i = 0; i < digits; i++)
        id = id * 10 + (size_t)((*words)[i] - '0');
    digits += strspn(*words + digits, " \t");
    *words += digits;
    *len -= digits;
    return id <= MR_ILSVRC_IDS_MAX ? id : 0;
}

static mr_status take_line(const char *name, const mr_lines *l, mr_ilsvrc_state *st, listed *f, mr_error *err)
{
    const char *words = l->line + MR_SYNSET_LEN;
    if (l->len < MR_SYNSET_LEN || !mr_name_is_synset(l->line, MR_SYNSET_LEN) ||
        (l->len > MR_SYNSET_LEN && *words != ' ' && *words != '\t'))
        return mr_fail(err, MR_BAD_DATA, "%s: line %" PRIu64 " does not begin with a synset (n and 8 digits)", name,
                       l->number);
    words += l->len > MR_SYNSET_LEN ? strspn(words, " \t") : 0;
    size_t len = l->len - (size_t)(words - l->line), id = take_id(&words, &len);
    if (!MR_GROW(f->ids, f->count, f->capacity))
        return mr_fail_memory(err, "reading the synsets");
    f->ids[f->count++] = (stated){id, l->line, name, l->number};
    return add_synset(st, l->line, words, len, err);
}

static int by_id_and_line(const void *a, const void *b)
{
    const stated *x = a, *y = b;
    int order = x->id != y->id ? (x->id > y->id ? 1 : -1) : memcmp(x->synset, y->synset, MR_SYNSET_LEN);
    return order ? order : (x->line > y->line) - (x->line < y->line);
}

static int by_synset_and_id(const void *a, const void *b)
{
    const stated *x = a, *y = b;
    int order = memcmp(x->synset, y->synset, MR_SYNSET_LEN);
    return order ? order : (x->id > y->id) - (x->id < y->id);
}

/* In a file whose words may begin with a number, ids count only if every line has a different one. */
static void end_file(listed *f, bool sure)
{
    stated *ids = f->ids + f->first;
    size_t count = f->count - f->first;
    bool all = count > 0;
    for (size_t i = 0; i < count; i++)
        all = all && ids[i].id;
    if (count)
        qsort(ids, count, sizeof *ids, by_id_and_line);
    for (size_t i = 1; i < count && !sure; i++)
        all = all && ids[i].id != ids[i - 1].id;
    f->count = all ? f->count : f->first;
    f->first = f->count;
}

static mr_status contradict(const stated *x, const stated *y, mr_error *err)
{
    const stated *first = strcmp(x->file, y->file) <= 0 ? x : y, *second = first == x ? y : x;
    if (!strcmp(x->file, y->file))
        return mr_fail(err, MR_BAD_DATA, "%s: ILSVRC2012_ID %zu is of %.9s, and %zu of %.9s: one of them is wrong",
                       x->file, x->id, x->synset, y->id, y->synset);
    return mr_fail(err, MR_BAD_DATA,
                   "%s and %s contradict each other: ILSVRC2012_ID %zu is of %.9s in the first, %zu of %.9s in the "
                   "second; leave one out with --exclude",
                   first->file, second->file, first->id, first->synset, second->id, second->synset);
}

/* An id is of one synset, and a synset has one id, in all files alike. */
static mr_status take_ids(const listed *f, mr_ilsvrc_state *st, mr_error *err)
{
    if (!f->count)
        return MR_OK;
    qsort(f->ids, f->count, sizeof *f->ids, by_synset_and_id);
    for (size_t i = 1; i < f->count; i++)
        if (!memcmp(f->ids[i - 1].synset, f->ids[i].synset, MR_SYNSET_LEN) && f->ids[i - 1].id != f->ids[i].id)
            return contradict(&f->ids[i - 1], &f->ids[i], err);
    st->by_id = mr_alloc(MR_ILSVRC_IDS_MAX + 1, sizeof *st->by_id);
    if (!st->by_id)
        return mr_fail_memory(err, "reading the synsets");
    st->id_count = MR_ILSVRC_IDS_MAX + 1;
    qsort(f->ids, f->count, sizeof *f->ids, by_id_and_line);
    for (size_t i = 0; i < f->count; i++) {
        if (i && f->ids[i - 1].id == f->ids[i].id && memcmp(f->ids[i - 1].synset, f->ids[i].synset, MR_SYNSET_LEN) != 0)
            return contradict(&f->ids[i - 1], &f->ids[i], err);
        st->by_id[f->ids[i].id] = f->ids[i].synset;
    }
    return MR_OK;
}

/* meta.mat, as lines of the other files. */
static mr_status read_mat(const mr_tree *t, uint32_t entry, mr_ilsvrc_state *st, mr_buf *lent, mr_error *err)
{
    const mr_entry *e = mr_source_entry(t->source, entry);
    MR_AUTO(mr_buf_free) mr_buf bytes = {0};
    MR_AUTO(mr_buf_free) mr_buf text = {0};
    mr_error why = {0};
    mr_status status = MR_BAD_DATA;
    if (e->size > MR_MAT_MAX)
        mr_fail(&why, status, "longer than 16 MiB, the limit");
    else
        MR_TRY(mr_source_read(t->source, entry, &bytes, err));
    if (e->size <= MR_MAT_MAX)
        status = mr_mat_synsets(mr_buf_text(&bytes), bytes.len, &st->mat_budget, &text, &why);
    if (status == MR_OK)
        status = mr_ilsvrc_keep(st, &text, &why);
    if (status != MR_OK)
        return mr_source_dispensable(t->source, entry, "ingests without it",
                                     mr_fail(err, status, "%s: %s", e->path, why.text), err);
    *lent = st->texts[st->text_count - 1];
    return MR_OK;
}

static mr_status read_lines(const mr_tree *t, uint32_t entry, mr_ilsvrc_state *st, listed *f, mr_error *err)
{
    mr_buf text = {0};
    const mr_entry *e = mr_source_entry(t->source, entry);
    bool mat = mr_name_ends(e->path, e->path_len, ".mat");
    MR_TRY(mat ? read_mat(t, entry, st, &text, err) : mr_ilsvrc_text(t, entry, st, &text, err));
    mr_lines l = mr_lines_of(text.data, text.len);
    while (mr_lines_next(&l))
        MR_TRY(take_line(e->path, &l, st, f, err));
    end_file(f, mat || mr_name_ends(e->path, e->path_len, "map_clsloc.txt"));
    return MR_OK;
}

static int by_name(const void *a, const void *b)
{
    const mr_ilsvrc_synset *x = a, *y = b;
    int order = memcmp(x->name, y->name, MR_SYNSET_LEN);
    return order ? order : (x->order > y->order) - (x->order < y->order);
}

static void sort(mr_ilsvrc_state *st)
{
    size_t kept = 0;
    if (st->synset_count)
        qsort(st->synsets, st->synset_count, sizeof *st->synsets, by_name);
    for (size_t i = 0; i < st->synset_count; i++)
        if (!kept || memcmp(st->synsets[kept - 1].name, st->synsets[i].name, MR_SYNSET_LEN) != 0)
            st->synsets[kept++] = st->synsets[i];
    st->synset_count = kept;
}

static mr_status read_all(const mr_tree *t, const mr_ilsvrc_places *p, mr_plan *plan, mr_ilsvrc_state *st, listed *f,
                          mr_error *err)
{
    static const struct {
        const char *name;
        bool ids; /* states them: then each such file of the tree is read, and compared */
    } files[] = {{"meta.mat", true},
                 {"LOC_synset_mapping.txt", false},
                 {"synset_words.txt", false},
                 {"map_clsloc.txt", true},
                 {"words.txt", false}};
    st->mat_budget = MR_MAT_UNPACKED_MAX;
    for (size_t i = 0; i < MR_COUNT(files); i++) {
        uint32_t entry = mr_ilsvrc_find(t, p, files[i].name);
        while (entry != MR_NO_ENTRY) {
            plan->used[entry] = 1;
            MR_TRY(read_lines(t, entry, st, f, err));
            entry = files[i].ids ? mr_ilsvrc_next(t, p, files[i].name, entry) : MR_NO_ENTRY;
        }
    }
    return take_ids(f, st, err);
}

mr_status mr_ilsvrc_synsets(const mr_tree *t, const mr_ilsvrc_places *p, mr_plan *plan, mr_ilsvrc_state *st,
                            mr_error *err)
{
    listed f = {0};
    mr_status status = read_all(t, p, plan, st, &f, err);
    free(f.ids);
    sort(st);
    return status;
}

const mr_ilsvrc_synset *mr_ilsvrc_words(const mr_ilsvrc_state *st, const char *synset, size_t len)
{
    size_t low = 0, high = st->synset_count;
    while (len == MR_SYNSET_LEN && low < high) {
        size_t mid = low + (high - low) / 2;
        int order = memcmp(synset, st->synsets[mid].name, MR_SYNSET_LEN);
        if (!order)
            return &st->synsets[mid];
        if (order < 0)
            high = mid;
        else
            low = mid + 1;
    }
    return NULL;
}
