/* cub.c - the lists of CUB-200-2011: numbered images with their classes and splits, as one table.
 * Source: the README of Caltech-UCSD Birds-200-2011: images.txt "ID PATH", image_class_labels.txt "ID CLASS",
 * classes.txt "CLASS NAME", train_test_split.txt "ID 1" for train and "ID 0" for test,
 * bounding_boxes.txt "ID X Y WIDTH HEIGHT" in pixels; paths are below images/.
 * Invariant: a number occurs once in each list, and every image has a line in each list that exists. */
#include "ingest/layout/table/cub.h"

#include <stdlib.h>
#include <string.h>

#include "base/scope.h"
#include "base/text.h"

enum { LIST_MAX = 256 << 20 };

static const char *const list_names[] = {"images.txt", "image_class_labels.txt", "classes.txt", "train_test_split.txt",
                                         "bounding_boxes.txt"};

enum { IMAGES, LABELS, CLASSES, SPLITS, BOXES, LISTS };

typedef struct item {
    uint64_t number;
    char *text; /* the rest of the line */
} item;

typedef struct list { /* sorted by number */
    const char *name;
    mr_buf text;
    item *items;
    size_t count, capacity;
} list;

static void free_list(list *l)
{
    mr_buf_free(&l->text);
    free(l->items);
}

static int by_number(const void *a, const void *b)
{
    uint64_t x = ((const item *)a)->number, y = ((const item *)b)->number;
    return (x > y) - (x < y);
}

static const char *find(const list *l, uint64_t number)
{
    const item key = {.number = number};
    const item *found = l->count ? bsearch(&key, l->items, l->count, sizeof key, by_number) : NULL;
    return found ? found->text : NULL;
}

/* "12 text": ends the number and the line with a NUL.  A tab or a quote would be read as part of the table. */
static mr_status read_line(list *l, char *line, char *end, size_t number, mr_error *err)
{
    char *blank = memchr(line, ' ', (size_t)(end - line));
    if (end > line && end[-1] == '\r')
        *--end = '\0';
    if (blank)
        *blank = '\0';
    if (!blank || blank + 1 >= end || !MR_GROW(l->items, l->count, l->capacity) ||
        !mr_text_parse_u64(line, &l->items[l->count].number) || strpbrk(blank + 1, "\t\"\r"))
        return mr_fail(err, MR_BAD_DATA, "%s: line %zu: not a number and a text with a space between them", l->name,
                       number);
    l->items[l->count++].text = blank + 1;
    return MR_OK;
}

static mr_status read_list(const mr_tree *t, uint32_t entry, const char *name, list *l, mr_error *err)
{
    l->name = name;
    if (mr_source_entry(t->source, entry)->size > LIST_MAX)
        return mr_fail(err, MR_BAD_DATA, "%s: larger than %d MiB, the limit for a list", name, LIST_MAX >> 20);
    MR_TRY(mr_source_read(t->source, entry, &l->text, err));
    char *at = (char *)mr_buf_text(&l->text), *end = at + l->text.len;
    if (l->text.len && memchr(at, '\0', l->text.len))
        return mr_fail(err, MR_BAD_DATA, "%s: contains a NUL byte, so it is not a text file", name);
    for (size_t number = 1; at < end; number++) {
        char *newline = memchr(at, '\n', (size_t)(end - at)), *line_end = newline ? newline : end;
        *line_end = '\0';
        if (line_end > at && strcmp(at, "\r") != 0)
            MR_TRY(read_line(l, at, line_end, number, err));
        at = line_end + 1;
    }
    if (l->count > 1)
        qsort(l->items, l->count, sizeof *l->items, by_number);
    for (size_t i = 1; i < l->count; i++)
        if (l->items[i].number == l->items[i - 1].number)
            return mr_fail(err, MR_BAD_DATA, "%s: number %llu occurs twice", name,
                           (unsigned long long)l->items[i].number);
    return MR_OK;
}

/* ---- as a table ------------------------------------------------------------------------------------------------ */

static mr_status lacks(const list *l, uint64_t number, mr_error *err)
{
    return mr_fail(err, MR_BAD_DATA, "%s: has no line for number %llu", l->name, (unsigned long long)number);
}

static mr_status add_box(const list *boxes, uint64_t number, mr_buf *out, mr_error *err)
{
    const char *box = find(boxes, number);
    if (!box)
        return lacks(boxes, number, err);
    size_t blanks = 0, begin = out->len;
    mr_buf_printf(out, "\t%s", box);
    for (size_t i = begin; i < out->len; i++)
        if (out->data[i] == ' ') {
            out->data[i] = '\t';
            blanks++;
        }
    if (blanks == 3)
        return MR_OK;
    return mr_fail(err, MR_BAD_DATA, "%s: number %llu has \"%.80s\", not x, y, width and height", boxes->name,
                   (unsigned long long)number, box);
}

static mr_status add_row(const list lists[LISTS], const item *image, mr_buf *out, mr_error *err)
{
    const char *class = find(&lists[LABELS], image->number);
    uint64_t number;
    mr_buf_printf(out, "%llu\t%s", (unsigned long long)image->number, image->text);
    if (!class)
        return lacks(&lists[LABELS], image->number, err);
    if (lists[CLASSES].count) {
        if (!mr_text_parse_u64(class, &number))
            return mr_fail(err, MR_BAD_DATA, "%s: class \"%.40s\" is not a number", lists[LABELS].name, class);
        class = find(&lists[CLASSES], number);
        if (!class)
            return lacks(&lists[CLASSES], number, err);
    }
    mr_buf_printf(out, "\t%s", class);
    if (lists[SPLITS].name) {
        const char *train = find(&lists[SPLITS], image->number);
        if (!train)
            return lacks(&lists[SPLITS], image->number, err);
        if (strcmp(train, "0") != 0 && strcmp(train, "1") != 0)
            return mr_fail(err, MR_BAD_DATA, "%s: number %llu has \"%.40s\", neither 0 (test) nor 1 (train)",
                           lists[SPLITS].name, (unsigned long long)image->number, train);
        mr_buf_add_text(out, *train == '1' ? "\ttrain" : "\ttest");
    }
    if (lists[BOXES].name)
        MR_TRY(add_box(&lists[BOXES], image->number, out, err));
    mr_buf_add_text(out, "\n");
    return mr_buf_status(out, err, "reading lists");
}

static void free_lists(list (*lists)[LISTS])
{
    for (size_t i = 0; i < LISTS; i++)
        free_list(&(*lists)[i]);
}

bool mr_cub_is(const mr_tree *t)
{
    return mr_tree_find(t, list_names[IMAGES], strlen(list_names[IMAGES])) != MR_NO_ENTRY &&
           mr_tree_find(t, list_names[LABELS], strlen(list_names[LABELS])) != MR_NO_ENTRY;
}

mr_status mr_cub_read(const mr_tree *t, mr_plan *plan, mr_sheet *out, mr_error *err)
{
    MR_AUTO(free_lists) list lists[LISTS] = {{0}};
    MR_AUTO(mr_buf_free) mr_buf text = {0};
    *out = (mr_sheet){.entry = mr_tree_find(t, list_names[IMAGES], strlen(list_names[IMAGES])),
                      .name = list_names[IMAGES],
                      .path = 1,
                      .split = -1,
                      .text = -1,
                      .listed = true};
    for (size_t i = 0; i < LISTS; i++) {
        uint32_t entry = mr_tree_find(t, list_names[i], strlen(list_names[i]));
        if (entry == MR_NO_ENTRY)
            continue;
        plan->used[entry] = MR_USE_TAKEN;
        MR_TRY(read_list(t, entry, list_names[i], &lists[i], err));
    }
    mr_buf_printf(&text, "image_id\tfile\tclass%s%s\n", lists[SPLITS].name ? "\tsplit" : "",
                  lists[BOXES].name ? "\tx\ty\twidth\theight" : "");
    for (size_t i = 0; i < lists[IMAGES].count; i++)
        MR_TRY(add_row(lists, &lists[IMAGES].items[i], &text, err));
    MR_TRY(mr_csv_parse_by(&text, out->name, '\t', &out->csv, err));
    out->labels = mr_alloc(1, sizeof *out->labels);
    if (!out->labels)
        return mr_fail_memory(err, "reading lists");
    out->labels[out->label_count++] = 2;
    out->split = lists[SPLITS].name ? 3 : -1;
    int box = out->split < 0 ? 3 : 4;
    if (lists[BOXES].name)
        out->boxes = (mr_box_columns){
            .form = MR_BOX_SIZE, .at = {box, box + 1, box + 2, box + 3}, .width = -1, .height = -1, .crowd = -1};
    return MR_OK;
}
