/* meta.h - the members of a sample's meta that millrace itself writes and reads back.
 * Invariant: they are at depth one of the object; everything the source wrote is deeper ("columns",
 * "annotations"), so no source can forge them.
 *
 *   {"source":"train/n01/a.JPEG","label":3,"class":"n01", ... }
 *   {"source":"...","labels":[0,4], ... }            several labels, or none of several: flag MULTI_LABEL
 *   {"source":"...","image_of":17, ... }             the bytes are stored under sample 17 of this split
 *   {"source":"...","unannotated":true, ... } */
#ifndef MR_META_H
#define MR_META_H

#include "base/buf.h"

typedef struct mr_meta_facts {
    int32_t label;   /* -1: none */
    int32_t highest; /* the highest of "label" and the items of "labels"; -1: there are none */
    bool multi_label, unannotated, has_image_of, has_class;
    uint64_t image_of;
} mr_meta_facts;

/* Parses the object (yajl: numbers of any size, nesting to 1,000) and picks the facts; `source`, if not NULL, gets the
 * path text appended.  MR_BAD_DATA: not one JSON object, duplicate or mistyped own members. */
mr_status mr_meta_scan(const void *json, size_t len, mr_meta_facts *facts, mr_buf *source, mr_error *err);

/* The same; `class_name` gets the path text of "class" appended. */
mr_status mr_meta_scan_class(const void *json, size_t len, mr_meta_facts *facts, mr_buf *class_name, mr_error *err);

/* The same; `labels` gets the items of "labels" appended, int32_t each, as they are listed. */
mr_status mr_meta_scan_labels(const void *json, size_t len, mr_meta_facts *facts, mr_buf *labels, mr_error *err);

/* Appends the opening of an object up to, not including, the layout's own members and the closing brace:
 *      {"source":"...","label":3,"class":"n01"                                                       */
void mr_meta_begin(mr_buf *out, const char *path, size_t path_len, const mr_meta_facts *facts, const char *class_name);
/* Appends a meta that mr_meta_begin() began, with this "image_of", or without one. */
void mr_meta_place(mr_buf *out, const char *meta, size_t len, bool has_image_of, uint64_t image_of);
/* Appends a meta that mr_meta_begin() began, with this label and class instead of its own, if it has any. */
void mr_meta_relabel(mr_buf *out, const char *meta, size_t len, int32_t label, const char *class_name);

#endif
