/* croissant.h - the parts of a Croissant description that a dataset and its exports have in common.
 * Source: Croissant Format Specification 1.1 (MLCommons); schema.org for the names that it takes over.
 * Invariant: names from a dataset or its source appear only in JSON strings; ids are made of split names and files
 * that millrace chose.
 *
 *      head      {"@context":..., "name":..., "distribution":[
 *      files     one FileObject each, with its SHA-256; commas are the caller's
 *      lists     ],"recordSet":[ dataset/classes and dataset/splits, the values that a label and a split can have
 *      end       ]}                                                                                                  */
#ifndef MR_CROISSANT_H
#define MR_CROISSANT_H

#include "shards/manifest/manifest.h"

#define MR_CROISSANT_CLASSES "dataset/classes" /* no split has a slash in its name, so no id of one is the same */
#define MR_CROISSANT_SPLITS  "dataset/splits"

typedef struct mr_croissant_of { /* what is described */
    const mr_manifest *manifest;
    const uint8_t *digest; /* [32], the dataset's */
    const char *split;     /* only this one; NULL: all */
} mr_croissant_of;

typedef struct mr_croissant_object {
    const char *path;      /* relative to the description */
    const char *format;    /* its media type */
    const uint8_t *sha256; /* [32] */
    uint64_t bytes;        /* 0: not said */
} mr_croissant_object;

void mr_croissant_add_head(const mr_croissant_of *of, mr_buf *out);
void mr_croissant_add_object(const mr_croissant_object *object, mr_buf *out);
void mr_croissant_add_lists(const mr_croissant_of *of, mr_buf *out);
void mr_croissant_add_end(mr_buf *out);

#endif
