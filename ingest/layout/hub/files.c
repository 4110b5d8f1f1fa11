/* files.c - the names of a hub folder's files: config, split, and which part of how many.
 * Invariant: a name is read from its end, by fixed rules; what it lacks is not guessed from the files next to it. */
#include "ingest/layout/hub/hub.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/scope.h"
#include "base/text.h"
#include "ingest/source/names.h"
#include "ingest/layout/folder_names.h"

/* ---- one name ------------------------------------------------------------------------------------------------- */

static bool all_of(const char *text, size_t len, const char *set)
{
    for (size_t i = 0; i < len; i++)
        if (!strchr(set, text[i]) || !text[i])
            return false;
    return len > 0;
}

static uint32_t number_at(const char *text, size_t len)
{
    uint32_t n = 0;
    for (size_t i = 0; i < len; i++)
        n = n * 10 + (uint32_t)(text[i] - '0');
    return n;
}

static const char digits[] = "0123456789", hex[] = "0123456789abcdef";

/* "train-00000-of-00002", perhaps followed by "-" and 16 hex digits, as older writers added. */
static bool take_numbered(mr_hub_file *f, const char *stem, size_t len)
{
    enum { TAIL = 15, HASH = 17 }; /* "-00000-of-00002" */
    if (len > TAIL + HASH && stem[len - HASH] == '-' && all_of(stem + len - HASH + 1, HASH - 1, hex))
        len -= HASH;
    const char *tail = stem + len - TAIL;
    if (len <= TAIL || tail[0] != '-' || memcmp(tail + 6, "-of-", 4) != 0 || !all_of(tail + 1, 5, digits) ||
        !all_of(tail + 10, 5, digits))
        return false;
    f->number = number_at(tail + 1, 5);
    f->of = number_at(tail + 10, 5);
    f->split = f->series = (mr_hub_part){stem, len - TAIL};
    return true;
}

/* The hub's words for splits, alone or followed by more: "train", "test_easy". */
static bool begins_with_split(const char *text, size_t len)
{
    static const char *const words[] = {"train", "training", "val",     "valid", "validation",
                                        "dev",   "test",     "testing", "eval",  "evaluation"};
    for (size_t i = 0; i < MR_COUNT(words); i++) {
        size_t n = strlen(words[i]);
        if (len >= n && memcmp(text, words[i], n) == 0 && (len == n || strchr("-_.", text[n])))
            return true;
    }
    return false;
}

/* The name of a split may have several words: in "partial-train-00000-of-00001" the hub's library uses the word that it
 * knows. */
static bool is_word(const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (!(isalnum((unsigned char)text[i]) || text[i] == '_' || text[i] == '.' || (unsigned char)text[i] >= 0x80))
            return false;
    return len > 0;
}

/* "my_train_data": the word that names a split, if it is the only one. */
static void take_token(mr_hub_file *f, const char *text, size_t len)
{
    mr_split_token token = mr_split_token_of(text, len);
    f->several = token.several;
    f->split = token.split && !token.several ? (mr_hub_part){text + token.at, token.len} : (mr_hub_part){NULL, 0};
}

/* "train-0001", "train.0", "train": the number is not part of the split's name. */
static void take_plain(mr_hub_file *f, const char *stem, size_t len)
{
    size_t n = len;
    while (n && strchr(digits, stem[n - 1]))
        n--;
    while (n && n < len && strchr("-_.", stem[n - 1]))
        n--;
    take_token(f, stem, n);
    if (begins_with_split(stem, n) && !f->several)
        f->split = (mr_hub_part){stem, n};
}

/* The folder may name the split if the file does not: "train/0000.parquet", "train/part-00000-of-00002.parquet". */
static bool take_folder(mr_hub_file *f, mr_hub_part above)
{
    bool silent = !f->split.len || (f->of && !mr_split_token_of(f->split.text, f->split.len).split);
    if (f->several || !silent || !begins_with_split(above.text, above.len))
        return false;
    f->split = above;
    return true;
}

/* The last part of a folder's path. */
static mr_hub_part last_part(const char *dir, size_t len)
{
    const char *slash = len ? memrchr(dir, '/', len) : NULL;
    size_t at = slash ? (size_t)(slash - dir) + 1 : 0;
    return (mr_hub_part){dir + at, len - at};
}

/* The hub's folder "data", first or last, is not part of a config's name; "default" is the config without a name. */
static mr_hub_part config_of(const char *dir, size_t len)
{
    mr_hub_part last = last_part(dir, len);
    if (last.len == 4 && memcmp(last.text, "data", 4) == 0)
        len = len > 4 ? len - 5 : 0;
    if (len > 5 && memcmp(dir, "data/", 5) == 0) {
        dir += 5;
        len -= 5;
    }
    return (mr_hub_part){dir, len == 7 && memcmp(dir, "default", 7) == 0 ? 0 : len};
}

mr_hub_file mr_hub_file_at(const char *path, size_t len)
{
    mr_hub_file f = {.path = {path, len}};
    mr_hub_part name = last_part(path, len);
    size_t stem = name.len - strlen(MR_HUB_END), dir = len > name.len ? len - name.len - 1 : 0;
    mr_hub_part above = last_part(path, dir);
    bool numbered = take_numbered(&f, name.text, stem);
    if (numbered && !is_word(f.split.text, f.split.len) && mr_split_token_of(f.split.text, f.split.len).split)
        take_token(&f, f.split.text, f.split.len);
    else if (!numbered)
        take_plain(&f, name.text, stem);
    if (take_folder(&f, above))
        dir = dir > above.len ? dir - above.len - 1 : 0;
    f.stem = (mr_hub_part){name.text, stem};
    f.config = config_of(path, dir);
    return f;
}

void mr_hub_config_name(const mr_hub_file *f, mr_buf *out)
{
    if (f->config.len)
        mr_text_escape(out, f->config.text, f->config.len);
    else
        mr_buf_add_text(out, "default");
}

/* ---- all of them ---------------------------------------------------------------------------------------------- */

mr_status mr_hub_list(const mr_tree *t, mr_hub_files *out, mr_error *err)
{
    for (uint32_t e = t->begin; e < t->end; e++) {
        size_t len;
        const char *path = mr_tree_path(t, e, &len);
        if (!mr_name_ends(path, len, MR_HUB_END) || mr_path_is_hidden(path, len))
            continue;
        if (!MR_GROW(out->items, out->count, out->capacity))
            return mr_fail_memory(err, "listing Parquet files");
        out->items[out->count] = mr_hub_file_at(path, len);
        out->items[out->count++].entry = e;
    }
    return MR_OK;
}

void mr_hub_mark_left_out(const mr_tree *t, mr_plan *plan)
{
    for (uint32_t e = t->begin; e < t->end; e++) {
        size_t len;
        const char *path = mr_tree_path(t, e, &len);
        bool in_rows = memmem(path, len, MR_HUB_END "/", strlen(MR_HUB_END) + 1);
        if (mr_name_ends(path, len, MR_HUB_END) && !mr_path_is_hidden(path, len) && !in_rows &&
            plan->used[e] == MR_USE_NONE)
            plan->used[e] = MR_USE_LEFT_OUT;
    }
}

static bool same(mr_hub_part a, mr_hub_part b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.text, b.text, a.len) == 0);
}

/* Whether two numbered files are of one series: a split, of which README.md may make one of several. */
static bool same_series(const mr_hub_file *a, const mr_hub_file *b)
{
    return a->of && b->of && same(a->split, b->split) && (!a->by_card || same(a->series, b->series));
}

static bool is_config(const mr_hub_file *f, const char *wanted)
{
    mr_buf name = {0};
    mr_hub_config_name(f, &name);
    bool yes = strcmp(mr_buf_text(&name), wanted) == 0;
    mr_buf_free(&name);
    return yes || (strlen(wanted) == f->config.len && memcmp(wanted, f->config.text, f->config.len) == 0);
}

static int by_config(const void *a, const void *b)
{
    const mr_hub_part *x = &((const mr_hub_file *)a)->config, *y = &((const mr_hub_file *)b)->config;
    size_t len = x->len < y->len ? x->len : y->len;
    int order = len ? memcmp(x->text, y->text, len) : 0;
    return order ? order : (x->len > y->len) - (x->len < y->len);
}

/* The names of the configs, each once, and how many there are. */
static mr_status list_configs(const mr_hub_files *files, mr_buf *out, size_t *count, mr_error *err)
{
    mr_hub_file *sorted = mr_alloc(files->count, sizeof *sorted);
    *count = 0;
    if (!sorted)
        return mr_fail_memory(err, "listing Parquet files");
    if (files->count) {
        memcpy(sorted, files->items, files->count * sizeof *sorted);
        qsort(sorted, files->count, sizeof *sorted, by_config);
    }
    for (size_t i = 0; i < files->count; i++) {
        if (i && same(sorted[i].config, sorted[i - 1].config))
            continue;
        mr_buf_add_text(out, (*count)++ ? ", " : "");
        mr_hub_config_name(&sorted[i], out);
    }
    free(sorted);
    return MR_OK;
}

void mr_hub_map_splits(mr_hub_files *files, const mr_layout_options *o)
{
    for (size_t i = 0; i < files->count; i++) {
        mr_hub_file *f = &files->items[i];
        if ((f->several || !f->split.len) && mr_split_map_find(o, f->stem.text, f->stem.len)) {
            f->split = f->stem;
            f->several = false;
        }
    }
}

/* If some names include a split, all must; none may include two. */
static mr_status check_splits(const mr_hub_files *files, mr_error *err)
{
    size_t with_split = 0;
    for (size_t i = 0; i < files->count; i++)
        with_split += files->items[i].split.len > 0;
    for (size_t i = 0; i < files->count; i++) {
        const mr_hub_file *f = &files->items[i];
        MR_AUTO(mr_buf_free) mr_buf name = {0}, stem = {0}, option = {0};
        if (!f->several && (f->split.len || !with_split))
            continue;
        mr_text_show(&name, f->path.text, f->path.len);
        mr_source_quote(f->stem.text, f->stem.len, &stem);
        mr_source_leave_out(f->path.text, f->path.len, &option);
        return mr_fail(err, MR_BAD_DATA,
                       "%s: its name gives %s; --split-map %s=train adds it to split train, %s leaves it out",
                       mr_buf_text(&name), f->several ? "more than one split" : "no split, unlike those beside it",
                       mr_buf_text(&stem), mr_buf_text(&option));
    }
    return MR_OK;
}

mr_status mr_hub_choose(mr_hub_files *files, const char *wanted, mr_error *err)
{
    mr_buf names = {0};
    size_t configs, kept = 0;
    mr_status status = list_configs(files, &names, &configs, err);
    for (size_t i = 0; i < files->count; i++)
        if (!wanted || is_config(&files->items[i], wanted))
            files->items[kept++] = files->items[i];
    if (status == MR_OK && !files->count)
        status = mr_fail(err, MR_BAD_DATA, "no Parquet file: needs " MR_HUB_NEEDS);
    else if (status == MR_OK && wanted && !kept)
        status = mr_fail(err, MR_MISUSE, "--config %s does not exist; choose one of: %s", wanted, mr_buf_text(&names));
    else if (status == MR_OK && !wanted && configs > 1)
        status = mr_fail(err, MR_MISUSE, "the source holds %zu configs; choose one with --config: %s", configs,
                         mr_buf_text(&names));
    mr_buf_free(&names);
    files->count = kept;
    return status == MR_OK ? check_splits(files, err) : status;
}

/* The files of a split are in the order of their numbers, which have a fixed width. */
static mr_status complete_from(const mr_hub_files *files, size_t first, mr_error *err)
{
    const mr_hub_file *a = &files->items[first];
    uint32_t next = 0, of = a->of;
    for (size_t i = first; i <= files->count; i++) {
        const mr_hub_file *f = i < files->count ? &files->items[i] : NULL;
        if (f && !same_series(f, a))
            continue;
        if (f && (f->of != of || f->number < next))
            return mr_fail(
                err, MR_BAD_DATA,
                "%.*s: does not belong to the other files of its split: is it left over from another download?",
                (int)f->path.len, f->path.text);
        if ((f && f->number > next) || (!f && next < of))
            return mr_fail(err, MR_BAD_DATA,
                           "%.*s: its split has %u files, and number %05u is missing; download it again",
                           (int)a->path.len, a->path.text, of, next);
        next++;
    }
    return MR_OK;
}

mr_status mr_hub_complete(const mr_hub_files *files, mr_error *err)
{
    mr_status status = MR_OK;
    for (size_t i = 0; i < files->count && status == MR_OK; i++) {
        const mr_hub_file *f = &files->items[i];
        bool seen = !f->of;
        for (size_t j = i; j-- > 0 && !seen;)
            seen = same_series(&files->items[j], f);
        if (!seen)
            status = complete_from(files, i, err);
    }
    return status;
}
