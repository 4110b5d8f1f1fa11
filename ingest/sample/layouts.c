/* layouts.c - the table of layouts that can be drawn.
 * Invariant: a new one is a row of MR_SKETCH_LAYOUTS and a file. */
#include "ingest/sample/sample.h"

const mr_sketch_layout *const mr_sketch_layouts[] = {
#define X(word) &mr_sketch_##word,
    MR_SKETCH_LAYOUTS(X)
#undef X
        NULL,
};
