/* voc.h - what the files of the Pascal VOC layout share.
 *
 *      train/1.jpg  train/1.xml  valid/1.jpg ...                                   Roboflow's exports
 *      JPEGImages/1.jpg  Annotations/1.xml  ImageSets/Main/train.txt ...           the development kit's tree
 *      images/1.png  annotations/1.xml      and      1.jpg  1.xml                  one split
 *      train/images/1.jpg  train/labels/1.xml                                      folders in the splits
 *
 * Invariant: nothing of the state changes after plan(), so that metas and objects may be made on many threads. */
#ifndef MR_VOC_H
#define MR_VOC_H

#include "ingest/layout/common/class_set.h"
#include "ingest/layout/folders/folders.h"
#include "ingest/layout/image_names.h"
#include "ingest/layout/texts.h"
#include "ingest/layout/voc/annotation.h"

/* What a source has to have. */
#define MR_VOC_NEEDS                                                                                                   \
    "an XML beside each image, in train/, valid/, test/ or in one folder; or JPEGImages/ (images/) with "              \
    "Annotations/ (labels/) there, or with ImageSets/"

typedef enum mr_voc_kind {
    MR_VOC_NONE,
    MR_VOC_BESIDE, /* in split folders, or an XML beside each image in the root */
    MR_VOC_APART,  /* in two folders of the root: lists say the splits */
} mr_voc_kind;

typedef struct mr_voc_spot { /* where images and their XML files are */
    const char *dir;         /* its path under the root, not NUL-terminated */
    size_t len;
    const char *images, *annotations; /* folders in it: "JPEGImages", "Annotations"; "": the XML is beside the image */
} mr_voc_spot;

typedef struct mr_voc_places {
    mr_voc_kind kind;
    mr_split_dirs dirs; /* MR_VOC_BESIDE; none: the root is one split */
    mr_voc_spot spots[MR_SPLIT_DIRS_MAX];
    size_t spot_count;
    bool sets;      /* ImageSets/ exists */
    char seen[160]; /* for people */
} mr_voc_places;

/* Coordinates of the development kit, in JPEGImages/, are numbers of pixels from 1, the last one included; others
 * are the edges between pixels, from 0. */
typedef struct mr_voc_state {
    mr_voc_places places;
    mr_texts texts, parsed; /* XML files; the same as mr_voc_annotation_pack() has them */
} mr_voc_state;

#define MR_VOC_NO_XML UINT64_MAX /* a sample's aux; otherwise the entry of its XML */

/* places.c: names, and the head of one XML.  MR_SYSTEM: that could not be read. */
mr_status mr_voc_look(const mr_tree *t, const mr_layout_options *o, mr_voc_places *places, mr_error *err);
/* The spot of an image, and how much of its path is before its name there; NULL: none. */
const mr_voc_spot *mr_voc_spot_of(const mr_voc_places *places, const char *path, size_t len, size_t *skip);
/* Whether the coordinates of its images are numbers of pixels from 1. */
bool mr_voc_from_one(const mr_voc_spot *spot);

typedef struct mr_voc_xmls { /* XMLs of one image: if there is more than one, they contradict each other */
    uint32_t entries[4];
    size_t count;
} mr_voc_xmls;
mr_voc_xmls mr_voc_xmls_of(const mr_tree *t, const mr_voc_places *places, uint32_t image);

/* masks.c: the PNGs of an image in SegmentationClass/ and SegmentationObject/; see mr_layout.masks. */
size_t mr_voc_masks(const mr_tree *t, const mr_plan *plan, const mr_sample *sample, mr_mask out[MR_MASKS_MAX]);
/* Whether the path is in one of these folders. */
bool mr_voc_is_mask(const char *path, size_t len);

mr_status mr_voc_plan(const mr_tree *t, const mr_layout_options *o, mr_plan *plan, mr_error *err); /* plan.c */

typedef struct mr_voc_listed {
    uint32_t entry, split; /* MR_NO_ENTRY: --split-map leaves it out, and no other list names the image */
    uint32_t folder;       /* the folder of ImageSets/ that it is in: earlier ones decide */
    bool half, whole;      /* by train or val; by trainval, which holds both */
} mr_voc_listed;

typedef struct mr_voc_lists {
    mr_voc_listed *items; /* by split, then by entry; an image that several lists name is in each of their splits */
    size_t count, capacity;
    bool any; /* a list with a name in it */
} mr_voc_lists;

/* sets.c: what the lists of ImageSets/ name. */
mr_status mr_voc_sets(const mr_tree *t, const mr_layout_options *o, const mr_voc_places *places, mr_plan *plan,
                      mr_voc_lists *lists, mr_error *err);
/* listed.c: from what was read, in any order, to the splits of each image. */
mr_status mr_voc_lists_settle(mr_voc_lists *lists, mr_plan *plan, mr_error *err);
void mr_voc_lists_free(mr_voc_lists *lists);

typedef struct mr_voc_build { /* while plan() runs */
    const mr_tree *tree;
    const mr_layout_options *options;
    mr_plan *plan;
    mr_voc_state *st;
    mr_class_set classes;
    mr_voc_annotation annotation; /* of the current image */
    uint64_t swapped, shared;     /* XML files that name another image; that several images have */
    uint32_t first_swapped, first_shared;
    uint32_t *owners;              /* by entry: the image that had the XML last */
    uint32_t noted[2];             /* entries that add_listed() has noted */
    uint64_t plain[MR_SPLITS_MAX]; /* images without an XML, per split */
    mr_image_names names;          /* once one is needed */
    mr_error *err;
} mr_voc_build;

/* xml.c: reads the image's XML (MR_NO_ENTRY: it has none) into b->annotation; `why` is empty if it is good. */
mr_status mr_voc_take_xml(mr_voc_build *b, uint32_t entry, uint32_t *xml, mr_buf *why);

#endif
