/* format_text.h - the first bytes of a file, and what lines of text in them say; private to formats.c.
 * Invariant: a line that the end of the head cuts off does not count. */
#ifndef MR_FORMAT_TEXT_H
#define MR_FORMAT_TEXT_H

#include "ingest/layout/formats.h"

enum { MR_HEAD = 4096 }; /* bytes of a file that are looked at */

typedef struct mr_head { /* the beginning of a file */
    const mr_source *source;
    const mr_stems *stems;
    const char *path, *name;
    size_t path_len, name_len;
    char bytes[MR_HEAD + 1]; /* without a byte order mark; NUL-terminated */
    size_t len;
    bool whole; /* all of the file */
} mr_head;

bool mr_head_ends(const mr_head *h, const char *suffix);
bool mr_head_has(const mr_head *h, const char *word);

bool mr_head_is_kitti(const mr_head *h);        /* class, truncated, occluded, alpha, box, size, place, angle */
bool mr_head_is_wider(const mr_head *h);        /* a/1.jpg, then a count, then x y width height ... */
bool mr_head_is_dota(const mr_head *h);         /* x1 y1 ... x4 y4 class difficult */
bool mr_head_is_pixels(const mr_head *h);       /* eight numbers between commas, or more */
bool mr_head_is_yolo(const mr_head *h);         /* a class number, and coordinates from 0 to 1 */
bool mr_head_is_image_list(const mr_head *h);   /* lines that begin with the path of an image */
bool mr_head_names_images(const mr_head *h);    /* cells of a table are names of images */
bool mr_head_has_box_cells(const mr_head *h);   /* ... with four numbers */
bool mr_head_is_beside_image(const mr_head *h); /* of the same name */
bool mr_head_is_caption(const mr_head *h);      /* text beside an image of its name */

#endif
