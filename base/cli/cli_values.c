/* cli_values.c - parses an option's value into its field.
 * Invariant: values are parsed only here, whether they come from a default, a command line or a checkpoint. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cli/cli.h"
#include "base/scope.h"
#include "base/text.h"

typedef unsigned long long ull;

/* "--jobs 0", "N x" */
#define NAME    "%s%s %s"
#define OF(row) (row)->name ? "--" : "", (row)->name ? (row)->name : (row)->value, text

static void store(const mr_option *row, void *request, uint64_t number)
{
    char *field = (char *)request + row->offset;
    switch (row->size) {
    case sizeof(uint64_t):
        memcpy(field, &number, sizeof number);
        break;
    case sizeof(uint32_t):
        memcpy(field, &(uint32_t){(uint32_t)number}, sizeof(uint32_t));
        break;
    case sizeof(bool):
        memcpy(field, &(bool){number != 0}, sizeof(bool));
        break;
    default: /* no field */
        break;
    }
}

static mr_status take_count(const mr_option *row, void *request, const char *text, mr_error *err)
{
    uint64_t n, high = row->high ? row->high : row->size == sizeof(uint32_t) ? UINT32_MAX : UINT64_MAX;
    bool parsed = mr_text_parse_u64(text, &n), large = parsed ? n > high : *text && !text[strspn(text, "0123456789")];
    if (!parsed || n < row->low || n > high) {
        if (high >= INT64_MAX && !large)
            return mr_fail(err, MR_MISUSE, NAME ": expected a number from %llu", OF(row), (ull)row->low);
        return mr_fail(err, MR_MISUSE, NAME ": expected a number from %llu to %llu", OF(row), (ull)row->low, (ull)high);
    }
    store(row, request, n);
    return MR_OK;
}

/* "4KiB" */
static const char *size_text(uint64_t bytes, char out[32])
{
    static const char *const units[] = {"", "KiB", "MiB", "GiB", "TiB"};
    size_t unit = 0;
    for (; bytes && bytes % 1024 == 0 && unit + 1 < MR_COUNT(units); bytes /= 1024)
        unit++;
    snprintf(out, 32, "%llu%s", (ull)bytes, units[unit]);
    return out;
}

static mr_status take_size(const mr_option *row, void *request, const char *text, mr_error *err)
{
    uint64_t n;
    char low[32], high[32];
    if (!mr_text_parse_size(text, &n) || n < row->low || n > row->high)
        return mr_fail(err, MR_MISUSE, NAME ": expected a size from %s to %s, for example %s", OF(row),
                       size_text(row->low, low), size_text(row->high, high), row->standard ? row->standard : "64MiB");
    store(row, request, n);
    return MR_OK;
}

static mr_status take_real(const mr_option *row, void *request, const char *text, mr_error *err)
{
    char *end;
    const char *example = row->standard && strcmp(row->standard, "0") != 0 ? row->standard : "0.01";
    double low = (double)row->low;
    char high[32] = "";
    if (row->high)
        snprintf(high, sizeof high, " to %llu", (ull)row->high);
    errno = 0;
    double x = strtod(text, &end);
    if (end == text || *end || errno || !isfinite(x) || x < low || (row->above && x <= low) ||
        (row->high && x > (double)row->high))
        return mr_fail(err, MR_MISUSE, NAME ": expected a number %s %llu%s, for example %s", OF(row),
                       row->above ? "above" : "from", (ull)row->low, high, example);
    memcpy((char *)request + row->offset, &x, sizeof x);
    return MR_OK;
}

/* "drop, pad or partial" */
static void add_words(mr_buf *out, const char *const *words)
{
    for (size_t i = 0; words[i]; i++)
        mr_buf_printf(out, "%s%s", i == 0 ? "" : words[i + 1] ? ", " : " or ", words[i]);
}

static mr_status find_word(const mr_option *row, const char *text, uint64_t *number, mr_error *err)
{
    MR_AUTO(mr_buf_free) mr_buf all = {0};
    for (*number = 0; row->words[*number]; (*number)++)
        if (strcmp(row->words[*number], text) == 0)
            return MR_OK;
    const char *near = mr_text_nearest(text, row->words);
    add_words(&all, row->words);
    return mr_fail(err, MR_MISUSE, NAME ": use %s%s%s%s", OF(row), mr_buf_text(&all), near ? "; did you mean " : "",
                   near ? near : "", near ? "?" : "");
}

static mr_status take_item(mr_cli_list *list, const char *text, mr_error *err)
{
    if (!MR_GROW(list->items, list->count, list->capacity))
        return mr_fail_memory(err, "reading the command line");
    list->items[list->count++] = (char *)text; /* lists have no defaults, so `text` is in argv */
    return MR_OK;
}

mr_status mr_option_take(const mr_option *row, void *request, const char *text, mr_error *err)
{
    void *field = (char *)request + row->offset;
    uint64_t number = 0;
    switch (row->kind) {
    case MR_ARG_FLAG:
        store(row, request, 1);
        return MR_OK;
    case MR_ARG_SET:
        store(row, request, row->low);
        return MR_OK;
    case MR_ARG_COUNT:
        return take_count(row, request, text, err);
    case MR_ARG_SIZE:
        return take_size(row, request, text, err);
    case MR_ARG_REAL:
        return take_real(row, request, text, err);
    case MR_ARG_WORD:
        MR_TRY(find_word(row, text, &number, err));
        store(row, request, number);
        return MR_OK;
    case MR_ARG_TEXT:
    case MR_ARG_PATH:
        if (row->words)
            MR_TRY(find_word(row, text, &number, err));
        *(const char **)field = text;
        return MR_OK;
    case MR_ARG_LIST:
        return take_item(field, text, err);
    case MR_ARG_OTHER:
        return row->take(field, text, err);
    case MR_ARG_TABLE:
        break;
    }
    return MR_OK;
}

bool mr_option_has_value(const mr_option *row)
{
    return row->kind != MR_ARG_FLAG && row->kind != MR_ARG_SET && row->kind != MR_ARG_TABLE;
}

mr_status mr_options_defaults(const mr_option *rows, void *request, mr_error *err)
{
    for (const mr_option *row = rows; row->name || row->kind == MR_ARG_TABLE; row++)
        if (row->kind == MR_ARG_TABLE)
            MR_TRY(mr_options_defaults(row->rows, (char *)request + row->offset, err));
        else if (row->standard && mr_option_has_value(row))
            MR_TRY(mr_option_take(row, request, row->standard, err));
    return MR_OK;
}

void mr_option_add_value(const mr_option *row, mr_buf *out)
{
    if (row->value)
        mr_buf_add_text(out, row->value);
    for (size_t i = 0; !row->value && row->words && row->words[i]; i++)
        mr_buf_printf(out, "%s%s", i ? "|" : "", row->words[i]);
}
