/* synsets.c - the words of synsets, and the numbers that the ground truth of ILSVRC2012 uses for them.
 * Source: LOC_synset_mapping.txt of Kaggle, synset_words.txt of Caffe, words.txt of Tiny ImageNet, map_clsloc.txt of
 * later development kits, meta.mat of ILSVRC2012_devkit_t12 (mat.h).
 *
 *      n01440764 tench, Tinca tinca            sorted by synset: a line's number is not its ILSVRC2012_ID
 *      n02119789 1 kit_fox                     states it
 *
 * Invariant: an id comes from a file that states it, never from the order of a list. */
#include <stdlib.h>
#include <string.h>

#include "base/scope.h"
#include "ilsvrc/ilsvrc.h"
#include "ilsvrc/mat.h"

typedef struct listed { /* a file's lines */
    size_t first;       /* its first synset in the state */
    size_t with_id;     /* lines that state one */
    size_t *ids;
    size_t count, room;
} listed;

static mr_status add_synset(mr_ilsvrc_state *st, const char *name, const char *words, size_t len, mr_error *err)
{
    if (!MR_GROW(st->synsets, st->synset_count, st->synset_room))
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

static mr_status take_line(const char *name, const mr_ilsvrc_lines *l, mr_ilsvrc_state *st, listed *f, mr_error *err)
{
    const char *words = l->line + MR_SYNSET_LEN;
    if (l->len < MR_SYNSET_LEN || !mr_name_is_synset(l->line, MR_SYNSET_LEN) ||
        (l->len > MR_SYNSET_LEN && *words != ' ' && *words != '\t'))
        return mr_fail(err, MR_BAD_DATA, "%s: line %zu does not begin with a synset (n and 8 digits)", name, l->number);
    words += l->len > MR_SYNSET_LEN ? strspn(words, " \t") : 0;
    size_t len = l->len - (size_t)(words - l->line), id = take_id(&words, &len);
    if (!MR_GROW(f->ids, f->count, f->room))
        return mr_fail_memory(err, "reading the synsets");
    f->ids[f->count++] = id;
    f->with_id += id > 0;
    return add_synset(st, l->line, words, len, err);
}

/* Ids count only if every line has one of its own. */
static mr_status take_ids(const listed *f, mr_ilsvrc_state *st, mr_error *err)
{
    if (st->by_id || !f->count || f->with_id < f->count)
        return MR_OK;
    const char **by_id = mr_alloc(MR_ILSVRC_IDS_MAX + 1, sizeof *by_id);
    bool repeated = false;
    if (!by_id)
        return mr_fail_memory(err, "reading the synsets");
    for (size_t i = 0; i < f->count; i++) {
        repeated = repeated || by_id[f->ids[i]];
        by_id[f->ids[i]] = st->synsets[f->first + i].name;
    }
    if (repeated) {
        free(by_id);
        return MR_OK;
    }
    st->by_id = by_id;
    st->id_count = MR_ILSVRC_IDS_MAX + 1;
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
        mr_fail(&why, status, "longer than the 16 MiB that it may have");
    else
        MR_TRY(mr_source_read(t->source, entry, &bytes, err));
    if (e->size <= MR_MAT_MAX)
        status = mr_mat_synsets(mr_buf_text(&bytes), bytes.len, &text, &why);
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
    mr_ilsvrc_lines l = {.at = (const char *)text.data, .end = (const char *)text.data + text.len};
    while (mr_ilsvrc_line(&l))
        MR_TRY(take_line(e->path, &l, st, f, err));
    return take_ids(f, st, err);
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

mr_status mr_ilsvrc_synsets(const mr_tree *t, const mr_ilsvrc_places *p, mr_plan *plan, mr_ilsvrc_state *st,
                            mr_error *err)
{
    static const char *const files[] = {"meta.mat", "LOC_synset_mapping.txt", "synset_words.txt", "map_clsloc.txt",
                                        "words.txt"};
    for (size_t i = 0; i < MR_COUNT(files); i++) {
        uint32_t entry = mr_ilsvrc_find(t, p, files[i]);
        listed f = {.first = st->synset_count};
        if (entry == MR_NO_ENTRY)
            continue;
        plan->used[entry] = 1;
        mr_status status = read_lines(t, entry, st, &f, err);
        free(f.ids);
        MR_TRY(status);
    }
    sort(st);
    return MR_OK;
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
