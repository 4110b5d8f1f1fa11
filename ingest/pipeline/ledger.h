/* ledger.h - what became of each file of the source.
 * Invariant: each entry has exactly one fate, so the counts of all fates add up to the number of entries. */
#ifndef MR_LEDGER_H
#define MR_LEDGER_H

#include "ingest/layout/formats.h"

/* word: in report.json */
#define MR_FATES(X)                                                                                                    \
    X(SAMPLE, "images")           /* the image of a sample, or of several */                                           \
    X(ANNOTATION, "annotations")  /* a file that the layout read */                                                    \
    X(MASK, "masks")              /* kept in a sample's meta */                                                        \
    X(REJECTED, "rejected")       /* by the listing or the plan; images are examined later */                          \
    X(LEFT_OUT, "left_out")       /* an option says so */                                                              \
    X(COMPANION, "companions")    /* a README, a checksum, a mask that is not taken ... */                             \
    X(OTHER, "other")             /* nothing that looks like an image or an annotation */                              \
    X(UNACCOUNTED, "unaccounted") /* an image or an annotation that would be lost: an error */

typedef enum mr_fate {
#define X(word, json) MR_FATE_##word,
    MR_FATES(X)
#undef X
        MR_FATE_COUNT
} mr_fate;

/* word: in report.json; name: for several, in the summary */
#define MR_COMPANIONS(X)                                                                                               \
    X(DOCUMENT, "documents", "documents") /* README, LICENSE, CITATION, data cards */                                  \
    X(CHECKSUM, "checksums", "checksum files")                                                                         \
    X(SCRIPT, "scripts", "scripts")                                                                                    \
    X(SYSTEM, "system", "system files") /* hidden ones, and those of macOS and Windows */                              \
    X(MASK, "masks", "masks")           /* an image that belongs to a sample's */

typedef enum mr_companion {
#define X(word, json, name) MR_COMPANION_##word,
    MR_COMPANIONS(X)
#undef X
        MR_COMPANION_COUNT /* none */
} mr_companion;

typedef struct mr_companions { /* companion files of one kind */
    size_t count;
    uint32_t first;    /* an entry */
    bool many_folders; /* not all in the first one's */
} mr_companions;

typedef struct mr_ledger {
    size_t fates[MR_FATE_COUNT];
    mr_companions companions[MR_COMPANION_COUNT];
    size_t harmless; /* unsafe and duplicate names of companions, not counted as rejects */
    size_t skipped;  /* how many of fates[MR_FATE_LEFT_OUT] --skip-unmatched left out */
} mr_ledger;

extern const char *const mr_fate_words[MR_FATE_COUNT];
extern const char *const mr_companion_words[MR_COMPANION_COUNT];
extern const char *const mr_companion_names[MR_COMPANION_COUNT];

/* By the name alone, so never MR_COMPANION_MASK. */
mr_companion mr_companion_by_name(const char *path, size_t len);
/* The stem of an image's name that ends like that of a mask, and the length before that ending: 2 of "1a_mask.png";
 * NULL: it does not. */
const char *mr_mask_name(const char *path, size_t len, size_t *base);
/* Whether an image is, by its name or its folder, the mask of an image among `stems`. */
bool mr_companion_is_mask(const char *path, size_t len, const mr_stems *stems);

#endif
