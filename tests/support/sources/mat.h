/* mat.h - MAT-files of version 5 with an array of synsets, as ILSVRC2012's meta.mat. */
#ifndef MR_SUPPORT_MAT_H
#define MR_SUPPORT_MAT_H

#include "base/buf.h"

typedef struct support_synset {
    double id;
    const char *name, *words; /* ASCII */
} support_synset;

typedef struct support_mat {
    bool big; /* endian */
    bool compressed;
    const char *variable; /* NULL: "synsets" */
    const char *id_field; /* NULL: "ILSVRC2012_ID" */
} support_mat;

/* Replaces out's contents. */
void support_mat_write(const support_mat *m, const support_synset *synsets, size_t count, mr_buf *out);

#endif
