/* survey.h - what all samples of an export say, before the first is written.
 * Invariant: it reads every meta that is asked for, checked against its hash, and no image. */
#ifndef MR_EXPORT_SURVEY_H
#define MR_EXPORT_SURVEY_H

#include "shards/dataset/dataset.h"
#include "shards/export/export.h"
#include "shards/format/objects.h"

typedef struct mr_export_survey_split {
    bool image_ids, object_ids; /* all are integers from 1, and different */
    bool captions;              /* some sample has one */
} mr_export_survey_split;

typedef struct mr_export_survey {
    uint64_t objects, polygons, oriented, keypoints; /* objects with one */
    bool labelled, several, captioned, columns;      /* some sample has one label, several, a caption, columns */
    uint64_t known;                                  /* images whose objects the source knows */
    bool quads;                                      /* every outline has four points */
    size_t most_keypoints;                           /* the most of one object */
    size_t *class_keypoints;                         /* the most of an object, for each class */
    mr_export_survey_split *splits;                  /* as in the manifest */
} mr_export_survey;

/* `with_ids`: whether ids are compared; else image_ids and object_ids are false. */
mr_status mr_export_survey_make(const mr_dataset *ds, const mr_export_options *o, bool with_ids, mr_export_survey *out,
                                mr_error *err);
void mr_export_survey_free(mr_export_survey *s);

#endif
