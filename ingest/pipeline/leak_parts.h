/* leak_parts.h - files of one name before ".rf." in several splits: what the search for leaks keeps of them.
 * Invariant: a group's files are sorted by split and sample, and no more of them are kept than are compared.
 */
#ifndef MR_LEAK_PARTS_H
#define MR_LEAK_PARTS_H

#include "pipeline/ingest.h"

/* How a file looks: the number of a picture of its group, or why it has none. */
enum { MR_LOOKS = 16, MR_LOOK_PLAIN = 253, MR_LOOK_UNREADABLE = 254, MR_LOOK_UNCOMPARED = 255 };

typedef struct mr_namesake {
    uint32_t split, sample;
    uint8_t look;
} mr_namesake;

typedef struct mr_namesakes { /* the groups, and their files, one group after the other */
    mr_namesake *files;
    size_t file_count, file_room;
    struct mr_name_group {
        size_t begin, count; /* in `files` */
        size_t all;          /* files that have the name; of more than MR_GROUP_MAX some are left out */
    } * groups;
    size_t group_count, group_room;
} mr_namesakes;

/* A name that more files share is not a name ("image.jpg"). */
enum { MR_GROUP_MAX = 256 };

typedef struct mr_leak_member {
    uint8_t key[16]; /* equal for what may be a leak */
    uint32_t split, sample;
} mr_leak_member;

/* leak_look.c: decodes every file once and sets `look`; equal numbers in a group: the pictures look alike.  The work is
 * shared by threads and ranks; the result is that of one.  Collective. */
mr_status mr_leak_look(mr_ingest *in, mr_namesakes *names, mr_error *err);

/* leak_names.c.  `members`: sorted by key, split, sample. */
mr_status mr_leak_names_find(const mr_ingest *in, const mr_leak_member *members, size_t count, mr_namesakes *out,
                             mr_error *err);
void mr_leak_names_report(mr_ingest *in, const mr_namesakes *names);
void mr_leak_names_free(mr_namesakes *names);

/* leak.c: of two samples in two splits: "WHAT, in val and test: also OTHER". */
void mr_leak_note(mr_ingest *in, mr_note_kind kind, uint32_t sample, uint32_t other, const char *what);
bool mr_leak_other_label(const mr_ingest *in, uint32_t sample, uint32_t other);
bool mr_leak_equal_bytes(const mr_ingest *in, uint32_t sample, uint32_t other);

#endif
