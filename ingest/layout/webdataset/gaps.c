/* gaps.c - shards that are missing between others of one name, as after a download that was interrupted.
 * Invariant: a number is missing only between two that are there, or below the number of shards in "-of-00064". */
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/scope.h"
#include "ingest/layout/webdataset/webdataset.h"

typedef struct numbered { /* "train-00001-of-00064.tar" */
    const char *name;
    size_t len, prefix;  /* "train-" */
    size_t digits;       /* "00001" */
    uint64_t number, of; /* of: 0, unless the name says how many there are, in as many digits */
} numbered;

static bool numbered_of(const mr_child *child, numbered *out)
{
    size_t end = mr_webdataset_shard(child->name, child->name_len);
    const char *tar = memmem(child->name, child->name_len, ".tar", 4);
    if (!child->is_dir || !end || !tar)
        return false;
    *out = (numbered){.name = child->name, .len = child->name_len};
    bool bare = end == (size_t)(tar - child->name); /* "00012.tar", unless it has no number at its end */
    size_t at = bare ? 0 : end;
    while (!bare && at < out->len && !isdigit((unsigned char)out->name[at]))
        at++;
    out->prefix = at;
    while (at < out->len && isdigit((unsigned char)out->name[at]))
        at++;
    out->digits = at - out->prefix;
    if (!out->digits || out->digits > 18 || (bare && at != end))
        return false;
    out->number = strtoull(out->name + out->prefix, NULL, 10);
    at += strspn(out->name + at, "-_");
    const char *of = strncmp(out->name + at, "of", 2) ? "" : out->name + at + 2 + strspn(out->name + at + 2, "-_");
    if (strspn(of, "0123456789") == out->digits)
        out->of = strtoull(of, NULL, 10);
    return true;
}

static bool same_series(const numbered *a, const numbered *b)
{
    return a->prefix == b->prefix && a->digits == b->digits && a->of == b->of && !memcmp(a->name, b->name, a->prefix);
}

/* Notes the shards from number `from` on, before `to`. */
static void note_missing(const char *dir, size_t dir_len, const numbered *like, uint64_t from, uint64_t to,
                         mr_notes *notes)
{
    MR_AUTO(mr_buf_free) mr_buf path = {0};
    char more[48] = "";
    if (from >= to)
        return;
    if (from + 1 < to)
        snprintf(more, sizeof more, ", nor the next %" PRIu64, to - from - 1);
    mr_buf_add(&path, dir, dir_len);
    mr_buf_add_text(&path, dir_len ? "/" : "");
    mr_buf_add(&path, like->name, like->prefix);
    mr_buf_printf(&path, "%0*" PRIu64, (int)like->digits, from);
    mr_buf_add(&path, like->name + like->prefix + like->digits, like->len - like->prefix - like->digits);
    notes->failed = notes->failed || path.failed;
    if (!path.failed)
        mr_note_add(notes, MR_NOTE_MISSING, mr_buf_text(&path), path.len, 0, "there is no such shard%s", more);
}

/* Shards are numbered from 0, or from 1 to the number of them. */
static void end_series(const char *dir, size_t dir_len, const numbered *first, const numbered *last, mr_notes *notes)
{
    if (!last->of)
        return;
    bool from_one = last->number == last->of;
    note_missing(dir, dir_len, first, from_one, first->number, notes);
    note_missing(dir, dir_len, last, last->number + 1, last->of, notes);
}

void mr_webdataset_gaps(const mr_tree *t, const char *dir, size_t dir_len, mr_notes *notes)
{
    mr_child child = {0};
    numbered first = {0}, last = {0}, now;
    while (mr_tree_next(t, dir, dir_len, &child)) {
        if (!numbered_of(&child, &now))
            continue;
        if (last.name && same_series(&last, &now)) {
            note_missing(dir, dir_len, &now, last.number + 1, now.number, notes);
        } else {
            end_series(dir, dir_len, &first, &last, notes);
            first = now;
        }
        last = now;
    }
    end_series(dir, dir_len, &first, &last, notes);
}
