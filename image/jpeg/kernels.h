/* kernels.h - private to this module: the inner loops of decoding, in plain C and for vector instruction sets.
 * Invariant: every set of kernels gives the same bytes, those of libjpeg-turbo's SIMD code.
 *
 *      scan --unstuff--> bytes --store--> coefficients --idct--> samples --across, between--> chroma --rgb--> pixels
 *                              --skip-->  only the position in the stream and the DC predictors
 *
 * Rows of samples and of upsampled chroma may be read and written MR_JPEG_SLACK bytes past their end. */
#ifndef MR_JPEG_KERNELS_H
#define MR_JPEG_KERNELS_H

#include "base/system/processor.h"
#include "image/jpeg/parse.h"
#include "image/jpeg/tables.h"

enum {
    MR_JPEG_SLACK = 64,
    MR_JPEG_PADDING = 320, /* zeros after unstuffed bytes: more than a block of the longest codes */
    MR_JPEG_BLOCK = 80,    /* int16 of a block: 64, the spare place, zigzag places used, 32-byte alignment */
    MR_JPEG_USED = 79,
    MR_JPEG_BLOCKS = 6,    /* of an MCU */
    MR_JPEG_IDCT_MAX = 32, /* maximum blocks transformed in one call */
};

/* Where the decoder is in the unstuffed bytes of a segment: `word` holds the next `bits` bits at its top. */
typedef struct mr_jpeg_stream {
    const uint8_t *end;  /* MR_JPEG_PADDING zeros follow */
    const uint8_t *next; /* first byte that is not in `word` */
    uint64_t word;
    unsigned bits;
    int dc[MR_JPEG_COMPONENTS]; /* predictors */
} mr_jpeg_stream;

/* What the next symbols belong to: the DC or the AC coefficients of a block, with their table. */
typedef struct mr_jpeg_node {
    const mr_jpeg_pair *table; /* pairs */
    const struct mr_jpeg_node *next;
    size_t step;          /* int16 from the node's block to that of the next node; 0: it is a DC node */
    const uint8_t *first; /* zigzag place at which the node begins */
} mr_jpeg_node;

typedef struct mr_jpeg_mcu { /* the blocks of an MCU */
    unsigned blocks;
    struct {
        const mr_jpeg_dc *dc;
        mr_jpeg_ac *ac;
        unsigned component;
    } block[MR_JPEG_BLOCKS];
    mr_jpeg_node node[2 * MR_JPEG_BLOCKS]; /* block i: DC 2i, AC 2i + 1; a ring */
} mr_jpeg_mcu;

/* Adds a block, at most MR_JPEG_BLOCKS; `mcu`, zero at first, must not move, as its nodes point at one another. */
void mr_jpeg_mcu_add(mr_jpeg_mcu *mcu, const mr_jpeg_dc *dc, mr_jpeg_ac *ac, unsigned component);
/* Before the first call of store(), and of skip(). */
void mr_jpeg_mcu_pair(const mr_jpeg_mcu *mcu);
void mr_jpeg_mcu_skip(const mr_jpeg_mcu *mcu);

typedef struct mr_jpeg_unstuffed {
    size_t taken, given; /* bytes read, up to a marker; bytes written */
} mr_jpeg_unstuffed;

typedef struct mr_jpeg_kernels {
    const char *name; /* "plain", "neon", "avx2", "avx512" */
    mr_processor_set needs;
    /* Copies entropy-coded bytes up to a marker or the end, FF 00 becoming FF.  `out` has room for len + 32. */
    mr_jpeg_unstuffed (*unstuff)(const uint8_t *in, size_t len, uint8_t *out);
    /* Decodes `count` MCUs: blocks of MR_JPEG_BLOCK, zero before, get coefficients row by row, and at MR_JPEG_USED the
     * number of zigzag places up to the last one.  False: libjpeg-turbo would fail or warn. */
    bool (*store)(mr_jpeg_stream *s, const mr_jpeg_mcu *mcu, unsigned count, int16_t *blocks);
    bool (*skip)(mr_jpeg_stream *s, const mr_jpeg_mcu *mcu, unsigned count);
    /* The same for two streams at once, `count` MCUs of each: faster than one after another. */
    bool (*store_two)(mr_jpeg_stream *const s[2], const mr_jpeg_mcu *mcu, unsigned count, int16_t *const blocks[2]);
    bool (*skip_two)(mr_jpeg_stream *const s[2], const mr_jpeg_mcu *mcu, unsigned count);
    /* Turns `count` blocks from store(), at most MR_JPEG_IDCT_MAX, into 8 x 8 samples each, block i at out + 8 i, and
     * zeroes the blocks. */
    void (*idct)(int16_t *const *block, unsigned count, const int16_t quant[64], uint8_t *out, size_t stride);
    /* Chroma twice as wide: out[2i], out[2i + 1] of row[i - 1], row[i], row[i + 1], for `count` i. */
    void (*across)(const uint8_t *row, size_t count, uint8_t *out);
    /* The same between two rows; `near` has three times the weight. */
    void (*across_between)(const uint8_t *near, const uint8_t *far, size_t count, uint8_t *out);
    /* `count` samples between two rows; bias 1 above the near row's middle, 2 below. */
    void (*between)(const uint8_t *near, const uint8_t *far, unsigned bias, size_t count, uint8_t *out);
    /* Exactly count * 3 bytes are written. */
    void (*rgb)(const uint8_t *y, const uint8_t *cb, const uint8_t *cr, size_t count, uint8_t *out);
} mr_jpeg_kernels;

extern const mr_jpeg_kernels mr_jpeg_plain;
/* Kernels of mr_jpeg_plain that mr_jpeg_neon uses, too. */
bool mr_jpeg_plain_store(mr_jpeg_stream *s, const mr_jpeg_mcu *mcu, unsigned count, int16_t *blocks);
bool mr_jpeg_plain_skip(mr_jpeg_stream *s, const mr_jpeg_mcu *mcu, unsigned count);
bool mr_jpeg_plain_store_two(mr_jpeg_stream *const s[2], const mr_jpeg_mcu *mcu, unsigned count,
                             int16_t *const blocks[2]);
bool mr_jpeg_plain_skip_two(mr_jpeg_stream *const s[2], const mr_jpeg_mcu *mcu, unsigned count);
#if defined(__aarch64__)
extern const mr_jpeg_kernels mr_jpeg_neon;
#endif
#if defined(__x86_64__)
extern const mr_jpeg_kernels mr_jpeg_avx2, mr_jpeg_avx512;
/* Kernels of mr_jpeg_avx2 that mr_jpeg_avx512 uses, too. */
mr_jpeg_unstuffed mr_jpeg_avx2_unstuff(const uint8_t *in, size_t len, uint8_t *out);
bool mr_jpeg_avx2_store(mr_jpeg_stream *s, const mr_jpeg_mcu *mcu, unsigned count, int16_t *blocks);
bool mr_jpeg_avx2_skip(mr_jpeg_stream *s, const mr_jpeg_mcu *mcu, unsigned count);
bool mr_jpeg_avx2_store_two(mr_jpeg_stream *const s[2], const mr_jpeg_mcu *mcu, unsigned count,
                            int16_t *const blocks[2]);
bool mr_jpeg_avx2_skip_two(mr_jpeg_stream *const s[2], const mr_jpeg_mcu *mcu, unsigned count);
#endif
/* Every set, best first, NULL after the last; this machine may not support all of them. */
extern const mr_jpeg_kernels *const mr_jpeg_kernels_all[];
/* The best that this machine supports. */
const mr_jpeg_kernels *mr_jpeg_kernels_best(void);

#endif
