/* coco.h - what the files of the export `coco` share.
 *
 *      annotations/instances_train.json  annotations/captions_train.json  train/1.jpg
 *
 * Invariant: an annotation is written as soon as its sample is read; only the image list waits, in a file. */
#ifndef MR_EXPORT_COCO_H
#define MR_EXPORT_COCO_H

#include "shards/export/format.h"

typedef struct mr_export_raw { /* an annotation as in the source; spans in the meta */
    mr_span id, area, mask;    /* mask: a segmentation in run lengths */
} mr_export_raw;

typedef struct mr_export_raws { /* what one sample's meta has as it was written; empty if zeroed */
    mr_export_raw *items;       /* sorted by the text of their ids */
    size_t count, capacity;
} mr_export_raws;

/* Replaces the contents by the annotations of COCO that the meta has, if any. */
mr_status mr_export_raws_read(const char *meta, const mr_export_facts *f, mr_export_raws *out, mr_error *err);
/* The annotation of an id; NULL: none. */
const mr_export_raw *mr_export_raws_find(const mr_export_raws *r, const char *meta, const char *id, size_t len);

/* One annotation: an object of the image `image`.  False: it has no box, nor anything to make one of. */
typedef struct mr_export_annotation {
    const char *meta;
    const mr_objects *objects;
    const mr_object *object;
    const mr_export_raw *raw; /* or NULL */
    int64_t id, image, category;
} mr_export_annotation;
bool mr_export_annotation_write(const mr_export_annotation *a, mr_buf *out);

#endif
