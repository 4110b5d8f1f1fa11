/* pairs.c - what a run on images and texts has that a run on labels does not. */
#include "train/run/pairs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/scope.h"
#include "shards/dataset/dataset.h"
#include "shards/dataset/captions.h"
#include "train/text/tokenizer.h"

enum { LOOKED_AT = 16 }; /* samples whose columns are looked at if none is named */

mr_transform mr_pairs_transform(uint32_t size, bool apply_orientation)
{
    return (mr_transform){
        .kind = MR_TRANSFORM_CENTER,
        .size = size,
        .resize = size,
        .bicubic = 1,
        .unrounded = 1,
        .apply_orientation = apply_orientation,
        .mean = {0.48145466F, 0.4578275F, 0.40821073F},
        .std = {0.26862954F, 0.26130258F, 0.27577711F},
    };
}

/* ---- the tokenizer ----------------------------------------------------------------------------------------------- */

/* A tokenizer in the folder, or in the folder of the file, at `path`. */
static bool beside(const char *path, char *out, size_t capacity)
{
    static const char *const names[] = {"tokenizer.json", "vocab.json"};
    const char *slash = strrchr(path, '/');
    bool folder = mr_dir_is(path);
    int len = folder ? (int)strlen(path) : slash ? (int)(slash - path) : 0;
    for (size_t i = 0; *path && i < MR_COUNT(names); i++) {
        int n = snprintf(out, capacity, "%.*s%s%s", len, path, len ? "/" : "", names[i]);
        if (n > 0 && (size_t)n < capacity && access(out, F_OK) == 0)
            return true;
    }
    return false;
}

/* The ids that the model and its config.json rely on: positions in a text are numbered from that of <pad>. */
static mr_status check_ids(const mr_tokenizer *t, const char *name, mr_error *err)
{
    static const struct {
        const char *text;
        int32_t id;
    } fixed[] = {{"<s>", 0}, {"<pad>", 1}, {"</s>", 2}};
    for (size_t i = 0; i < MR_COUNT(fixed); i++) {
        int32_t id = mr_token_id(t, fixed[i].text);
        if (id != fixed[i].id)
            return mr_fail(err, MR_BAD_DATA, "%s: %s has the id %d; this model needs %d", name, fixed[i].text, id,
                           fixed[i].id);
    }
    return MR_OK;
}

static mr_status keep(mr_pairs *p, const char *name, mr_error *err)
{
    MR_TRY(check_ids(p->tokenizer, name, err));
    return mr_tokenizer_write(p->tokenizer, &p->file, err);
}

mr_status mr_pairs_tokenizer(const mr_settings *s, mr_pairs *p, mr_error *err)
{
    char found[4096];
    const char *path = s->tokenizer;
    if (!*path && !beside(s->config, found, sizeof found) && !beside(s->pretrained, found, sizeof found))
        return mr_fail(err, MR_MISUSE,
                       "%s: reads text, and no tokenizer was found beside --config or --pretrained; give one with "
                       "--tokenizer FILE ('millrace tokenizer' learns one from a dataset)",
                       s->model);
    path = *path ? path : found;
    MR_TRY(mr_tokenizer_open(path, &p->tokenizer, err));
    return keep(p, path, err);
}

mr_status mr_pairs_restore(const mr_checkpoint *c, const char *name, mr_pairs *p, mr_error *err)
{
    MR_TRY(mr_tokenizer_parse(c->tokenizer.data, c->tokenizer.len, name, &p->tokenizer, err));
    MR_TRY(keep(p, name, err));
    if (mr_tokenizer_size(p->tokenizer) > c->model.vocab)
        return mr_fail(err, MR_BAD_DATA, "%s: its tokenizer has %u tokens, and its model %u", name,
                       mr_tokenizer_size(p->tokenizer), c->model.vocab);
    return MR_OK;
}

/* ---- the column -------------------------------------------------------------------------------------------------- */

static mr_status look(const mr_dataset *ds, const char *split, const char *column, mr_pairs *p, mr_buf *known,
                      mr_error *err)
{
    uint64_t samples = mr_dataset_samples(ds, split), looked_at = 0;
    mr_sample_view view = {0};
    mr_status status = MR_OK, damage = MR_OK;
    for (uint64_t n = 0; n < samples && (*column || looked_at < LOOKED_AT) && !*p->column; n++) {
        size_t count = 0;
        status = mr_dataset_read_meta(ds, split, n, &view, err);
        if (status == MR_OK && *column)
            status = mr_captions_count(column, view.meta, view.meta_len, &count, err);
        if (mr_status_is_bad(status)) { /* left to the loader */
            damage = status;
            status = MR_OK;
            continue;
        }
        if (status != MR_OK)
            break;
        const char *guess = NULL;
        if (looked_at++ < LOOKED_AT) {
            mr_buf_clear(known);
            guess = mr_captions_guess(view.meta, view.meta_len, known);
        }
        if (*column ? count > 0 : guess != NULL)
            snprintf(p->column, sizeof p->column, "%s", *column ? column : guess);
    }
    mr_sample_view_free(&view);
    return status == MR_OK && !looked_at ? damage : status;
}

static mr_status choose(mr_pairs *p, const mr_dataset *ds, const char *split, const char *column, mr_error *err)
{
    MR_AUTO(mr_buf_free) mr_buf known = {0};
    if (strlen(column) >= sizeof p->column)
        return mr_fail(err, MR_MISUSE, "--text-column: a column name of this length does not exist");
    MR_TRY(look(ds, split, column, p, &known, err));
    const char *names = known.len ? mr_buf_text(&known) : "none with text in it";
    if (*p->column)
        return MR_OK;
    if (*column)
        return mr_fail(err, MR_MISUSE, "--text-column %s: no sample of %s has text there; columns: %s", column, split,
                       names);
    return mr_fail(err, MR_MISUSE,
                   "the first samples of %s have neither image_description nor captions; choose one of these with "
                   "--text-column: %s",
                   split, names);
}

/* ---- samples with text ------------------------------------------------------------------------------------------- */

/* A sample whose meta cannot be read counts as one with text. */
static mr_status has_text(const mr_pairs *p, const mr_dataset *ds, const char *split, uint64_t n, mr_sample_view *view,
                          bool *has, mr_error *err)
{
    size_t count = 0;
    mr_error why;
    mr_status status = mr_dataset_read_meta(ds, split, n, view, &why);
    if (status == MR_OK)
        status = mr_captions_count(p->column, view->meta, view->meta_len, &count, &why);
    *has = status != MR_OK || count > 0;
    if (status == MR_OK || mr_status_is_bad(status))
        return MR_OK;
    if (err)
        *err = why;
    return status;
}

/* The samples of a split that have text, as items of a loader; NULL: all of them. */
static mr_status list_pairs(const mr_pairs *p, const mr_dataset *ds, const char *split, uint64_t **out, uint64_t *count,
                            mr_error *err)
{
    uint64_t samples = mr_dataset_samples(ds, split), *list = mr_alloc(samples ? samples : 1, sizeof *list), found = 0;
    mr_sample_view view = {0};
    mr_status status = list ? MR_OK : mr_fail_memory(err, "listing captions");
    for (uint64_t n = 0; n < samples && status == MR_OK; n++) {
        bool has = false;
        status = has_text(p, ds, split, n, &view, &has, err);
        if (has)
            list[found++] = n;
    }
    mr_sample_view_free(&view);
    if (status == MR_OK && samples && !found)
        status = mr_fail(err, MR_MISUSE,
                         "split \"%s\": no sample has text in \"%s\"; name another split, or another "
                         "--text-column",
                         split, p->column);
    bool some = status == MR_OK && found < samples;
    if (!some)
        free(list);
    *out = some ? list : NULL;
    *count = some ? found : 0;
    return status;
}

mr_status mr_pairs_list(mr_pairs *p, const mr_dataset *ds, const mr_pairs_options *o, mr_error *err)
{
    if (!o->expand) {
        MR_TRY(list_pairs(p, ds, o->train_split, &p->items, &p->item_count, err));
        p->without = p->items ? mr_dataset_samples(ds, o->train_split) - p->item_count : 0;
        return MR_OK;
    }
    MR_TRY(mr_captions_expand(ds, o->train_split, p->column, &p->items, &p->item_count, &p->without, err));
    return p->item_count ? MR_OK
                         : mr_fail(err, MR_MISUSE, "--expand-captions: no sample of %s has a caption", o->train_split);
}

/* Rank 0's part. */
static mr_status find(mr_pairs *p, const mr_dataset *ds, const mr_pairs_options *o, mr_error *err)
{
    MR_TRY(choose(p, ds, o->train_split ? o->train_split : o->eval_split, o->column, err));
    if (o->train_split)
        MR_TRY(mr_pairs_list(p, ds, o, err));
    return o->eval_split ? list_pairs(p, ds, o->eval_split, &p->eval_items, &p->eval_count, err) : MR_OK;
}

/* Rank 0's list; NULL if it is NULL there. */
static mr_status share_list(mr_ranks *ranks, uint64_t **list, uint64_t *count, mr_error *err)
{
    mr_buf bytes = {.data = (uint8_t *)*list, .len = (size_t)*count * sizeof **list};
    mr_status status = mr_ranks_share(ranks, &bytes, err);
    if (bytes.len == 0)
        mr_buf_free(&bytes);
    *list = (uint64_t *)bytes.data;
    *count = bytes.len / sizeof **list;
    return status;
}

static mr_status share(mr_pairs *p, mr_ranks *ranks, mr_error *err)
{
    MR_AUTO(mr_buf_free) mr_buf column = {0};
    mr_buf_add(&column, p->column, sizeof p->column);
    MR_TRY(mr_ranks_agree(ranks, mr_buf_status(&column, err, "sharing captions"), err));
    MR_TRY(mr_ranks_share(ranks, &column, err));
    memcpy(p->column, column.data, sizeof p->column);
    MR_TRY(share_list(ranks, &p->items, &p->item_count, err));
    return share_list(ranks, &p->eval_items, &p->eval_count, err);
}

mr_status mr_pairs_open(mr_pairs *p, const mr_dataset *ds, const mr_pairs_options *o, mr_ranks *ranks, mr_error *err)
{
    bool first = mr_ranks_rank(ranks) == 0;
    p->text = (mr_feed_text){
        .tokenizer = p->tokenizer, .column = p->column, .most = o->tokens, .groups = o->groups, .expanded = o->expand};
    MR_TRY(mr_ranks_agree(ranks, first ? find(p, ds, o, err) : MR_OK, err));
    return share(p, ranks, err);
}

void mr_pairs_close(mr_pairs *p)
{
    mr_tokenizer_free(p->tokenizer);
    mr_buf_free(&p->file);
    free(p->items);
    free(p->eval_items);
    memset(p, 0, sizeof *p);
}
