/* names.c - the class of an image from its file's name, by the user's pattern.
 * Invariant: a name fits a pattern in one way only: {class} is as long as it can be.
 *
 *      {class}_#       Abyssinian_12.jpg, great_pyrenees_100.jpg (Oxford Pets)        # is one digit or more
 *      {class}.#       cat.0.jpg (Dogs vs. Cats)                                      * is anything                 */
#include <stdlib.h>
#include <string.h>

#include "base/scope.h"
#include "shards/manifest/format.h"
#include "ingest/layout/common/class_set.h"
#include "ingest/layout/table/table.h"

static const char placeholder[] = "{class}";

enum { PATTERN_MAX = 256, PLACEHOLDER = sizeof placeholder - 1 };

/* MR_MISUSE: it has not exactly one {class}. */
static mr_status check_pattern(const char *pattern, mr_error *err)
{
    const char *at = strstr(pattern, placeholder);
    if (at && !strstr(at + 1, placeholder) && strlen(pattern) < PATTERN_MAX)
        return MR_OK;
    return mr_fail(err, MR_MISUSE,
                   "--class-pattern %.300s: a pattern has {class} once and at most %d bytes, for example {class}_# for "
                   "Abyssinian_12.jpg",
                   pattern, PATTERN_MAX - 1);
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Which lengths of the text, from its beginning, the pattern fits; fits[0 .. len].  One pass for each character of the
 * pattern, so no text makes it slow. */
static void fit(const char *pattern, size_t pattern_len, const char *text, size_t len, uint8_t *fits)
{
    memset(fits, 0, len + 1);
    fits[0] = 1;
    for (size_t p = 0; p < pattern_len; p++) {
        bool any = pattern[p] == '*', number = pattern[p] == '#', before = fits[0];
        fits[0] = any && before;
        for (size_t i = 1; i <= len; i++) {
            bool now = fits[i];
            if (any)
                fits[i] = now || fits[i - 1];
            else if (number)
                fits[i] = is_digit(text[i - 1]) && (before || (fits[i - 1] && i > 1 && is_digit(text[i - 2])));
            else
                fits[i] = before && text[i - 1] == pattern[p];
            before = now;
        }
    }
}

bool mr_class_pattern_match(const char *pattern, const char *name, size_t len, size_t *class_at, size_t *class_len)
{
    const char *at = strstr(pattern, placeholder), *after = at + PLACEHOLDER;
    uint8_t head[PATTERN_MAX + 1], tail[PATTERN_MAX + 1];
    char reversed_name[PATTERN_MAX], reversed[PATTERN_MAX];
    size_t after_len = strlen(after);
    if (!len || len >= PATTERN_MAX)
        return false;
    for (size_t i = 0; i < len; i++)
        reversed_name[i] = name[len - 1 - i];
    for (size_t i = 0; i < after_len; i++)
        reversed[i] = after[after_len - 1 - i];
    fit(pattern, (size_t)(at - pattern), name, len, head);
    fit(reversed, after_len, reversed_name, len, tail);
    size_t first = 0, last = 0;
    while (first <= len && !head[first])
        first++;
    while (last <= len && !tail[last])
        last++;
    if (first > len || last > len || first + last >= len)
        return false;
    *class_at = first;
    *class_len = len - first - last;
    return true;
}

/* ---- images -------------------------------------------------------------------------------------------------- */

static const char *class_of(const mr_tree *t, const char *pattern, uint32_t entry, size_t *class_len)
{
    size_t len, at;
    const char *path = mr_tree_path(t, entry, &len), *slash = memrchr(path, '/', len), *base = slash ? slash + 1 : path;
    const char *dot = memrchr(base, '.', len - (size_t)(base - path));
    size_t base_len = dot ? (size_t)(dot - base) : len - (size_t)(base - path);
    return mr_class_pattern_match(pattern, base, base_len, &at, class_len) ? base + at : NULL;
}

static mr_status list_classes(const mr_tree *t, const mr_layout_options *o, const mr_picture_index *index,
                              mr_plan *plan, mr_error *err)
{
    mr_class_set set = {0};
    mr_status status = MR_OK;
    for (size_t i = 0; i < index->count && status == MR_OK; i++) {
        size_t len;
        const char *name = class_of(t, o->class_pattern, index->entries[i], &len);
        if (name)
            status = mr_class_set_add(&set, plan, name, len, err);
    }
    mr_class_set_free(&set);
    mr_plan_classes_sort(plan);
    return status;
}

mr_status mr_table_by_name(const mr_tree *t, const mr_layout_options *o, const mr_picture_index *index, mr_plan *plan,
                           mr_error *err)
{
    mr_folder_splits splits = {0};
    plan->variant = "class in the name";
    MR_TRY(check_pattern(o->class_pattern, err));
    MR_TRY(list_classes(t, o, index, plan, err));
    if (!plan->class_count)
        return mr_fail(err, MR_MISUSE, "--class-pattern %s: no image has a name that fits", o->class_pattern);
    MR_TRY(mr_folder_splits_open(o, index, plan, &splits, err));
    for (size_t i = 0; i < index->count; i++) {
        mr_sample s = {.entry = index->entries[i]};
        size_t len;
        const char *name = class_of(t, o->class_pattern, s.entry, &len);
        if (!mr_folder_splits_get(&splits, s.entry, plan, &s.split))
            continue;
        if (!name) {
            MR_TRY(
                mr_folder_unlisted(t, o, plan, s.split, s.entry, "its name does not fit --class-pattern", NULL, err));
            continue;
        }
        s.label = mr_plan_class_find(plan, name, len);
        if (s.label < 0)
            return mr_fail_memory(err, "numbering the classes");
        MR_TRY(mr_plan_add(plan, &s, err));
    }
    return MR_OK;
}
