/* names.c - COCO: images that a JSON names by a path on another machine.
 * Invariant: a name that fits several files equally well is an error, never a guess. */
#include <string.h>

#include "base/scope.h"
#include "ingest/layout/coco/coco.h"
#include "ingest/layout/folder_names.h"

static const char *split_word(const char *part, size_t len)
{
    return mr_split_word(part, mr_coco_without_year(part, len));
}

/* Whether the folders that name and path do not share contradict each other: the path has another split's. */
static bool contradicts(const mr_coco_build *b, const mr_coco_group *g, const char *name, size_t name_len,
                        const char *path, size_t len)
{
    const char *said = split_word(g->folder, strlen(g->folder));
    for (size_t i = 0, end; i < name_len; i = end + 1) {
        const char *slash = memchr(name + i, '/', name_len - i);
        end = slash ? (size_t)(slash - name) : name_len;
        const char *word = split_word(name + i, end - i);
        said = word ? word : said;
    }
    for (size_t i = 0, end; i < len; i = end + 1) {
        const char *slash = memchr(path + i, '/', len - i);
        end = slash ? (size_t)(slash - path) : len;
        const char *word = split_word(path + i, end - i);
        if (word && said && strcmp(word, said) != 0)
            return true;
        for (size_t k = 0; k < b->st->group_count; k++) {
            const char *folder = b->st->groups[k].folder;
            if (&b->st->groups[k] != g && strcmp(folder, g->folder) != 0 && strlen(folder) == end - i &&
                !memcmp(folder, path + i, end - i))
                return true;
        }
    }
    return false;
}

static bool in_own_folder(const mr_coco_group *g, const char *path, size_t len)
{
    size_t folder = strlen(g->folder), skip = len > 7 && !memcmp(path, "images/", 7) ? 7 : 0;
    return len - skip > folder && !memcmp(path + skip, g->folder, folder) && path[skip + folder] == '/';
}

static mr_status several(const mr_coco_build *b, const char *name, uint32_t a, uint32_t c)
{
    const mr_source *s = b->tree->source;
    return mr_fail(b->err, MR_BAD_DATA,
                   "\"file_name\" %.150s of the annotation files may be %.250s or %.250s: in the JSON, name the images "
                   "by their paths from the root of the dataset",
                   name, mr_source_entry(s, a)->path, mr_source_entry(s, c)->path);
}

typedef struct asked {
    const mr_coco_build *b;
    const mr_coco_group *g;
    bool foreign;
    const char *name;
    size_t len;
} asked;

/* Files in the split's own folder are preferred. */
static int judge(void *ctx, const char *path, size_t len, size_t same)
{
    const asked *a = ctx;
    const char *slash = memrchr(a->name, '/', a->len);
    size_t base = slash ? a->len - (size_t)(slash - a->name) - 1 : a->len;
    bool near = a->foreign || same == len || same > base;
    if (!near || contradicts(a->b, a->g, a->name, a->len - same, path, len - same))
        return -1;
    return in_own_folder(a->g, path, len);
}

mr_status mr_coco_look_up(const mr_coco_build *b, const mr_coco_group *g, bool foreign, const char *name, size_t len,
                          uint32_t *found)
{
    asked a = {b, g, foreign, name, len};
    MR_TRY(mr_image_names_list(&b->st->images, b->tree, b->tree->begin, b->tree->end, b->err));
    mr_name_match match = mr_image_names_find(&b->st->images, name, len, judge, &a);
    *found = match.entry;
    return match.rival == MR_NO_ENTRY ? MR_OK : several(b, name, match.entry, match.rival);
}
