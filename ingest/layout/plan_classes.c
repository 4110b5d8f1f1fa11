/* plan_classes.c - the classes of a plan: added, sorted, found by name.
 * Invariant: a class's name is path text, and its number is its place among the classes. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/scope.h"
#include "base/text.h"
#include "ingest/source/names.h"
#include "ingest/layout/layout.h"

typedef struct mr_class_place {
    const char *name; /* the class's name, whose text does not move */
    int32_t class;
} class_place;

mr_status mr_plan_class(mr_plan *plan, const char *name, size_t len, bool has_id, int64_t id, mr_error *err)
{
    mr_buf text = {0};
    mr_text_escape(&text, name, len);
    mr_buf_text(&text);
    if (text.failed || plan->class_count >= INT32_MAX ||
        !MR_GROW(plan->classes, plan->class_count, plan->class_capacity)) {
        mr_buf_free(&text);
        return mr_fail_memory(err, "listing the classes");
    }
    plan->classes[plan->class_count++] = (mr_class){.name = (char *)text.data, .has_id = has_id, .id = id};
    return MR_OK;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const mr_class *)a)->name, ((const mr_class *)b)->name);
}

void mr_plan_classes_sort(mr_plan *plan)
{
    free(plan->places);
    plan->places = NULL;
    if (!plan->class_count)
        return;
    qsort(plan->classes, plan->class_count, sizeof *plan->classes, by_name);
    size_t kept = 1;
    for (size_t i = 1; i < plan->class_count; i++)
        if (strcmp(plan->classes[kept - 1].name, plan->classes[i].name))
            plan->classes[kept++] = plan->classes[i];
        else
            free(plan->classes[i].name);
    plan->class_count = kept;
}

static int by_place(const void *a, const void *b)
{
    return strcmp(((const class_place *)a)->name, ((const class_place *)b)->name);
}

mr_status mr_plan_classes_place(mr_plan *plan, mr_error *err)
{
    class_place *places = mr_realloc(plan->places, plan->class_count + 1, sizeof *places);
    if (!places)
        return mr_fail_memory(err, "listing the classes");
    for (size_t i = 0; i < plan->class_count; i++)
        places[i] = (class_place){plan->classes[i].name, (int32_t)i};
    qsort(places, plan->class_count, sizeof *places, by_place);
    plan->places = places;
    plan->place_count = plan->class_count;
    return MR_OK;
}

static int compare(const char *bytes, size_t len, const char *name)
{
    size_t name_len = strlen(name);
    int cmp = memcmp(bytes, name, len < name_len ? len : name_len);
    return cmp ? cmp : (len > name_len) - (len < name_len);
}

static const char *name_at(const mr_plan *plan, size_t n)
{
    return plan->places ? plan->places[n].name : plan->classes[n].name;
}

/* Binary search: chosen names could make a hash table slow. */
static int32_t find_text(const mr_plan *plan, const char *name, size_t len)
{
    size_t low = 0, high = plan->places ? plan->place_count : plan->class_count;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        int cmp = compare(name, len, name_at(plan, mid));
        if (!cmp)
            return plan->places ? plan->places[mid].class : (int32_t)mid;
        if (cmp < 0)
            high = mid;
        else
            low = mid + 1;
    }
    return -1;
}

/* Whether the path text of these bytes is the bytes themselves. */
static bool is_plain(const char *bytes, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if ((unsigned char)bytes[i] < 0x20 || bytes[i] == 0x7F || bytes[i] == '\\')
            return false;
    return mr_utf8_valid(bytes, len);
}

int32_t mr_plan_class_find(const mr_plan *plan, const char *name, size_t len)
{
    if (is_plain(name, len))
        return find_text(plan, name, len);
    mr_buf text = {0};
    mr_text_escape(&text, name, len);
    int32_t found = text.failed ? -1 : find_text(plan, (const char *)text.data, text.len);
    mr_buf_free(&text);
    return found;
}

/* ---- names that are nearly the same --------------------------------------------------------------------------- */

typedef struct spelling {
    const char *text; /* what names that mean the same class have in common */
    size_t class;
} spelling;

/* The length without the ending that file managers and browsers give to a copy: "cat (1)", "cat - Copy". */
static size_t without_copy(const char *name, size_t len)
{
    static const char *const ends[] = {" - copy", " copy"};
    size_t digits = len && name[len - 1] == ')' ? len - 1 : 0;
    while (digits && isdigit((unsigned char)name[digits - 1]))
        digits--;
    if (digits > 2 && digits < len - 1 && !memcmp(name + digits - 2, " (", 2))
        len = digits - 2;
    for (size_t i = 0; i < MR_COUNT(ends); i++) {
        size_t end = strlen(ends[i]);
        if (len > end && !strncasecmp(name + len - end, ends[i], end))
            return len - end;
    }
    return len;
}

/* The bytes of an accented Latin letter, one character (NFC) or a letter and marks (NFD); 0: another. */
static size_t accented(const char *name, size_t len)
{
    const uint8_t *at = (const uint8_t *)name;
    size_t n = 1;
    while (mr_name_is_mark(name, len, n))
        n += 2;
    if (n > 1)
        return n;
    if (len > 1 && at[0] >= 0xC3 && at[0] <= 0xC6)
        return 2;
    return len > 2 && at[0] == 0xE1 && at[1] >= 0xB8 && at[1] <= 0xBB ? 3 : 0;
}

/* Small letters, accented ones as "?"; "_" and "-" inside are spaces, and several spaces are one; numbers without
 * leading zeros. */
static void add_spelling(mr_buf *out, const char *name)
{
    size_t len = strlen(name);
    mr_text_trim(&name, &len, " ");
    len = without_copy(name, len);
    bool number = strspn(name, "0123456789") >= len;
    for (; number && len > 1 && *name == '0'; len--)
        name++;
    for (size_t i = 0; i < len; i++) {
        size_t letter = accented(name + i, len - i);
        if (letter) {
            mr_buf_add_text(out, "?");
            i += letter - 1;
            continue;
        }
        bool inside = i && i + 1 < len, space = name[i] == ' ' || (inside && strchr("_-", name[i]));
        char c = (char)(space ? ' ' : tolower((unsigned char)name[i]));
        if (!space || !inside || !strchr(" _-", name[i - 1]))
            mr_buf_add(out, &c, 1);
    }
    mr_buf_add(out, "", 1);
}

static int by_text_and_class(const void *a, const void *b)
{
    const spelling *x = a, *y = b;
    int order = strcmp(x->text, y->text);
    return order ? order : (x->class > y->class) - (x->class < y->class);
}

/* A class whose name is a number, but not that of the class: "10" between "1" and "2".  False: there is none, or not
 * all names are numbers. */
static bool find_other_number(const mr_plan *plan, size_t *class)
{
    bool found = false;
    for (size_t i = 0; i < plan->class_count; i++) {
        uint64_t number;
        if (!mr_text_parse_u64(plan->classes[i].name, &number))
            return false;
        if (!found && number != i)
            *class = i;
        found = found || number != i;
    }
    return found;
}

static void note_numbers(const mr_plan *plan)
{
    size_t class = 0;
    if (!plan->by_folder || !find_other_number(plan, &class))
        return;
    const char *name = plan->classes[class].name;
    mr_note_add(plan->notes, MR_NOTE_INFO, name, strlen(name), 0,
                "class folders that are numbers are sorted as text, as torchvision does: the label of this one is %zu",
                class);
}

mr_status mr_plan_classes_note(const mr_plan *plan, mr_error *err)
{
    MR_AUTO(mr_scope_free) spelling *names = mr_alloc(plan->class_count + 1, sizeof *names);
    MR_AUTO(mr_buf_free) mr_buf texts = {0};
    const char *first = NULL, *other = NULL;
    size_t count = 0;
    char number[32], total[64] = "";
    for (size_t i = 0; i < plan->class_count; i++)
        add_spelling(&texts, plan->classes[i].name);
    if (!names || texts.failed)
        return mr_fail_memory(err, "listing the classes");
    const char *text = mr_buf_text(&texts);
    for (size_t i = 0; i < plan->class_count; i++, text += strlen(text) + 1)
        names[i] = (spelling){text, i};
    qsort(names, plan->class_count, sizeof *names, by_text_and_class);
    for (size_t i = 1; i < plan->class_count; i++)
        if (strcmp(names[i - 1].text, names[i].text) == 0 && !count++) {
            first = plan->classes[names[i - 1].class].name;
            other = plan->classes[names[i].class].name;
        }
    note_numbers(plan);
    if (count > 1)
        snprintf(total, sizeof total, " (%s such names in total)", mr_text_count(count, number));
    if (count && strcmp(first, other) == 0)
        mr_note_add(plan->notes, MR_NOTE_INFO, first, strlen(first), 0, "two classes have this name%s", total);
    else if (count)
        mr_note_add(plan->notes, MR_NOTE_INFO, other, strlen(other), 0,
                    "this class looks like another spelling of \"%s\"%s", first, total);
    return MR_OK;
}
