/* shape.h - whether lines of more than four numbers can be boxes with keypoints, which look like polygons.
 * Invariant: the verdict depends on all such lines of the dataset, in any order.
 *
 *      0  .5 .5  .2 .4  .45 .42  .55 .42  .5 .6          a box, its width and height, and three points in it
 *      0  .5 .5  .2 .4  .45 .42  .55 .42  .5 .6          or the five corners of a polygon? */
#ifndef MR_YOLO_SHAPE_H
#define MR_YOLO_SHAPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct mr_yolo_shape { /* a zeroed one has seen no line */
    uint64_t lines, flat, seen, closed, square;
    size_t count; /* numbers of the first line after its class */
    bool varied;  /* lines differ in it */
    uint32_t entry;
    uint64_t line; /* where the first is */
} mr_yolo_shape;

/* A line of six numbers or more, even in number. */
void mr_yolo_shape_add(mr_yolo_shape *s, const double *numbers, size_t count, uint32_t entry, uint64_t line);
/* Whether they must be taken for keypoints: how many, and of two or three numbers each. */
bool mr_yolo_shape_is_pose(const mr_yolo_shape *s, size_t *keypoints, unsigned *dims);

#endif
