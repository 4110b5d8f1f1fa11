/* events.h - TensorBoard event files: scalars that the `tensorboard` package reads.
 * Invariant: a record is written whole or not at all by one write(); after a resume a new file goes on beside the old.
 * Source: tensorflow/core/lib/io/record_writer.h (TFRecord: u64 length, masked CRC32C of it, bytes, masked CRC32C of
 * them) and tensorflow/core/util/event.proto, summary.proto. */
#ifndef MR_EVENTS_H
#define MR_EVENTS_H

#include "base/buf.h"

/* How TensorBoard knows its files; then the second they are of, so that the least is the oldest's. */
#define MR_EVENTS_NAME "events.out.tfevents."
long long mr_events_second(const char *name); /* -1: no such file's name */

typedef struct mr_events mr_events;

/* Makes DIR (with parents) and in it events.out.tfevents.SECONDS.HOST.PID.N, a name that is not taken yet. */
mr_status mr_events_open(const char *dir, mr_events **out, mr_error *err);
/* Values of one step, each with its tag ("train/loss"); `seconds`: since the epoch. */
typedef struct mr_scalar {
    const char *tag;
    float value;
} mr_scalar;
mr_status mr_events_add(mr_events *e, double seconds, uint64_t step, const mr_scalar *scalars, size_t count,
                        mr_error *err);
/* After a resume: the run goes on with this step, and readers drop what older files have from it on. */
mr_status mr_events_restart(mr_events *e, double seconds, uint64_t step, mr_error *err);
const char *mr_events_path(const mr_events *e);         /* of the file */
mr_status mr_events_close(mr_events *e, mr_error *err); /* NULL is fine; frees in any case */

uint32_t mr_crc32c(const void *bytes, size_t len); /* Castagnoli, as RFC 3720 has it: "123456789" is E3069283 */

#endif
