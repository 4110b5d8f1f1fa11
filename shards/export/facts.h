/* facts.h - what a sample's meta says besides its objects.
 * Invariant: texts are UTF-8, whatever the meta holds; spans are JSON values that a strict parser has accepted. */
#ifndef MR_EXPORT_FACTS_H
#define MR_EXPORT_FACTS_H

#include "base/buf.h"

typedef struct mr_span { /* in the meta, or in mr_export_facts.texts; len 0: none */
    size_t at, len;
} mr_span;

typedef struct mr_export_facts {
    mr_buf source; /* the path as bytes; empty: not path text */
    uint32_t *labels;
    size_t label_count, label_capacity; /* items of "labels" */
    mr_buf texts;
    mr_span *captions; /* in `texts` */
    size_t caption_count, caption_capacity;
    mr_span columns;   /* the JSON value, in the meta */
    mr_span instances; /* COCO's annotations: "instances" or "annotations" */
    mr_span keypoints; /* "person_keypoints" */
    mr_span image_id;  /* the id in COCO's "image" */
    bool has_labels;   /* "labels" is there, if only as an empty list */
} mr_export_facts;

/* Replaces the contents.  MR_BAD_DATA: not a meta. */
mr_status mr_export_facts_read(const char *meta, size_t len, mr_export_facts *f, mr_error *err);
void mr_export_facts_free(mr_export_facts *f);

#endif
