/* loader.h - loaders run to their end, and what they gave kept as numbers that can be compared.
 * Invariant: two runs are equal if and only if every sample's facts, bytes, meta and place in the plan are. */
#ifndef MR_SUPPORT_LOADER_H
#define MR_SUPPORT_LOADER_H

#include <stdatomic.h>

#include "millrace.h"
#include "tests/support/images/coded.h"
#include "tests/support/images/image.h"

typedef struct seen { /* one sample of one batch */
    uint64_t epoch, step, sample;
    uint64_t facts, bytes, meta; /* hashes; of facts without what depends on the others of a rank's slab */
    float weight;
    int32_t label;
} seen;

typedef struct seen_list {
    seen *items;
    size_t count, capacity;
    uint64_t batches, replaced;
    mr_status status; /* MR_END, or the failure that came first */
    mr_error error;
    mr_cursor cursor; /* after the last batch */
    coded_ways ways;  /* coded delivery: these are compared as the floats that they stand for */
} seen_list;

/* A dataset of "train": `count` pictures of 8 to 70 pixels a side in shards of `per_shard`: JPEG, PNG and WebP, gray
 * and colour, with EXIF orientations; numbers in `broken` (ended by -1, NULL: none), which must be JPEGs (2, 3
 * or 4 modulo 5), have lost most of their pixels: their hashes match, but they cannot be decoded. */
void make_pictures(const char *dir, size_t count, size_t per_shard, const int *broken);

mr_dataset *open_dataset_at(const char *dir);
mr_loader *open_loader(const mr_dataset *ds, const mr_loader_options *o); /* expects success */
void expect_no_loader(const mr_dataset *ds, const mr_loader_options *o, mr_status status, const char *words);

/* One loader, to its end or `batches` of them (0: all). */
seen_list run_loader(const mr_dataset *ds, const mr_loader_options *o, uint64_t batches);
/* `world` loaders of one thread each run side by side, joined step by step in rank order. */
seen_list run_ranks(const mr_dataset *ds, mr_loader_options o, unsigned world, unsigned threads, uint64_t batches);
void seen_free(seen_list *s);

/* a[from ..] equals b. */
void assert_same_seen(const seen_list *a, size_t from, const seen_list *b);

/* Adds `value` to a byte of a file, in place. */
void hurt_byte(const char *dir, const char *name, uint64_t offset, uint8_t value);
/* The image (or the meta) of sample n of "train" of a dataset under `dir`, in the n-th of shards of `per_shard`. */
void hurt_image(const char *dir, uint64_t n, uint64_t per_shard);
void hurt_meta(const char *dir, uint64_t n, uint64_t per_shard);
void hurt_row(const char *dir, uint64_t n, uint64_t per_shard);

/* Two epochs of batches of 8, seed 5, with meta, as pictures of 24 pixels a side; orientation is applied with
 * MR_TAIL_PAD. */
mr_loader_options usual_options(mr_delivery deliver, mr_tail tail);

/* An allocator's memory: .ctx of {account_take, account_give_back}. */
typedef struct account {
    _Atomic size_t bytes, peak, calls, refuse_after; /* refuse_after: calls that are served */
    size_t shift;                                    /* from alignment */
} account;
void *account_take(void *ctx, size_t bytes);
void account_give_back(void *ctx, void *memory, size_t bytes);

#endif
