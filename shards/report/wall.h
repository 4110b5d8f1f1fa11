/* wall.h - samples as images on a page, with their annotations drawn over them.
 * Invariant: boxes, polygons and points are in pixels of the image as stored, as is the thumbnail below them; EXIF
 * orientation turns both together. */
#ifndef MR_REPORT_WALL_H
#define MR_REPORT_WALL_H

#include "shards/report/facts.h"
#include "shards/report/thumb.h"

/* The page may have this many bytes of images; then no more are shown. */
enum { MR_WALL_BYTES = 4 << 20, MR_WALL_PER_CLASS = 6, MR_WALL_CLASSES = 40, MR_WALL_TRIES = 3000 };

/* Appends the section: up to MR_WALL_PER_CLASS samples of each class, chosen by `seed`.  Samples that cannot be decoded
 * are counted and left out. */
mr_status mr_wall_add(const mr_report_facts *f, uint64_t seed, mr_thumbs *thumbs, mr_buf *out, mr_error *err);

/* Appends one image.  `label`: the first line of its caption; NULL: its class. */
mr_status mr_wall_figure(const mr_report_facts *f, const mr_split *split, uint64_t n, const char *label,
                         mr_thumbs *thumbs, mr_buf *out, mr_error *err);

#endif
