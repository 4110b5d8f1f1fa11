/* conditions.h - what may be required of a sample: one row of a table for each condition.
 * Invariant: whether a sample meets a condition depends on the sample and on those before it in its split, never on the
 * run. */
#ifndef MR_CONDITIONS_H
#define MR_CONDITIONS_H

#include "shards/manifest/format.h"
#include "shards/manifest/manifest.h"

/* The sample that a condition is checked for. */
typedef struct mr_candidate {
    uint64_t number;      /* in its dataset's split */
    uint64_t passed;      /* samples that met all conditions up to this one */
    const mr_row *row;    /* its label is a number of the dataset's classes */
    const char *class_is; /* NULL: it has none */
    const char *meta;     /* NULL unless a condition of the part needs it */
    size_t meta_len;
} mr_candidate;

/* In the order in which they are checked: word, name, value, whether it reads metas, kind of argument, help. */
#define MR_CONDITIONS(X)                                                                                               \
    X(drop, "drop", "FILE", true, drop,                                                                                \
      "all but those in FILE, one per line: a source or an image hash, the reason and the date, separated by tabs")    \
    X(sample_list, "sample-list", "FILE", true, list, "only those in FILE, one per line: a source or an image hash")   \
    X(class, "class", "NAMES", false, text, "samples of these classes, separated by commas (in a name: \\,)")          \
    X(source, "source", "GLOB", true, text,                                                                            \
      "samples whose path in the source matches the pattern; * stands for / too")                                      \
    X(column, "column", "NAME=VALUE", true, column, "samples whose table row has this value in this column")           \
    X(objects, "objects", "N..M", true, objects, "samples with this many objects, such as 1.. or 0..20")               \
    X(min_side, "min-side", "PIXELS", false, number, "images whose shorter side has at least this many pixels")        \
    X(fraction, "fraction", "F", false, fraction,                                                                      \
      "this share, by the hash of the image; stable when the dataset grows")                                           \
    X(fold, "fold", "I/N", false, fold,                                                                                \
      "fold I of N, or with -I/N all of the others; copies of an image stay together")                                 \
    X(samples, "samples", "NUMBERS", false, ranges,                                                                    \
      "samples by their numbers, such as 0-99,105; @FILE: those in a file")                                            \
    X(first, "first", "N", false, number, "the first N of those that meet the other conditions")

typedef struct mr_condition_kind {
    const char *name, *value, *help; /* name, value and help of the option: --class NAMES */
    bool needs_meta;
    /* What `meets` needs of the argument; MR_MISUSE says what is accepted.  Released with free(). */
    mr_status (*prepare)(const char *argument, void **state, mr_error *err);
    bool (*meets)(const void *state, const mr_candidate *c);
} mr_condition_kind;

extern const mr_condition_kind mr_condition_kinds[]; /* ends with a row without a name */

typedef struct mr_condition {
    const mr_condition_kind *kind;
    char *argument;
    void *state;
    uint64_t passed;
} mr_condition;

/* MR_MISUSE: no such condition, or not with such an argument. */
mr_status mr_condition_make(const char *name, const char *argument, mr_condition *out, mr_error *err);
void mr_condition_free(mr_condition *c);

/* The length of the first of the names of --class, which are separated by commas; a comma in a name is written "\,". */
size_t mr_condition_name_end(const char *names);

/* Whether the candidate meets all of them, checked in order; `c->passed` is filled in here. */
bool mr_conditions_meet(mr_condition *conditions, size_t count, mr_candidate *c);
bool mr_conditions_need_meta(const mr_condition *conditions, size_t count);
/* How many names of a --drop or --sample-list no sample had, in all parts with the same argument; *name: the first of
 * them, lent by the conditions. 0 for other kinds. */
size_t mr_conditions_missed(const mr_condition *const *same, size_t count, const char **name);
/* Forgets the candidates so far, before another split is looked at. */
void mr_conditions_restart(mr_condition *conditions, size_t count);

#endif
