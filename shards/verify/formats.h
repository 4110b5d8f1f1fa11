/* formats.h - what verify found, in the forms that CI services read.
 * Invariant: a form can also say that there is no report, and why; a reader never finds an empty file.
 *
 * A new form is one file with one function and one word in MR_VERIFY_FORMATS. */
#ifndef MR_VERIFY_FORMATS_H
#define MR_VERIFY_FORMATS_H

#include "shards/verify/verify.h"

/* Appends the report on `dataset`, a path as the user wrote it; r NULL: there is none, for the reason `why`.
 * MR_SYSTEM: out of memory. */
typedef mr_status mr_verify_format(const mr_verify_report *r, const char *why, const char *dataset, mr_buf *out,
                                   mr_error *err);

#define MR_VERIFY_FORMATS(X) X(junit) X(github) X(gitlab)

#define X(name) mr_verify_format mr_verify_##name;
MR_VERIFY_FORMATS(X)
#undef X

/* Calls take() for each problem, those of the dataset as a whole first, then each warning. */
void mr_verify_each(const mr_verify_report *r, void (*take)(void *context, const mr_problem *p, bool warning),
                    void *context);
void mr_problem_text(const mr_problem *p, mr_buf *out); /* appends "sample 21 (train/a.jpg): its image ..." */
/* Appends the file that it is about: DATASET/SHARD.mdb, or DATASET/manifest.json. */
void mr_problem_place(const mr_problem *p, const char *dataset, mr_buf *out);
/* Equal problems of one dataset, equal numbers. */
uint64_t mr_problem_fingerprint(const mr_problem *p);

enum { MR_FORMAT_MOST = 1000 }; /* problems in a list for a web page; `verify --json` has all */

#endif
