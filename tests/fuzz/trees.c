/* trees.c - a whole tree of files out of one input; see trees.h. */
#include "tests/fuzz/trees.h"

#include "shards/manifest/format.h"

enum { MEMBERS = 160 };

static mr_layout_options read_options(char *text, mr_split_map *map)
{
    char none[] = "", *word[6];
    for (int i = 0; i < 6; i++) {
        word[i] = strsep(&text, ",");
        if (!word[i])
            word[i] = none;
    }
    mr_layout_options o = {.keep_unlisted = *word[3] != '\0', .maps = map};
    o.label_column = *word[0] ? word[0] : NULL;
    o.config = *word[1] ? word[1] : NULL;
    o.label_separator = *word[4] ? word[4] : NULL;
    o.class_pattern = *word[5] ? word[5] : NULL;
    char *equal = strchr(word[2], '=');
    if (equal && equal != word[2] && (!equal[1] || mr_split_name_ok(equal + 1))) {
        *equal = '\0';
        *map = (mr_split_map){word[2], equal + 1};
        o.map_count = 1;
    }
    return o;
}

void fuzz_tree_make(const uint8_t *data, size_t size, fuzz_tree *out)
{
    fuzz_member members[MEMBERS], rows[MEMBERS];
    size_t count = 0, row_count = 0, options = strnlen((const char *)data, size);
    *out = (fuzz_tree){.text = strndup((const char *)data, options)};
    for (size_t at = options + 1; at < size && count + row_count < MEMBERS;) {
        size_t name = strnlen((const char *)data + at, size - at), from = at + name + 1;
        size_t len = from < size ? strnlen((const char *)data + from, size - from) : 0;
        bool row = memmem(data + at, name, ".parquet/", 9) != NULL;
        *(row ? &rows[row_count++] : &members[count++]) =
            (fuzz_member){(const char *)data + at, name, from < size ? from : size, len};
        at = from + len + 1;
    }
    out->options = read_options(out->text, &out->map);
    out->files = fuzz_source(data, size, members, count, &out->notes);
    out->opened = fuzz_source(data, size, rows, row_count, &out->notes);
    out->nothing = fuzz_source(data, size, rows, 0, &out->notes);
}

void fuzz_tree_free(fuzz_tree *tree)
{
    mr_source_free(tree->files);
    mr_source_free(tree->opened);
    mr_source_free(tree->nothing);
    mr_notes_free(&tree->notes);
    free(tree->text);
}
