/* trees.h - a whole tree of files out of one input, with options for its layout.
 *
 *      input       OPTIONS NUL (NAME NUL CONTENT NUL)...
 *      OPTIONS     COLUMN,CONFIG,FROM=TO,unlisted; each may be empty
 *
 * What is under a name that ends in .parquet was written by a program that opened the file of that name. */
#ifndef MR_FUZZ_TREES_H
#define MR_FUZZ_TREES_H

#include "tests/fuzz/fuzz.h"
#include "ingest/layout/layout.h"

typedef struct fuzz_tree {
    mr_layout_options options;
    mr_source *files, *opened; /* what is in the tree; what came out of opened files */
    mr_source *nothing;        /* in place of `opened`: no program was run */
    mr_split_map map;
    char *text; /* holds the options' words */
    mr_notes notes;
} fuzz_tree;

void fuzz_tree_make(const uint8_t *data, size_t size, fuzz_tree *out); /* `out` stays where it is */
void fuzz_tree_free(fuzz_tree *tree);

#endif
