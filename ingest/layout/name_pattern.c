/* name_pattern.c - do the names of images look like a class and a number?
 * Invariant: a class is a name with a letter that several images begin with, so dates and IMG_0001 are not classes, and
 * neither is one with a word for a split, such as ADE_train_00000001.
 *
 *      Abyssinian_12.jpg      cat.0.jpg      class, separator, digits                                              */
#include "ingest/layout/name_pattern.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/text.h"
#include "ingest/source/names.h"
#include "ingest/layout/folder_names.h"
#include "ingest/layout/formats.h"

enum { CLASSES_MAX = 1024, IMAGES_LEAST = 4 };

typedef struct guess {
    uint64_t classes[CLASSES_MAX]; /* hashes */
    size_t class_count;
    size_t images, named;
    char separator; /* the separator in the first name that matches; 0: none does */
    uint32_t example;
} guess;

/* The length of the class in a stem, and what separates it from its number; 0: the stem is not named so. */
static size_t class_of(const char *stem, size_t len, char *separator)
{
    size_t end = len;
    bool letter = false;
    while (end && isdigit((unsigned char)stem[end - 1]))
        end--;
    if (end == len || end < 2 || !strchr("_-.", stem[end - 1]))
        return 0;
    for (size_t i = 0; i + 1 < end; i++)
        letter = letter || isalpha((unsigned char)stem[i]);
    *separator = stem[end - 1];
    return letter && !mr_split_token_of(stem, end - 1).split ? end - 1 : 0;
}

static void add_class(guess *g, const char *name, size_t len)
{
    uint64_t hash = mr_hash64(name, len);
    for (size_t i = 0; i < g->class_count; i++)
        if (g->classes[i] == hash)
            return;
    if (g->class_count < CLASSES_MAX)
        g->classes[g->class_count++] = hash;
}

static void look(const mr_source *s, guess *g)
{
    for (uint32_t n = 0; n < mr_source_count(s) && g->class_count < CLASSES_MAX; n++) {
        const mr_entry *e = mr_source_entry(s, n);
        size_t len;
        char separator = 0;
        if (!mr_name_is_image(e->path, e->path_len))
            continue;
        const char *stem = mr_stem(e->path, e->path_len, &len);
        size_t class = class_of(stem, len, &separator);
        g->images++;
        if (!class || (g->separator && separator != g->separator))
            continue;
        if (!g->separator)
            g->example = n;
        g->separator = separator;
        g->named++;
        add_class(g, stem, class);
    }
}

void mr_name_pattern_hint(const mr_source *s, mr_buf *out)
{
    guess *g = mr_alloc(1, sizeof *g);
    if (!g) {
        out->failed = true;
        return;
    }
    look(s, g);
    bool several = g->class_count > 1 && g->class_count <= g->named / 2;
    if (several && g->images >= IMAGES_LEAST && g->named >= g->images / 2) {
        const mr_entry *e = mr_source_entry(s, g->example);
        size_t len;
        const char *name = mr_stem(e->path, e->path_len, &len);
        mr_buf_add_text(out, "names such as ");
        mr_text_show(out, name, e->path_len - (size_t)(name - e->path));
        mr_buf_printf(out, " look like a class and a number: --class-pattern '{class}%c#' reads the class from them",
                      g->separator);
    }
    free(g);
}
