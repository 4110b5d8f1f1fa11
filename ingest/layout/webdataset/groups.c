/* groups.c - the files of one key; see groups.h. */
#include "ingest/layout/webdataset/groups.h"
#include "ingest/source/names.h"

#include <string.h>
#include <strings.h>

const mr_webdataset_group mr_webdataset_no_files = {NULL,        0,           MR_NO_ENTRY, MR_NO_ENTRY,
                                                    MR_NO_ENTRY, MR_NO_ENTRY, MR_NO_ENTRY, MR_NO_ENTRY,
                                                    MR_NO_ENTRY, MR_NO_ENTRY, MR_NO_ENTRY};

static bool is_member(const char *name, size_t len, const char *want)
{
    return strlen(want) == len && strncasecmp(name, want, len) == 0;
}

bool mr_webdataset_is_image(const mr_layout_options *o, const char *name, size_t len)
{
    if (o->image_column)
        return is_member(name, len, o->image_column);
    return is_member(name, len, "jpg") || is_member(name, len, "jpeg") || is_member(name, len, "png") ||
           is_member(name, len, "webp");
}

static void take(mr_webdataset_group *g, uint32_t *place, uint32_t entry)
{
    if (*place == MR_NO_ENTRY) {
        *place = entry;
    } else if (g->second == MR_NO_ENTRY) {
        g->rival = *place;
        g->second = entry;
    }
}

void mr_webdataset_group_add(const mr_layout_options *o, mr_webdataset_group *g, const mr_child *child)
{
    const char *name = child->name + g->key_len + 1;
    size_t len = child->name_len - g->key_len - 1;
    if (g->first == MR_NO_ENTRY)
        g->first = child->entry;
    if (mr_webdataset_is_image(o, name, len))
        take(g, &g->image, child->entry);
    else if (is_member(name, len, "json"))
        take(g, &g->json, child->entry);
    else if (is_member(name, len, "cls"))
        take(g, &g->cls, child->entry);
    else if (is_member(name, len, "txt"))
        take(g, &g->text, child->entry);
    else if (mr_name_is_image(name, len))
        *(g->odd == MR_NO_ENTRY ? &g->odd : &g->odd_after) = child->entry;
}

const char *mr_webdataset_member(const mr_tree *t, const mr_webdataset_group *g, uint32_t entry)
{
    const char *path = mr_source_entry(t->source, entry)->path, *slash = strrchr(path, '/');
    return (slash ? slash + 1 : path) + g->key_len + 1;
}

mr_status mr_webdataset_group_check(const mr_tree *t, const mr_webdataset_group *g, mr_error *err)
{
    if (g->second == MR_NO_ENTRY)
        return MR_OK;
    const char *a = mr_source_entry(t->source, g->rival)->path, *b = mr_source_entry(t->source, g->second)->path;
    if (strcasecmp(a, b) == 0)
        return mr_fail(err, MR_BAD_DATA,
                       "%s and %s differ only in case, and belong to one sample; leave out one of them", a, b);
    return mr_fail(
        err, MR_BAD_DATA,
        "%s and %s are both the image of one sample; --image-column selects one kind: its name after the first "
        "dot",
        a, b);
}
