/* events.h - TensorBoard event files: scalars that the `tensorboard` package reads.
 * Invariant: a record is written whole or not at all; a resumed run adds a file and leaves the older ones alone.
 * Source: tensorflow/core/lib/io/record_writer.h (TFRecord: u64 length, masked CRC32C of it, bytes, masked CRC32C of
 * them) and tensorflow/core/util/event.proto, summary.proto. */
#ifndef MR_EVENTS_H
#define MR_EVENTS_H

#include "base/buf.h"

#define MR_EVENTS_NAME "events.out.tfevents." /* by which TensorBoard knows its files */

typedef struct mr_events mr_events;

/* Creates DIR (with parents) and in it a new file, events.out.tfevents.SECONDS.HOST.PID.N. */
mr_status mr_events_open(const char *dir, mr_events **out, mr_error *err);
/* Values of one step, each with its tag ("train/loss"); `seconds`: since the epoch. */
typedef struct mr_scalar {
    const char *tag;
    float value;
} mr_scalar;
mr_status mr_events_add(mr_events *e, double seconds, uint64_t step, const mr_scalar *scalars, size_t count,
                        mr_error *err);
/* After a resume: the next step; readers drop this step and later ones of older files. */
mr_status mr_events_restart(mr_events *e, double seconds, uint64_t step, mr_error *err);
const char *mr_events_path(const mr_events *e);         /* the file's path */
mr_status mr_events_close(mr_events *e, mr_error *err); /* NULL is fine; frees in any case */

/* Calls `take` for every scalar of every event file in DIR, file by file in the order of their names, which is that of
 * time.  mr_events_restart() and its like arrive as a NULL tag: that step and later ones are dropped.  A file that is
 * cut off, as by a killed run, ends where its whole records end.  MR_END: there is no such file.  MR_BAD_DATA: a record
 * is damaged. */
typedef mr_status (*mr_scalar_fn)(void *ctx, uint64_t step, const char *tag, float value, mr_error *err);
mr_status mr_events_read(const char *dir, mr_scalar_fn take, void *ctx, mr_error *err);
/* The same for the bytes of one file, called `path` in messages. */
mr_status mr_events_parse(const void *bytes, size_t size, const char *path, mr_scalar_fn take, void *ctx,
                          mr_error *err);

/* Removes the event files in the folder `name` of dirfd, and the folder if nothing else is in it; it may be absent.
 * `parent`: the folder's, for messages. */
mr_status mr_events_remove(int dirfd, const char *name, const char *parent, mr_error *err);

uint32_t mr_masked_crc32c(const void *bytes, size_t len); /* as TFRecord stores it */
uint32_t mr_crc32c(const void *bytes, size_t len);        /* Castagnoli, as in RFC 3720: "123456789" is E3069283 */

#endif
