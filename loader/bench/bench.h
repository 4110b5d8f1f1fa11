/* bench.h - how fast the loader is, compared with what this machine can do with the same records.
 * Invariant: product and limits take turns over the same records in the same order on as many threads, all from the
 * page cache, so that a busy or slow machine affects them equally.
 *
 *   stage    product                                  limit
 *   read     mr_loader, encoded: pread, hash          plain pread; for comparison memcpy
 *   decode   pread, hash, the region that is shown    plain decode of the whole image by the codec's library
 *   input    mr_loader, float32: everything           the same
 *            with a device: mr_loader, coded, and the device, in both stages
 *
 * This module: bench_budget divides the seconds; bench_limits runs passes over the records; bench_turns computes the
 * medians; bench_stages times the steps of millrace's own JPEG decoder.  `millrace bench` prints all of it.
 * replay loads batches again and digests them, with digest; it does not use the benchmark. */
#ifndef MR_BENCH_H
#define MR_BENCH_H

#include "base/buf.h"
#include "loader/bench/bench_budget.h"
#include "loader/bench/bench_device.h"

typedef enum mr_bench_stage { MR_BENCH_READ, MR_BENCH_DECODE, MR_BENCH_INPUT } mr_bench_stage;

typedef struct mr_bench_options {
    mr_bench_stage stage;
    mr_loader_options loader; /* split, threads, transform, rank, world; the rest is set here */
    mr_bench_budget budget;
    mr_device *device; /* decodes, except in the stage read; NULL: the host does */
} mr_bench_options;

typedef struct mr_bench_rate { /* medians over the turns */
    double cpu_ms, images_per_second;
} mr_bench_rate;

typedef struct mr_bench_stages { /* stages of millrace's own JPEG decoder: means over images decoded one by one */
    double parse_ms, entropy_ms, idct_ms, colour_ms; /* CPU; with the product's crops */
    uint64_t pictures, with_seek;
} mr_bench_stages;

typedef struct mr_bench_on_device { /* means per image over all batches; no images: the host decodes */
    double read_us;                 /* time of the loader's threads: reading and hashing */
    double describe_us;             /* the rest of the host's share, with images that only it can decode */
    double device_us;               /* uploading and decoding */
    mr_images_counts counts;
    mr_bench_work work; /* work of the device */
} mr_bench_on_device;

typedef struct mr_bench_result {
    mr_bench_rate product, limit, copy;            /* copy: memcpy, stage read only, otherwise 0 */
    double cpu_low_ms, cpu_high_ms;                /* the product's CPU: quartiles of the turns */
    double cpu_ratio, rate_ratio;                  /* product / limit: medians of the turns' ratios */
    double resized_ratio;                          /* stage input: CPU, product / (limit + the same resize) */
    double read_ms, hash_ms, decode_ms, resize_ms; /* CPU of each of the product's steps; 0: not part of the stage */
    double first_batch_ms;                         /* wall, from opening a loader to its first batch */
    uint64_t own_jpegs, jpegs;                     /* decoded step by step: by millrace's own decoder; all */
    uint64_t seek_jpegs;                           /* how many of own_jpegs had a seek index */
    uint64_t seek_refused;                         /* entries, and whole seek indexes, that do not match */
    mr_bench_on_device on_device;
    mr_bench_stages stages; /* no images: stage read, or none that the decoder supports */
    uint64_t turns, images, mean_bytes;
    unsigned batch;
} mr_bench_result;

/* MR_MISUSE: an empty split.  MR_BAD_SAMPLE: a sample is damaged. */
mr_status mr_bench_run(const mr_dataset *ds, const mr_bench_options *o, mr_bench_result *out, mr_error *err);

#endif
