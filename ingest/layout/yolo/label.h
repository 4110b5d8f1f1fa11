/* label.h - the lines of a YOLO label file.
 * Invariant: a returned line has an existing class, and only finite numbers of a plausible size.
 *
 *      3 0.5 0.5 0.2 0.1                                 class, x and y of the middle, width, height: a box
 *      3 0.5 0.5 0.2 0.1 0.4 0.5 2 ...                   and the keypoints of kpt_shape, two or three numbers each
 *      3 0.1 0.1 0.4 0.1 0.4 0.6 ...                     class, three points or more: a polygon
 *      3 0.1 0.1 0.4 0.1 0.4 0.6 0.1 0.6                 four: a polygon, or an oriented box where all lines have four
 *      10 10 40 10 40 60 10 60 dog 0                     labelTxt, in pixels: an oriented box, class, difficulty
 * All but the last as fractions of the image's width and height. */
#ifndef MR_YOLO_LABEL_H
#define MR_YOLO_LABEL_H

#include "ingest/tables/lines.h"
#include "ingest/layout/layout.h"

enum { MR_YOLO_CLASSES = 65536 };

typedef enum mr_yolo_kind { MR_YOLO_BOX, MR_YOLO_POSE, MR_YOLO_POLYGON, MR_YOLO_TEXT } mr_yolo_kind;

typedef struct mr_yolo_rules {
    const mr_plan *plan;      /* its classes, placed; NULL: any class */
    unsigned keypoints, dims; /* kpt_shape; 0: none */
    bool text;                /* lines of labelTxt */
    bool any;                 /* only to tell whether a file has labels: any count of numbers from four on */
} mr_yolo_rules;

typedef struct mr_yolo_line {
    mr_yolo_kind kind;
    uint32_t class;
    const char *name; /* name of the class, where lines have it */
    size_t name_len;
    const double *numbers; /* after the class, valid until the next line */
    size_t count;
    const char *text; /* the line, without surrounding blanks */
    size_t len;
} mr_yolo_line;

typedef struct mr_yolo_reader { /* zero but for `lines` */
    mr_lines lines;
    double *numbers;
    size_t count, capacity;
    char why[200]; /* MR_BAD_DATA: what is wrong with it */
} mr_yolo_reader;

/* The next line that is not blank.  MR_END: there is none; MR_BAD_DATA: `why`; MR_SYSTEM: out of memory. */
mr_status mr_yolo_next(mr_yolo_reader *r, const mr_yolo_rules *rules, mr_yolo_line *out);
/* Whether these are lines of labelTxt, by the first one: after eight numbers there is a name; "imagesource:",
 * "gsd:". */
bool mr_yolo_is_text(const char *text, size_t len);
void mr_yolo_reader_free(mr_yolo_reader *r);

#endif
