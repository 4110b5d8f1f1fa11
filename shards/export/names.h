/* names.h - file names for an export: safe on any file system, and unique in their folder.
 * Invariant: a name is one path component of 1 to MR_NAME_MAX bytes of UTF-8; no two of a folder are equal when their
 * ASCII letters are compared without case.
 *
 * A name is kept as it is wherever possible.  Otherwise
 *      ../a:b?.jpg   a_b_.jpg      only the part after the last slash counts; what Windows forbids, control characters
 *                                  and bytes that are not UTF-8 become "_"
 *      .x  CON.jpg   _x  _CON.jpg  hidden files and the names of devices
 *      a.jpg  a.jpg  a-2.jpg       the first of equal names stays, the others are numbered from 2
 *      x  x.tif      x.jpg  x.tif.jpg    an image's name ends in .jpg, .jpeg, .png or .webp */
#ifndef MR_EXPORT_NAMES_H
#define MR_EXPORT_NAMES_H

#include "base/buf.h"
#include "base/string_map.h"

enum { MR_NAME_MAX = 200 }; /* bytes; room for an ending such as .xml in the 255 that file systems allow */

enum {
    MR_NAME_STEM = 1,   /* unique without its ending, because another file is named after it */
    MR_NAME_SOLID = 2,  /* without blanks */
    MR_NAME_FOLDER = 4, /* of a folder */
};

typedef struct mr_names { /* a zeroed one is empty */
    mr_buf text;          /* "FOLDER/name", folded */
    size_t *ends;         /* where each ends in `text` */
    uint32_t *next;       /* the number that a further file of this name tries first */
    size_t count, capacity, next_capacity;
    mr_string_map map;
} mr_names;

/* Whether a source path may be used below a folder: it is relative, and none of its parts is empty, "." or "..". */
bool mr_path_is_safe(const char *path, size_t len);

void mr_names_free(mr_names *n);

/* Appends to `out` the name for `wanted` in `folder`.  `suffix` ("jpg"): the ending of an image without one; NULL: it
 * needs none.  *changed: it is not the last component of `wanted`. */
typedef struct mr_name_request {
    const char *folder; /* any text that tells folders apart */
    const char *wanted;
    size_t len;
    const char *suffix;
    unsigned rules;
} mr_name_request;
mr_status mr_names_take(mr_names *n, const mr_name_request *r, mr_buf *out, bool *changed, mr_error *err);

#endif
