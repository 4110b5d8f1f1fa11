/* near_names.c - a file that may be one that annotations name and the source lacks.
 * Invariant: at most one remark, on a file that is not part of the dataset. */
#include <string.h>

#include "base/scope.h"
#include "ingest/pipeline/ingest_state.h"
#include "ingest/source/names.h"

enum { TRIED = 8 }; /* missing images: where one of them is there by another name, so are most others */

static bool is_sample(const mr_plan *plan, uint32_t entry)
{
    for (size_t i = 0; i < plan->sample_count; i++)
        if (plan->samples[i].entry == entry)
            return true;
    return false;
}

/* The entry whose name is alike; NULL: none. */
static const mr_entry *find_alike(const mr_ingest *in, const char *name, size_t len)
{
    const mr_tree whole = mr_tree_at(in->source, "", 0);
    uint32_t n = mr_tree_find_alike(&whole, 0, name, len);
    while (n != MR_NO_ENTRY && is_sample(&in->plan, n))
        n = mr_tree_find_alike(&whole, n + 1, name, len);
    return n == MR_NO_ENTRY ? NULL : mr_source_entry(in->source, n);
}

void mr_note_near_names(mr_ingest *in)
{
    size_t tried = 0;
    for (size_t i = 0; i < in->notes.count && tried < TRIED; i++) {
        const mr_note *note = &in->notes.items[i];
        const char *slash = strrchr(note->path, '/'), *name = slash ? slash + 1 : note->path;
        size_t len = strlen(name);
        if (note->kind != MR_NOTE_MISSING || !mr_name_is_image(name, len))
            continue;
        const mr_entry *e = find_alike(in, name, len);
        tried++;
        if (!e)
            continue;
        MR_AUTO(mr_buf_free) mr_buf missing = {0};
        mr_buf_add(&missing, name, len);
        mr_note_add(&in->notes, MR_NOTE_INFO, e->path, e->path_len, 0,
                    "differs from %.200s, which is missing, only " MR_NAME_ALIKE, mr_buf_text(&missing));
        return;
    }
}
