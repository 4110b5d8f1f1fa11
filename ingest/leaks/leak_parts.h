/* leak_parts.h - groups of files in several splits that have the same name before ".rf."; private to leak*.c.
 * Invariant: a group's files are sorted by split and sample; only those that are compared are kept. */
#ifndef MR_LEAK_PARTS_H
#define MR_LEAK_PARTS_H

#include <pthread.h>

#include "ingest/pipeline/ingest_state.h"

/* How a file looks: the number of an image in its group, or why it has none. */
enum { MR_LOOKS = 16, MR_LOOK_PLAIN = 253, MR_LOOK_UNREADABLE = 254, MR_LOOK_UNCOMPARED = 255 };

typedef struct mr_namesake {
    uint32_t split, sample;
    uint8_t look;
} mr_namesake;

typedef struct mr_namesakes { /* the groups, and their files, group by group */
    mr_namesake *files;
    size_t file_count, file_capacity;
    struct mr_name_group {
        size_t begin, count; /* in `files` */
        size_t all;          /* files that have the name; if more than MR_GROUP_MAX, only some are kept */
    } * groups;
    size_t group_count, group_capacity;
} mr_namesakes;

/* A name that more files share says nothing about them ("image.jpg"). */
enum { MR_GROUP_MAX = 256 };

typedef struct mr_leak_member {
    uint8_t key[16]; /* equal: may be a leak */
    uint32_t split, sample;
} mr_leak_member;

/* leak_look.c: decodes every file once and sets `look`; equal numbers in a group: the images look alike.  The result
 * does not depend on the number of threads and ranks.  Collective. */
mr_status mr_leak_look(mr_ingest *in, mr_namesakes *names, mr_error *err);

/* leak_names.c.  `members`: sorted by key, split, sample. */
mr_status mr_leak_names_find(const mr_ingest *in, const mr_leak_member *members, size_t count, mr_namesakes *out,
                             mr_error *err);
void mr_leak_names_report(mr_ingest *in, const mr_namesakes *names);
void mr_leak_names_free(mr_namesakes *names);

/* leak_near.c: --near-duplicates: notes images that look alike, in two splits or in one.  Collective. */
mr_status mr_leak_near(mr_ingest *in, mr_error *err);
/* leak_near.c: by sample, an earlier one that looks like it, or itself.  Notes nothing.  Collective. */
mr_status mr_leak_near_links(mr_ingest *in, uint32_t *earlier, mr_error *err);

/* leak_look.c: an image of the source as grey cells; MR_BAD_SAMPLE: it cannot be decoded. */
typedef struct mr_leak_reader {
    mr_ingest *in;
    mr_buf *bytes;         /* one per worker */
    pthread_mutex_t large; /* such images are decoded one at a time */
} mr_leak_reader;
mr_status mr_leak_reader_open(mr_ingest *in, mr_leak_reader *out, mr_error *err);
mr_status mr_leak_reader_shrink(mr_leak_reader *r, uint32_t entry, unsigned worker, mr_alike *out, mr_error *err);
void mr_leak_reader_free(mr_leak_reader *r);

/* leak_members.c: the samples whose images are good, keyed by content or, if they have one, by their group's name;
 * sorted by key, split and sample.  `members`: room for all samples.  Returns their number. */
size_t mr_leak_members(const mr_ingest *in, bool by_name, mr_leak_member *members);
/* leak_members.c: notes two samples in two splits, or in one: "WHAT, in val and test: also OTHER". */
void mr_leak_note(mr_ingest *in, mr_note_kind kind, uint32_t sample, uint32_t other, const char *what);
bool mr_leak_other_label(const mr_ingest *in, uint32_t sample, uint32_t other);
bool mr_leak_equal_bytes(const mr_ingest *in, uint32_t sample, uint32_t other);

#endif
