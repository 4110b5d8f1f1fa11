/* sidecars.c - pictures beside texts of the same name: 1.jpg and 1.txt, a caption.
 * Invariant: a text is a whole file of UTF-8; the files of YOLO, lines of numbers, are not captions. */
#include "table/sidecars.h"

#include <stdlib.h>
#include <string.h>

#include "base/scope.h"
#include "base/text.h"

enum { TEXT_MAX = 1 << 20, LOOK_AT = 64, HEAD = 512 };

static uint32_t text_of(const mr_tree *t, uint32_t entry, mr_buf *path)
{
    size_t len;
    const char *name = mr_tree_path(t, entry, &len), *dot = memrchr(name, '.', len);
    mr_buf_clear(path);
    mr_buf_add(path, name, dot ? (size_t)(dot - name) : len);
    mr_buf_add_text(path, ".txt");
    return path->failed ? MR_NO_ENTRY : mr_tree_find(t, mr_buf_text(path), path->len);
}

static mr_status is_words(const mr_tree *t, uint32_t entry, bool *words, mr_error *err)
{
    char head[HEAD];
    uint64_t size = mr_source_entry(t->source, entry)->size;
    size_t len = size < sizeof head ? (size_t)size : sizeof head;
    mr_status status = mr_source_pread(t->source, entry, head, len, 0, err);
    *words = false;
    for (size_t i = 0; status == MR_OK && i < len; i++)
        *words = *words || !strchr("0123456789.+-eE \t\r\n", head[i]);
    return status == MR_SYSTEM ? status : MR_OK;
}

mr_status mr_sidecars_are(const mr_tree *t, const mr_picture_index *index, bool *found, mr_error *err)
{
    MR_AUTO(mr_buf_free) mr_buf path = {0};
    size_t tried = index->count < LOOK_AT ? index->count : LOOK_AT, texts = 0;
    for (size_t i = 0; i < tried; i++) {
        bool words = false;
        uint32_t text = text_of(t, index->entries[i * index->count / tried], &path);
        if (text != MR_NO_ENTRY)
            MR_TRY(is_words(t, text, &words, err));
        texts += words;
    }
    *found = tried && texts * 2 >= tried;
    return mr_buf_status(&path, err, "looking for captions");
}

mr_status mr_sidecars_plan(const mr_tree *t, const mr_layout_options *o, const mr_picture_index *index, mr_plan *plan,
                           mr_error *err)
{
    MR_AUTO(mr_buf_free) mr_buf path = {0};
    mr_folder_splits splits = {0};
    plan->variant = "captions";
    MR_TRY(mr_folder_splits_open(t, o, index, plan, &splits, err));
    for (size_t i = 0; i < index->count; i++) {
        mr_sample s = {.entry = index->entries[i], .label = -1};
        uint32_t text = text_of(t, s.entry, &path);
        if (text != MR_NO_ENTRY)
            plan->used[text] = MR_USE_TAKEN;
        if (!mr_folder_splits_get(t, &splits, s.entry, plan, &s.split))
            continue;
        if (text == MR_NO_ENTRY) {
            MR_TRY(mr_folder_unlisted(t, o, plan, s.split, s.entry, "no .txt of its name is beside it", NULL, err));
            continue;
        }
        s.aux = (uint64_t)text + 1;
        s.meta_bytes = mr_source_entry(t->source, text)->size + 16;
        MR_TRY(mr_plan_add(plan, &s, err));
    }
    return mr_buf_status(&path, err, "listing captions");
}

/* Without the blanks at its end. */
static mr_status read_text(const mr_tree *t, uint32_t entry, mr_buf *text, mr_error *err)
{
    const mr_entry *e = mr_source_entry(t->source, entry);
    if (e->size > TEXT_MAX)
        return mr_fail(err, MR_BAD_DATA, "%s: larger than the 1 MiB that a caption may have", e->path);
    MR_TRY(mr_source_read(t->source, entry, text, err));
    while (text->len && strchr(" \t\r\n", text->data[text->len - 1]))
        text->len--;
    return mr_utf8_valid(mr_buf_text(text), text->len) ? MR_OK
                                                       : mr_fail(err, MR_BAD_DATA, "%s: not UTF-8 text", e->path);
}

mr_status mr_sidecars_meta(const mr_tree *t, const mr_sample *sample, mr_buf *out, mr_error *err)
{
    MR_AUTO(mr_buf_free) mr_buf text = {0};
    uint32_t entry = (uint32_t)(sample->aux - 1);
    if (!sample->aux)
        return MR_OK;
    MR_TRY(mr_source_dispensable(t->source, entry, "counts its picture as one without a caption",
                                 read_text(t, entry, &text, err), err));
    if (!text.len)
        return MR_OK;
    mr_buf_add_text(out, ",\"captions\":[");
    mr_json_add_string(out, mr_buf_text(&text), text.len);
    mr_buf_add_text(out, "]");
    return mr_buf_status(out, err, "writing a caption");
}
