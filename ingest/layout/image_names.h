/* image_names.h - names that annotations have for images, and the images whose paths end like them.
 * Invariant: a name that leads nowhere from its annotation's place is looked up by its last parts, never by a part of
 * one.
 *
 *      "images\\a.jpg"   "/home/me/data/images/a.jpg"   "C:\\data\\a.jpg"   "../images/a.jpg"
 *      "http://images.cocodataset.org/val2017/a.jpg"    "/data/local-files/?d=images/a.jpg"                          */
#ifndef MR_IMAGE_NAMES_H
#define MR_IMAGE_NAMES_H

#include "ingest/source/source.h"

typedef enum mr_name_kind {
    MR_NAME_BAD,     /* empty, or with a NUL */
    MR_NAME_PLAIN,   /* a path from the root, or from a folder of images */
    MR_NAME_FOREIGN, /* a path of another place: only its last parts mean something */
} mr_name_kind;
/* Replaces out's contents with the name's path: with slashes, without "." and "..". */
mr_name_kind mr_name_clean(const char *name, size_t len, mr_buf *out);

/* "a%20b.jpg", as in URLs, becomes "a b.jpg"; false: nothing of it is encoded. */
bool mr_name_decode(mr_buf *path);

typedef struct mr_image_names { /* the images of a run of entries, by the last parts of their paths */
    mr_tree tree;
    uint32_t *items;
    size_t count;
    bool ready;
} mr_image_names;

/* Once; later calls do nothing. */
mr_status mr_image_names_list(mr_image_names *names, const mr_tree *t, uint32_t begin, uint32_t end, mr_error *err);
void mr_image_names_free(mr_image_names *names);

typedef struct mr_name_match {
    uint32_t entry, rival; /* MR_NO_ENTRY: none, or no other shares as much */
} mr_name_match;

/* Judges a path that shares its last `same` bytes, whole parts, with the name: -1: it cannot be, else the higher wins
 * among those that share as much. */
typedef int mr_name_judge(void *ctx, const char *path, size_t len, size_t same);
/* The image that shares the most with the end of the name, at least its last part. */
mr_name_match mr_image_names_find(const mr_image_names *names, const char *name, size_t len, mr_name_judge *judge,
                                  void *ctx);
/* Looks up a name that led nowhere from its annotation's place, among the images of [begin, end), which the first call
 * lists.  A name of this tree with folders must share at least one of them, or end with the whole path. */
mr_status mr_image_names_below(mr_image_names *names, const mr_tree *t, uint32_t begin, uint32_t end, const char *name,
                               size_t len, mr_name_match *out, mr_error *err);

#endif
