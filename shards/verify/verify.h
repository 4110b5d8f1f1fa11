/* verify.h - is a dataset intact, and if not, what exactly is damaged?
 * Invariant: damage is never a failure of the call: it is collected here and the call ends with MR_OK.  No byte of a
 * shard is handed to LMDB, and nothing but a progress line (on a terminal) is printed.
 *
 * This module, on top of dataset; only commands use it.  Its files use those above them, through parts.h:
 *   report oddity find             problems, and as JSON; harmless warnings; which shard has these bytes?
 *   rows seek pass deep            the checks of one shard (see the image in parts.h)
 *   shard                          all checks of one shard
 *   beside ranks                   other names in the folder; findings from rank to rank
 *   verify                         the whole dataset
 *   formats junit github ...       what was found, for machines */
#ifndef MR_VERIFY_H
#define MR_VERIFY_H

#include "base/ranks/ranks.h"
#include "base/cli/term.h"
#include "image/codec/image.h"
#include "base/json/json.h"

#define MR_PROBLEM_KINDS(X) /* name, word, what it means */                                                            \
    X(MANIFEST, "manifest", "the manifest is missing, cannot be read, or is not what millrace wrote")                  \
    X(MISSING, "missing", "a file that the manifest lists does not exist")                                             \
    X(NOT_A_FILE, "not-a-file", "a folder, FIFO or device, or a link to one, is where a file should be")               \
    X(UNREADABLE, "unreadable", "the system cannot read the file, or a part of it")                                    \
    X(SIZE, "size", "a file's size differs from the manifest")                                                         \
    X(DIGEST, "digest", "a file's digest differs from the manifest")                                                   \
    X(INDEX, "index", "the index does not describe the shard")                                                         \
    X(RECORD, "record", "a sample's bytes differ from their hash")                                                     \
    X(STRUCTURE, "structure", "every record is intact, but LMDB's own pages are not")                                  \
    X(PAGE_WALK, "page-walk", "LMDB's pages cannot be walked")                                                         \
    X(META, "meta", "a sample's meta differs from the index")                                                          \
    X(IMAGE, "image", "an image's header differs from the index")                                                      \
    X(DECODE, "decode", "an image cannot be decoded")                                                                  \
    X(SEEK, "seek", "the seek index does not describe the shard")                                                      \
    X(EXTRA, "extra", "a file is in the folder that the manifest does not list")                                       \
    X(EXPECT, "expect", "it is not the dataset that --expect names")

typedef enum mr_problem_kind {
#define X(name, word, means) MR_PROBLEM_##name,
    MR_PROBLEM_KINDS(X)
#undef X
        MR_PROBLEM_KIND_COUNT
} mr_problem_kind;

extern const char *const mr_problem_words[MR_PROBLEM_KIND_COUNT];

#define MR_NO_SAMPLE UINT64_MAX

typedef struct mr_problem {
    mr_problem_kind kind;
    char *shard;     /* "train-00003"; NULL: the dataset as a whole */
    uint64_t sample; /* its number in the split, or MR_NO_SAMPLE */
    char *source;    /* path text, NULL if it cannot be known */
    char *detail;    /* a sentence, UTF-8 */
    bool refused;    /* the system could not read it: the contents are unknown */
} mr_problem;

typedef struct mr_problems {
    mr_problem *items;
    size_t count, capacity;
    bool failed; /* memory ran out */
} mr_problems;

/* source may be NULL. */
void mr_problem_add(mr_problems *list, mr_problem_kind kind, const char *shard, uint64_t sample, const char *source,
                    const char *format, ...) MR_PRINTF(6, 7);
void mr_problems_free(mr_problems *list); /* contents */

typedef enum mr_verify_level {
    MR_VERIFY_QUICK,  /* manifest, sizes, every index, table of every seek index */
    MR_VERIFY_FULL,   /* + digest of every file, hash of every record, all of every seek index */
    MR_VERIFY_DEEP,   /* + page walk, meta, image headers against the index */
    MR_VERIFY_DECODE, /* + every pixel, seek indexes made again and compared */
} mr_verify_level;

extern const char *const mr_verify_level_words[];

typedef struct mr_verify_options {
    mr_verify_level level;
    bool no_sha256;         /* XXH3 alone: detects accidents, not tampering */
    mr_image_limits limits; /* max_pixels of the images that are decoded; larger ones are a problem */
    unsigned jobs;          /* threads; 0: all processors */
    const char *expect;     /* 64 hex digits: the dataset digest to insist on; NULL: any */
    mr_ranks *ranks;        /* shares out the shards; NULL: alone */
    bool quiet;             /* no progress line */
} mr_verify_options;

typedef struct mr_verify_oddity { /* images that decode with a harmless warning of one kind */
    uint64_t count;
    uint64_t first; /* the first one's sample, its number in the split */
    char *source;   /* path text of it, NULL if it cannot be known */
} mr_verify_oddity;

typedef struct mr_verify_shard {
    const char *name; /* the manifest's */
    uint64_t samples;
    uint64_t bytes;   /* bytes of both files, as the manifest states them */
    uint64_t damaged; /* samples that are damaged or cannot be reached */
    bool index_only;  /* the only damage is the index: `millrace reindex` rebuilds it */
    double seconds;
    mr_problems problems;
    mr_verify_oddity oddities[MR_ODDITY_COUNT];
} mr_verify_shard;

typedef struct mr_verify_report {
    mr_verify_level level;
    bool have_digest;
    uint8_t digest[32]; /* of the dataset */
    size_t split_count, shard_count;
    size_t seeks; /* shards that have a file for a seek index */
    mr_verify_shard *shards;
    uint64_t samples, bytes; /* sums over the shards */
    double seconds;
    mr_problems problems;         /* problems of the dataset as a whole */
    mr_problems warnings;         /* the data is intact, but worth a look */
    struct mr_manifest *manifest; /* keeps the names alive; NULL if it is damaged */
} mr_verify_report;

/* MR_OK: everything was checked; *out has the findings (under mpirun, all of them on rank 0 only).  MR_MISUSE: `dir` is
 * not a dataset or `expect` not a digest; MR_BAD_DATA: the ranks read different datasets; MR_SYSTEM: the system
 * refused, or the dataset was replaced meanwhile. */
mr_status mr_verify(const char *dir, const mr_verify_options *o, mr_verify_report **out, mr_error *err);
void mr_verify_report_free(mr_verify_report *r);

bool mr_verify_ok(const mr_verify_report *r);
/* The only problems are that another dataset was expected, or extra files in the folder. */
bool mr_verify_whole(const mr_verify_report *r);
const mr_problem *mr_verify_refused(const mr_verify_report *r); /* the first; NULL: none */
/* Whether all of the shard's problems are of these kinds (bit 1 << kind); true if it has none. */
bool mr_verify_only(const mr_verify_shard *s, unsigned kinds);
size_t mr_verify_problem_count(const mr_verify_report *r);

/* {"ok":bool,"whole":bool,"shards":n,"records":n,"bytes":n,"problems":[{"kind","shard","sample","source","detail"}...],
 *  ...}; a problem has "refused": true as well where the system failed. */
mr_status mr_verify_json(const mr_verify_report *r, json_t **out, mr_error *err);

#endif
