/* format.h - what a format of export supplies.
 * Invariant: a format creates files through mr_out_*() alone, under names from mr_names_take(): so it cannot write
 * outside of the temporary folder, nor over a file that it has written.
 *
 * A new format is a file NAME.c with the interface mr_export_format_NAME, and a word in MR_EXPORTS (export.h). */
#ifndef MR_EXPORT_FORMAT_H
#define MR_EXPORT_FORMAT_H

#include "shards/export/export.h"
#include "shards/export/facts.h"
#include "shards/export/names.h"
#include "shards/export/out.h"
#include "shards/export/survey.h"

typedef struct mr_export_sample {
    const mr_split *split;
    uint64_t number; /* in the split */
    const mr_sample_view *view;
    const mr_export_facts *facts; /* not for a format that is `plain` */
    const mr_objects *objects;    /* the same */
} mr_export_sample;

typedef struct mr_export_run {
    const mr_dataset *dataset;
    const mr_manifest *manifest;
    const mr_export_options *options;
    const mr_export_survey *survey; /* NULL unless the format is `surveyed` */
    unsigned holds;                 /* MR_HOLDS(): as on the interface, unless begin() changes it */
    mr_out out;
    mr_names names;
    mr_export_result *result;
    void *state; /* the format's own */
} mr_export_run;

typedef struct mr_export_format {
    const char *name;
    const char *alias; /* a second name, or NULL */
    unsigned holds;    /* MR_HOLDS() of the parts that it keeps as they are: the others are counted */
    bool plain;        /* it needs neither facts nor objects, and nothing is counted */
    bool lossless;     /* it keeps every meta as a whole: nothing is counted */
    bool surveyed;     /* it needs to know all samples before the first */
    bool shown;        /* its coordinates are those of the image as EXIF shows it, and objects are given like that */
    bool ids;          /* the survey says which ids can be kept */
    bool sharded;      /* --shard-size is for it */
    bool tasks;        /* --task is for it */
    mr_status (*begin)(mr_export_run *run, mr_error *err);                              /* or NULL */
    mr_status (*begin_split)(mr_export_run *run, const mr_split *split, mr_error *err); /* or NULL */
    mr_status (*sample)(mr_export_run *run, const mr_export_sample *s, mr_error *err);
    mr_status (*end_split)(mr_export_run *run, const mr_split *split, mr_error *err); /* or NULL */
    mr_status (*end)(mr_export_run *run, mr_error *err);                              /* or NULL */
    void (*free_state)(void *state); /* after a failure, too; NULL: free() */
} mr_export_format;

#define MR_EXPORT_DECLARE(word, title) extern const mr_export_format mr_export_format_##word;
MR_EXPORTS(MR_EXPORT_DECLARE)

/* Counts `count` losses of a part at a sample; `s` NULL: losses of the dataset as a whole. losses.c */
void mr_export_count_loss(mr_export_run *run, mr_export_part part, const mr_export_sample *s, uint64_t count);

/* ---- pictures.c -------------------------------------------------------------------------------------------------- */

/* Appends a class's name for people: its bytes where they are UTF-8 without control characters, else path text. */
void mr_export_class_text(const mr_class *c, mr_buf *out);
/* A folder's name for a class or a split, unique among those of `folder`; a change is counted as `part`. */
mr_status mr_export_folder_name(mr_export_run *run, const char *folder, const char *name, mr_export_part part,
                                char **out, mr_error *err);

/* The name for the image of a sample in `folder`, safe and unique there, in `out`; a change is counted. */
mr_status mr_export_picture_name(mr_export_run *run, const char *folder, const mr_export_sample *s, unsigned rules,
                                 mr_buf *out, mr_error *err);

/* Writes the image to FOLDER/NAME, or links it (--link). */
mr_status mr_export_picture(mr_export_run *run, const char *folder, const char *name, const mr_export_sample *s,
                            mr_error *err);

/* Calls the steps for every sample asked for, each checked against its hashes, in order, and around each split. */
typedef struct mr_export_steps {
    mr_status (*sample)(void *ctx, const mr_export_sample *s, mr_error *err);
    mr_status (*split)(void *ctx, const mr_split *split, bool begins, mr_error *err); /* or NULL */
    void *ctx;
} mr_export_steps;
mr_status mr_export_each(const mr_dataset *ds, const mr_export_options *o, const mr_export_steps *steps,
                         mr_export_result *result, mr_error *err);

/* ---- losses.c ---------------------------------------------------------------------------------------------------- */

typedef struct mr_export_losses { /* a zeroed one is empty */
    uint64_t *seen;               /* samples and objects of each class */
    bool known;                   /* some image's objects are known */
} mr_export_losses;

/* Counts what the run's format does not hold of a sample. */
mr_status mr_export_losses_take(mr_export_run *run, mr_export_losses *l, const mr_export_sample *s, mr_error *err);
/* The same for the classes, after the last sample. */
mr_status mr_export_losses_end(mr_export_run *run, const mr_export_losses *l, mr_error *err);
void mr_export_losses_free(mr_export_losses *l);

#endif
