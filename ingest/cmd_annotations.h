/* cmd_annotations.h - the files of --annotations, as paths in the source.
 * Invariant: a file on disk that is in no SRC becomes a SRC of its own, so every layout reads it as any other file. */
#ifndef MR_CMD_ANNOTATIONS_H
#define MR_CMD_ANNOTATIONS_H

#include "ingest/pipeline/ingest_state.h"

typedef struct mr_cmd_annotations {
    char **names;   /* in the source; ends with NULL */
    char **sources; /* those of the options, and the files in none of them; only the list is owned */
} mr_cmd_annotations;

/* Replaces o->sources and o->for_layout.annotations.  `given`: the option's values, `count` of them.  MR_SYSTEM: out of
 * memory. */
mr_status mr_annotations_settle(char *const *given, size_t count, mr_ingest_options *o, mr_cmd_annotations *out,
                                mr_error *err);
void mr_annotations_free(mr_cmd_annotations *a);

#endif
