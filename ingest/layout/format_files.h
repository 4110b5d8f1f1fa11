/* format_files.h - what the first bytes of a file say about binary formats; private to formats.c.
 * Invariant: nothing but the head of a file is looked at. */
#ifndef MR_FORMAT_FILES_H
#define MR_FORMAT_FILES_H

#include "ingest/layout/format_text.h"

bool mr_head_is_image(const mr_head *h); /* of any kind that a layout may meet */
bool mr_head_is_tfrecord(const mr_head *h);
bool mr_head_is_arrow(const mr_head *h);
bool mr_head_is_streamed(const mr_head *h); /* LitData, MDS */
bool mr_head_is_packed(const mr_head *h);   /* RecordIO, FFCV */
bool mr_head_is_arrays(const mr_head *h);   /* NumPy, HDF5, pickles, IDX */
bool mr_head_is_matlab(const mr_head *h);
bool mr_head_is_parquet(const mr_head *h);
bool mr_head_is_archive(const mr_head *h);
bool mr_head_is_part(const mr_head *h); /* of a split archive: data.zip.001, data.tar.gz.aa, data.z01 */
bool mr_head_is_spreadsheet(const mr_head *h);
bool mr_head_is_database(const mr_head *h);

#endif
