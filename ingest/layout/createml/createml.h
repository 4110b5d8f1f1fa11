/* createml.h - what the files of the CreateML layout share.
 * Invariant: nothing of the state changes after plan(), so that metas and objects may be made on many threads. */
#ifndef MR_CREATEML_H
#define MR_CREATEML_H

#include "layout/folders.h"
#include "layout/texts.h"
#include "tables/createml.h"

typedef struct mr_createml_state {
    mr_createml_file *files[MR_SPLIT_DIRS_MAX]; /* by split folder; NULL: it has no JSON */
    mr_texts texts;                             /* those that are small enough */
} mr_createml_state;

/* A sample's aux: its file, and its image's number there and one; 0: unlisted. */
static inline uint64_t mr_createml_aux(size_t file, size_t image)
{
    return (uint64_t)file << 32 | (image + 1);
}

/* The json of a folder ("" or "train"): _annotations.createml.json, or another that looks like one; MR_NO_ENTRY: none.
 * MR_SYSTEM: a file could not be read. */
mr_status mr_createml_find(const mr_tree *t, const char *dir, size_t len, uint32_t *found, mr_error *err);
mr_status mr_createml_plan(const mr_tree *t, const mr_layout_options *o, mr_plan *plan, mr_error *err); /* plan.c */
void mr_createml_state_free(void *state);
/* objects.c: of the text of one image's object. */
mr_status mr_createml_objects(const mr_buf *text, const mr_plan *plan, mr_objects *out, mr_error *err);

#endif
