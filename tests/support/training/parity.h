/* parity.h - the fixtures of the parity folder, and how far from them a result may be.
 * Invariant: an error beyond its tolerance fails the running test, and so does a part of a fixture that is not
 * there. */
#ifndef MR_SUPPORT_PARITY_H
#define MR_SUPPORT_PARITY_H

#include "base/json/json.h"
#include "tests/support/training/model.h"
#include "tests/support/training/npz.h"

/* The worst error of each kind over its tolerance. */
typedef struct parity_worst {
    const char *kind;
    double error, tolerance;
    char where[256];
} parity_worst;

typedef struct parity_table {
    parity_worst rows[24];
    size_t count;
} parity_table;

void parity_note(parity_table *t, const char *kind, double error, double tolerance, const char *model,
                 const char *where);
void parity_print(const parity_table *t); /* with MILLRACE_VERBOSE */

double parity_largest(const float *a, size_t count);
double parity_difference(const float *a, const float *b, size_t count); /* the largest; NaN counts as infinite */

/* 1 - the cosine between two tensors, taken piece by piece.  Zeroed: nothing yet. */
typedef struct parity_angle {
    double product, squares[2];
} parity_angle;
void parity_angle_add(parity_angle *a, const float *got, const float *want, size_t count);
double parity_angle_off(const parity_angle *a);
/* Computed in bf16 by the README's rules: `got` of one kind within 4 % of the largest of `want`. */
void parity_note_bf16(parity_table *t, const char *kind, const float *got, const float *want, size_t count,
                      const char *model);
/* The rest of a pass in bf16: its loss, the norm of its gradients, and the angle of them all. */
void parity_note_pass_bf16(parity_table *t, double loss, double want_loss, const parity_angle *all, const char *model);

/* The path of NAME_WHAT, on the heap. */
char *parity_part(const char *name, const char *what);
/* NAME.json; the caller releases it. */
json_t *parity_facts(const char *name);
/* A member, or with at >= 0 its element. */
double parity_number(const json_t *object, const char *key, int at);

/* Hands each fixture PREFIX*.json to `check` by its name, in order, then prints the table; skips the test where there
 * is none. */
void parity_each(const char *prefix, void (*check)(const char *name, parity_table *t));

#endif
