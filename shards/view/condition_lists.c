/* condition_lists.c - conditions that list samples by source or image hash: --drop and --sample-list.
 * Invariant: a name that no sample has is known afterwards (mr_conditions_missed()). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/scope.h"
#include "base/text.h"
#include "shards/format/meta.h"
#include "shards/view/condition_kinds.h"

typedef struct listed {
    size_t count;
    const char **names; /* sorted; into text */
    bool *found;        /* by name */
    char *text;
} listed;

static bool is_date(const char *text)
{
    const char *form = "0000-00-00";
    for (; *form && (*form == '0' ? *text >= '0' && *text <= '9' : *text == *form); form++)
        text++;
    return !*form && !*text;
}

/* Cuts the line after its name.  False: not a name, a reason and a date. */
static bool cut_line(char *line)
{
    char *reason = strchr(line, '\t'), *date = reason ? strchr(reason + 1, '\t') : NULL;
    if (!date || reason == line || date == reason + 1 || !is_date(date + 1))
        return false;
    *reason = 0;
    return true;
}

/* `reasons`: each line has a reason and a date, too. */
static mr_status read_lines(const char *argument, bool reasons, void **state, mr_error *err)
{
    size_t lines = 1, len = strlen(argument) + 1;
    for (const char *p = argument; *p; p++)
        lines += *p == '\n';
    listed *d = mr_alloc(1, sizeof *d + lines * (sizeof *d->names + sizeof *d->found) + len);
    *state = d;
    if (!d)
        return mr_fail_memory(err, "reading a condition");
    d->names = (const char **)(void *)(d + 1);
    d->found = (bool *)(void *)(d->names + lines);
    d->text = (char *)(d->found + lines);
    memcpy(d->text, argument, len);
    char *line = d->text;
    for (size_t number = 1; line; number++) {
        char *end = strchr(line, '\n');
        if (end)
            *end = 0;
        if (*line && !reasons)
            line[strcspn(line, "\t\r")] = 0;
        else if (*line && !cut_line(line))
            return mr_fail(
                err, MR_MISUSE,
                "line %zu: is not a source or an image hash, a reason and a date such as 2026-01-31, separated by tabs",
                number);
        if (*line)
            d->names[d->count++] = line;
        line = end ? end + 1 : NULL;
    }
    mr_names_sort(d->names, d->count);
    return MR_OK;
}

static int by_name(const void *key, const void *item)
{
    return strcmp(key, *(const char *const *)item);
}

static bool is_listed(const listed *d, const char *name)
{
    const char **at = d->count ? bsearch(name, d->names, d->count, sizeof *d->names, by_name) : NULL;
    if (at)
        d->found[at - d->names] = true;
    return at != NULL;
}

mr_status mr_condition_drop_make(const char *argument, void **state, mr_error *err)
{
    return read_lines(argument, true, state, err);
}

mr_status mr_condition_list_make(const char *argument, void **state, mr_error *err)
{
    return read_lines(argument, false, state, err);
}

/* MR_BAD_DATA: the meta cannot be read. */
static mr_status look_up(const listed *l, const mr_candidate *c, bool *found)
{
    MR_AUTO(mr_buf_free) mr_buf source = {0};
    mr_meta_facts facts;
    char hash[17];
    snprintf(hash, sizeof hash, "%016llx", (unsigned long long)c->row->image_hash);
    if (mr_meta_scan(c->meta, c->meta_len, &facts, &source, NULL) != MR_OK || source.failed)
        return MR_BAD_DATA;
    bool by_source = is_listed(l, mr_buf_text(&source)), by_hash = is_listed(l, hash);
    *found = by_source || by_hash;
    return MR_OK;
}

bool mr_condition_drop_meets(const void *state, const mr_candidate *c)
{
    bool found;
    /* A sample that cannot be distinguished from one that is taken down is not shown. */
    return look_up(state, c, &found) == MR_OK && !found;
}

bool mr_condition_sample_list_meets(const void *state, const mr_candidate *c)
{
    bool found;
    return look_up(state, c, &found) == MR_OK && found;
}

size_t mr_conditions_missed(const mr_condition *const *same, size_t count, const char **name)
{
    bool lists = count && (same[0]->kind->meets == mr_condition_drop_meets ||
                           same[0]->kind->meets == mr_condition_sample_list_meets);
    const listed *d = lists ? same[0]->state : NULL;
    size_t missed = 0;
    for (size_t i = 0; d && i < d->count; i++) {
        bool found = false;
        for (size_t k = 0; k < count; k++)
            found = found || ((const listed *)same[k]->state)->found[i];
        if (!found && !missed++)
            *name = d->names[i];
    }
    return missed;
}
