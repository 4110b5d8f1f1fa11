/* settings.c - the table of options at work: parsed, written down, taken over.
 * Invariant: a value is parsed by one function, whether it is a default, from the command line or from a checkpoint. */
#include "run/settings.h"

#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cli.h"
#include "base/hash.h"
#include "base/text.h"

const mr_setting mr_setting_rows[] = {
#define X(group, kind, type, field, word, argument, standard, life, help)                                              \
    {group,                                                                                                            \
     kind,                                                                                                             \
     word,                                                                                                             \
     argument,                                                                                                         \
     standard,                                                                                                         \
     help,                                                                                                             \
     life,                                                                                                             \
     offsetof(mr_settings, field),                                                                                     \
     offsetof(mr_settings, given.field)},
    MR_SETTINGS(X)
#undef X
};

const size_t mr_setting_count = MR_COUNT(mr_setting_rows);

static void *at(const mr_settings *s, size_t offset)
{
    return (char *)s + offset;
}

/* ---- from text ------------------------------------------------------------------------------------------------- */

static mr_status take_word(const mr_setting *row, const char *text, const char **out, mr_error *err)
{
    char all[64], near[96] = "";
    const char *words[8] = {0};
    size_t n = 0;
    snprintf(all, sizeof all, "%s", row->argument);
    for (char *rest = all, *word; (word = strsep(&rest, "|")) && n < MR_COUNT(words) - 1;)
        words[n++] = word;
    for (size_t i = 0; i < n; i++)
        if (strcmp(words[i], text) == 0) {
            *out = text;
            return MR_OK;
        }
    if (mr_text_nearest(text, words))
        snprintf(near, sizeof near, "; did you mean %s?", mr_text_nearest(text, words));
    return mr_fail(err, MR_MISUSE, "--%s %s: use one of %s%s", row->word, text, row->argument, near);
}

static mr_status take_real(const mr_setting *row, const char *text, double *out, mr_error *err)
{
    char *end;
    errno = 0;
    double x = strtod(text, &end);
    if (end == text || *end || errno || !isfinite(x) || x < 0)
        return mr_fail(err, MR_MISUSE, "--%s %s: expected a number from 0, for example %s", row->word, text,
                       *row->standard == '0' && row->standard[1] == '\0' ? "0.01" : row->standard);
    *out = x;
    return MR_OK;
}

/* The largest pace is that of a count, in whichever unit. */
static mr_status take_pace(const mr_setting *row, const char *text, mr_pace *out, mr_error *err)
{
    char digits[24] = "";
    uint64_t n = 0;
    size_t len = strlen(text);
    bool minutes = len && text[len - 1] == 'm';
    len -= minutes;
    if (len < sizeof digits)
        memcpy(digits, text, len);
    if (*text && (!mr_text_parse_u64(digits, &n) || n == 0 || n > INT64_MAX))
        return mr_fail(err, MR_MISUSE,
                       "--%s %s: expected a number of updates from 1, or minutes, for example 500 or 10m", row->word,
                       text);
    *out = (mr_pace){.updates = minutes ? 0 : n, .minutes = minutes ? n : 0};
    return MR_OK;
}

mr_status mr_settings_take(mr_settings *s, const mr_setting *row, const char *text, mr_error *err)
{
    void *value = at(s, row->offset);
    switch (row->kind) {
    case MR_SET_COUNT:
        if (!mr_text_parse_u64(text, value) || *(uint64_t *)value > INT64_MAX)
            return mr_fail(err, MR_MISUSE, "--%s %s: expected a whole number from 0", row->word, text);
        break;
    case MR_SET_REAL: {
        mr_status status = take_real(row, text, value, err);
        if (status != MR_OK)
            return status;
        break;
    }
    case MR_SET_WORD: {
        mr_status status = take_word(row, text, value, err);
        if (status != MR_OK)
            return status;
        break;
    }
    case MR_SET_TEXT:
        *(const char **)value = text;
        break;
    case MR_SET_FLAG:
        *(bool *)value = true;
        break;
    case MR_SET_PACE: {
        mr_status status = take_pace(row, text, value, err);
        if (status != MR_OK)
            return status;
        break;
    }
    }
    *(bool *)at(s, row->given) = true;
    return MR_OK;
}

mr_status mr_settings_begin(mr_settings *s, mr_error *err)
{
    memset(s, 0, sizeof *s);
    for (size_t i = 0; i < mr_setting_count; i++) {
        const mr_setting *row = &mr_setting_rows[i];
        mr_status status = row->kind == MR_SET_FLAG ? MR_OK : mr_settings_take(s, row, row->standard, err);
        if (status != MR_OK)
            return status;
        *(bool *)at(s, row->given) = false;
    }
    return MR_OK;
}

mr_status mr_settings_suit(mr_settings *s, const char *word, const char *text, mr_error *err)
{
    for (size_t i = 0; i < mr_setting_count; i++) {
        const mr_setting *row = &mr_setting_rows[i];
        if (strcmp(row->word, word) != 0)
            continue;
        if (*(bool *)at(s, row->given))
            return MR_OK;
        mr_status status = mr_settings_take(s, row, text, err);
        *(bool *)at(s, row->given) = false;
        return status;
    }
    return mr_fail(err, MR_MISUSE, "there is no option --%s", word);
}

void mr_settings_release(mr_settings *s)
{
    for (size_t i = 0; i < s->owned_count; i++)
        free(s->owned[i]);
    free(s->owned);
    memset(s, 0, sizeof *s);
}

/* ---- in a checkpoint ------------------------------------------------------------------------------------------- */

static void print_pace(const mr_pace *pace, mr_buf *out)
{
    if (pace->updates || pace->minutes)
        mr_buf_printf(out, "%llu%s", (unsigned long long)(pace->updates + pace->minutes), pace->minutes ? "m" : "");
}

/* The value as text that mr_settings_take() reads back to the same bits; flags: "yes" or "". */
static void print(const mr_settings *s, const mr_setting *row, mr_buf *out)
{
    const void *value = at(s, row->offset);
    mr_buf_clear(out);
    switch (row->kind) {
    case MR_SET_COUNT:
        mr_buf_printf(out, "%llu", (unsigned long long)*(const uint64_t *)value);
        break;
    case MR_SET_REAL:
        mr_buf_printf(out, "%.17g", *(const double *)value);
        break;
    case MR_SET_WORD:
    case MR_SET_TEXT:
        mr_buf_add_text(out, *(const char *const *)value);
        break;
    case MR_SET_FLAG:
        mr_buf_add_text(out, *(const bool *)value ? "yes" : "");
        break;
    case MR_SET_PACE:
        print_pace(value, out);
        break;
    }
}

json_t *mr_settings_json(const mr_settings *s)
{
    json_t *options = json_object();
    mr_buf text = {0};
    for (size_t i = 0; options && i < mr_setting_count; i++) {
        const mr_setting *row = &mr_setting_rows[i];
        if (row->life == MR_ONCE)
            continue;
        print(s, row, &text);
        json_t *value = row->kind == MR_SET_TEXT ? mr_json_path((const char *)text.data, text.len)
                                                 : json_string(mr_buf_text(&text));
        if (text.failed || json_object_set_new(options, row->word, value) != 0) {
            json_decref(options);
            options = NULL;
        }
    }
    mr_buf_free(&text);
    return options;
}

mr_status mr_settings_hash(const mr_settings *s, uint64_t *hash, mr_error *err)
{
    mr_buf text = {0};
    *hash = 0;
    for (size_t i = 0; i < mr_setting_count; i++) {
        const mr_setting *row = &mr_setting_rows[i];
        bool place = row->argument && mr_cli_is_place(row->argument);
        if (mr_cli_is_own(row->word))
            continue;
        print(s, row, &text);
        if (text.failed)
            break;
        *hash = *hash * 31 + (place ? text.len > 0 : mr_hash64(text.data, text.len));
    }
    mr_status status = mr_buf_status(&text, err, "comparing the options");
    mr_buf_free(&text);
    return status;
}

static mr_status own(mr_settings *s, const char *text, const char **out, mr_error *err)
{
    mr_buf bytes = {0};
    bool readable = mr_text_unescape(&bytes, text, strlen(text));
    const char *plain = mr_buf_text(&bytes);
    bool failed = bytes.failed;
    char *copy = readable && !failed ? strdup(plain) : NULL;
    mr_buf_free(&bytes);
    if (!readable && !failed)
        return mr_fail(err, MR_BAD_DATA, "the checkpoint's options: \"%s\" is no path text", text);
    if (!copy || !MR_GROW(s->owned, s->owned_count, s->owned_room)) {
        free(copy);
        return mr_fail_memory(err, "reading the checkpoint's options");
    }
    *out = s->owned[s->owned_count++] = copy;
    return MR_OK;
}

/* Two texts may stand for one number: compared as values. */
static mr_status compare(const mr_settings *s, const mr_setting *row, const char *kept, mr_error *err)
{
    mr_settings other;
    mr_buf mine = {0}, theirs = {0};
    mr_status status = mr_settings_begin(&other, err);
    if (status == MR_OK && (row->kind != MR_SET_FLAG || *kept))
        status = mr_settings_take(&other, row, kept, err);
    if (status == MR_OK) {
        print(s, row, &mine);
        print(&other, row, &theirs);
        const char *one = mr_buf_text(&mine), *two = mr_buf_text(&theirs);
        if (mine.failed || theirs.failed)
            status = mr_fail_memory(err, "comparing the checkpoint's options");
        else if (strcmp(one, two) != 0)
            status = mr_fail(err, MR_MISUSE,
                             "--%s: this run was begun with '%s'; leave the option out to go on with it, "
                             "or begin a new run in another --output",
                             row->word, two);
    }
    mr_buf_free(&mine);
    mr_buf_free(&theirs);
    mr_settings_release(&other);
    return status;
}

mr_status mr_settings_adopt(mr_settings *s, const json_t *options, mr_error *err)
{
    for (size_t i = 0; i < mr_setting_count; i++) {
        const mr_setting *row = &mr_setting_rows[i];
        const char *kept = json_string_value(json_object_get(options, row->word));
        bool given = *(bool *)at(s, row->given);
        if (row->life == MR_ONCE || !kept || (row->life == MR_KEPT && given))
            continue;
        const char *text = kept;
        mr_status status = own(s, kept, &text, err);
        if (status != MR_OK)
            return status;
        if (given)
            status = compare(s, row, text, err);
        else if (row->kind != MR_SET_FLAG || *text)
            status = mr_settings_take(s, row, text, err);
        if (status != MR_OK)
            return status;
    }
    return MR_OK;
}
