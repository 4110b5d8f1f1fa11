/* clip.c - the clip export: class folders, and a caption per class in _tokenization.txt.
 * Invariant: line i is the caption of class folder i of the same split, the folders sorted by name; a file with a
 * different number of lines is rejected, since no line could be assigned to a class. */
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "ingest/tables/lines.h"
#include "ingest/layout/roboflow/roboflow.h"

enum { TOKENS_MAX = 64 << 20 };

struct mr_rf_clip {
    mr_split_dirs dirs;
    size_t classes;
    char **captions; /* [folder in dirs * classes + label], NULL: none */
};

void mr_rf_clip_free(struct mr_rf_clip *clip)
{
    if (!clip)
        return;
    for (size_t i = 0; clip->captions && i < clip->dirs.count * clip->classes; i++)
        free(clip->captions[i]);
    free(clip->captions);
    free(clip);
}

static char *caption_text(const char *line, size_t len)
{
    mr_buf text = {0};
    if (mr_utf8_valid(line, len) && !memchr(line, '\0', len))
        mr_buf_add(&text, line, len);
    else
        mr_text_escape(&text, line, len);
    mr_buf_text(&text);
    if (text.failed)
        mr_buf_free(&text);
    return (char *)text.data;
}

/* Labels are numbers in the sorted union of all splits, so the folders of one split, sorted, are its labels, rising. */
static mr_status mark_present(const mr_tree *t, const mr_plan *plan, const mr_split_dir *dir, uint8_t *present,
                              size_t *count, mr_error *err)
{
    mr_child child = {0};
    while (mr_class_next(t, dir, 0, &child)) {
        int32_t label = mr_plan_class_find(plan, child.name, child.name_len);
        if (label < 0)
            return mr_fail_memory(err, "numbering the classes");
        present[label] = 1;
        ++*count;
    }
    return MR_OK;
}

static mr_status give_captions(const mr_buf *text, const char *name, const uint8_t *present, size_t folders,
                               size_t classes, char **captions, mr_error *err)
{
    size_t lines = 0, label = 0;
    for (mr_lines l = mr_lines_of(text->data, text->len); mr_lines_next(&l);)
        lines++;
    if (lines != folders)
        return mr_fail(
            err, MR_BAD_DATA,
            "%s: %zu captions, where %zu class folders hold images: it is unknown which caption belongs to which class",
            name, lines, folders);
    for (mr_lines l = mr_lines_of(text->data, text->len); mr_lines_next(&l);) {
        while (label < classes && !present[label])
            label++;
        captions[label] = caption_text(l.line, l.len);
        if (!captions[label++])
            return mr_fail_memory(err, "reading captions");
    }
    return MR_OK;
}

static mr_status read_tokens(const mr_tree *t, mr_plan *plan, const mr_split_dir *dir, uint8_t *present,
                             char **captions, mr_error *err)
{
    size_t name_len, folders = 0;
    uint32_t entry = mr_rf_find(t, dir, MR_RF_TOKENS, strlen(MR_RF_TOKENS));
    mr_buf text = {0};
    if (entry == MR_NO_ENTRY) {
        mr_note_add(plan->notes, MR_NOTE_INFO, dir->name, dir->len, 0, "no %s: its images have no captions",
                    MR_RF_TOKENS);
        return MR_OK;
    }
    const char *name = mr_tree_path(t, entry, &name_len);
    mr_status status = MR_OK;
    if (mr_source_entry(t->source, entry)->size > TOKENS_MAX)
        status = mr_fail(err, MR_BAD_DATA, "%s: longer than 64 MiB, the limit for a caption file", name);
    if (status == MR_OK)
        status = mark_present(t, plan, dir, present, &folders, err);
    if (status == MR_OK)
        status = mr_source_read(t->source, entry, &text, err);
    if (status == MR_OK)
        status = give_captions(&text, name, present, folders, plan->class_count, captions, err);
    plan->used[entry] = 1;
    mr_buf_free(&text);
    return mr_source_dispensable(t->source, entry, "ingests the images without its captions", status, err);
}

static size_t dir_of(const mr_split_dirs *dirs, uint32_t entry)
{
    size_t i = 0;
    while (i + 1 < dirs->count && entry >= dirs->items[i].end)
        i++;
    return i;
}

mr_status mr_rf_clip_plan(const mr_tree *t, const mr_layout_options *o, mr_plan *plan, mr_split_dirs *dirs,
                          mr_rf_state *state, mr_error *err)
{
    struct mr_rf_clip *clip = state->clip = mr_alloc(1, sizeof *clip);
    uint8_t *present = NULL;
    if (!clip)
        return mr_fail_memory(err, "reading captions");
    mr_status status = mr_folder_plan(t, o, plan, dirs, mr_rf_group, err);
    if (status != MR_OK)
        return status;
    clip->dirs = *dirs;
    clip->classes = plan->class_count;
    clip->captions = mr_alloc(dirs->count * clip->classes, sizeof *clip->captions);
    for (size_t i = 0; clip->captions && i < dirs->count && status == MR_OK; i++) {
        present = mr_alloc(clip->classes, 1);
        status = present ? read_tokens(t, plan, &dirs->items[i], present, clip->captions + i * clip->classes, err)
                         : mr_fail_memory(err, "reading captions");
        free(present);
    }
    if (!clip->captions)
        return mr_fail_memory(err, "reading captions");
    for (size_t i = 0; i < plan->sample_count && status == MR_OK; i++) {
        mr_sample *s = &plan->samples[i];
        s->aux = dir_of(dirs, s->entry);
        const char *caption = s->label < 0 ? NULL : clip->captions[s->aux * clip->classes + (size_t)s->label];
        s->meta_bytes = caption ? strlen(caption) + 20 : 0;
    }
    return status;
}

mr_status mr_rf_clip_meta(const mr_tree *t, const mr_plan *plan, const mr_sample *sample, mr_buf *out, mr_error *err)
{
    (void)t;
    const struct mr_rf_clip *clip = ((const mr_rf_state *)plan->state)->clip;
    const char *caption =
        sample->label < 0 ? NULL : clip->captions[sample->aux * clip->classes + (size_t)sample->label];
    if (!caption)
        return MR_OK;
    mr_buf_add_text(out, ",\"captions\":[");
    mr_json_add_string(out, caption, strlen(caption));
    mr_buf_add_text(out, "]");
    return mr_buf_status(out, err, "writing a sample's caption");
}
