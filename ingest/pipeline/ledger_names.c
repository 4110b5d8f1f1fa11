/* ledger_names.c - which entries are images by their names, and those names without endings.
 * Invariant: names are listed once, when they are first asked for. */
#include "ingest/pipeline/ledger_parts.h"

#include "base/scope.h"
#include "ingest/source/names.h"

bool mr_is_named_image(const mr_ingest *in, uint32_t n)
{
    const mr_entry *e = mr_source_entry(in->source, n);
    return mr_name_is_image(e->path, e->path_len);
}

mr_status mr_book_stems(mr_book *b, bool samples, mr_error *err)
{
    mr_stems *stems = samples ? &b->of_samples : &b->of_images;
    bool *filled = samples ? &b->sampled : &b->listed;
    for (uint32_t n = 0; !*filled && n < mr_source_count(b->in->source); n++) {
        const mr_entry *e = mr_source_entry(b->in->source, n);
        if (samples ? b->fates[n] == MR_FATE_SAMPLE : mr_is_named_image(b->in, n))
            MR_TRY(mr_stems_add(stems, e->path, e->path_len, err));
    }
    if (!*filled)
        mr_stems_sort(stems);
    *filled = true;
    return MR_OK;
}
