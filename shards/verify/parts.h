/* parts.h - private to this module: the state of one shard as it passes the checks.
 *
 *   open_index -> seek index -> open_shard -> pass (digest + record hashes, one read) -> deep (walk, meta, headers,
 * pixels)
 *
 * Invariant: damaged[row] is set exactly when that sample is damaged, out of reach, or cannot be decoded. */
#ifndef MR_VERIFY_PARTS_H
#define MR_VERIFY_PARTS_H

#include "shards/format/meta.h"
#include "shards/seek/seek.h"
#include "shards/verify/verify.h"

enum { MR_DAMAGED_IMAGE = 1, MR_DAMAGED_META = 2, MR_DAMAGED_DECODE = 4 }; /* DECODE: only the pixels are damaged */

enum { MR_PASS_CHUNK = 256 * 1024 }; /* measured: the fastest that stays in the second-level cache with its hashes */

/* What a worker thread owns and reuses from shard to shard. */
typedef struct mr_verify_scratch {
    uint8_t *chunk; /* MR_PASS_CHUNK bytes, page-aligned */
    mr_hash64_stream *stream;
    mr_buf record, source;
    mr_jpeg_decoder *decoder; /* for seek indexes; NULL until one is there */
    mr_buf entries;
} mr_verify_scratch;

typedef struct mr_verify_file {
    const mr_digest *digest;
    const mr_shard *shard;
} mr_verify_file;

/* All shards of the manifest, in orders to search by: find.c. */
typedef struct mr_verify_find {
    size_t count;
    const char **names;
    mr_verify_file *mdb, *idx; /* by size, digest, name */
} mr_verify_find;

typedef struct mr_verify_job {
    int dirfd;
    const mr_manifest *manifest;
    const mr_verify_find *find;
    const mr_shard *shard;
    const mr_verify_options *options;
    mr_verify_scratch *scratch;
    mr_progress *progress;
    mr_verify_shard *out;

    char mdb_name[96], idx_name[96];
    int mdb;          /* -1: cannot be read */
    uint64_t size;    /* the .mdb's actual one */
    uint64_t unread;  /* bytes of the .mdb that the system could not read */
    mr_row *rows;     /* NULL: no usable index */
    bool index_good;  /* rows match the manifest's digest */
    mr_shard counted; /* the shard with images and bytes as in its rows */
    uint8_t *damaged; /* a byte a row */
    mr_buf seek;      /* the whole seek index, if it will be compared with a rebuilt one */
    mr_seek_header seek_header;
} mr_verify_job;

/* All checks of one shard; damage goes to job->out; the status reports only failures of the system. */
mr_status mr_verify_one(mr_verify_job *job, mr_error *err);

mr_status mr_verify_find_begin(const mr_shard *const *shards, size_t count, mr_verify_find *f, mr_error *err);
void mr_verify_find_end(mr_verify_find *f);
bool mr_verify_find_name(const mr_verify_find *f, const char *name, size_t len);
/* Another file of the dataset that should have this size, and (digest not NULL) these very bytes; NULL: none. */
const mr_shard *mr_verify_find_other(const mr_verify_job *job, bool idx, uint64_t size, const mr_digest *digest);

/* Reads the names in the dataset's folder; *shards: how many are .mdb files.  `r`, if not NULL, gets what does not
 * belong, and the count of seek indexes. */
mr_status mr_verify_beside(int dirfd, const char *dir, const mr_verify_find *find, mr_verify_report *r, size_t *shards,
                           mr_error *err);

/* The manifest's counts and classes against the rows of a good index; sets job->counted. */
void mr_verify_rows(mr_verify_job *job);
/* What is wrong with the classes that a meta names; NULL: nothing. */
const char *mr_verify_class(const mr_verify_job *job, const mr_meta_facts *facts, const mr_buf *class_name);

/* Reads `bytes` bytes of the .mdb once: their digest, and the hash of every record of job->rows.
 * *read_to: where the file really ended, if it has become shorter meanwhile. */
mr_status mr_verify_pass(mr_verify_job *job, uint64_t bytes, mr_digest *digest, uint64_t *read_to, mr_error *err);

/* The system's failure to open or read a file of the shard: MR_OK and a problem of the shard, where it is about that
 * file alone (a bad sector, permissions); else (memory, open files) `why`, which ends verify.  `errnum`: what the
 * system said. */
mr_status mr_verify_refusal(mr_verify_job *job, mr_problem_kind kind, int errnum, const mr_error *why, mr_error *err);

/* Checks NAME.seek, if there is one, as far as possible without reading the .mdb. */
mr_status mr_verify_seek(mr_verify_job *job, mr_error *err);
/* Compares the entries in job->seek with those rebuilt for row i, whose image is in scratch->record. */
mr_status mr_verify_seek_row(mr_verify_job *job, uint64_t i, mr_error *err);

/* Page walk, meta and image headers (and pixels) against the index. */
mr_status mr_verify_deep(mr_verify_job *job, mr_error *err);

/* oddity.c.  Counts the row's image, which has been decoded; turns the counts of all shards into warnings, one per
 * kind; packs one shard's counts for other ranks, and unpacks them. */
mr_status mr_verify_oddity_add(mr_verify_job *job, uint64_t row, uint32_t oddities, mr_error *err);
void mr_verify_oddity_warn(mr_verify_report *r);
json_t *mr_verify_oddity_json(const mr_verify_shard *s);
bool mr_verify_oddity_unjson(json_t *from, mr_verify_shard *s);
void mr_verify_oddity_free(mr_verify_shard *s);

/* The source path of a row in scratch->source (path text), NULL if its meta is not whole. */
const char *mr_verify_source(mr_verify_job *job, uint64_t row);

/* Collective: what every rank found about the dataset and its shards, into rank 0's report. */
mr_status mr_verify_gather(mr_ranks *ranks, mr_verify_report *r, mr_error *err);

/* Appends all of them to an array; false: out of memory. */
bool mr_problems_json(const mr_problems *list, json_t *array);
bool mr_problem_unjson(const json_t *from, mr_problems *list);

#endif
