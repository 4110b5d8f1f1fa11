/* placing.h - which rows are an image's: place.c finds them, rows.c makes samples of them.
 * Invariant: an image's rows are of one table; those of a rejected image are in a note. */
#ifndef MR_TABLE_PLACING_H
#define MR_TABLE_PLACING_H

#include "ingest/layout/table/table.h"

typedef struct mr_placing {
    const mr_tree *tree;
    const mr_layout_options *options;
    const mr_picture_index *index;
    mr_plan *plan;
    mr_table_state *st;
    uint64_t *row_of;  /* by image: sheet << 32 | row + 1 of the first; 0: none */
    uint32_t *last;    /* by image: row + 1 of the last */
    uint32_t *differs; /* by image: row + 1 of the first with other labels than the first row; 0: none */
    uint8_t *rejected; /* by image */
    uint32_t *divided; /* by image: row + 1 of the division; 0: none */
    size_t placed;     /* rows of the current sheet */
    size_t again;      /* ... whose image another sheet has */
    size_t repeats;    /* ... that are equal to another of their image, and whose captions are kept */
    mr_buf labels, more, path;
    mr_error *err;
} mr_placing;

mr_status mr_placing_open(mr_placing *p);
mr_status mr_place_sheet(mr_placing *p, size_t number);
/* The split's name in the source: the row's, the table's, or a folder's; else train. */
const char *mr_placing_split(const mr_placing *p, const mr_sheet *s, size_t row, uint32_t entry);
/* An image's split by the table that has nothing else; NULL: there is no such table, or no row of it for the image. */
const char *mr_placing_division(const mr_placing *p, size_t picture);
void mr_placing_free(mr_placing *p);

#endif
