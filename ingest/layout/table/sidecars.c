/* sidecars.c - images beside texts of the same name: 1.jpg and 1.txt, a caption.
 * Invariant: a text is a whole file of UTF-8; the label files of YOLO, KITTI and DOTA are not captions. */
#include "ingest/layout/table/sidecars.h"

#include <stdlib.h>
#include <string.h>

#include "base/scope.h"
#include "base/text.h"
#include "ingest/source/names.h"
#include "ingest/layout/formats.h"

enum { TEXT_MAX = 1 << 20, LOOK_AT = 64, HEAD = 512 };

/* 1.txt or 1.caption of 1.jpg. */
static uint32_t text_of(const mr_tree *t, uint32_t entry, mr_buf *path)
{
    static const char *const endings[] = {".txt", ".caption"};
    size_t len;
    const char *name = mr_tree_path(t, entry, &len), *dot = memrchr(name, '.', len);
    uint32_t found = MR_NO_ENTRY;
    for (size_t i = 0; i < MR_COUNT(endings) && found == MR_NO_ENTRY; i++) {
        mr_buf_clear(path);
        mr_buf_add(path, name, dot ? (size_t)(dot - name) : len);
        mr_buf_add_text(path, endings[i]);
        found = path->failed ? MR_NO_ENTRY : mr_tree_find(t, mr_buf_text(path), path->len);
    }
    return found;
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
    if (status == MR_OK && *words) { /* KITTI's and DOTA's lines have a word each */
        const mr_format *format = mr_content_of(t->source, entry, NULL).format;
        *words = !format || !format->instead;
    }
    return status == MR_SYSTEM ? status : MR_OK;
}

bool mr_sidecars_may_be(const mr_tree *t, bool *below)
{
    MR_AUTO(mr_buf_free) mr_buf path = {0};
    bool found = false;
    *below = false;
    for (uint32_t e = t->begin, looked = 0; e < t->end && looked < LOOK_AT && !*below; e++) {
        size_t len;
        const char *name = mr_tree_path(t, e, &len);
        if (!mr_folder_image(t, e, 0))
            continue;
        looked++;
        bool has = text_of(t, e, &path) != MR_NO_ENTRY;
        found = found || has;
        *below = has && memchr(name, '/', len);
    }
    return found;
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

/* Without a byte order mark and the blanks at its end.  *fault: what is wrong with it; NULL: nothing. */
static mr_status read_text(const mr_tree *t, uint32_t entry, mr_buf *text, const char **fault, mr_error *err)
{
    *fault = mr_source_entry(t->source, entry)->size > TEXT_MAX ? "larger than 1 MiB, the limit for a caption" : NULL;
    if (*fault)
        return MR_OK;
    MR_TRY(mr_source_dispensable(t->source, entry, "counts its image as one without a caption",
                                 mr_source_read(t->source, entry, text, err), err));
    size_t skip = mr_utf8_mark(text->data, text->len);
    text->len -= skip;
    if (skip)
        memmove(text->data, text->data + skip, text->len);
    while (text->len && strchr(" \t\r\n", text->data[text->len - 1]))
        text->len--;
    *fault = mr_utf8_valid(mr_buf_text(text), text->len) ? NULL : "not UTF-8 text";
    return MR_OK;
}

typedef struct build {
    const mr_tree *tree;
    const mr_layout_options *options;
    mr_plan *plan;
    mr_texts *texts;
    mr_folder_splits splits;
    mr_buf path, text;
    size_t empty;
} build;

static void end_build(build *b)
{
    mr_buf_free(&b->path);
    mr_buf_free(&b->text);
}

static mr_status add_picture(build *b, uint32_t entry, mr_error *err)
{
    mr_sample s = {.entry = entry, .label = -1};
    const mr_source *source = b->tree->source;
    const char *fault;
    size_t len;
    uint32_t text = text_of(b->tree, entry, &b->path);
    if (text != MR_NO_ENTRY)
        b->plan->used[text] = MR_USE_TAKEN;
    if (!mr_folder_splits_get(&b->splits, entry, b->plan, &s.split))
        return MR_OK;
    if (text == MR_NO_ENTRY)
        return mr_folder_unlisted(b->tree, b->options, b->plan, s.split, entry,
                                  "no .txt file of the same name beside it", NULL, err);
    MR_TRY(read_text(b->tree, text, &b->text, &fault, err));
    const char *path = mr_tree_path(b->tree, entry, &len);
    if (fault) {
        mr_note_add(b->plan->notes, MR_NOTE_REJECT, path, len, mr_source_entry(source, entry)->size, "%s: %s",
                    mr_source_entry(source, text)->path, fault);
        b->plan->used[entry] = MR_USE_REJECTED;
        return MR_OK;
    }
    mr_texts_keep(b->texts, text, b->text.data, b->text.len);
    b->empty += !b->text.len;
    s.aux = (uint64_t)text + 1;
    s.meta_bytes = b->text.len + 16;
    return mr_plan_add(b->plan, &s, err);
}

/* Texts that are named like those of images, by a number, and have none. */
static mr_status note_orphans(const build *b, mr_error *err)
{
    const mr_tree *t = b->tree;
    for (uint32_t e = t->begin; e < t->end; e++) {
        size_t len;
        bool words = false;
        const char *path = mr_tree_path(t, e, &len), *slash = memrchr(path, '/', len), *base = slash ? slash + 1 : path;
        size_t stem = len - (size_t)(base - path), digit = strcspn(base, "0123456789");
        bool text = mr_name_ends(path, len, ".txt") || mr_name_ends(path, len, ".caption");
        if (b->plan->used[e] != MR_USE_NONE || !text || *base == '.' || digit >= stem)
            continue;
        MR_TRY(is_words(t, e, &words, err));
        if (words)
            mr_note_add(b->plan->notes, MR_NOTE_MISSING, path, len, 0, "a caption without an image of the same name");
    }
    return MR_OK;
}

mr_status mr_sidecars_plan(const mr_tree *t, const mr_layout_options *o, const mr_picture_index *index, mr_plan *plan,
                           mr_error *err)
{
    mr_table_state *st = plan->state;
    MR_AUTO(end_build) build b = {.tree = t, .options = o, .plan = plan, .texts = &st->texts};
    plan->variant = "captions";
    MR_TRY(mr_folder_splits_open(o, index, plan, &b.splits, err));
    for (size_t i = 0; i < index->count; i++)
        MR_TRY(add_picture(&b, index->entries[i], err));
    mr_texts_sort(b.texts);
    MR_TRY(note_orphans(&b, err));
    if (b.empty)
        mr_note_add(plan->notes, MR_NOTE_INFO, "captions", 8, 0, "empty: %zu; their images have none", b.empty);
    return mr_buf_status(&b.path, err, "listing captions");
}

mr_status mr_sidecars_meta(const mr_tree *t, const mr_plan *plan, const mr_sample *sample, mr_buf *out, mr_error *err)
{
    MR_AUTO(mr_buf_free) mr_buf text = {0};
    const mr_table_state *st = plan->state;
    const char *fault = NULL;
    size_t len;
    if (!sample->aux)
        return MR_OK;
    const char *kept = mr_texts_find(&st->texts, (uint32_t)(sample->aux - 1), &len);
    if (!kept) {
        MR_TRY(read_text(t, (uint32_t)(sample->aux - 1), &text, &fault, err));
        kept = mr_buf_text(&text);
        len = text.len;
    }
    if (fault)
        return mr_fail(err, MR_BAD_DATA, "%s: changed while being ingested; run the command again",
                       mr_source_entry(t->source, (uint32_t)(sample->aux - 1))->path);
    if (!len)
        return MR_OK;
    mr_buf_add_text(out, ",\"captions\":[");
    mr_json_add_string(out, kept, len);
    mr_buf_add_text(out, "]");
    return mr_buf_status(out, err, "writing a caption");
}
