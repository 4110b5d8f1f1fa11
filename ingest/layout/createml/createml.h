/* createml.h - what the files of the CreateML layout share.
 * Invariant: nothing of the state changes after plan(), so that metas and objects may be made on many threads. */
#ifndef MR_CREATEML_H
#define MR_CREATEML_H

#include "ingest/layout/folders/folders.h"
#include "ingest/layout/texts.h"
#include "ingest/tables/createml.h"

typedef struct mr_createml_ref { /* an entry of a JSON file, and the image that it names */
    uint32_t entry, file, image;
} mr_createml_ref;

typedef struct mr_createml_state {
    mr_createml_file **files;
    size_t file_count, file_capacity;
    mr_createml_ref *refs; /* sorted by image, then by place; those of one image are joined */
    size_t ref_count, ref_capacity;
    mr_texts texts; /* the files that are small enough */
} mr_createml_state;

/* A sample's aux: the number of its first ref and one; 0: unlisted. */
static inline const mr_createml_ref *mr_createml_refs(const mr_createml_state *st, uint64_t aux, size_t *count)
{
    const mr_createml_ref *first = aux ? &st->refs[aux - 1] : NULL, *end = st->refs + st->ref_count, *at = first;
    while (first && at < end && at->entry == first->entry)
        at++;
    *count = (size_t)(at - first);
    return first;
}

typedef struct mr_createml_jsons {
    uint32_t *entries;
    size_t count, capacity;
} mr_createml_jsons;

/* Adds the json files of a folder ("" or "train") that look like CreateML, _annotations.createml.json in any case.
 * MR_SYSTEM: one could not be read. */
mr_status mr_createml_list(const mr_tree *t, const char *dir, size_t len, mr_createml_jsons *out, mr_error *err);
void mr_createml_jsons_free(mr_createml_jsons *jsons);
/* Appends the object that a ref names as the source wrote it. */
mr_status mr_createml_ref_text(const mr_source *s, const mr_createml_state *st, const mr_createml_ref *ref, mr_buf *out,
                               mr_error *err);
mr_status mr_createml_plan(const mr_tree *t, const mr_layout_options *o, mr_plan *plan, mr_error *err); /* plan.c */
/* objects.c: the objects in the text of one image's object. */
mr_status mr_createml_objects(const mr_buf *text, const mr_plan *plan, mr_objects *out, mr_error *err);

#endif
