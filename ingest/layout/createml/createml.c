/* createml.c - CreateML: a JSON file next to the images of each split.
 * Invariant: a meta holds the object of its image as the source wrote it, or a list of them where several name it. */
#include "ingest/layout/createml/createml.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/scope.h"
#include "ingest/layout/common/roboflow_files.h"

enum { HEAD = 16384, HEADS_MAX = 64 }; /* bytes of a file; files of a folder that are read */

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

mr_status mr_createml_list(const mr_tree *t, const char *dir, size_t len, mr_createml_jsons *out, mr_error *err)
{
    mr_child child = {0};
    for (int heads = 0; heads < HEADS_MAX && mr_tree_next(t, dir, len, &child);) {
        if (child.is_dir || child.name[0] == '.' || !mr_name_ends(child.name, child.name_len, ".json"))
            continue;
        bool yes =
            child.name_len == strlen(MR_RF_CREATEML_JSON) && !memcmp(child.name, MR_RF_CREATEML_JSON, child.name_len);
        heads++;
        if (!yes)
            MR_TRY(looks_right(t, child.entry, &yes, err));
        if (!yes)
            continue;
        if (!MR_GROW(out->entries, out->count, out->room))
            return mr_fail_memory(err, "looking for a layout");
        out->entries[out->count++] = child.entry;
    }
    return MR_OK;
}

void mr_createml_jsons_free(mr_createml_jsons *jsons)
{
    free(jsons->entries);
}

static mr_status createml_bid(const mr_tree *t, const mr_layout_options *o, mr_bid *bid, mr_error *err)
{
    MR_AUTO(mr_createml_jsons_free) mr_createml_jsons found = {0};
    mr_split_dirs dirs;
    size_t len = 0;
    mr_split_dirs_find(t, o, &dirs);
    for (size_t i = 0; i < dirs.count && !found.count; i++)
        MR_TRY(mr_createml_list(t, dirs.items[i].name, dirs.items[i].len, &found, err));
    bool in_splits = found.count > 0;
    if (!in_splits)
        MR_TRY(mr_createml_list(t, "", 0, &found, err));
    if (!found.count)
        return MR_OK;
    const char *path = mr_tree_path(t, found.entries[0], &len);
    bool known = mr_name_ends(path, len, MR_RF_CREATEML_JSON);
    bid->score = (known ? 83 : 73) + (in_splits ? 5 : 0);
    snprintf(bid->why, sizeof bid->why, "%.250s", path);
    return MR_OK;
}

/* ---- meta and objects -------------------------------------------------------------------------------------------- */

mr_status mr_createml_ref_text(const mr_source *s, const mr_createml_state *st, const mr_createml_ref *ref, mr_buf *out,
                               mr_error *err)
{
    const mr_createml_file *f = st->files[ref->file];
    const mr_createml_image *image = &f->images[ref->image];
    size_t len;
    const uint8_t *kept = mr_texts_find(&st->texts, f->entry, &len);
    if (!kept || image->at > len || image->len > len - image->at)
        return mr_createml_text(s, f, ref->image, out, err);
    mr_buf_add(out, kept + image->at, image->len);
    return mr_buf_status(out, err, "reading CreateML annotations");
}

static mr_status createml_meta(const mr_tree *t, const mr_plan *plan, const mr_sample *sample, mr_buf *out,
                               mr_error *err)
{
    size_t count;
    const mr_createml_ref *refs = mr_createml_refs(plan->state, sample->aux, &count);
    if (!count)
        return MR_OK;
    mr_buf_add_text(out, ",\"createml\":");
    for (size_t i = 0; i < count; i++) {
        if (count > 1)
            mr_buf_add_text(out, i ? "," : "[");
        MR_TRY(mr_createml_ref_text(t->source, plan->state, &refs[i], out, err));
    }
    if (count > 1)
        mr_buf_add_text(out, "]");
    return mr_buf_status(out, err, "reading CreateML annotations");
}

static mr_status createml_objects(const mr_tree *t, const mr_plan *plan, const mr_sample *sample,
                                  const mr_stored *picture, mr_objects *out, mr_error *err)
{
    MR_AUTO(mr_buf_free) mr_buf text = {0};
    size_t count;
    const mr_createml_ref *refs = mr_createml_refs(plan->state, sample->aux, &count);
    (void)picture;
    out->known = count > 0;
    for (size_t i = 0; i < count; i++) {
        mr_buf_clear(&text);
        MR_TRY(mr_createml_ref_text(t->source, plan->state, &refs[i], &text, err));
        MR_TRY(mr_createml_objects(&text, plan, out, err));
    }
    return MR_OK;
}

void mr_createml_state_free(void *state)
{
    mr_createml_state *st = state;
    if (!st)
        return;
    for (size_t i = 0; i < st->file_count; i++)
        mr_createml_free(st->files[i]);
    mr_texts_free(&st->texts);
    free(st->files);
    free(st->refs);
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
