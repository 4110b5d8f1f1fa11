/* events.h - a TensorBoard event file read back.
 * Invariant: every length, both CRCs of every record and every field are checked, by code that shares nothing with the
 * writer; anything odd fails the running test. */
#ifndef MR_SUPPORT_EVENTS_H
#define MR_SUPPORT_EVENTS_H

#include "tests/support/support.h"

typedef struct support_scalar {
    char tag[64];
    float value;
} support_scalar;

typedef struct support_event {
    double wall_time;
    uint64_t step;
    char version[32]; /* of the file, in the first event */
    bool starts;      /* says that the run starts with `step` */
    support_scalar scalars[8];
    size_t count;
} support_event;

/* All events of the file; heap.  Where the file ends within a record: those before it, and *whole is false. */
support_event *support_events_read(const char *path, size_t *count, bool *whole);
/* The same for the only file in a directory, which must be whole. */
support_event *support_events_in(const char *dir, size_t *count);
/* The value of the one scalar with this tag at this step. */
float support_events_value(const support_event *events, size_t count, const char *tag, uint64_t step);

#endif
