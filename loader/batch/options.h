/* options.h - checks mr_loader_options and replaces every 0 that means a default.
 * Invariant: filled options are used as they are; no other file knows a default. */
#ifndef MR_LOADER_OPTIONS_H
#define MR_LOADER_OPTIONS_H

#include "shards/manifest/manifest.h"

enum {
    MR_MAX_THREADS = 1024,
    MR_MAX_PREFETCH = 4096,
    MR_MAX_SIDE = 16384, /* pixels of a transform's output */
};

/* MR_MISUSE names the option.  What depends on the split's size (the global batch, the cursor) is checked later. */
mr_status mr_loader_options_fill(const mr_loader_options *from, const mr_manifest *m, mr_loader_options *out,
                                 mr_error *err);

#endif
