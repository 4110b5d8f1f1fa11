/* condition_metas.c - conditions on what the source says about a sample: a column of a table, the number of objects.
 * Invariant: a sample whose meta does not mention it does not meet the condition. */
#include <stdlib.h>
#include <string.h>

#include "base/json/json.h"
#include "base/scope.h"
#include "shards/view/condition_kinds.h"

static void free_json(json_t **doc)
{
    json_decref(*doc);
}

/* ---- a column ---------------------------------------------------------------------------------------------------- */

mr_status mr_condition_column_make(const char *argument, void **state, mr_error *err)
{
    const char *equals = strchr(argument, '=');
    *state = strdup(argument);
    if (!*state)
        return mr_fail_memory(err, "reading a condition");
    if (!equals || equals == argument)
        return mr_fail(err, MR_MISUSE, "%.100s: give a column and its value, NAME=VALUE", argument);
    return MR_OK;
}

/* A text as it is, another value as JSON: 3, true, null. */
bool mr_condition_column_meets(const void *state, const mr_candidate *c)
{
    const char *equals = strchr(state, '=');
    MR_AUTO(free_json) json_t *doc = json_loadb(c->meta, c->meta_len, 0, NULL);
    MR_AUTO(mr_scope_free) char *name = strndup(state, (size_t)(equals - (const char *)state));
    const json_t *value = name ? json_object_get(json_object_get(doc, "columns"), name) : NULL;
    MR_AUTO(mr_scope_free)
    char *text = value && !json_is_string(value) ? json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT) : NULL;
    const char *found = json_is_string(value) ? json_string_value(value) : text;
    return found && strcmp(found, equals + 1) == 0;
}

/* ---- objects ----------------------------------------------------------------------------------------------------- */

typedef struct bounds {
    uint64_t least, most;
} bounds;

mr_status mr_condition_objects_make(const char *argument, void **state, mr_error *err)
{
    bounds *b = mr_alloc(1, sizeof *b);
    char *end = (char *)(uintptr_t)argument;
    *state = b;
    if (!b)
        return mr_fail_memory(err, "reading a condition");
    *b = (bounds){0, UINT64_MAX};
    if (*argument >= '0' && *argument <= '9')
        b->least = strtoull(argument, &end, 10);
    bool range = end[0] == '.' && end[1] == '.';
    if (range && end[2])
        b->most = strtoull(end + 2, &end, 10);
    else if (range)
        end += 2;
    else
        b->most = b->least;
    if (*end || !*argument || b->most < b->least || strspn(argument, "0123456789.") != strlen(argument))
        return mr_fail(err, MR_MISUSE, "%.40s: give a number of objects, or the least and the most: 1..20, 5..",
                       argument);
    return MR_OK;
}

bool mr_condition_objects_meets(const void *state, const mr_candidate *c)
{
    const bounds *b = state;
    MR_AUTO(free_json) json_t *doc = json_loadb(c->meta, c->meta_len, 0, NULL);
    uint64_t count = json_array_size(json_object_get(doc, "objects"));
    return doc && count >= b->least && count <= b->most;
}
