/* label_census.h - what the texts of labels mean together: numbers, names, captions, or no label; and their classes.
 * Invariant: a number is never a name that is sorted as text: classes are in numeric order, names follow them, and what
 * stands for "no label" is counted and does not become a class.
 *
 *      0, 1, 10, 9           classes 0 to 10: a label is its number          3.0 is 3; 007 and 1e3 are names
 *      20001, 5, cat         classes 5, 20001, cat                           -1 is "none", unless there are only -1
 * and 1 */
#ifndef MR_LABEL_CENSUS_H
#define MR_LABEL_CENSUS_H

#include "ingest/layout/common/class_set.h"

typedef enum mr_value_kind {
    MR_VALUE_NONE,   /* empty, or a word for it: NaN, None, null, N/A ... */
    MR_VALUE_WHOLE,  /* a whole number */
    MR_VALUE_NUMBER, /* another */
    MR_VALUE_TEXT,
} mr_value_kind;

typedef struct mr_value {
    mr_value_kind kind;
    double number;
    char name[24]; /* a number as the name of its class */
} mr_value;

mr_value mr_value_of(const char *text, size_t len);

typedef struct mr_label_gaps { /* missing labels */
    size_t empty, minus_one, words;
    size_t absent; /* not even empty; counts where other labels are there */
} mr_label_gaps;

typedef struct mr_label_census { /* a zeroed one is empty */
    mr_class_set set;
    mr_plan distinct;    /* its classes are the different values, as long as there are not too many */
    size_t labels, once; /* all that are not none; those that were new when they came */
    size_t numbers, whole, minus_ones, words;
    double lowest, highest; /* among the numbers that are not -1 */
    bool other_than_one;    /* ... and whether one is not 1 */
    bool full;              /* there are more than MR_CLASS_SET_MAX */
    bool filled;            /* settled: classes are all numbers from 0 to the highest */
    bool minus_is_none;     /* settled: -1 stands for no label */
} mr_label_census;

/* Counts a label, or in `gaps` a missing one. */
mr_status mr_label_census_add(mr_label_census *c, const char *text, size_t len, mr_label_gaps *gaps, mr_error *err);
/* After all labels.  Whole numbers up to `most` are the numbers of their classes. */
void mr_label_census_settle(mr_label_census *c, double most);
/* Whether the labels are texts of which (nearly) each occurs once, or long ones: then they do not form a list of
 * classes. */
bool mr_label_census_unique(const mr_label_census *c);
/* ... and whether these are sentences. */
bool mr_label_census_sentences(const mr_label_census *c);
/* Adds the classes to the plan, which has none, in their order; measurements among them are noted.  MR_MISUSE: there
 * are too many; `where` names them. */
mr_status mr_label_census_classes(const mr_label_census *c, const char *where, mr_plan *plan, mr_error *err);
/* The class of a label of the census; -1: it is a missing one. */
int32_t mr_label_census_find(const mr_label_census *c, const mr_plan *plan, const char *text, size_t len);
/* A remark that counts missing labels, if there are any: "WHAT without a label: 3 (empty: 2, -1: 1); ...". */
void mr_label_census_note(const mr_label_census *c, const mr_label_gaps *gaps, const char *file, const char *what,
                          mr_notes *notes);
void mr_label_census_free(mr_label_census *c);

/* Sorts the plan's classes, which differ, by mr_value_order(), and places them. */
mr_status mr_plan_classes_in_order(mr_plan *plan, mr_error *err);

#endif
