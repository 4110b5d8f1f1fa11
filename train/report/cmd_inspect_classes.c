/* cmd_inspect_classes.c - the classes of a dataset as `millrace inspect` shows them, with and without their counts.
 * Invariant: samples without exactly one label are counted beside the classes, never among them. */
#include "train/report/cmd_inspect_classes.h"

#include <stdio.h>
#include <string.h>

#include "base/cli/term.h"
#include "base/text.h"

enum { CLASSES_SHOWN = 20 };

/* ---- JSON ----------------------------------------------------------------------------------------------------- */

void mr_cmd_classes_json(const mr_manifest *m, json_t *doc)
{
    json_t *names = json_array(), *ids = json_array();
    bool have_ids = false;
    for (size_t i = 0; i < m->class_count; i++) {
        json_array_append_new(names, json_string(m->classes[i].name));
        json_array_append_new(ids, m->classes[i].has_id ? json_integer(m->classes[i].id) : json_null());
        have_ids |= m->classes[i].has_id;
    }
    json_object_set_new(doc, "classes", names);
    if (have_ids)
        json_object_set(doc, "class_ids", ids);
    json_decref(ids);
}

void mr_cmd_class_counts_json(const mr_manifest *m, const mr_class_counts *c, json_t *doc)
{
    json_t *all = json_object(), *zero = json_integer(0); /* one for all: most counts of many classes */
    for (size_t i = 0; i < m->split_count; i++) {
        const uint64_t *counts = c->counts + i * c->width;
        json_t *list = json_array();
        for (size_t k = 0; k < m->class_count; k++)
            json_array_append_new(list, counts[k] ? json_integer((json_int_t)counts[k]) : json_incref(zero));
        json_object_set_new(all, m->splits[i].name,
                            json_pack("{s:o,s:I,s:I,s:I}", "classes", list, "no_label",
                                      (json_int_t)counts[m->class_count + MR_NO_LABEL], "several_labels",
                                      (json_int_t)counts[m->class_count + MR_SEVERAL_LABELS], "no_such_class",
                                      (json_int_t)counts[m->class_count + MR_NO_SUCH_CLASS]));
    }
    json_object_set_new(doc, "class_counts", all);
    json_decref(zero);
}

/* ---- human-readable -------------------------------------------------------------------------------------------- */

void mr_cmd_classes_print(const mr_manifest *m)
{
    if (!m->class_count)
        return;
    printf("\n  %s%zu class%s%s: ", mr_sgr(stdout, MR_BOLD), m->class_count, m->class_count == 1 ? "" : "es",
           mr_sgr(stdout, MR_PLAIN));
    for (size_t i = 0; i < m->class_count && i < CLASSES_SHOWN; i++) {
        printf("%s", i ? ", " : "");
        mr_term_text(stdout, m->classes[i].name);
    }
    if (m->class_count > CLASSES_SHOWN)
        printf(" ... and %zu more (--classes)", m->class_count - CLASSES_SHOWN);
    printf("\n");
}

static bool any(const mr_manifest *m, const mr_class_counts *c, size_t column)
{
    for (size_t i = 0; i < m->split_count; i++)
        if (c->counts[i * c->width + column])
            return true;
    return false;
}

/* Where a sample has boxes or a list of labels, counting single labels would show nothing but zeros. */
static bool has_labels(const mr_manifest *m, const mr_class_counts *c)
{
    for (size_t k = 0; k < m->class_count; k++)
        if (any(m, c, k))
            return true;
    return any(m, c, m->class_count + MR_NO_SUCH_CLASS);
}

static void print_all_classes(const mr_manifest *m)
{
    printf("\n  %s label  class%s   (samples have no single label here: see their annotations or \"labels\" in the "
           "meta)\n",
           mr_sgr(stdout, MR_BOLD), mr_sgr(stdout, MR_PLAIN));
    for (size_t k = 0; k < m->class_count; k++) {
        printf("  %6zu  ", k);
        mr_term_text(stdout, m->classes[k].name);
        if (m->classes[k].has_id)
            printf("  %s(id %lld in the source)%s", mr_sgr(stdout, MR_DIM), (long long)m->classes[k].id,
                   mr_sgr(stdout, MR_PLAIN));
        printf("\n");
    }
}

/* In `width` columns or more. */
static void print_class(const char *name, int width)
{
    size_t printed = mr_term_text(stdout, name);
    printf("%*s", printed < (size_t)width ? width - (int)printed : 0, "");
}

static const char *const not_classes[MR_NOT_CLASSES] = {[MR_NO_LABEL] = "(no label)",
                                                        [MR_SEVERAL_LABELS] = "(several labels)",
                                                        [MR_NO_SUCH_CLASS] = "(beyond the classes)"};

static void print_counts(const mr_manifest *m, const mr_class_counts *c, size_t column)
{
    for (size_t i = 0; i < m->split_count; i++) {
        uint64_t n = c->counts[i * c->width + column];
        char count[32];
        printf("  %s%10s%s", n ? "" : mr_sgr(stdout, MR_YELLOW), mr_text_count(n, count), mr_sgr(stdout, MR_PLAIN));
    }
    printf("\n");
}

/* One column per split shows what is missing where. */
static void print_census(const mr_manifest *m, const mr_class_counts *c)
{
    size_t width = 7;
    for (size_t i = 0; i < m->class_count; i++)
        width = strlen(m->classes[i].name) > width ? strlen(m->classes[i].name) : width;
    width = width > 40 ? 40 : width;
    printf("\n  %s%6s  %-*s", mr_sgr(stdout, MR_BOLD), "label", (int)width, "class");
    for (size_t i = 0; i < m->split_count; i++)
        printf("  %10s", m->splits[i].name);
    printf("%s\n", mr_sgr(stdout, MR_PLAIN));
    for (size_t k = 0; k < m->class_count; k++) {
        printf("  %6zu  ", k);
        print_class(m->classes[k].name, (int)width);
        print_counts(m, c, k);
    }
    for (size_t i = 0; i < MR_NOT_CLASSES; i++) {
        if (!any(m, c, m->class_count + i))
            continue;
        printf("  %6s  %-*s", "", (int)width, not_classes[i]);
        print_counts(m, c, m->class_count + i);
    }
}

void mr_cmd_class_counts_print(const mr_manifest *m, const mr_class_counts *c)
{
    if (has_labels(m, c))
        print_census(m, c);
    else
        print_all_classes(m);
}
