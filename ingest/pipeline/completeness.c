/* completeness.c - checks that everything that looks like part of the dataset is in it.
 * Invariant: an image in a folder is a sample, or an option left it out, or the dataset's annotations do not list it;
 * otherwise nothing is written.
 *
 *      data/train/cat/1.jpg        a sample of root data/
 *      data/test/1.jpg             in a split folder, but in no class folder
 *      data/bird/1.jpg             beside the split folders
 *      extra/cat/1.jpg             beside the root
 *      banner.png                  in no folder: only reported, like any other file                                  */
#include <stdlib.h>
#include <string.h>

#include "base/scope.h"
#include "base/text.h"
#include "pipeline/ingest.h"

typedef struct folder { /* of images that would be left out */
    const char *path;   /* from the top of the source, not NUL-terminated */
    size_t len;
    uint32_t first; /* its first such image */
    size_t images;
    uint64_t bytes;
    bool inside;                /* it is in the root */
    const mr_plan_split *split; /* to which it belongs; NULL: none */
} folder;

typedef struct search {
    mr_ingest *in;
    uint8_t *taken;  /* by entry: it is a sample */
    uint32_t *sums;  /* [entries + 1]: the samples' entries before it */
    folder at;       /* the current folder; images 0: none */
    mr_buf sentence; /* about the first folder */
    size_t images, folders;
} search;

static bool is_hidden(const mr_entry *e)
{
    return e->path[0] == '.' || memmem(e->path, e->path_len, "/.", 2) != NULL;
}

/* ---- the folder of a missed image -------------------------------------------------------------------------------- */

/* The length of the folder below the last one that the path shares with the root; 0: the file is directly in that one.
 */
static size_t folder_outside(const mr_tree *t, const mr_entry *e)
{
    size_t shared = 0;
    for (size_t i = 0; i < t->root_len && i < e->path_len && e->path[i] == t->root[i]; i++)
        if (e->path[i] == '/')
            shared = i + 1;
    const char *slash = memchr(e->path + shared, '/', e->path_len - shared);
    return slash ? (size_t)(slash - e->path) : 0;
}

static const mr_plan_split *split_of(const mr_plan *plan, const char *path, size_t len, size_t *name_len)
{
    for (size_t s = 0; s < plan->split_count; s++)
        for (size_t k = 0; k < plan->splits[s].alias_count; k++) {
            const mr_split_alias *a = &plan->splits[s].aliases[k];
            if (len > a->len && path[a->len] == '/' && !memcmp(path, a->name, a->len)) {
                *name_len = a->len;
                return &plan->splits[s];
            }
        }
    return NULL;
}

static bool holds_samples(const search *s, const char *path, size_t len)
{
    mr_tree t = mr_tree_at(s->in->source, path, len + 1); /* with the slash */
    return s->sums[t.end] > s->sums[t.begin];
}

/* The outermost folder of the image that holds no sample, or else the innermost one. */
static size_t folder_inside(const search *s, const mr_entry *e, size_t len)
{
    const char *slash;
    while (holds_samples(s, e->path, len) && (slash = memchr(e->path + len + 1, '/', e->path_len - len - 1)))
        len = (size_t)(slash - e->path);
    return len;
}

/* False: the image is not in a folder that matters. */
static bool find_folder(const search *s, uint32_t n, folder *out)
{
    const mr_tree *t = &s->in->choice.tree;
    const mr_entry *e = mr_source_entry(s->in->source, n);
    *out = (folder){.path = e->path, .first = n, .inside = n >= t->begin && n < t->end};
    if (!out->inside) {
        out->len = folder_outside(t, e);
        return out->len > 0;
    }
    const char *path = e->path + t->root_len, *slash = strchr(path, '/');
    size_t name_len = slash ? (size_t)(slash - path) : 0;
    if (!s->in->plan.flat)
        out->split = split_of(&s->in->plan, path, e->path_len - t->root_len, &name_len);
    out->len = t->root_len + name_len;
    if (name_len > 0 && !out->split)
        out->len = folder_inside(s, e, out->len);
    return name_len > 0;
}

static bool is_missed(const search *s, uint32_t n)
{
    const mr_ingest *in = s->in;
    const mr_tree *t = &in->choice.tree;
    const mr_entry *e = mr_source_entry(in->source, n);
    bool inside = n >= t->begin && n < t->end;
    if (s->taken[n] || in->plan.used[n] == MR_USE_LEFT_OUT || !mr_name_is_image(e->path, e->path_len) || is_hidden(e))
        return false;
    return inside ? in->plan.by_folder : !in->options->for_layout.root;
}

/* ---- what to do about it ----------------------------------------------------------------------------------------- */

/* A pattern for --leave-out, for images beside samples. */
static void advise_pattern(const search *s, mr_buf *out)
{
    const mr_entry *first = mr_source_entry(s->in->source, s->at.first);
    const char *slash = memrchr(first->path, '/', first->path_len), *dot = memrchr(first->path, '.', first->path_len);
    MR_AUTO(mr_buf_free) mr_buf pattern = {0};
    mr_buf_add(&pattern, first->path, (size_t)(slash - first->path) + 1);
    mr_buf_add_text(&pattern, "*");
    if (dot && dot > slash)
        mr_buf_add_text(&pattern, dot);
    mr_source_leave_out(mr_buf_text(&pattern), pattern.len, out);
    mr_buf_add_text(out, " leaves them out");
}

static void advise_split(const search *s, mr_buf *out)
{
    const folder *f = &s->at;
    size_t name_len = f->len - s->in->choice.tree.root_len;
    bool any = false;
    for (size_t i = 0; i < s->in->plan.sample_count && !any; i++)
        any = &s->in->plan.splits[s->in->plan.samples[i].split] == f->split;
    mr_buf_add_text(out, "not in a class folder; --keep-unlisted takes them without labels, ");
    if (any)
        return advise_pattern(s, out);
    mr_buf_add_text(out, "--split-map ");
    mr_source_quote(f->path + f->len - name_len, name_len, out);
    mr_buf_add_text(out, "= leaves the split out");
}

static void advise_inside(const search *s, mr_buf *out)
{
    const folder *f = &s->at;
    const mr_tree *t = &s->in->choice.tree;
    const char *name = f->path + t->root_len;
    mr_child child = {0};
    bool direct = false;
    while (!direct && mr_tree_next(t, name, f->len - t->root_len, &child))
        direct = !child.is_dir && mr_name_is_image(child.name, child.name_len);
    mr_buf_add_text(out, "beside the split folders; ");
    if (holds_samples(s, f->path, f->len))
        return advise_pattern(s, out);
    if (!direct && !memchr(name, '/', f->len - t->root_len)) {
        mr_buf_add_text(out, "--split-map ");
        mr_source_quote(name, f->len - t->root_len, out);
        mr_buf_add_text(out, "=NAME takes the folder as a split, ");
    }
    mr_source_leave_out(f->path, f->len, out);
    mr_buf_add_text(out, " leaves it out");
}

static void advise_outside(const search *s, mr_buf *out)
{
    const folder *f = &s->at;
    const mr_tree *t = &s->in->choice.tree;
    size_t root = t->root_len ? t->root_len - 1 : 0;
    mr_buf_add_text(out, "outside the dataset's root ");
    mr_text_escape(out, t->root, t->root_len);
    mr_buf_add_text(out, "; --root ");
    mr_source_quote(t->root, root, out);
    mr_buf_add_text(out, " ingests that folder alone, ");
    mr_source_leave_out(f->path, f->len, out);
    mr_buf_add_text(out, " leaves this one out");
    if (s->in->plan.flat && !s->in->options->for_layout.class_depth)
        mr_buf_add_text(out, ", --class-depth 1 takes each folder as a class");
}

/* Notes the current folder, which is complete; the first one also becomes the error's sentence. */
static void end_folder(search *s)
{
    folder *f = &s->at;
    MR_AUTO(mr_buf_free) mr_buf advice = {0};
    MR_AUTO(mr_buf_free) mr_buf path = {0};
    char count[32];
    if (!f->images)
        return;
    if (f->split)
        advise_split(s, &advice);
    else if (f->inside)
        advise_inside(s, &advice);
    else
        advise_outside(s, &advice);
    mr_text_escape(&path, f->path, f->len);
    if (!s->folders++)
        mr_buf_printf(&s->sentence, "%s image%s in %s/ would be left out: %s", mr_text_count(f->images, count),
                      f->images == 1 ? "" : "s", mr_buf_text(&path), mr_buf_text(&advice));
    mr_note_add(&s->in->notes, MR_NOTE_LEFT_OUT, f->path, f->len, f->bytes, "%s image%s, %s",
                mr_text_count(f->images, count), f->images == 1 ? "" : "s", mr_buf_text(&advice));
    s->images += f->images;
    s->sentence.failed = s->sentence.failed || advice.failed || path.failed;
    f->images = 0;
}

static void count_image(search *s, uint32_t n, const folder *f)
{
    if (s->at.images && (s->at.len != f->len || memcmp(s->at.path, f->path, f->len) != 0))
        end_folder(s);
    if (!s->at.images)
        s->at = *f;
    s->at.images++;
    s->at.bytes += mr_source_entry(s->in->source, n)->size;
    s->in->plan.used[n] = MR_USE_TAKEN; /* its folder is noted */
}

static mr_status check_folders(search *s, mr_error *err)
{
    char count[32], more[32];
    const char *source = s->in->options->sources[0];
    if (s->sentence.failed)
        return mr_fail_memory(err, "looking for images that are left out");
    if (!s->folders)
        return MR_OK;
    if (s->folders == 1)
        return mr_fail(err, MR_BAD_DATA, "%s: %s. Nothing was written", source, mr_buf_text(&s->sentence));
    return mr_fail(err, MR_BAD_DATA,
                   "%s: %s. With %s more folder%s, listed above, %s images would be left out; nothing was written",
                   source, mr_buf_text(&s->sentence), mr_text_count(s->folders - 1, more), s->folders == 2 ? "" : "s",
                   mr_text_count(s->images, count));
}

/* A link may stand for an image or a class folder, which would be missing. */
static mr_status check_links(const mr_ingest *in, mr_error *err)
{
    const mr_tree *t = &in->choice.tree;
    const mr_unfollowed_link *links;
    size_t count = mr_source_unfollowed_links(in->source, &links), missed = 0, first = 0;
    for (size_t i = 0; i < count && in->plan.by_folder; i++) {
        const mr_entry e = {.path = links[i].path, .path_len = links[i].len};
        bool inside = e.path_len >= t->root_len && !memcmp(e.path, t->root, t->root_len);
        if (is_hidden(&e) || (!inside && in->options->for_layout.root))
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

static void end_search(search *s)
{
    mr_buf_free(&s->sentence);
    free(s->taken);
    free(s->sums);
}

mr_status mr_check_left_out(mr_ingest *in, mr_error *err)
{
    uint32_t entries = mr_source_count(in->source);
    MR_AUTO(end_search)
    search s = {.in = in, .taken = mr_alloc(entries, 1), .sums = mr_alloc((size_t)entries + 1, sizeof *s.sums)};
    folder f;
    if (!s.taken || !s.sums)
        return mr_fail_memory(err, "looking for images that are left out");
    for (size_t i = 0; i < in->plan.sample_count; i++)
        s.taken[in->plan.samples[i].entry] = 1;
    for (uint32_t n = 0; n < entries; n++)
        s.sums[n + 1] = s.sums[n] + s.taken[n];
    for (uint32_t n = 0; n < entries; n++)
        if (is_missed(&s, n) && find_folder(&s, n, &f))
            count_image(&s, n, &f);
    end_folder(&s);
    MR_TRY(check_folders(&s, err));
    return check_links(in, err);
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
    return mr_fail(err, MR_BAD_DATA,
                   "%s: split %s would be empty%s, and nothing was written; --split-map %s= leaves it out%s",
                   in->options->sources[0], s->name, planned ? ": all of its images are rejected" : "",
                   mr_buf_text(&name), unlisted ? ", --keep-unlisted takes the images that no annotation lists" : "");
}

mr_status mr_check_splits(const mr_ingest *in, mr_error *err)
{
    for (uint32_t split = 0; split < in->plan.split_count; split++)
        if (mr_ingest_split(in, split).samples == 0)
            return empty_split(in, split, err);
    return MR_OK;
}
