/* manifest.h - what a dataset is, in one file published last.
 * Invariant: a manifest read from disk has only names that stay inside the dataset's folder, counts that add up,
 * and no value of the wrong type; everything else is MR_BAD_DATA. */
#ifndef MR_MANIFEST_H
#define MR_MANIFEST_H

#include "base/hash.h"
#include "base/ranks/shared.h"
#include "base/json/json.h"
#include "shards/manifest/draw.h"

typedef struct mr_shard {
    char name[80];           /* "train-00000": files NAME.mdb and NAME.idx */
    uint64_t first, samples; /* numbers in the split: first .. first + samples - 1 */
    uint64_t images;         /* distinct image records stored */
    uint64_t image_bytes;    /* their bytes */
    mr_digest mdb, idx;
    /* For a view (shards/dataset/dataset_view.c); zeros otherwise: */
    const struct mr_shard *stored; /* the dataset's own */
    uint32_t dataset;              /* its number in the view */
    uint64_t before;               /* samples of other datasets that the split numbers before this one's */
    const int32_t *labels;         /* the view's class of each class of the dataset; NULL: they are the same */
    uint32_t label_count;
} mr_shard;

/* The number that the split has for the shard's first sample. */
static inline uint64_t mr_shard_begin(const mr_shard *s)
{
    return s->before + s->first;
}

static inline int32_t mr_shard_label(const mr_shard *s, int32_t label)
{
    return s->labels && label >= 0 && (uint32_t)label < s->label_count ? s->labels[label] : label;
}

typedef struct mr_split {
    char name[64]; /* [A-Za-z0-9_.-], not starting with '.' */
    uint64_t samples, images, image_bytes;
    size_t shard_count;
    mr_shard *shards;
    uint64_t *seen;  /* a view's samples, by their numbers in the shards, ascending; NULL: all are seen */
    mr_shared *list; /* holds them, if the ranks of this host share that memory; NULL: they are the split's own */
    mr_draw *draw;   /* how often a view's samples are seen in an epoch; NULL: once each */
} mr_split;

/* The number that a sample of the split has in the shards. */
static inline uint64_t mr_split_stored(const mr_split *split, uint64_t n)
{
    return split->seen ? split->seen[n] : n;
}

enum {
    MR_FORMAT = 1,
    MR_SPLITS_MAX = 1000,   /* splits of a dataset */
    MR_SHARDS_MAX = 100000, /* shards of a split */
};

/* Limits of a manifest's bytes, and of the memory that reading it takes: 1.3 million classes, or 300,000 shards. */
#define MR_MANIFEST_MAX    ((uint64_t)256 << 20)
#define MR_MANIFEST_MEMORY ((uint64_t)512 << 20)

typedef struct mr_class {
    char *name; /* path text */
    bool has_id;
    int64_t id; /* the source's own number (COCO category id) */
} mr_class;

typedef struct mr_manifest {
    char *layout, *variant; /* "roboflow", "multi-class" */
    char *licence;          /* NULL if the source states none */
    json_t *options;        /* what shaped the bytes: shard_size, shuffle, label_column, split_map ... */
    size_t class_count, split_count;
    mr_class *classes;
    mr_split *splits;
    mr_shared *shared; /* shards of all splits, if the ranks of this host share them; NULL: each split has its list */
} mr_manifest;

void mr_manifest_free(mr_manifest *m);                  /* contents and the struct; NULL is fine */
static inline void mr_manifest_release(mr_manifest **m) /* for MR_AUTO */
{
    mr_manifest_free(*m);
}

/* Its bytes, appended; MR_BAD_DATA: they would be more than mr_manifest_parse() accepts. */
mr_status mr_manifest_write(const mr_manifest *m, mr_buf *out, mr_error *err);
/* MR_MISUSE: a later format; MR_BAD_DATA: damaged. */
mr_status mr_manifest_parse(const void *bytes, size_t len, const char *name, mr_manifest **out, mr_error *err);

/* For other ranks, which trust this one: the manifest without its shards, as mr_manifest_parse_head() accepts it, and
 * its shards, split by split; *rows is the caller's to free, also after a failure. */
mr_status mr_manifest_hand_out(const mr_manifest *m, mr_buf *head, mr_shard **rows, size_t *count, mr_error *err);
/* A manifest whose splits have counts of shards, but no shards before mr_manifest_adopt(). */
mr_status mr_manifest_parse_head(const void *bytes, size_t len, mr_manifest **out, mr_error *err);
/* Replaces the manifest's own lists of shards, if any, by the one that mr_manifest_hand_out() gave. */
mr_status mr_manifest_adopt(mr_manifest *m, mr_shared *rows, mr_error *err);

/* Whether every class can be told from the others: by its name, or by an id where the source numbers its classes itself
 * (COCO's categories may have equal names, or none).  MR_BAD_DATA if not; `where`: for the message. */
mr_status mr_classes_check(const mr_class *classes, size_t count, const char *where, mr_error *err);

/* The "seal", a hash of all else in the file: added by mr_manifest_write() to the bytes of `out` from `start` on;
 * checked when a dataset is opened, so that an edit of any byte is seen.  Parsing does not check it. */
mr_status mr_manifest_seal(mr_buf *out, size_t start, mr_error *err);
mr_status mr_manifest_check_seal(const void *bytes, size_t len, const char *name, mr_error *err);

/* Opens DIR/manifest.json: the parsed manifest and the dataset's digest (SHA-256 of the manifest's bytes).
 * MR_MISUSE: no dataset there, or one of a later format. MR_BAD_DATA: damaged. */
mr_status mr_manifest_open(const char *dir, mr_manifest **out, uint8_t digest[32], mr_error *err);
/* The same without checking the seal, for callers that look for damage and report it. */
mr_status mr_manifest_open_edited(const char *dir, mr_manifest **out, uint8_t digest[32], mr_error *err);
/* The same for an open folder, if it has a manifest. */
mr_status mr_manifest_read(int dirfd, mr_manifest **out, uint8_t digest[32], mr_error *err);
/* Distinguishes a dataset of a later format from no dataset. */
bool mr_manifest_is_there(int dirfd);

/* The shards of all splits, in order; *list is the caller's to free, also after a failure. */
mr_status mr_manifest_shards(const mr_manifest *m, const mr_shard ***list, size_t *count, mr_error *err);

const mr_split *mr_manifest_split(const mr_manifest *m, const char *name); /* NULL: none */
/* The same; MR_MISUSE if there is none, with a message that lists the splits.  `dataset`: its path; NULL: unknown.
 * `out` may be NULL. */
mr_status mr_manifest_find_split(const mr_manifest *m, const char *dataset, const char *name, const mr_split **out,
                                 mr_error *err);
bool mr_split_name_ok(const char *name);

/* Mean bytes of an image record as stored, 0 for an empty split.  Plans depend on it: plan and loader must use this
 * one. */
static inline uint64_t mr_split_mean_bytes(const mr_split *s)
{
    return s->images ? s->image_bytes / s->images : 0;
}

#endif
