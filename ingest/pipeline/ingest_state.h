/* ingest_state.h - a source tree becomes a dataset: what the steps share, and the steps of this folder.
 * Invariant: DATASET is absent or unchanged until the one rename that makes the complete new dataset visible.
 *
 *   source -> layout -> plan of samples -> examine every image -> cut into shards -> build each -> publish
 *   (list)    (bid)     (names, labels)    (pass 1: trust)        (pure function)    (pass 2)      (rename)
 *                `--> before the plan, files of rows are opened by a program, and their rows listed
 *
 * Two passes over the images: what is rejected must be known before samples get their numbers. */
#ifndef MR_INGEST_STATE_H
#define MR_INGEST_STATE_H

#include <stdatomic.h>

#include "image/similar/near.h"
#include "base/ranks/ranks.h"
#include "base/cli/term.h"
#include "image/codec/image.h"
#include "shards/manifest/manifest.h"
#include "ingest/layout/layout.h"
#include "ingest/pipeline/ledger.h"
#include "ingest/stage/stage.h"
#include "shards/seek/seek.h"

typedef enum mr_leak_limit { /* which leaks make ingest fail */
                             MR_LEAK_NONE,
                             MR_LEAK_EQUAL, /* equal bytes */
                             MR_LEAK_ALIKE, /* and images that look alike */
} mr_leak_limit;

enum { MR_SHARES_MAX = 16 };

typedef struct mr_split_share { /* one part of --split */
    char name[64];
    double share; /* all of them are 1 */
} mr_split_share;

typedef struct mr_ingest_options {
    char *const *sources;
    size_t source_count;
    const char *target;
    const char *layout; /* NULL: found by bidding */
    mr_layout_options for_layout;
    mr_source_options for_source;
    mr_image_limits limits;
    uint64_t shard_size;                  /* target for a shard's images and metas, in bytes */
    bool shard_size_given;                /* or else it grows with the source, see mr_plan_shards() */
    mr_split_share shares[MR_SHARES_MAX]; /* a source without splits is divided among these ... */
    size_t share_count;
    const char *group_pattern; /* ... with paths in which this regular expression finds equal text kept together */
    bool shuffle;
    uint64_t seed;
    unsigned jobs;
    bool decode;          /* --check decode */
    uint64_t max_rejects; /* files; or, if max_rejects_percent >= 0, that share of them */
    double max_rejects_percent;
    mr_leak_limit fail_on_leak;
    bool near;              /* --near-duplicates ... */
    uint32_t near_distance; /* ... whose hashes are at most this far apart */
    bool force, dry_run, quiet;
    bool seek;              /* with seek indexes ... */
    unsigned seek_every;    /* ... of this spacing */
    atomic_bool *published; /* for signal handlers: becomes true atomically with the rename */
} mr_ingest_options;

/* One image file of the source, read once. */
typedef struct mr_examined {
    uint64_t hash; /* XXH3-64 */
    uint8_t hash128[16];
    mr_image_facts facts;
    char *why;         /* rejected: the reason; NULL: good */
    uint32_t oddities; /* found by decoding it: bits 1 << mr_oddity */
    uint32_t content;  /* equal numbers: equal bytes, by XXH3-128 */
} mr_examined;

typedef struct mr_shard_plan { /* a shard to be built */
    char name[80];
    uint32_t split;
    uint64_t first;               /* number of its first sample in the split */
    size_t begin, count;          /* its samples: order[begin .. begin + count - 1] */
    uint64_t images, image_bytes; /* as planned: equal hashes counted once */
} mr_shard_plan;

typedef struct mr_near_sums {
    uint64_t pictures, plain, unreadable, crowded; /* as mr_near_state and mr_near_found */
} mr_near_sums;

typedef struct mr_ingest {
    const mr_ingest_options *options;
    mr_ranks *ranks;
    mr_source *source;
    mr_choice choice;
    mr_plan plan;
    mr_notes notes;
    mr_ledger ledger;
    mr_examined *examined; /* by position in `files` */
    uint32_t *files;       /* entries to examine, ascending */
    size_t file_count;
    mr_near_picture *looks; /* parallel to files; NULL unless near-duplicates are looked for */
    uint32_t *file_of;      /* entry -> position in files, or MR_NO_ENTRY */
    size_t content_count;
    uint32_t *order; /* sample numbers of the plan, split by split, shuffled if asked */
    size_t order_count;
    mr_shard_plan *cuts;
    size_t cut_count, cut_capacity;
    mr_shard *shards;         /* as built, parallel to cuts */
    mr_object_tally *tallies; /* the objects in each shard, parallel to cuts */
    mr_seek_result *seeks;    /* their seek indexes, parallel to cuts; NULL: none were requested */
    uint64_t shard_size;      /* as given, or chosen */
    mr_manifest *manifest;    /* rank 0, when all is built */
    uint8_t digest[32];
    uint64_t resumed; /* shards reused from an earlier run */
    uint64_t rejects, leaks;
    uint64_t equal_leaks;    /* those among `leaks` that were found by equal bytes */
    uint64_t rejects_listed; /* those among `rejects` by the listing and the plan, before files are examined; rank 0 */
    uint8_t *leaked;         /* by sample: a leak names it; NULL before leaks are looked for */
    mr_near_sums near;       /* sums over the images that were compared */
    double seconds;
    mr_progress *progress; /* of the current step */
} mr_ingest;

void mr_ingest_release(mr_ingest *in);       /* a zeroed one is fine */
int mr_ingest_progress(const mr_ingest *in); /* where this rank's progress goes: mr_progress_begin()'s `to` */

/* Rejects among the notes so far: bad images, unsafe names, all but one of equal names. */
uint64_t mr_rejects(const mr_ingest *in);

/* What fails where ranks exchange results. */
#define MR_RANKS_DIFFER(what) "mpirun: the ranks " what "; give all of them the same source"

/* ---- the steps (each in a file of its own) ---------------------------------------------------------------------- */

mr_status mr_open_files(mr_ingest *in, const mr_stage *stage, mr_error *err); /* open_files.c: rows become entries */
/* ledger.c: what became of each file of the source; `notes_before`: the notes that are not the plan's.  MR_BAD_DATA: an
 * image or an annotation would be lost. */
mr_status mr_ledger_settle(mr_ingest *in, size_t notes_before, mr_error *err);
void mr_note_near_names(mr_ingest *in);                        /* near_names.c: of missing images */
mr_status mr_note_class_order(mr_ingest *in, mr_error *err);   /* class_order.c */
mr_status mr_check_links(const mr_ingest *in, mr_error *err);  /* completeness.c: no link stands for images */
mr_status mr_check_splits(const mr_ingest *in, mr_error *err); /* ... and no split is empty */
mr_status mr_examine(mr_ingest *in, mr_error *err);            /* examine.c: hashes, headers, rejects */
mr_status mr_check_metas(const mr_ingest *in, mr_error *err);  /* shard_plan.c: their size is within limits */
mr_status mr_plan_shards(mr_ingest *in, mr_error *err);        /* shard_plan.c: order and shards */

/* build.c: thread-safe; fills in->shards[cut] */
mr_status mr_build_shard(mr_ingest *in, const mr_stage *stage, size_t cut, bool *resumed, mr_error *err);

/* objects_report.c: sums over all shards, in which the first of an oddity is a number in plan.samples; and remarks on
 * oddities. */
mr_object_tally mr_ingest_objects(const mr_ingest *in);
void mr_ingest_note_objects(mr_ingest *in);
json_t *mr_ingest_objects_json(const mr_object_tally *tally); /* NULL: no memory */

mr_status mr_build_seeks(mr_ingest *in, const mr_stage *stage, mr_error *err); /* build_seeks.c; every rank */

mr_status mr_publish(mr_ingest *in, mr_stage *stage, mr_error *err); /* publish.c; rank 0 */

mr_status mr_ingest_manifest(mr_ingest *in, mr_error *err); /* report.c */
/* Checks that the manifest of what is planned can be read. */
mr_status mr_ingest_check_manifest(mr_ingest *in, mr_error *err);
json_t *mr_ingest_report(const mr_ingest *in, bool complete); /* the content of report.json; NULL: no memory */

typedef struct mr_split_sums {
    uint64_t samples, images, bytes, shards;
} mr_split_sums;

/* Sums over the shards of a split as built or, before that, as planned. */
mr_split_sums mr_ingest_split(const mr_ingest *in, uint32_t split); /* report.c */

#endif
