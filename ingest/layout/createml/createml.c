/* createml.c - CreateML: a JSON file next to the images of each split.
 * Invariant: a meta holds the object of its image as the source wrote it. */
#include "createml/createml.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/scope.h"
#include "roboflow/roboflow.h"

enum { HEAD = 4096, HEADS_MAX = 16 }; /* bytes of a file; files of a folder that are read */

/* ---- bid --------------------------------------------------------------------------------------------------------- */

/* MR_SYSTEM: it could not be read. */
static mr_status looks_right(const mr_tree *t, uint32_t entry, bool *yes, mr_error *err)
{
    char head[HEAD];
    uint64_t size = mr_source_entry(t->source, entry)->size;
    size_t len = size < sizeof head ? (size_t)size : sizeof head, at = 0;
    *yes = false;
    mr_status status = len ? mr_source_pread(t->source, entry, head, len, 0, err) : MR_OK;
    if (status != MR_OK)
        return status == MR_SYSTEM ? status : MR_OK;
    at += len > 3 && !memcmp(head, "\xEF\xBB\xBF", 3) ? 3 : 0;
    while (at < len && head[at] && strchr(" \t\r\n", head[at]))
        at++;
    *yes = at < len && head[at] == '[' && memmem(head, len, "\"image", 6) && memmem(head, len, "\"coordinates\"", 13);
    return MR_OK;
}

mr_status mr_createml_find(const mr_tree *t, const char *dir, size_t len, uint32_t *found, mr_error *err)
{
    char path[4200];
    mr_child child = {0};
    int n = snprintf(path, sizeof path, "%.*s%s%s", (int)len, dir, len ? "/" : "", MR_RF_CREATEML_JSON);
    *found = n > 0 && (size_t)n < sizeof path ? mr_tree_find(t, path, (size_t)n) : MR_NO_ENTRY;
    for (int heads = 0; *found == MR_NO_ENTRY && heads < HEADS_MAX && mr_tree_next(t, dir, len, &child);) {
        if (child.is_dir || child.name[0] == '.' || !mr_name_ends(child.name, child.name_len, ".json"))
            continue;
        bool yes = false;
        heads++;
        MR_TRY(looks_right(t, child.entry, &yes, err));
        if (yes)
            *found = child.entry;
    }
    return MR_OK;
}

static mr_status createml_bid(const mr_tree *t, const mr_layout_options *o, mr_bid *bid, mr_error *err)
{
    mr_split_dirs dirs;
    size_t len = 0;
    uint32_t found = MR_NO_ENTRY;
    mr_split_dirs_find(t, o, &dirs);
    for (size_t i = 0; i < dirs.count && found == MR_NO_ENTRY; i++)
        MR_TRY(mr_createml_find(t, dirs.items[i].name, dirs.items[i].len, &found, err));
    if (!dirs.count)
        MR_TRY(mr_createml_find(t, "", 0, &found, err));
    if (found == MR_NO_ENTRY)
        return MR_OK;
    const char *path = mr_tree_path(t, found, &len);
    bool known = mr_name_ends(path, len, MR_RF_CREATEML_JSON);
    bid->score = (known ? 83 : 73) + (dirs.count ? 5 : 0);
    snprintf(bid->why, sizeof bid->why, "%.250s", path);
    return MR_OK;
}

/* ---- meta and objects -------------------------------------------------------------------------------------------- */

static mr_status add_text(const mr_tree *t, const mr_plan *plan, const mr_sample *sample, mr_buf *out, mr_error *err)
{
    const mr_createml_state *st = plan->state;
    const mr_createml_file *f = st->files[sample->aux >> 32];
    const mr_createml_image *image = &f->images[(uint32_t)sample->aux - 1];
    size_t len;
    const uint8_t *kept = mr_texts_find(&st->texts, f->entry, &len);
    if (!kept || image->at > len || image->len > len - image->at)
        return mr_createml_text(t->source, f, (uint32_t)sample->aux - 1, out, err);
    mr_buf_add(out, kept + image->at, image->len);
    return mr_buf_status(out, err, "reading CreateML annotations");
}

static mr_status createml_meta(const mr_tree *t, const mr_plan *plan, const mr_sample *sample, mr_buf *out,
                               mr_error *err)
{
    if (!sample->aux)
        return MR_OK;
    mr_buf_add_text(out, ",\"createml\":");
    return add_text(t, plan, sample, out, err);
}

static mr_status createml_objects(const mr_tree *t, const mr_plan *plan, const mr_sample *sample,
                                  const mr_stored *picture, mr_objects *out, mr_error *err)
{
    MR_AUTO(mr_buf_free) mr_buf text = {0};
    (void)picture;
    out->told = sample->aux != 0;
    if (!sample->aux)
        return MR_OK;
    MR_TRY(add_text(t, plan, sample, &text, err));
    return mr_createml_objects(&text, plan, out, err);
}

void mr_createml_state_free(void *state)
{
    mr_createml_state *st = state;
    for (size_t i = 0; st && i < MR_COUNT(st->files); i++)
        mr_createml_free(st->files[i]);
    if (st)
        mr_texts_free(&st->texts);
    free(st);
}

const mr_layout mr_layout_createml = {
    .name = "createml",
    .title = "CreateML: _annotations.createml.json beside the images",
    .needs = "_annotations.createml.json (or another json of that form) in train/, valid/, test/ or beside the images",
    .options = MR_OPTION_UNLISTED,
    .bid = createml_bid,
    .plan = mr_createml_plan,
    .meta = createml_meta,
    .objects = createml_objects,
    .free_state = mr_createml_state_free,
};
