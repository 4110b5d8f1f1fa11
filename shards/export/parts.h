/* parts.h - the parts of a dataset that a format may be unable to hold, and the words for them.
 * Invariant: everything that an export does not keep is counted under one of these. */
#ifndef MR_EXPORT_PARTS_H
#define MR_EXPORT_PARTS_H

/* The word in JSON, and a phrase for people that says what is counted. */
#define MR_EXPORT_PARTS(X)                                                                                             \
    X(UNLABELLED, "unlabelled", "samples without a label")                                                             \
    X(LABEL, "labels", "sample labels")                                                                                \
    X(LABELS, "several_labels", "samples with several labels")                                                         \
    X(CAPTIONS, "captions", "sample captions")                                                                         \
    X(COLUMNS, "columns", "samples with further columns of the source")                                                \
    X(OBJECTS, "objects", "objects")                                                                                   \
    X(CLASSLESS, "objects_without_class", "objects without a class")                                                   \
    X(BOXLESS, "objects_without_box", "objects without a box, or with an empty one")                                   \
    X(BOXES, "boxes", "objects that have only a box")                                                                  \
    X(POLYGONS, "polygons", "objects with polygons")                                                                   \
    X(RINGS, "several_polygons", "objects with several polygons")                                                      \
    X(MASKS, "masks", "objects with a run-length encoded mask in the source")                                          \
    X(ORIENTED, "oriented_boxes", "objects with an oriented box")                                                      \
    X(KEYPOINTS, "keypoints", "objects with keypoints")                                                                \
    X(CROWDS, "crowds", "objects marked as crowds")                                                                    \
    X(IDS, "ids", "object ids")                                                                                        \
    X(OUTSIDE, "outside", "objects that extend beyond their image")                                                    \
    X(TURNED, "turned", "objects in images that EXIF rotates")                                                         \
    X(EMPTY_CLASSES, "empty_classes", "classes without a sample")                                                      \
    X(CLASS_NUMBERS, "class_numbers", "class numbers")                                                                 \
    X(CLASS_NAMES, "class_names", "class names")                                                                       \
    X(SPLIT_NAMES, "split_names", "split names")                                                                       \
    X(NAMES, "names", "file names")

typedef enum mr_export_part {
#define X(word, json, text) MR_PART_##word,
    MR_EXPORT_PARTS(X)
#undef X
        MR_PART_COUNT
} mr_export_part;

extern const char *const mr_export_part_words[MR_PART_COUNT]; /* in JSON */
extern const char *const mr_export_part_texts[MR_PART_COUNT];

#define MR_HOLDS(part) (1u << MR_PART_##part)

#endif
