/* tar.h - a WebDataset tar that is being written.
 * Invariant: a tar has its end marker only if every entry is in it in full. */
#ifndef MR_EXPORT_TAR_H
#define MR_EXPORT_TAR_H

#include "shards/export/format.h"

#define MR_TAR_FOLDER "__millrace__" /* readers of WebDataset and of the hub skip it */
#define MR_TAR_FACTS  MR_TAR_FOLDER "/dataset.json"
enum { MR_TAR_NAME = 128 };

struct archive;
struct archive_entry;

typedef struct mr_tar {
    struct archive *archive; /* NULL: not open */
    struct archive_entry *entry;
    const char *name; /* for messages */
    mr_export_result *result;
    int fd;
    bool shard;        /* it holds one split, which its own name tells */
    mr_status written; /* how writing went; a failure is in `error` */
    mr_error error;
} mr_tar;

/* Begins to write to t->fd; to be freed after a failure, too. */
mr_status mr_tar_open(mr_tar *t, mr_error *err);
/* Adds a file that belongs to no sample. */
mr_status mr_tar_file(mr_tar *t, const char *path, const void *bytes, size_t len, mr_error *err);
mr_status mr_tar_sample(mr_tar *t, const mr_export_sample *s, mr_error *err);
/* Writes the end marker. */
mr_status mr_tar_close(mr_tar *t, mr_error *err);
/* `status`: the status of all that was done; if it is not MR_OK, the tar remains without an end marker.  The descriptor
 * stays open. */
void mr_tar_free(mr_tar *t, mr_status status);

/* The name of a sample's file in the tar. */
void mr_tar_name(const mr_tar *t, const mr_export_sample *s, const char *suffix, char name[MR_TAR_NAME]);
/* Appends the split names and classes as JSON. */
void mr_tar_facts(const mr_manifest *m, const mr_export_options *o, mr_buf *text);

#endif
