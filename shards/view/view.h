/* view.h - which samples of which datasets, in one small file without a byte of any image.
 * Invariant: the digest is a function of the datasets' digests and of what is seen of them; it does not depend on where
 * they are.
 *
 *      {"millrace_view":1, "paths":["../flowers"],                      where: relative to the file, or a URL
 *       "view":{"datasets":["5f..."], "splits":[...]}, "sha256":"..."}  what: its SHA-256, as compact JSON
 *
 * docs/views.md describes the members.  This module: view, the file; conditions, the table of what may be required of a
 * sample.  shards/dataset opens a view as a dataset. */
#ifndef MR_VIEW_FILE_H
#define MR_VIEW_FILE_H

#include "base/json/json.h"
#include "shards/view/conditions.h"

#define MR_VIEW_MAX ((uint64_t)256 << 20) /* bytes of a file */

enum { MR_VIEW_DATASETS = 1000, MR_VIEW_PARTS = 10000, MR_VIEW_RENAMES = 10000, MR_VIEW_REPEAT = 1000000 };

typedef struct mr_view_source { /* a dataset */
    char *path;
    uint8_t digest[32];
} mr_view_source;

typedef struct mr_view_part { /* those samples of one split of a dataset that meet all conditions, in order */
    size_t dataset;
    char *split;
    mr_condition *conditions;
    size_t condition_count;
    uint64_t samples; /* how many do */
    char *weight;     /* how often each is seen in an epoch, as a number; NULL: once */
    uint8_t list[16]; /* XXH3-128 of their numbers, 8 bytes each, little-endian */
} mr_view_part;

typedef struct mr_view_split {
    char *name;
    mr_view_part *parts;
    size_t part_count;
    uint64_t repeat; /* how often an epoch goes through it, times the weights: 1 to MR_VIEW_REPEAT */
    bool balance;    /* each class is seen equally often, instead of weights */
} mr_view_split;

typedef struct mr_view_rename { /* renames a class in all datasets; if a class has the new name, it takes the samples */
    char *from, *to;
} mr_view_rename;

typedef struct mr_view_file {
    mr_view_source *sources;
    mr_view_rename *renames;
    mr_view_split *splits;
    size_t source_count, rename_count, split_count;
    uint8_t digest[32];
} mr_view_file;

void mr_view_part_free(mr_view_part *p); /* contents */
void mr_view_file_free(mr_view_file *v); /* contents and the struct; NULL is fine */
static inline void mr_view_file_release(mr_view_file **v)
{
    mr_view_file_free(*v);
}

/* Whether the text is a weight: a number above 0, and at most MR_VIEW_REPEAT. */
bool mr_view_weight_ok(const char *text);

/* Whether a path that the user named leads to a file, and so to no dataset but a view. */
bool mr_view_is_at(const char *path);
/* MR_MISUSE if it does, for commands that need a dataset itself. */
mr_status mr_view_refuse(const char *path, mr_error *err);
/* MR_BAD_DATA: no view, a damaged one, or one that was edited; MR_MISUSE: a later format. */
mr_status mr_view_parse(const void *bytes, size_t len, const char *name, mr_view_file **out, mr_error *err);
mr_status mr_view_read(const char *path, mr_view_file **out, mr_error *err);
/* Appends the file's bytes, and sets the digest. */
mr_status mr_view_write(mr_view_file *v, mr_buf *out, mr_error *err);

/* Where the dataset is, as seen from here, for the file at `path`; caller: free.  NULL: out of memory. */
char *mr_view_place(const char *path, const mr_view_source *source);
/* The other way round: the path of a dataset as the folder of the file `out` sees it; caller: free. */
mr_status mr_view_relate(const char *out, const char *dataset, char **path, mr_error *err);

#endif
