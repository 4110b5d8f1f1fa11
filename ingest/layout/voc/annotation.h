/* annotation.h - one XML file of Pascal VOC: the size of an image, and its objects.
 * Invariant: nothing is fetched or expanded: a file with a DOCTYPE, where entities would be declared, is refused. */
#ifndef MR_VOC_ANNOTATION_H
#define MR_VOC_ANNOTATION_H

#include "base/buf.h"

enum { MR_VOC_XML_MAX = 16 << 20, MR_VOC_DEPTH = 32, MR_VOC_NAME_MAX = 4096 };

typedef struct mr_voc_object {
    size_t name_at, name_len; /* in mr_voc_annotation.names: UTF-8, without surrounding blanks */
    double sides[4];          /* xmin, ymin, xmax, ymax, as written */
    unsigned seen;            /* a bit for each side that was read */
    bool named, boxed;        /* it has a name, a bndbox */
    size_t point, points;     /* its polygon: first number and count in mr_voc_annotation.points, x and y in turn */
} mr_voc_object;

typedef struct mr_voc_annotation { /* a zeroed one is empty */
    uint32_t width, height;        /* 0: not stated */
    size_t file_at, file_len;      /* <filename>, in names */
    mr_voc_object *objects;
    size_t count, capacity;
    double *points;
    size_t point_count, point_capacity;
    mr_buf names;
    struct XML_ParserStruct *parser; /* kept for the next file: making one costs as much as a small file */
} mr_voc_annotation;

/* Replaces the contents.  MR_BAD_DATA: not XML, not an <annotation>, a DOCTYPE, too deep, an invalid number, an
 * object with two names or two boxes; the message is "line N: ...". */
mr_status mr_voc_parse(const void *bytes, size_t len, mr_voc_annotation *out, mr_error *err);
/* Appends all of it to `out`, and takes it from there; for this process alone. */
void mr_voc_annotation_pack(const mr_voc_annotation *a, mr_buf *out);
mr_status mr_voc_annotation_unpack(const void *packed, mr_voc_annotation *out, mr_error *err);
void mr_voc_annotation_free(mr_voc_annotation *a);

#endif
