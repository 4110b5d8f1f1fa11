/* class_order.c - a file beside class folders that numbers their classes in another order.
 * Invariant: only a remark; labels number the sorted names of the folders, as torchvision does.
 *
 *      classes.txt  dog\ncat\n      class_to_idx.json  {"dog": 0, "cat": 1}      labels.json  ["dog", "cat"] */
#include <stdlib.h>
#include <string.h>

#include "base/scope.h"
#include "base/text.h"
#include "ingest/pipeline/ingest_state.h"
#include "ingest/source/names.h"
#include "ingest/tables/lines.h"

enum { SIZE_MAX_READ = 1 << 20 };

typedef struct order {
    const mr_plan *plan;
    int64_t *number; /* of each class in the file; -1: it is not there */
    size_t named;
    bool other; /* it names something else, or a class twice */
} order;

static void take(order *o, const char *name, size_t len, int64_t number)
{
    int32_t label = mr_plan_class_find(o->plan, name, len);
    o->other = o->other || label < 0 || number < 0 || o->number[label] >= 0;
    if (o->other)
        return;
    o->number[label] = number;
    o->named++;
}

static void take_lines(order *o, const mr_buf *text)
{
    int64_t number = 0;
    for (mr_lines line = mr_lines_of(text->data, text->len); !o->other && mr_lines_next(&line);)
        take(o, line.line, line.len, number++);
}

static int64_t number_of(const char *text)
{
    uint64_t value;
    return mr_text_parse_u64(text, &value) && value < INT64_MAX ? (int64_t)value : -1;
}

/* {"dog": 0}, {"0": "dog"} or ["dog"]. */
static void take_json(order *o, const mr_buf *text)
{
    json_t *doc = json_loadb((const char *)text->data, text->len, 0, NULL), *value;
    const char *key;
    size_t i;
    json_array_foreach(doc, i, value)
        take(o, json_is_string(value) ? json_string_value(value) : "", json_string_length(value), (int64_t)i);
    json_object_foreach(doc, key, value)
    {
        if (json_is_string(value))
            take(o, json_string_value(value), json_string_length(value), number_of(key));
        else
            take(o, key, strlen(key), json_is_integer(value) ? json_integer_value(value) : -1);
        if (o->other)
            break;
    }
    json_decref(doc);
}

/* The first class whose number is not its label, counted from any start; the count of classes: none. */
static size_t first_moved(const order *o)
{
    size_t label = 0;
    while (label < o->named && o->number[label] - o->number[0] == (int64_t)label)
        label++;
    return label;
}

static bool may_number(const mr_entry *e)
{
    const char *slash = memrchr(e->path, '/', e->path_len), *name = slash ? slash + 1 : e->path;
    static const char *const ends[] = {".txt", ".json", NULL};
    return e->size <= SIZE_MAX_READ && mr_name_ends_in(e->path, e->path_len, ends) &&
           (strcasestr(name, "class") || strcasestr(name, "label") || strcasestr(name, "names"));
}

static void note_file(mr_ingest *in, uint32_t n, order *o)
{
    const mr_entry *e = mr_source_entry(in->source, n);
    MR_AUTO(mr_buf_free) mr_buf text = {0};
    mr_error why; /* a file that is not needed may be damaged */
    if (mr_source_read(in->source, n, &text, &why) != MR_OK)
        return;
    o->named = 0;
    o->other = false;
    memset(o->number, 0xFF, in->plan.class_count * sizeof *o->number);
    if (mr_name_ends(e->path, e->path_len, ".json"))
        take_json(o, &text);
    else
        take_lines(o, &text);
    size_t moved = first_moved(o);
    if (o->other || o->named != in->plan.class_count || moved == o->named)
        return;
    mr_note_add(&in->notes, MR_NOTE_INFO, e->path, e->path_len, 0,
                "numbers the classes in another order: %.100s is %lld there and %zu here, where names are sorted",
                in->plan.classes[moved].name, (long long)o->number[moved], moved);
}

mr_status mr_note_class_order(mr_ingest *in, mr_error *err)
{
    const mr_plan *plan = &in->plan;
    MR_AUTO(mr_scope_free) int64_t *number = mr_alloc(plan->class_count + 1, sizeof *number);
    order o = {.plan = plan, .number = number};
    if (!number)
        return mr_fail_memory(err, "planning");
    for (uint32_t n = 0; plan->by_folder && n < mr_source_count(in->source); n++)
        if (!plan->used[n] && may_number(mr_source_entry(in->source, n)))
            note_file(in, n, &o);
    return MR_OK;
}
