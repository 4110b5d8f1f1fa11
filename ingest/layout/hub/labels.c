/* labels.c - labels of Parquet rows: by a list of class names, numbers, texts, or lists of classes.
 * Invariant: a class that the file's list of names lacks is never added; a list of classes is taken as a whole or not
 * at all. */
#include <inttypes.h>
#include <string.h>

#include "base/json/json_walk.h"
#include "base/scope.h"
#include "base/text.h"
#include "shards/manifest/format.h"
#include "ingest/layout/common/label_list.h"
#include "ingest/layout/hub/rows_state.h"

enum { NUMBER_MAX = 9999 };

/* ---- lists of classes -------------------------------------------------------------------------------------------- */

mr_hub_listed mr_hub_list_read(const mr_buf *row, const char *column, size_t classes, mr_buf *out)
{
    const char *at = (const char *)row->data, *end = at + row->len, *list;
    mr_json_span item, key;
    char text[24];
    int more;
    mr_buf_clear(out);
    if (mr_json_member(at, end, column, &list) != 1 || list == end || *list != '[')
        return MR_HUB_LIST_NONE;
    mr_json_walk w = mr_json_walk_of((mr_json_span){list, end});
    while ((more = mr_json_next(&w, &key, &item)) == 1) {
        size_t len = (size_t)(item.end - item.at);
        uint64_t number = classes;
        memcpy(text, item.at, len < sizeof text ? len : 0);
        text[len < sizeof text ? len : 0] = '\0';
        if (!mr_text_parse_u64(text, &number) || number >= classes)
            return MR_HUB_LIST_BAD;
        mr_buf_add(out, &(int32_t){(int32_t)number}, sizeof(int32_t));
    }
    mr_label_list_settle(out);
    return more == 0 ? MR_HUB_LIST_THERE : MR_HUB_LIST_BAD;
}

/* ---- labels --------------------------------------------------------------------------------------------------- */

static mr_status bad_label(mr_hub_build *b, uint64_t row, const char *what)
{
    return mr_fail(b->err, MR_BAD_DATA, "%s: row %" PRIu64 ": \"%s\" %s", mr_hub_file_name(b), row, b->first.column,
                   what);
}

/* A whole number is the label itself; the hub writes -1 for "not known". */
static mr_status take_number(mr_hub_build *b, uint64_t row)
{
    const mr_buf *text = &b->field.text;
    if (b->field.kind == MR_JSONL_OTHER)
        return bad_label(b, row, "is a list or an object, not a label");
    MR_TRY(mr_label_census_add(&b->numbers, (const char *)text->data, text->len, &b->gaps, b->err));
    mr_buf_add(&b->labels.texts, text->data, text->len);
    mr_buf_add(&b->labels.texts, "", 1);
    return mr_buf_status(&b->labels.texts, b->err, "reading labels");
}

/* A class by its number; false: the list of names has no such number. */
static bool take_named(mr_hub_build *b, int32_t *label)
{
    mr_value v = mr_value_of((const char *)b->field.text.data, b->field.text.len);
    bool none = v.kind == MR_VALUE_NONE || !strcmp(v.name, "-1");
    b->gaps.empty += v.kind == MR_VALUE_NONE;
    b->gaps.minus_one += !strcmp(v.name, "-1");
    if (none || v.kind != MR_VALUE_WHOLE || v.number < 0 || v.number >= (double)json_array_size(b->first.names))
        return none;
    *label = (int32_t)v.number;
    return true;
}

/* The labels of a row with several; an empty list says that it has none of the classes. */
static bool take_list(mr_hub_build *b, const mr_buf *row, mr_sample *s)
{
    mr_hub_listed found = mr_hub_list_read(row, b->first.column, b->plan->class_count, &b->list);
    b->gaps.empty += found == MR_HUB_LIST_NONE;
    b->plan->notes->failed = b->plan->notes->failed || b->list.failed;
    if (found == MR_HUB_LIST_THERE)
        mr_label_list_judge(b->plan, &b->list, s);
    if (found == MR_HUB_LIST_THERE && !b->list.len)
        s->flags |= MR_FLAG_MULTI_LABEL;
    return found != MR_HUB_LIST_BAD;
}

/* The class of a row, or its classes; false: the list of names lacks one. */
bool mr_hub_take_classes(mr_hub_build *b, const mr_buf *row, mr_sample *s)
{
    if (b->first.kind != MR_HUB_NAMES)
        return true;
    return b->first.list ? take_list(b, row, s) : take_named(b, &s->label);
}

mr_status mr_hub_take_label(mr_hub_build *b, uint64_t row)
{
    if (b->first.kind == MR_HUB_NO_LABEL)
        return MR_OK;
    if (b->first.kind == MR_HUB_TEXTS)
        return mr_labels_take(&b->labels, &b->field, mr_hub_file_name(b), "row", row, b->err);
    return b->first.kind == MR_HUB_NUMBERS ? take_number(b, row) : MR_OK;
}

static mr_status add_class(mr_hub_build *b, const char *name, size_t len)
{
    return mr_plan_class(b->plan, name, len, false, 0, b->err);
}

static void note_label(mr_hub_build *b, const char *what)
{
    mr_note_add(b->plan->notes, MR_NOTE_INFO, b->first.column, strlen(b->first.column), 0, "%s", what);
}

/* A column "label" of texts that was not requested may hold captions, unless they are single letters. */
static mr_status plan_texts(mr_hub_build *b)
{
    mr_status status = mr_labels_plan(&b->labels, b->plan, mr_buf_text(&b->first.columns), b->err);
    if (status == MR_OK && b->labels.labelled && !b->plan->class_count)
        note_label(b, "a column of strings: samples have no label; --label-column makes classes of it");
    return status;
}

/* Objects whose classes no list names: they are called by the numbers or texts of the rows. */
bool mr_hub_objects_name_classes(const mr_hub_build *b)
{
    return b->first.kind == MR_HUB_NO_LABEL && !b->first.objects;
}

static mr_status plan_numbers(mr_hub_build *b)
{
    const char *text = (const char *)b->labels.texts.data;
    mr_label_census_settle(&b->numbers, NUMBER_MAX);
    if (mr_label_census_unique(&b->numbers) && !b->options->label_column) {
        note_label(b, "a column of numbers that (nearly) all differ: samples have no label; --label-column makes "
                      "classes of it");
        return MR_OK;
    }
    MR_TRY(mr_label_census_classes(&b->numbers, b->first.column, b->plan, b->err));
    for (size_t i = 0; i < b->plan->sample_count; i++, text += strlen(text) + 1)
        b->plan->samples[i].label = mr_label_census_find(&b->numbers, b->plan, text, strlen(text));
    return MR_OK;
}

mr_status mr_hub_plan_labels(mr_hub_build *b)
{
    mr_status status = MR_OK;
    size_t i;
    json_t *item;
    if (b->first.kind == MR_HUB_TEXTS)
        return plan_texts(b);
    if (b->first.kind == MR_HUB_NO_LABEL && b->first.column)
        note_label(b, "a column of neither integers nor strings: samples have no label");
    if (b->first.kind == MR_HUB_NO_LABEL && b->first.objects) {
        mr_hub_state *st = b->plan->state;
        st->numbered = true;
        json_array_foreach(b->first.objects, i, item) if (status == MR_OK) status =
            add_class(b, json_string_value(item), json_string_length(item));
    }
    MR_TRY(status);
    if (mr_hub_objects_name_classes(b))
        return mr_plan_classes_in_order(b->plan, b->err);
    return b->first.kind == MR_HUB_NUMBERS ? plan_numbers(b) : MR_OK;
}

/* The classes that the column of labels lists, before its rows; and the columns of which metas need more. */
mr_status mr_hub_add_names(mr_hub_build *b)
{
    mr_hub_state *st = b->plan->state;
    size_t i;
    json_t *item;
    json_array_foreach(b->first.names, i, item) MR_TRY(add_class(b, json_string_value(item), json_string_length(item)));
    st->list = b->first.list ? strdup(b->first.column) : NULL;
    if (!st->text_column && b->first.captions)
        st->text_column = strdup("captions");
    bool there = (st->list || !b->first.list) && (st->text_column || !b->first.captions);
    return there ? MR_OK : mr_fail_memory(b->err, "listing rows");
}
