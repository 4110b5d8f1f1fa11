/* archive.h - an archive that is being listed; private to archive*.c.
 * Invariant: no byte of a damaged entry is ever handed out. */
#ifndef MR_SOURCE_ARCHIVE_H
#define MR_SOURCE_ARCHIVE_H

#include "base/cli/term.h"
#include "ingest/archive/archive_checks.h"
#include "ingest/source/list.h"

typedef struct unpack {
    list *list;
    struct archive *archive;
    archive_input *input; /* what `archive` reads from */
    const char *name;
    mr_progress *progress;
    archive_census census;
    const struct unpack *outer; /* a class tar in an archive: that one; else NULL */
    int fd;                     /* the archive, if its bytes can be read in place; else -1 */
    uint64_t base;              /* its first byte in that file */
    uint32_t holder;            /* its number, MR_NO_ENTRY before the first use */
    mr_buf plain;               /* the current entry's name in the tree */
    mr_buf compare, complaint;  /* the complaint: why the current entry is damaged */
} unpack;

/* Where the data of the current entry is. */
typedef struct place {
    bool in_place;
    uint64_t at;    /* in the archive's file, while in_place */
    uint64_t size;  /* so far */
    uint64_t whole; /* its whole size, if it is in one piece for sure: the rest is not compared; 0: compare all */
    bool large;     /* over the limit */
    bool damaged;
} place;

/* Follows the entry's data to its end, block by block.  A damaged entry ends early, with a complaint. */
mr_status mr_unpack_data(unpack *u, uint64_t max, const char *path, place *p, mr_error *err);
/* A sparse file may end in a hole, which libarchive does not report: the entry is `size` bytes long. */
mr_status mr_unpack_end_hole(unpack *u, uint64_t size, place *p, mr_error *err);

/* class_tar.c: a class tar, whose bytes are at `at` of the archive's file or of the spool. */
mr_status mr_unpack_class_tar(unpack *outer, const place *p, uint64_t spool_at, const char *path, size_t len,
                              mr_error *err);
/* Reads all entries.  MR_BAD_DATA: not to the end. */
mr_status mr_unpack_entries(unpack *u, mr_error *err);
/* Makes the reader, with the limits of the list.  Released by mr_unpack_end(), on failure too. */
mr_status mr_unpack_begin(unpack *u, mr_error *err);
void mr_unpack_end(unpack *u);
mr_status mr_unpack_holder(unpack *u, mr_error *err);

#endif
