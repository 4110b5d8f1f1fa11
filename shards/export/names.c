/* names.c - file names that are safe on any file system and unique in their folder.
 * Source of the rules: "Naming Files, Paths, and Namespaces" in Microsoft's documentation of Windows.
 * Invariant: a name depends on the requests before it alone, so equal datasets get equal names. */
#include "shards/export/names.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/scope.h"
#include "base/text.h"

void mr_names_free(mr_names *n)
{
    mr_buf_free(&n->text);
    free(n->ends);
    free(n->next);
    mr_string_map_release(&n->map);
    *n = (mr_names){0};
}

bool mr_path_is_safe(const char *path, size_t len)
{
    const char *at = path, *end = at + len;
    if (!len || memchr(at, '\0', len))
        return false;
    while (at <= end) {
        const char *slash = memchr(at, '/', (size_t)(end - at));
        size_t n = (size_t)((slash ? slash : end) - at);
        if (n == 0 || (n == 1 && at[0] == '.') || (n == 2 && at[0] == '.' && at[1] == '.'))
            return false;
        at += n + 1;
    }
    return true;
}

/* ---- safe -------------------------------------------------------------------------------------------------------- */

static bool is_device(const char *name, size_t len)
{
    static const char *const words[] = {"con", "prn", "aux", "nul", "conin$", "conout$", "clock$"};
    size_t stem = 0;
    while (stem < len && name[stem] != '.')
        stem++;
    while (stem && name[stem - 1] == ' ')
        stem--;
    for (size_t i = 0; i < MR_COUNT(words); i++)
        if (strlen(words[i]) == stem && !strncasecmp(name, words[i], stem))
            return true;
    return stem == 4 && (!strncasecmp(name, "com", 3) || !strncasecmp(name, "lpt", 3)) && name[3] >= '0' &&
           name[3] <= '9';
}

/* Where the ending of a name begins, its dot included; `len`: it has none. */
static size_t stem_of(const char *name, size_t len)
{
    const char *dot = len ? memrchr(name, '.', len) : NULL;
    return dot && dot != name && name + len - dot <= 16 ? (size_t)(dot - name) : len;
}

/* The same for a name with its rules: a folder's name has none. */
static size_t stem_by(unsigned rules, const char *name, size_t len)
{
    return rules & MR_NAME_FOLDER ? len : stem_of(name, len);
}

static bool is_picture(const char *name, size_t len)
{
    static const char *const ends[] = {".jpg", ".jpeg", ".png", ".webp", ".JPG", ".JPEG", ".PNG"};
    size_t stem = stem_of(name, len);
    for (size_t i = 0; i < MR_COUNT(ends); i++)
        if (len - stem == strlen(ends[i]) && !memcmp(name + stem, ends[i], len - stem))
            return true;
    return false;
}

static void add_safe(mr_buf *out, const char *name, size_t len, unsigned rules)
{
    for (size_t at = 0; at < len;) {
        size_t n = mr_text_printable(name + at, len - at);
        bool odd = !n || strchr("<>:\"/\\|?*", name[at]) || (rules & MR_NAME_SOLID && name[at] == ' ') ||
                   (name[at] == '.' && !at) || ((name[at] == '.' || name[at] == ' ') && at + 1 == len);
        mr_buf_add(out, odd ? "_" : name + at, odd ? 1 : n);
        at += n ? n : 1;
    }
}

/* The longest part of a name that fits, in whole characters. */
static size_t cut(const char *name, size_t len, size_t most)
{
    size_t keep = len < most ? len : most;
    while (keep && keep < len && ((unsigned char)name[keep] & 0xC0) == 0x80)
        keep--;
    return keep;
}

/* The name that it would have as the first of its folder. */
static void make_safe(const mr_name_request *r, mr_buf *out)
{
    MR_AUTO(mr_buf_free) mr_buf name = {0};
    const char *slash = r->len && !(r->rules & MR_NAME_FOLDER) ? memrchr(r->wanted, '/', r->len) : NULL;
    const char *from = slash ? slash + 1 : r->wanted;
    add_safe(&name, from, (size_t)(r->wanted + r->len - from), r->rules);
    if (!name.len)
        mr_buf_add_text(&name, "_");
    if (r->suffix && !is_picture(mr_buf_text(&name), name.len))
        mr_buf_printf(&name, ".%s", r->suffix);
    const char *text = mr_buf_text(&name);
    if (is_device(text, name.len))
        mr_buf_add_text(out, "_");
    size_t stem = stem_by(r->rules, text, name.len);
    mr_buf_add(out, text, cut(text, stem, MR_NAME_MAX - 1 - (name.len - stem)));
    mr_buf_add(out, text + stem, name.len - stem);
    out->failed = out->failed || name.failed;
}

/* ---- unique ------------------------------------------------------------------------------------------------------ */

static const void *text_of(const void *list, size_t number, size_t *len)
{
    const mr_names *n = list;
    size_t from = number ? n->ends[number - 1] : 0;
    *len = n->ends[number] - from;
    return n->text.data + from;
}

static void fold(const char *folder, const char *name, size_t len, mr_buf *out)
{
    mr_buf_clear(out);
    mr_buf_add_text(out, folder);
    mr_buf_add(out, "/", 1);
    mr_buf_add(out, name, len);
    for (size_t i = out->failed ? out->len : out->len - len; i < out->len; i++)
        if (out->data[i] >= 'A' && out->data[i] <= 'Z')
            out->data[i] = (uint8_t)(out->data[i] - 'A' + 'a');
}

static bool add(mr_names *n, const mr_buf *folded)
{
    if (!MR_GROW(n->ends, n->count, n->capacity) || !MR_GROW(n->next, n->count, n->next_capacity))
        return false;
    mr_buf_add(&n->text, folded->data, folded->len);
    n->ends[n->count] = n->text.len;
    n->next[n->count++] = 2;
    return !n->text.failed && mr_string_map_add(&n->map, text_of, n, folded->data, folded->len);
}

/* SIZE_MAX: the name is free.  A file that others are named after takes its stem as well. */
static size_t taken(const mr_names *n, const mr_name_request *r, const char *name, size_t len, mr_buf *folded)
{
    size_t stem = r->rules & MR_NAME_STEM ? stem_by(r->rules, name, len) : len, found;
    fold(r->folder, name, stem, folded);
    found = mr_string_map_find(&n->map, text_of, n, folded->data, folded->len);
    if (found != SIZE_MAX || stem == len)
        return found;
    fold(r->folder, name, len, folded);
    return mr_string_map_find(&n->map, text_of, n, folded->data, folded->len);
}

static mr_status take(mr_names *n, const mr_name_request *r, const char *name, size_t len, mr_buf *folded,
                      mr_error *err)
{
    size_t stem = r->rules & MR_NAME_STEM ? stem_by(r->rules, name, len) : len;
    fold(r->folder, name, len, folded);
    bool done = !folded->failed && add(n, folded);
    if (done && stem < len) {
        fold(r->folder, name, stem, folded);
        done = !folded->failed && add(n, folded);
    }
    return done ? MR_OK : mr_fail_memory(err, "naming files");
}

/* "a-2.jpg" for the second "a.jpg". */
static void number(const mr_buf *safe, unsigned rules, uint32_t k, mr_buf *out)
{
    const char *name = (const char *)safe->data;
    char text[16];
    int digits = snprintf(text, sizeof text, "-%" PRIu32, k);
    size_t stem = stem_by(rules, name, safe->len), ending = safe->len - stem;
    mr_buf_clear(out);
    mr_buf_add(out, name, cut(name, stem, MR_NAME_MAX - ending - (size_t)digits));
    mr_buf_add(out, text, (size_t)digits);
    mr_buf_add(out, name + stem, ending);
}

mr_status mr_names_take(mr_names *n, const mr_name_request *r, mr_buf *out, bool *changed, mr_error *err)
{
    MR_AUTO(mr_buf_free) mr_buf safe = {0}, name = {0}, folded = {0};
    const char *slash = r->len ? memrchr(r->wanted, '/', r->len) : NULL, *last = slash ? slash + 1 : r->wanted;
    size_t last_len = (size_t)(r->wanted + r->len - last);
    make_safe(r, &safe);
    MR_TRY(mr_buf_status(&safe, err, "naming files"));
    mr_buf_add(&name, safe.data, safe.len);
    size_t first = taken(n, r, mr_buf_text(&name), name.len, &folded), found = first;
    while (found != SIZE_MAX && !name.failed && !folded.failed) {
        number(&safe, r->rules, n->next[first]++, &name);
        found = taken(n, r, mr_buf_text(&name), name.len, &folded);
    }
    if (name.failed || folded.failed)
        return mr_fail_memory(err, "naming files");
    MR_TRY(take(n, r, mr_buf_text(&name), name.len, &folded, err));
    *changed = name.len != last_len || memcmp(name.data, last, last_len) != 0;
    mr_buf_add(out, name.data, name.len);
    return mr_buf_status(out, err, "naming files");
}
