/* archive_checks.h - damage that libarchive reports, and what it does not check.
 * Invariant: nothing that libarchive complains about passes unless it is known to be harmless. */
#ifndef MR_ARCHIVE_CHECKS_H
#define MR_ARCHIVE_CHECKS_H

#include "base/buf.h"
#include "ingest/archive/archive_input.h"
#include "ingest/archive/zip_directory.h"

typedef enum archive_verdict {
    ARCHIVE_GOOD,
    ARCHIVE_BAD_ENTRY, /* this entry is damaged, the others may be intact */
    ARCHIVE_BAD,       /* nothing from here on can be trusted */
} archive_verdict;

/* `returned` by archive_read_next_header() and archive_read_data_block(). */
archive_verdict mr_archive_check_header(struct archive *a, int returned);
archive_verdict mr_archive_check_data(struct archive *a, int returned);
/* After ARCHIVE_BAD_ENTRY: why, appended to `out`. */
void mr_archive_complaint(struct archive *a, mr_buf *out);

typedef struct archive_census { /* what was read, and what a zip's directory announced; initially zero */
    zip_directory read, announced;
    bool is_announced;
} archive_census;

/* Once the format is known, with the first entry or at the end: checks that libarchive does not make.  MR_BAD_DATA. */
mr_status mr_archive_check_start(struct archive *a, const archive_input *in, archive_census *census, mr_error *err);
/* Counts the entry.  False, with the reason in `out`: it is in a zip and marked as a device, but has bytes. */
bool mr_archive_check_kind(struct archive *a, struct archive_entry *e, archive_census *census, mr_buf *out);
/* After the last entry: MR_BAD_DATA if a zip has more or fewer entries, links or folders than its directory. */
mr_status mr_archive_check_census(const archive_input *in, const archive_census *census, mr_error *err);

#endif
