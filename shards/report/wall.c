/* wall.c - which samples a page shows: a few of each class, chosen at random.
 * Invariant: the choice is a function of the dataset and the seed. */
#include "shards/report/wall.h"

#include <stdlib.h>

#include "base/random.h"
#include "base/scope.h"
#include "shards/format/objects.h"
#include "shards/report/html.h"

typedef struct pick {
    size_t class; /* m->class_count: none */
    uint64_t sample, order;
} pick;

/* The class of a sample; without a label of its own, that of its first object. */
static mr_status class_of(const mr_report_facts *f, uint64_t sample, mr_sample_view *view, mr_objects *objects,
                          size_t *class, mr_error *err)
{
    uint64_t number;
    const mr_split *split = mr_report_sample(f->m, sample, &number);
    MR_TRY(mr_dataset_read_meta(f->ds, split->name, number, view, err));
    int32_t label = view->label;
    if (label < 0) {
        MR_TRY(mr_objects_parse(view->meta, view->meta_len, objects, err));
        label = objects->count ? objects->items[0].label : -1;
    }
    *class = label < 0 || (size_t)label >= f->m->class_count ? f->m->class_count : (size_t)label;
    return MR_OK;
}

static int by_class(const void *a, const void *b)
{
    const pick *x = a, *y = b;
    if (x->class != y->class)
        return x->class < y->class ? -1 : 1;
    return (x->order > y->order) - (x->order < y->order);
}

/* Samples at random until every class that is shown has enough, or for long enough. */
static mr_status choose(const mr_report_facts *f, uint64_t seed, pick *picks, size_t *count, mr_error *err)
{
    MR_AUTO(mr_sample_view_free) mr_sample_view view = {0};
    MR_AUTO(mr_objects_free) mr_objects objects = {0};
    MR_AUTO(mr_scope_free) uint8_t *have = mr_alloc(f->m->class_count + 1, 1);
    MR_AUTO(mr_scope_free) uint64_t *numbers = NULL;
    bool all = f->samples <= MR_WALL_TRIES;
    size_t tries = all ? (size_t)f->samples : MR_WALL_TRIES, classes = 0;
    mr_random random;
    numbers = mr_alloc(tries, sizeof *numbers);
    if (!have || !numbers)
        return mr_fail_memory(err, "choosing samples");
    mr_random_seed(&random, seed);
    for (size_t i = 0; i < tries; i++)
        numbers[i] = all ? i : mr_random_below(&random, f->samples);
    if (all)
        mr_random_shuffle(&random, numbers, tries, sizeof *numbers);
    for (size_t i = 0; i < tries; i++) {
        size_t class;
        MR_TRY(class_of(f, numbers[i], &view, &objects, &class, err));
        if (have[class] >= MR_WALL_PER_CLASS || (!have[class] && classes >= MR_WALL_CLASSES))
            continue;
        classes += !have[class]++;
        picks[*count] = (pick){class, numbers[i], *count};
        ++*count;
    }
    qsort(picks, *count, sizeof *picks, by_class);
    return MR_OK;
}

static void add_end(mr_buf *out, size_t shown, size_t broken, bool full)
{
    mr_buf_printf(out, "</div>\n<p class=\"note\">%zu samples, chosen at random", shown);
    if (broken)
        mr_buf_printf(out, "; %zu cannot be decoded, or are larger than --max-pixels", broken);
    mr_buf_add_text(out, full ? "; the page has no room for more.</p>\n" : ".</p>\n");
}

mr_status mr_wall_add(const mr_report_facts *f, uint64_t seed, mr_thumbs *thumbs, mr_buf *out, mr_error *err)
{
    size_t most = (size_t)(MR_WALL_CLASSES + 1) * MR_WALL_PER_CLASS, count = 0, shown = 0, broken = 0;
    MR_AUTO(mr_scope_free) pick *picks = mr_alloc(most, sizeof *picks);
    size_t begin = out->len;
    if (!picks)
        return mr_fail_memory(err, "choosing samples");
    MR_TRY(choose(f, seed, picks, &count, err));
    mr_html_section(out, "samples", "Samples");
    mr_buf_add_text(out, "<div class=\"walls\">\n");
    for (size_t i = 0; i < count && out->len - begin < MR_WALL_BYTES; i++) {
        uint64_t number;
        if (i == 0 || picks[i].class != picks[i - 1].class) {
            size_t same = 1;
            while (i + same < count && picks[i + same].class == picks[i].class)
                same++;
            mr_buf_printf(out, "%s<div class=\"class\" style=\"--n:%zu\"><h3>", i ? "</div></div>\n" : "", same);
            mr_html_string(out, picks[i].class < f->m->class_count ? f->m->classes[picks[i].class].name : "no class");
            mr_buf_add_text(out, "</h3>\n<div class=\"wall\">\n");
        }
        const mr_split *split = mr_report_sample(f->m, picks[i].sample, &number);
        mr_status status = mr_wall_figure(f, split, number, NULL, thumbs, out, err);
        if (status == MR_BAD_SAMPLE)
            broken++;
        else if (status != MR_OK)
            return status;
        else
            shown++;
    }
    mr_buf_add_text(out, count ? "</div></div>\n" : "");
    add_end(out, shown, broken, shown + broken < count);
    mr_buf_add_text(out, "</section>\n");
    return mr_buf_status(out, err, "drawing samples");
}
