/* voc.h - what the files of the Pascal VOC layout share.
 *
 *      train/1.jpg  train/1.xml  valid/1.jpg ...                                   Roboflow's exports
 *      JPEGImages/1.jpg  Annotations/1.xml  ImageSets/Main/train.txt ...           the development kit's tree
 *      images/1.png  annotations/1.xml      and      1.jpg  1.xml                  one split
 *
 * Invariant: nothing of the state changes after plan(), so that metas and objects may be made on many threads. */
#ifndef MR_VOC_H
#define MR_VOC_H

#include "layout/folders.h"
#include "layout/texts.h"
#include "voc/annotation.h"

typedef enum mr_voc_kind {
    MR_VOC_NONE,
    MR_VOC_BESIDE, /* an XML beside each image, in split folders or in the root */
    MR_VOC_APART,  /* in a folder of their own */
} mr_voc_kind;

typedef struct mr_voc_places {
    mr_voc_kind kind;
    mr_split_dirs dirs;               /* MR_VOC_BESIDE; none: the root is one split */
    const char *images, *annotations; /* MR_VOC_APART: "JPEGImages", "Annotations" */
    bool sets;                        /* ImageSets/ exists */
    char seen[160];                   /* for people */
} mr_voc_places;

/* Coordinates of the development kit are numbers of pixels from 1 on, the last one included; others are the edges
 * between pixels, from 0 on. */
typedef struct mr_voc_state {
    bool pixels;
    mr_texts texts, parsed; /* XML files; the same as mr_voc_annotation_pack() has them */
    size_t images;          /* length of "JPEGImages/", if masks are in folders beside it; 0: there are none */
} mr_voc_state;

#define MR_VOC_NO_XML UINT64_MAX /* a sample's aux; otherwise the entry of its XML */

/* places.c: names, and the head of one XML.  MR_SYSTEM: that could not be read. */
mr_status mr_voc_look(const mr_tree *t, const mr_layout_options *o, mr_voc_places *places, mr_error *err);
/* The XML of an image; MR_NO_ENTRY. */
uint32_t mr_voc_xml_of(const mr_tree *t, const mr_voc_places *places, uint32_t image);

/* masks.c: the PNGs of an image in SegmentationClass/ and SegmentationObject/; see mr_layout.masks. */
size_t mr_voc_masks(const mr_tree *t, const mr_plan *plan, const mr_sample *sample, mr_mask out[MR_MASKS_MAX]);
/* Whether the path under the root is in one of these folders. */
bool mr_voc_is_mask(const char *path);

void mr_voc_state_free(void *state);
mr_status mr_voc_plan(const mr_tree *t, const mr_layout_options *o, mr_plan *plan, mr_error *err); /* plan.c */

/* sets.c: the split of each entry that a list of ImageSets/ names, in split_of[entry - t->begin]; others have
 * MR_VOC_IN_NO_SET, those of splits that --split-map leaves out MR_NO_ENTRY. */
#define MR_VOC_IN_NO_SET (MR_NO_ENTRY - 1)
mr_status mr_voc_sets(const mr_tree *t, const mr_layout_options *o, const mr_voc_places *places, mr_plan *plan,
                      uint32_t *split_of, mr_error *err);

#endif
