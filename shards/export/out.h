/* out.h - files in the temporary folder of an export.
 * Invariant: a file is created once and never opened again; paths are relative and made of names of mr_names_take(). */
#ifndef MR_EXPORT_OUT_H
#define MR_EXPORT_OUT_H

#include "base/buf.h"

typedef struct mr_out {
    int dirfd;
    const char *root; /* the same folder's path */
    uint64_t files, bytes;
} mr_out;

/* With its parents; it may exist. */
mr_status mr_out_folder(mr_out *o, const char *path, mr_error *err);
/* Creates a file, and its folder. */
mr_status mr_out_create(mr_out *o, const char *path, int *fd, mr_error *err);
mr_status mr_out_file(mr_out *o, const char *path, const void *bytes, size_t len, mr_error *err);

/* A text that is written piece by piece: append to `text`, then mr_out_text_push() now and then. */
typedef struct mr_out_text { /* a zeroed one is closed */
    mr_out *out;
    char *path; /* NULL: closed */
    int fd;
    bool scratch; /* nameless, and not counted */
    mr_buf text;
} mr_out_text;

mr_status mr_out_text_open(mr_out *o, const char *path, mr_out_text *t, mr_error *err);
/* The same in a nameless file, for mr_out_text_copy(). */
mr_status mr_out_text_scratch(mr_out *o, mr_out_text *t, mr_error *err);
mr_status mr_out_text_push(mr_out_text *t, mr_error *err); /* writes it out when there is much */
/* Appends all of the scratch file to `t`. */
mr_status mr_out_text_copy(mr_out_text *t, mr_out_text *scratch, mr_error *err);
mr_status mr_out_text_close(mr_out_text *t, mr_error *err);
void mr_out_text_free(mr_out_text *t); /* without writing what is left */

#endif
