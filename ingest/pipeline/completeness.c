/* completeness.c - checks that no images are missing behind a link or in an empty split.
 * Invariant: a dataset is written only if each of its splits has a sample. */
#include <stdlib.h>
#include <string.h>

#include "base/scope.h"
#include "base/text.h"
#include "ingest/source/names.h"
#include "ingest/pipeline/ingest_state.h"

/* A link may stand for an image or a class folder, which would be missing. */
mr_status mr_check_links(const mr_ingest *in, mr_error *err)
{
    const mr_tree *t = &in->choice.tree;
    const mr_unfollowed_link *links;
    size_t count = mr_source_unfollowed_links(in->source, &links), missed = 0, first = 0;
    for (size_t i = 0; i < count; i++) {
        const mr_entry e = {.path = links[i].path, .path_len = links[i].len};
        bool inside = e.path_len >= t->root_len && !memcmp(e.path, t->root, t->root_len);
        if (mr_path_is_hidden(e.path, e.path_len) || (!inside && in->options->for_layout.root))
            continue;
        first = missed++ ? first : i;
    }
    if (!missed)
        return MR_OK;
    MR_AUTO(mr_buf_free) mr_buf path = {0};
    MR_AUTO(mr_buf_free) mr_buf option = {0};
    char more[32];
    mr_text_escape(&path, links[first].path, links[first].len);
    mr_source_leave_out(links[first].path, links[first].len, &option);
    return mr_fail(err, MR_BAD_DATA,
                   "%s: %s is a link that is not followed, so what it leads to would be left out%s%s%s; put the "
                   "files themselves there (`cp -rL`), or leave it out with %s. Nothing was written",
                   in->options->sources[0], mr_buf_text(&path), missed > 1 ? " (and " : "",
                   missed > 1 ? mr_text_count(missed - 1, more) : "", missed > 1 ? " more, listed above)" : "",
                   mr_buf_text(&option));
}

/* ---- splits ------------------------------------------------------------------------------------------------------ */

static mr_status empty_split(const mr_ingest *in, uint32_t split, mr_error *err)
{
    const mr_plan_split *s = &in->plan.splits[split];
    const mr_split_alias *a = s->alias_count ? &s->aliases[0] : NULL;
    bool unlisted = in->notes.counts[MR_NOTE_UNLISTED] && !in->options->for_layout.keep_unlisted &&
                    in->choice.layout->options & MR_OPTION_UNLISTED;
    size_t planned = 0;
    MR_AUTO(mr_buf_free) mr_buf name = {0};
    for (size_t i = 0; i < in->plan.sample_count; i++)
        planned += in->plan.samples[i].split == split;
    if (a)
        mr_source_quote(a->name, a->len, &name);
    else
        mr_buf_add_text(&name, s->name);
    return mr_fail(
        err, MR_BAD_DATA, "%s: split %s would be empty%s, and nothing was written; --split-map %s= leaves it out%s",
        in->options->sources[0], s->name, planned ? ": all of its images are rejected" : "", mr_buf_text(&name),
        unlisted ? ", --keep-unlisted includes the images that no annotation lists" : "");
}

mr_status mr_check_splits(const mr_ingest *in, mr_error *err)
{
    for (uint32_t split = 0; split < in->plan.split_count; split++)
        if (mr_ingest_split(in, split).samples == 0)
            return empty_split(in, split, err);
    return MR_OK;
}
