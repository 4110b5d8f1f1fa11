/* layout_coco_images.c - COCO: the images of one split, from all its annotation files.
 * Invariant: every image that a file lists ends up as a sample or in a note. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "layout_coco.h"

/* The file of an image: in SPLIT/, images/SPLIT/, the root (file_name may name folders), images/, annotations/. */
static uint32_t resolve(const mr_coco_build *b, mr_coco_group *g, const char *name, size_t len)
{
    static const char *const before[] = {"", "images/", "", "images/", "annotations/"};
    char path[4096];
    if (len > sizeof path / 2)
        return MR_NO_ENTRY;
    for (size_t i = 0; i < MR_COUNT(before); i++) {
        bool own = i < 2;
        size_t at = (size_t)snprintf(path, sizeof path, "%s%s%s", before[i], own ? g->folder : "", own ? "/" : "");
        memcpy(path + at, name, len);
        uint32_t entry = mr_tree_find(b->tree, path, at + len);
        if (entry == MR_NO_ENTRY)
            continue;
        if (!own && !memchr(name, '/', len))
            g->flat[i - 2] = true;
        return entry;
    }
    return MR_NO_ENTRY;
}

/* The image's file, MR_NO_ENTRY if it is not there.  False: its name leads out of the folder, or nowhere. */
static bool find_file(mr_coco_build *b, mr_coco_group *g, const mr_coco_image *image, uint32_t *entry)
{
    bool whole = !memchr(image->file_name, '\0', image->name_len);
    bool inside = whole && mr_path_beside("", 0, image->file_name, &b->name);
    b->plan->notes->failed = b->plan->notes->failed || b->name.failed;
    if (inside)
        *entry = resolve(b, g, (const char *)b->name.data, b->name.len);
    return inside;
}

static uint64_t text_bytes(const mr_coco_file *f, uint32_t n)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < f->images[n].count; i++)
        bytes += f->annotations[f->images[n].first + i].len;
    return bytes;
}

/* One image of a group; where[0] is the group, where[1 + i] its number in part i. */
static mr_status add_sample(mr_coco_build *b, mr_coco_group *g, uint32_t entry, const uint32_t *where,
                            const mr_coco_image *image)
{
    mr_coco_state *st = b->st;
    mr_sample sample = {.entry = entry, .label = -1, .flags = MR_FLAG_UNANNOTATED, .aux = st->where_count,
                        .meta_bytes = image->len};
    for (size_t i = 0; i < g->count; i++) {
        const mr_coco_file *f = st->parts[g->first + i].file;
        if (where[1 + i] == MR_COCO_NONE)
            continue;
        sample.meta_bytes += text_bytes(f, where[1 + i]);
        if (f->images[where[1 + i]].count)
            sample.flags = 0;
    }
    for (size_t i = 0; i <= g->count; i++) {
        if (!MR_GROW(st->where, st->where_count, st->where_room))
            return mr_fail_memory(b->err, "listing COCO images");
        st->where[st->where_count++] = where[i];
    }
    mr_status status = mr_coco_group_split(b, g);
    sample.split = g->split;
    return status == MR_OK ? mr_plan_add(b->plan, &sample, b->err) : status;
}

typedef struct merge {
    uint32_t where[1 + MR_COCO_KINDS];
    uint32_t next[MR_COCO_KINDS];
    uint64_t missing;
} merge;

static const char *part_name(const mr_coco_build *b, const mr_coco_part *part)
{
    return mr_source_entry(b->tree->source, part->entry)->path;
}

/* The next id over all parts of the group, where[] filled; NULL at the end (or *status). */
static const mr_coco_image *next_image(mr_coco_build *b, const mr_coco_group *g, merge *m, mr_status *status)
{
    const mr_coco_part *parts = &b->st->parts[g->first], *holder = NULL;
    const mr_coco_image *least = NULL;
    for (size_t i = 0; i < g->count; i++) {
        const mr_coco_file *f = parts[i].file;
        if (m->next[i] < f->image_count && (!least || f->images[m->next[i]].id < least->id)) {
            least = &f->images[m->next[i]];
            holder = &parts[i];
        }
    }
    for (size_t i = 0; i < g->count && least; i++) {
        const mr_coco_file *f = parts[i].file;
        const mr_coco_image *image = m->next[i] < f->image_count ? &f->images[m->next[i]] : NULL;
        m->where[1 + i] = image && image->id == least->id ? m->next[i]++ : MR_COCO_NONE;
        if (m->where[1 + i] == MR_COCO_NONE || !strcmp(image->file_name, least->file_name))
            continue;
        *status = mr_fail(b->err, MR_BAD_DATA, "image id %" PRId64 " is %.150s in %s and %.150s in %s: the annotation "
                          "files do not belong together", least->id, least->file_name, part_name(b, holder),
                          image->file_name, part_name(b, &parts[i]));
        return NULL;
    }
    return least;
}

static mr_status place_image(mr_coco_build *b, mr_coco_group *g, merge *m, const mr_coco_image *image)
{
    mr_notes *notes = b->plan->notes;
    uint32_t entry;
    if (!find_file(b, g, image, &entry)) {
        mr_note_add(notes, MR_NOTE_BAD_NAME, image->file_name, image->name_len, 0,
                    "file_name of image id %" PRId64 " names nothing inside the folder: left out", image->id);
        return MR_OK;
    }
    if (entry != MR_NO_ENTRY)
        return add_sample(b, g, entry, m->where, image);
    m->missing++;
    if (g->any)
        mr_note_add(notes, MR_NOTE_MISSING, image->file_name, image->name_len, 0,
                    "image id %" PRId64 " of split %s: no such file", image->id, g->folder);
    return MR_OK;
}

/* If none is there, one note says so instead of a hundred thousand. */
static bool any_image(mr_coco_build *b, mr_coco_group *g)
{
    for (size_t i = 0; i < g->count; i++) {
        const mr_coco_file *f = b->st->parts[g->first + i].file;
        uint32_t entry;
        for (size_t n = 0; n < f->image_count; n++)
            if (find_file(b, g, &f->images[n], &entry) && entry != MR_NO_ENTRY)
                return true;
    }
    return false;
}

mr_status mr_coco_open_group(mr_coco_build *b, mr_coco_group *g)
{
    for (size_t i = 0; i < g->count; i++) {
        mr_coco_part *part = &b->st->parts[g->first + i];
        mr_status status = mr_coco_parse(b->tree->source, part->entry, &part->file, b->err);
        if (status != MR_OK)
            return status;
    }
    g->any = any_image(b, g);
    return MR_OK;
}

mr_status mr_coco_plan_group(mr_coco_build *b, size_t n)
{
    mr_coco_group *g = &b->st->groups[n];
    merge m = {.where = {(uint32_t)n}};
    mr_status status = MR_OK;
    const mr_coco_image *image;
    while (status == MR_OK && (image = next_image(b, g, &m, &status)))
        status = place_image(b, g, &m, image);
    if (status == MR_OK && !g->any && m.missing)
        mr_note_add(b->plan->notes, MR_NOTE_MISSING, g->folder, strlen(g->folder), 0,
                    "none of the %" PRIu64 " images of this split is there (looked in %s/, images/%s/, images/ and "
                    "beside the annotation files)", m.missing, g->folder, g->folder);
    return status;
}
