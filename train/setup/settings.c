/* settings.c - the table of options in use: parsed, written to a checkpoint, taken from one.
 * Invariant: a value is parsed by one function, whether it is a default, from the command line or from a checkpoint. */
#include "train/setup/settings.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/scope.h"
#include "base/text.h"

const mr_option mr_setting_rows[] = {
#define X(type_of, type, field, word, argument, text, life, ...)                                                       \
    {.name = word,                                                                                                     \
     .kind = type_of,                                                                                                  \
     MR_FIELD(mr_settings, field),                                                                                     \
     .given = offsetof(mr_settings, given.field),                                                                      \
     .value = argument,                                                                                                \
     .standard = text,                                                                                                 \
     .high = (type_of) == MR_ARG_COUNT || (type_of) == MR_ARG_SIZE ? INT64_MAX : 0,                                    \
     .help = __VA_ARGS__},
    MR_SETTINGS(X)
#undef X
        {0},
};

static const mr_setting_life lives[] = {
#define X(kind, type, field, word, argument, text, life, ...) life,
    MR_SETTINGS(X)
#undef X
};

const size_t mr_setting_count = MR_COUNT(lives);

static void *at(const mr_settings *s, size_t offset)
{
    return (char *)s + offset;
}

/* ---- from text ------------------------------------------------------------------------------------------------- */

/* The largest pace is that of a count, in whichever unit. */
mr_status mr_pace_take(void *pace, const char *text, mr_error *err)
{
    mr_pace *out = pace;
    char digits[24] = "";
    uint64_t n = 0;
    size_t len = strlen(text);
    bool minutes = len && text[len - 1] == 'm';
    len -= minutes;
    if (len < sizeof digits)
        memcpy(digits, text, len);
    if (*text && (!mr_text_parse_u64(digits, &n) || n == 0 || n > INT64_MAX))
        return mr_fail(err, MR_MISUSE,
                       "--checkpoint-every %s: expected a number of updates from 1, or minutes, for example 500 or 10m",
                       text);
    *out = (mr_pace){.updates = minutes ? 0 : n, .minutes = minutes ? n : 0};
    return MR_OK;
}

mr_status mr_settings_take(mr_settings *s, const mr_option *row, const char *text, mr_error *err)
{
    MR_TRY(mr_option_take(row, s, text, err));
    *(bool *)at(s, row->given) = true;
    return MR_OK;
}

mr_status mr_settings_begin(mr_settings *s, mr_error *err)
{
    memset(s, 0, sizeof *s);
    return mr_options_defaults(mr_setting_rows, s, err);
}

mr_status mr_settings_override_default(mr_settings *s, const char *word, const char *text, mr_error *err)
{
    for (size_t i = 0; i < mr_setting_count; i++) {
        const mr_option *row = &mr_setting_rows[i];
        if (strcmp(row->name, word) != 0)
            continue;
        if (*(bool *)at(s, row->given))
            return MR_OK;
        mr_status status = mr_settings_take(s, row, text, err);
        *(bool *)at(s, row->given) = false;
        return status;
    }
    return mr_fail(err, MR_MISUSE, "unknown option --%s", word);
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
static void print(const mr_settings *s, const mr_option *row, mr_buf *out)
{
    const void *value = at(s, row->offset);
    mr_buf_clear(out);
    if (row->kind == MR_ARG_COUNT || row->kind == MR_ARG_SIZE)
        mr_buf_printf(out, "%llu", (unsigned long long)*(const uint64_t *)value);
    else if (row->kind == MR_ARG_REAL)
        mr_buf_printf(out, "%.17g", *(const double *)value);
    else if (row->kind == MR_ARG_FLAG)
        mr_buf_add_text(out, *(const bool *)value ? "yes" : "");
    else if (row->kind == MR_ARG_OTHER)
        print_pace(value, out);
    else
        mr_buf_add_text(out, *(const char *const *)value);
}

static bool is_free_text(const mr_option *row)
{
    return (row->kind == MR_ARG_TEXT && !row->words) || row->kind == MR_ARG_PATH;
}

bool mr_settings_plans(const mr_settings *s)
{
    return s->plan[0] != 'n';
}

json_t *mr_settings_json(const mr_settings *s)
{
    json_t *options = json_object();
    mr_buf text = {0};
    for (size_t i = 0; options && i < mr_setting_count; i++) {
        const mr_option *row = &mr_setting_rows[i];
        if (lives[i] == MR_ONCE)
            continue;
        print(s, row, &text);
        json_t *value =
            is_free_text(row) ? mr_json_path((const char *)text.data, text.len) : json_string(mr_buf_text(&text));
        if (text.failed || json_object_set_new(options, row->name, value) != 0) {
            json_decref(options);
            options = NULL;
        }
    }
    mr_buf_free(&text);
    return options;
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
        return mr_fail(err, MR_BAD_DATA, "the checkpoint's options: \"%s\" is not valid path text", text);
    if (!copy || !MR_GROW(s->owned, s->owned_count, s->owned_capacity)) {
        free(copy);
        return mr_fail_memory(err, "reading the checkpoint's options");
    }
    *out = s->owned[s->owned_count++] = copy;
    return MR_OK;
}

/* Different texts may be the same number: compared as values. */
static mr_status compare(const mr_settings *s, const mr_option *row, const char *kept, mr_error *err)
{
    MR_AUTO(mr_settings_release) mr_settings other = {0};
    MR_AUTO(mr_buf_free) mr_buf mine = {0}, theirs = {0};
    MR_TRY(mr_settings_begin(&other, err));
    if (row->kind != MR_ARG_FLAG || *kept)
        MR_TRY(mr_settings_take(&other, row, kept, err));
    print(s, row, &mine);
    print(&other, row, &theirs);
    const char *one = mr_buf_text(&mine), *two = mr_buf_text(&theirs);
    if (mine.failed || theirs.failed)
        return mr_fail_memory(err, "comparing the checkpoint's options");
    if (strcmp(one, two) == 0)
        return MR_OK;
    return mr_fail(err, MR_MISUSE,
                   "--%s: this run was started with '%s'; leave the option out to continue with it, "
                   "or start a new run in another --output",
                   row->name, two);
}

mr_status mr_settings_adopt(mr_settings *s, const json_t *options, mr_error *err)
{
    for (size_t i = 0; i < mr_setting_count; i++) {
        const mr_option *row = &mr_setting_rows[i];
        const char *kept = json_string_value(json_object_get(options, row->name));
        bool given = *(bool *)at(s, row->given);
        if (lives[i] == MR_ONCE || !kept || (lives[i] == MR_KEPT && given))
            continue;
        const char *text = kept;
        MR_TRY(own(s, kept, &text, err));
        if (given)
            MR_TRY(compare(s, row, text, err));
        else if (row->kind != MR_ARG_FLAG || *text)
            MR_TRY(mr_settings_take(s, row, text, err));
    }
    return MR_OK;
}

mr_tail mr_settings_tail(const char *word)
{
    return strcmp(word, "drop") == 0 ? MR_TAIL_DROP : strcmp(word, "pad") == 0 ? MR_TAIL_PAD : MR_TAIL_PARTIAL;
}
