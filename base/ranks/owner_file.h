/* owner_file.h - the lock file of a folder: its owner, and a count of the owner's ticks.
 * Invariant: an owner's text keeps its length, so that each tick replaces it in place. */
#ifndef MR_OWNER_FILE_H
#define MR_OWNER_FILE_H

#include "base/error.h"

enum { MR_OWNER_ID = 32, MR_OWNER_TEXT = 512 };

typedef struct mr_owner_identity {
    uint64_t beats;
    char host[65], boot[41];        /* boot "-": unknown, and equal to no other */
    uint64_t process, start, space; /* its number, when it started, and the namespace in which that is its number */
    char id[MR_OWNER_ID + 1];       /* chosen at random */
} mr_owner_identity;

typedef struct mr_owner_file {
    char text[MR_OWNER_TEXT];
    size_t len;
    bool known; /* `identity` is filled: the text is an owner's */
    mr_owner_identity identity;
} mr_owner_file;

/* This process, with a new id.  MR_SYSTEM: no random bytes. */
mr_status mr_owner_self(mr_owner_identity *out, mr_error *err);
size_t mr_owner_text(const mr_owner_identity *identity, char text[MR_OWNER_TEXT]);
/* MR_END: there is no file `name`.  `path`: what is owned, for the message. */
mr_status mr_owner_look(int dirfd, const char *name, const char *path, mr_owner_file *out, mr_error *err);

bool mr_owner_same_boot(const mr_owner_identity *a, const mr_owner_identity *b);
/* Whether its process runs; for an owner of the same boot and in the same namespace of processes. */
bool mr_owner_runs(const mr_owner_identity *identity);

#endif
