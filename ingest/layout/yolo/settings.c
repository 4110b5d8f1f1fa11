/* settings.c - data.yaml, or what stands for it, and the paths in it.
 * Source: Ultralytics resolves train, val and test against `path`, then against the file; Roboflow's "../train/images"
 * means the folder beside data.yaml.  Darknet's *.data has lines KEY = VALUE: classes, train, valid, names.
 * Invariant: if several files might be the dataset's settings, none is chosen silently. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/scope.h"
#include "base/text.h"
#include "ingest/tables/lines.h"
#include "ingest/source/names.h"
#include "ingest/layout/yolo/yolo.h"

enum { HEAD = 64 << 10 };

static const char *const yaml_words[] = {"names", "train", "val", "kpt_shape", NULL};
static const char *const data_words[] = {"names", "train", "valid", NULL};
static const char *const list_names[][2] = {
    {"train", "train.txt"}, {"val", "val.txt"}, {"valid", "valid.txt"}, {"test", "test.txt"}};

/* Whether a line of the file begins with one of the words and, after blanks, the mark. */
static bool sets(const mr_tree *t, uint32_t entry, const char *const *words, char mark)
{
    MR_AUTO(mr_scope_free) char *head = malloc(HEAD + 1);
    uint64_t size = mr_source_entry(t->source, entry)->size;
    size_t len = size < HEAD ? (size_t)size : HEAD;
    if (!head || mr_source_pread(t->source, entry, head, len, 0, NULL) != MR_OK)
        return false;
    head[len] = '\0';
    for (const char *at = head; *at; at += strcspn(at, "\n"), at += *at == '\n') {
        const char *word = at + strspn(at, "\"' ");
        for (size_t i = 0; words[i]; i++) {
            size_t n = strlen(words[i]);
            if (!strncmp(word, words[i], n) && word[n + strspn(word + n, "\"' \t")] == mark)
                return true;
        }
    }
    return false;
}

typedef struct claim {
    uint32_t entry;  /* MR_NO_ENTRY: none, or several */
    uint32_t second; /* another with the same claim; MR_NO_ENTRY: none */
} claim;

/* The only file of the root with one of the endings that sets one of the words. */
static claim only_one(const mr_tree *t, const char *const *endings, const char *const *words, char mark, bool sure)
{
    claim f = {MR_NO_ENTRY, MR_NO_ENTRY};
    mr_child child = {0};
    while (f.second == MR_NO_ENTRY && mr_tree_next(t, "", 0, &child))
        for (size_t i = 0; !child.is_dir && child.name[0] != '.' && endings[i]; i++)
            if (mr_name_ends(child.name, child.name_len, endings[i]) && (!sure || sets(t, child.entry, words, mark)))
                *(f.entry == MR_NO_ENTRY ? &f.entry : &f.second) = child.entry;
    return f;
}

static claim find_yaml(const mr_tree *t)
{
    static const char *const endings[] = {".yaml", ".yml", NULL};
    claim f = {mr_tree_find(t, "data.yaml", 9), MR_NO_ENTRY};
    if (f.entry == MR_NO_ENTRY)
        f = only_one(t, endings, yaml_words, ':', false);
    return f.second == MR_NO_ENTRY ? f : only_one(t, endings, yaml_words, ':', true);
}

static claim find_data(const mr_tree *t)
{
    static const char *const endings[] = {".data", NULL};
    return only_one(t, endings, data_words, '=', true);
}

/* train.txt at the root, whose first line is the path of an image. */
static uint32_t find_list(const mr_tree *t, const char *name)
{
    MR_AUTO(mr_buf_free) mr_buf path = {0};
    char head[4096];
    uint32_t entry = mr_tree_find(t, name, strlen(name));
    if (entry == MR_NO_ENTRY)
        return entry;
    uint64_t size = mr_source_entry(t->source, entry)->size;
    size_t len = size < sizeof head ? (size_t)size : sizeof head;
    mr_lines l = mr_lines_of(head, len);
    if (mr_source_pread(t->source, entry, head, len, 0, NULL) != MR_OK || !mr_lines_next(&l) ||
        !mr_name_is_image(l.line, l.len))
        return MR_NO_ENTRY;
    return mr_yolo_find_listed(t, entry, l.line, l.len, &path) == MR_NO_ENTRY ? MR_NO_ENTRY : entry;
}

bool mr_yolo_settings_found(const mr_tree *t, const char **name, size_t *len)
{
    claim f = find_yaml(t);
    f = f.entry == MR_NO_ENTRY ? find_data(t) : f;
    for (size_t i = 0; i < MR_COUNT(list_names) && f.entry == MR_NO_ENTRY; i++)
        f.entry = find_list(t, list_names[i][1]);
    if (f.entry != MR_NO_ENTRY)
        *name = mr_tree_path(t, f.entry, len);
    return f.entry != MR_NO_ENTRY;
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

static void add_quoted(mr_buf *out, const char *text, size_t len)
{
    mr_buf_add_text(out, "'");
    for (size_t i = 0; i < len; i++) {
        mr_buf_add(out, text + i, 1);
        mr_buf_add_text(out, text[i] == '\'' ? "'" : "");
    }
    mr_buf_add_text(out, "'");
}

/* KEY = VALUE lines as YAML of the same lines. */
static mr_status read_data(const mr_tree *t, mr_yolo_settings *s, mr_error *err)
{
    MR_AUTO(mr_buf_free) mr_buf bytes = {0}, text = {0};
    if (mr_source_entry(t->source, s->entry)->size > MR_YAML_MAX)
        return mr_fail(err, MR_BAD_DATA, "%s: longer than 1 MiB, the limit for a settings file", s->name);
    MR_TRY(mr_source_read(t->source, s->entry, &bytes, err));
    uint64_t written = 0;
    for (mr_lines l = mr_lines_of(bytes.data, bytes.len); mr_lines_next(&l);) {
        const char *line = l.line, *equals = memchr(line, '=', l.len), *key_end = equals,
                   *value = equals ? equals + 1 : NULL;
        if (*line == '#' || *line == ';')
            continue;
        if (!equals)
            return mr_fail(err, MR_BAD_DATA, "%s: line %" PRIu64 ": not KEY = VALUE", s->name, l.number);
        while (key_end > line && strchr(" \t", key_end[-1]))
            key_end--;
        while (value < line + l.len && strchr(" \t", *value))
            value++;
        for (; written + 1 < l.number; written++)
            mr_buf_add_text(&text, "\n");
        size_t key = (size_t)(key_end - line);
        bool classes = key == 7 && !memcmp(line, "classes", 7), valid = key == 5 && !memcmp(line, "valid", 5);
        add_quoted(&text, classes ? "nc" : valid ? "val" : line, classes ? 2 : valid ? 3 : key);
        mr_buf_add_text(&text, ": ");
        add_quoted(&text, value, (size_t)(line + l.len - value));
        mr_buf_add_text(&text, "\n");
        written++;
    }
    const char *yaml = mr_buf_text(&text);
    MR_TRY(mr_buf_status(&text, err, "reading settings"));
    return mr_yaml_parse(yaml, text.len, s->name, &s->yaml, err);
}

static mr_status read_lists(const mr_tree *t, mr_yolo_settings *s, mr_error *err)
{
    MR_AUTO(mr_buf_free) mr_buf text = {0};
    for (size_t i = 0; i < MR_COUNT(list_names); i++)
        if (find_list(t, list_names[i][1]) != MR_NO_ENTRY)
            mr_buf_printf(&text, "%s: %s\n", list_names[i][0], list_names[i][1]);
    s->lists = text.len > 0;
    const char *yaml = mr_buf_text(&text);
    MR_TRY(mr_buf_status(&text, err, "reading settings"));
    return mr_yaml_parse(yaml, text.len, "the image lists", &s->yaml, err);
}

mr_status mr_yolo_settings_read(const mr_tree *t, mr_yolo_settings *out, mr_error *err)
{
    claim yaml = find_yaml(t), f = yaml.entry == MR_NO_ENTRY ? find_data(t) : yaml;
    size_t len;
    *out = (mr_yolo_settings){.entry = f.entry, .name = ""};
    if (f.entry == MR_NO_ENTRY)
        return read_lists(t, out, err);
    out->name = mr_tree_path(t, f.entry, &len);
    if (f.second != MR_NO_ENTRY)
        return mr_fail(err, MR_BAD_DATA,
                       "%s and %s: both have dataset settings, and none is called data.yaml; leave one out with "
                       "--exclude",
                       out->name, mr_tree_path(t, f.second, &len));
    return yaml.entry == MR_NO_ENTRY ? read_data(t, out, err) : mr_yaml_read(t->source, f.entry, &out->yaml, err);
}

/* ---- paths ------------------------------------------------------------------------------------------------------- */

/* The path's first form below the root that exists, of the whole and without its first folders; a single word at the
 * end of a longer path means a file alone: the root's train/ need not be that of /data/other/train. */
static bool find_form(const mr_tree *t, const char *text, mr_buf *out)
{
    for (bool whole = true; text && *text; whole = false) {
        size_t parts = 0;
        for (const char *c = text; *c; c++)
            parts += *c == '/' && c[1];
        bool there = *text != '/' && mr_path_beside("", 0, text, out);
        while (there && out->len && out->data[out->len - 1] == '/')
            out->len--;
        if (there && (((whole || parts) && mr_tree_has_dir(t, mr_buf_text(out), out->len)) ||
                      mr_tree_find(t, mr_buf_text(out), out->len) != MR_NO_ENTRY))
            return true;
        text = strchr(text, '/');
        text = text ? text + strspn(text, "/") : NULL;
    }
    return false;
}

static bool is_root(const char *text)
{
    return !strcmp(text, ".") || !strcmp(text, "./");
}

void mr_yolo_resolve(const mr_tree *t, const mr_yaml *yaml, const char *value, mr_buf *out)
{
    const char *base = mr_yaml_text(yaml, mr_yaml_get(yaml, mr_yaml_root(yaml), "path"));
    MR_AUTO(mr_buf_free) mr_buf joined = {0}, slashes = {0};
    mr_buf_add_text(&joined, *value == '/' || is_root(base) ? "" : base);
    mr_buf_add_text(&joined, *value == '/' || !*base || is_root(base) ? "" : "/");
    mr_buf_add_text(&joined, value);
    bool found = find_form(t, mr_buf_text(&joined), out) || find_form(t, value, out);
    if (!found && memchr(mr_buf_text(&joined), '\\', joined.len)) { /* as Windows writes them */
        mr_buf_add(&slashes, joined.data, joined.len);
        for (size_t i = 0; i < slashes.len; i++)
            slashes.data[i] = slashes.data[i] == '\\' ? '/' : slashes.data[i];
        found = find_form(t, mr_buf_text(&slashes), out);
    }
    out->failed = out->failed || joined.failed || slashes.failed;
    if (!found)
        mr_buf_clear(out);
}

/* ---- lists ------------------------------------------------------------------------------------------------------- */

/* From the list's folder, from the root, and without the first folders of a path that leads elsewhere. */
static uint32_t find_path(const mr_tree *t, uint32_t list, const char *text, mr_buf *path)
{
    size_t len;
    const char *name = mr_tree_path(t, list, &len);
    uint32_t found = MR_NO_ENTRY;
    if (mr_path_beside(name, len, text, path))
        found = mr_tree_find(t, mr_buf_text(path), path->len);
    for (bool whole = true; found == MR_NO_ENTRY && text && (whole || strchr(text, '/')); whole = false) {
        if (*text && *text != '/' && mr_path_beside("", 0, text, path))
            found = mr_tree_find(t, mr_buf_text(path), path->len);
        text = strchr(text, '/');
        text = text ? text + strspn(text, "/") : NULL;
    }
    return found;
}

uint32_t mr_yolo_find_listed(const mr_tree *t, uint32_t list, const char *line, size_t len, mr_buf *path)
{
    MR_AUTO(mr_buf_free) mr_buf text = {0};
    if (memchr(line, '\0', len))
        return MR_NO_ENTRY;
    mr_buf_add(&text, line, len);
    uint32_t found = find_path(t, list, mr_buf_text(&text), path);
    if (found == MR_NO_ENTRY && memchr(line, '\\', len)) {
        for (size_t i = 0; i < text.len; i++)
            text.data[i] = text.data[i] == '\\' ? '/' : text.data[i];
        found = find_path(t, list, mr_buf_text(&text), path);
    }
    path->failed = path->failed || text.failed;
    return found;
}
