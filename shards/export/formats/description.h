/* description.h - croissant.json of an export: its files with their hashes, and how they are read as records.
 * Invariant: a file is named with the SHA-256 that it had after it was written in full; memory does not grow with the
 * number of samples or files.
 *
 *      parquet   SPLIT/files is a FileSet of data/SPLIT-?????-of-00002.parquet; fields are columns
 *      tar       SPLIT/files is a FileSet of the images in SPLIT-000000.tar ...; the other fields are in
 *                __millrace__/SPLIT.jsonl, whose file_name is the image's name in its tar
 *
 * A record set for each split that has samples, whose fields are SPLIT/image, SPLIT/split ... and those of row.h. */
#ifndef MR_EXPORT_DESCRIPTION_H
#define MR_EXPORT_DESCRIPTION_H

#include "shards/export/row.h"

typedef struct mr_description { /* a zeroed one is closed */
    mr_out_text files;          /* the files of all splits so far, in an unnamed file */
    bool any;
} mr_description;

mr_status mr_description_open(mr_export_run *run, mr_description *d, mr_error *err);
/* Adds a file of the export, which is complete; its SHA-256 is computed here. */
mr_status mr_description_file(mr_export_run *run, mr_description *d, const char *path, const char *format,
                              mr_error *err);
/* Begins another part of the distribution, to which the caller appends. */
mr_buf *mr_description_item(mr_description *d);
/* Writes the file.  `tar`: which of the two forms. */
mr_status mr_description_close(mr_export_run *run, mr_description *d, mr_export_row_kind kind, bool tar, mr_error *err);
void mr_description_free(mr_description *d); /* without writing */

#endif
