/* notes.h - what ingest reports to the user, kept for report.json and the summary.
 * Invariant: everything in the source that is not in the dataset has a note. */
#ifndef MR_NOTES_H
#define MR_NOTES_H

#include "base/buf.h"

/* word: in report.json; head: in the summary, before a count */
#define MR_NOTE_KINDS(X)                                                                                               \
    X(REJECT, "rejects", "rejected")                  /* an image that cannot be trusted */                            \
    X(LINK, "links", "links not followed")            /* symbolic or hard links, devices, FIFOs */                     \
    X(BAD_NAME, "bad_names", "unsafe names rejected") /* .., absolute, NUL, empty, too long */                         \
    X(COLLISION, "collisions", "duplicate names")     /* the first is kept */                                          \
    X(NOT_UTF8, "odd_names", "names not UTF-8")       /* kept byte for byte */                                         \
    X(UNLISTED, "unlisted", "images not in any annotation")                                                            \
    X(MISSING, "missing", "annotated but missing")                                                                     \
    X(CLASS, "class_notes", "classes not in every split")                                                              \
    X(LEAK, "leaks", "leaks between splits")                                                                           \
    X(DUPLICATE, "duplicates", "images that look alike in one split") /* with --near-duplicates */                     \
    X(LEFT_OUT, "left_out", "folders with images or annotations that would be left out")                               \
    X(UNACCOUNTED, "unaccounted", "files that would be left out") /* in these folders; in the report alone */          \
    X(SAME_NAME, "same_names", "same name in two splits")         /* no proof of a leak */                             \
    X(COMPANION, "companions", "companions left out")             /* READMEs, checksums, masks ... */                  \
    X(IGNORED, "ignored", "other files left out")                                                                      \
    X(INFO, "notes", "remarks")

typedef enum mr_note_kind {
#define X(word, json, head) MR_NOTE_##word,
    MR_NOTE_KINDS(X)
#undef X
        MR_NOTE_COUNT
} mr_note_kind;

typedef struct mr_note {
    mr_note_kind kind;
    char *path; /* path text */
    char *detail;
    uint64_t bytes;
} mr_note;

enum { MR_NOTES_KEPT = 100000 }; /* per kind, and twice that in total: a few bytes of a source may cause a note */

typedef struct mr_notes {
    mr_note *items;
    size_t count, capacity;
    size_t counts[MR_NOTE_COUNT]; /* all notes that were added */
    size_t kept[MR_NOTE_COUNT];   /* how many of them are in `items`: the first ones */
    bool failed;                  /* memory ran out; checked once at the end */
} mr_notes;

extern const char *const mr_note_words[MR_NOTE_COUNT];
extern const char *const mr_note_heads[MR_NOTE_COUNT];
/* What the user can do about it; NULL: there is nothing to decide. */
extern const char *const mr_note_advice[MR_NOTE_COUNT];

/* `path` is bytes (escaped here); detail is printf-style. Not thread-safe. */
void mr_note_add(mr_notes *notes, mr_note_kind kind, const char *path, size_t path_len, uint64_t bytes,
                 const char *format, ...) MR_PRINTF(6, 7);
/* Sorts the notes from number `from` on by kind, path and detail. */
void mr_notes_sort(mr_notes *notes, size_t from);
/* Appends all of `from`, which becomes empty. */
void mr_notes_move(mr_notes *notes, mr_notes *from);
/* Sends notes to another rank of the same program: pack appends them to `out`, unpack adds them to `notes`. */
void mr_notes_pack(const mr_notes *notes, mr_buf *out);
void mr_notes_unpack(mr_notes *notes, const uint8_t *packed, size_t len);
void mr_notes_free(mr_notes *notes);

#endif
