/* condition_kinds.h - between the files of the conditions: what the table in conditions.c takes from the others.
 * Invariant: `make` prepares an argument once, `meets` checks any number of samples; see mr_condition_kind. */
#ifndef MR_CONDITION_KINDS_H
#define MR_CONDITION_KINDS_H

#include "shards/view/conditions.h"

mr_status mr_condition_drop_make(const char *argument, void **state, mr_error *err);
bool mr_condition_drop_meets(const void *state, const mr_candidate *c);
mr_status mr_condition_list_make(const char *argument, void **state, mr_error *err);
bool mr_condition_sample_list_meets(const void *state, const mr_candidate *c);
mr_status mr_condition_column_make(const char *argument, void **state, mr_error *err);
bool mr_condition_column_meets(const void *state, const mr_candidate *c);
mr_status mr_condition_objects_make(const char *argument, void **state, mr_error *err);
bool mr_condition_objects_meets(const void *state, const mr_candidate *c);

#endif
