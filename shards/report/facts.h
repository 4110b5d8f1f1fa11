/* facts.h - the figures in a report about a dataset.
 * Invariant: sizes, formats and labels are those of every sample; what only metas contain (objects, captions, lists of
 * labels) comes from `looked` samples, all of them or a seeded choice, which the page states. */
#ifndef MR_REPORT_FACTS_H
#define MR_REPORT_FACTS_H

#include "shards/dataset/dataset.h"
#include "shards/dataset/class_counts.h"
#include "shards/report/words.h"

enum { MR_METAS_MOST = 50000 }; /* read for a report */

typedef enum mr_bins_kind {
    MR_BINS_SIDE,    /* longer side in pixels */
    MR_BINS_ASPECT,  /* width / height, as seen */
    MR_BINS_BYTES,   /* bytes of an encoded image */
    MR_BINS_FORMAT,  /* codec */
    MR_BINS_EXIF,    /* orientation */
    MR_BINS_OBJECTS, /* per image; in the samples looked at */
    MR_BINS_BOX,     /* area of a box, COCO's sizes; in the samples looked at */
    MR_BINS_LENGTH,  /* words in a caption; in the samples looked at */
    MR_BINS_KINDS
} mr_bins_kind;

enum { MR_BINS_MOST = 10 };

typedef struct mr_bins {
    const char *title;
    const char *names[MR_BINS_MOST + 1]; /* ended by NULL */
} mr_bins;
extern const mr_bins mr_bins_of[MR_BINS_KINDS];

typedef struct mr_report_facts {
    const mr_dataset *ds;
    const mr_manifest *m;
    uint64_t samples;
    uint64_t decoding; /* pixels of all samples; those of anything but baseline JPEGs count four times */
    mr_class_counts labels;
    uint64_t bins[MR_BINS_KINDS][MR_BINS_MOST];
    uint64_t looked;
    uint64_t *objects; /* [classes + 1]: counts in the samples looked at; the last: without a class */
    uint64_t object_count, captions;
    uint64_t *listed; /* [classes]: examined samples whose list of labels has the class */
    uint64_t lists;
    mr_words words;
    json_t *report; /* report.json, what ingest said; NULL: it cannot be read */
} mr_report_facts;

/* MR_BAD_DATA, MR_BAD_SAMPLE: damage, named.  `seed` chooses the samples to look at where there are too many. */
mr_status mr_report_facts_read(const char *dir, const mr_dataset *ds, uint64_t seed, mr_report_facts *out,
                               mr_error *err);
void mr_report_facts_free(mr_report_facts *f);

/* Sample `n` of the dataset, counted over the splits in order: its split, and its number there. */
const mr_split *mr_report_sample(const mr_manifest *m, uint64_t n, uint64_t *number);

#endif
