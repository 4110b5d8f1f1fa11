/* plan.h - what a layout makes of a source, as text that a test compares whole. */
#ifndef MR_SUPPORT_PLAN_H
#define MR_SUPPORT_PLAN_H

#include "ingest/layout/layout.h"
#include "tests/support/support.h"

/* Opens `source`, lets the layouts bid (`forced`: only that one), plans, writes every meta; heap:
 *
 *      layout imagenette 95: variant imagenette, licence Public Domain, classes a b
 *      train train/a/1.jpg a stem [flags] ,"columns":{}      SPLIT PATH CLASS GROUP FLAGS META, "-" for none
 *      note missing PATH: DETAIL
 *      unused PATH
 *
 * or, where it fails: "choose: TEXT" or "plan STATUS: TEXT".  `o` may be NULL. */
char *support_plan(const char *source, const char *forced, const mr_layout_options *o);

/* The first line only, for real samples: "... ; train 150, val 60; 0 notes, 1 unused". */
char *support_plan_counts(const char *source, const mr_layout_options *o);

/* Empty files (planning reads no image) under dir: names ends with NULL. */
void support_touch(const char *dir, const char *const *names);

/* Compares the outcome with a text, and frees it. */
void support_assert_plan(const char *source, const mr_layout_options *o, const char *expected);

/* ---- a folder of the test's own ---------------------------------------------------------------------------------- */

#define NAMES(...) ((const char *const[]){__VA_ARGS__, NULL})

extern char *plan_dir; /* between these two, which are cmocka's set-up and tear-down */
int plan_set_up(void **state);
int plan_tear_down(void **state);

void plan_file(const char *name, const char *text);
void plan_remove(const char *name);                             /* a file */
void plan_is(const mr_layout_options *o, const char *expected); /* the whole outcome */
/* For outcomes that are long: words of it. */
void plan_says(const mr_layout_options *o, const char *forced, const char *words);
void plan_lacks(const char *words);

#endif
