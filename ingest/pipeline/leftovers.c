/* leftovers.c - images and annotations that would be lost, folder by folder.
 * Invariant: each leftover is counted in one folder, and each folder has a note.
 *
 *      data/train/cat/1.jpg        a sample of root data/
 *      data/test/1.jpg             in a split folder, but in no class folder
 *      data/bird/1.jpg             beside the split folders
 *      data/train/labels/1.xml     annotations that the layout does not read
 *      extra/cat/1.jpg             beside the root                                                                  */
#include <stdlib.h>
#include <string.h>

#include "base/scope.h"
#include "base/text.h"
#include "ingest/source/names.h"
#include "ingest/pipeline/ledger_parts.h"

static bool holds_kept(const mr_book *b, const char *path, size_t len)
{
    mr_tree t = mr_tree_at(b->in->source, path, len ? len + 1 : 0); /* with the slash */
    return b->kept[t.end] > b->kept[t.begin];
}

/* The outermost folder of the file that holds nothing of the dataset, or else the innermost one. */
static uint32_t folder_of(const mr_book *b, const char *path, size_t len)
{
    const char *slash, *from = path;
    size_t found = 0;
    while ((slash = memchr(from, '/', len - (size_t)(from - path)))) {
        found = (size_t)(slash - path);
        if (!holds_kept(b, path, found))
            break;
        from = slash + 1;
    }
    return (uint32_t)found;
}

static int by_folder(const void *a, const void *b)
{
    const mr_leftover *x = a, *y = b;
    uint32_t least = x->folder < y->folder ? x->folder : y->folder;
    int order = memcmp(x->path, y->path, least);
    order = order ? order : (x->folder > y->folder) - (x->folder < y->folder);
    return order ? order : (x->entry > y->entry) - (x->entry < y->entry);
}

static void count_item(mr_left_folder *f, const mr_leftover *item)
{
    size_t k = 0;
    f->bytes += mr_source_entry(f->book->in->source, item->entry)->size;
    f->keepable = f->keepable && item->keepable;
    f->skippable = f->skippable && item->skippable;
    if (!item->format) {
        f->images++;
        f->odd += !mr_name_is_image(item->path, strlen(item->path));
        return;
    }
    while (k < MR_LEFT_FORMATS && f->formats[k] && f->formats[k] != item->format)
        k++;
    if (k == MR_LEFT_FORMATS) {
        f->others++;
        return;
    }
    f->formats[k] = item->format;
    f->counts[k]++;
}

/* The folder of the first of `count` sorted leftovers, with all of its leftovers. */
static mr_left_folder next_folder(const mr_book *b, const mr_leftover *items, size_t count)
{
    const mr_tree *t = &b->in->choice.tree;
    mr_left_folder f = {.book = b, .items = items, .path = items->path, .len = items->folder, .keepable = true};
    f.skippable = true;
    f.inside = items->entry >= t->begin && items->entry < t->end;
    f.apart = f.len && !holds_kept(b, f.path, f.len);
    while (f.count < count && items[f.count].folder == items->folder &&
           !memcmp(items[f.count].path, items->path, items->folder))
        count_item(&f, &items[f.count++]);
    return f;
}

/* ---- what is said ------------------------------------------------------------------------------------------------ */

/* "8 images, 2 COCO annotation files" */
static void say_count(const mr_left_folder *f, mr_buf *out)
{
    char count[32];
    if (f->images)
        mr_buf_printf(out, "%s image%s", mr_text_count(f->images, count), f->images == 1 ? "" : "s");
    for (size_t k = 0; k < MR_LEFT_FORMATS && f->formats[k]; k++)
        mr_buf_printf(out, "%s%s %s", k || f->images ? ", " : "", mr_text_count(f->counts[k], count),
                      f->counts[k] == 1 ? f->formats[k]->name : f->formats[k]->names);
    if (f->others)
        mr_buf_printf(out, ", %s other annotation%s", mr_text_count(f->others, count), f->others == 1 ? "" : "s");
}

/* Notes the folder; the first one also becomes the error's sentence. */
static void note_folder(mr_book *b, const mr_left_folder *f, mr_buf *sentence)
{
    MR_AUTO(mr_buf_free) mr_buf what = {0};
    MR_AUTO(mr_buf_free) mr_buf path = {0};
    MR_AUTO(mr_buf_free) mr_buf advice = {0};
    say_count(f, &what);
    mr_text_escape(&path, f->path, f->len);
    mr_buf_add_text(&path, f->len ? "/" : "the top level of the source");
    mr_left_advise(f, &advice);
    if (!sentence->len) {
        mr_buf_printf(sentence, "%s %s %s would be left out: ", mr_buf_text(&what), f->len ? "in" : "at",
                      mr_buf_text(&path));
        mr_buf_add(sentence, advice.data, advice.len);
    }
    mr_note_add(&b->in->notes, MR_NOTE_LEFT_OUT, f->path, f->len, f->bytes, "%s, %s", mr_buf_text(&what),
                mr_buf_text(&advice));
    sentence->failed = sentence->failed || what.failed || path.failed || advice.failed;
}

mr_status mr_leftovers_check(mr_book *b, mr_error *err)
{
    MR_AUTO(mr_buf_free) mr_buf sentence = {0};
    const char *source = b->in->options->sources[0];
    char count[32], more[32];
    size_t folders = 0;
    if (!b->count)
        return MR_OK;
    for (size_t i = 0; i < b->count; i++)
        b->items[i].folder = folder_of(b, b->items[i].path, strlen(b->items[i].path));
    qsort(b->items, b->count, sizeof *b->items, by_folder);
    for (size_t i = 0; i < b->count; folders++) {
        mr_left_folder f = next_folder(b, b->items + i, b->count - i);
        note_folder(b, &f, &sentence);
        i += f.count;
    }
    MR_TRY(mr_buf_status(&sentence, err, "accounting for the source"));
    if (folders == 1)
        return mr_fail(err, MR_BAD_DATA, "%s: %s. Nothing was written", source, mr_buf_text(&sentence));
    return mr_fail(err, MR_BAD_DATA,
                   "%s: %s. With %s more folder%s, listed above, %s files would be left out; nothing was written",
                   source, mr_buf_text(&sentence), mr_text_count(folders - 1, more), folders == 2 ? "" : "s",
                   mr_text_count(b->count, count));
}
