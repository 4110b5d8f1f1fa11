/* formats.h - formats of annotations and of images, recognised by name and first bytes, whether or not they are read.
 * Invariant: at most the first 4 KiB of a file are read; a file that cannot be read has no format. */
#ifndef MR_FORMATS_H
#define MR_FORMATS_H

#include "ingest/layout/stems.h"
#include "ingest/source/source.h"

enum {
    MR_FORMAT_PER_IMAGE = 1, /* a file for each image, of the image's name */
    MR_FORMAT_CHOSEN = 2,    /* --annotations says which of them count */
    MR_FORMAT_LIST = 4,      /* each line is an image: --split-list reads it */
    MR_FORMAT_TABLE = 8,     /* layout table may read it */
    MR_FORMAT_PERHAPS = 16,  /* annotations only where nothing else is: hints name it */
};

typedef struct mr_format {
    const char *name;    /* the name of one file: "KITTI label file" */
    const char *names;   /* the name of several */
    const char *instead; /* what makes it useful: "convert it to COCO or YOLO first"; NULL: some layout reads it */
    unsigned kind;       /* MR_FORMAT_*, or 0 */
} mr_format;

typedef struct mr_content {
    bool image;              /* by its first bytes, whatever its name */
    const mr_format *format; /* the format of annotations; NULL: none that is known */
} mr_content;

/* `stems` may be NULL. */
mr_content mr_content_of(const mr_source *s, uint32_t entry, const mr_stems *stems);

/* For a source that no layout fits: a sentence on the first file of a format that no layout reads and on what to do
 * instead; nothing if there is none. */
void mr_format_hint(const mr_source *s, mr_buf *out);

#endif
