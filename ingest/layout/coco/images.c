/* images.c - COCO: the images of one split, from all its annotation files.
 * Invariant: every image that a file lists ends up as a sample or in a note. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "ingest/layout/coco/coco.h"
#include "base/scope.h"
#include "ingest/source/names.h"
#include "ingest/layout/common/coco_classes.h"

/* For those whose name includes no folder: other images there may be of the same split, so several deserve a note. */
static void count_place(const mr_coco_build *b, mr_coco_group *g, const mr_coco_place *p)
{
    if (memchr(b->name.data, '/', b->name.len))
        return; /* also of one that was looked up */
    g->found[p->claim]++;
    if (p->dir >= 2 && p->dir < 2 + MR_COUNT(g->flat))
        g->flat[p->dir - 2] = true;
}

static void note_places(const mr_coco_build *b, const mr_coco_group *g)
{
    static const char *const words[] = {"from the folder of its name", "from images/",
                                        "loose at the root, in data/ or beside the annotations"};
    mr_buf text = {0};
    size_t places = 0;
    for (size_t i = 0; i < MR_COUNT(words); i++)
        if (g->found[i])
            mr_buf_printf(&text, "%s%" PRIu64 " %s", places++ ? ", " : "", g->found[i], words[i]);
    if (places > 1)
        mr_note_add(b->plan->notes, MR_NOTE_INFO, g->folder, strlen(g->folder), 0, "images from several places: %s",
                    mr_buf_text(&text));
    b->plan->notes->failed = b->plan->notes->failed || text.failed;
    mr_buf_free(&text);
}

/* Twice the size of the annotations: "objects" repeats most of it. */
static uint64_t text_bytes(const mr_coco_file *f, uint32_t n)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < f->images[n].count; i++)
        bytes += 2 * (uint64_t)f->annotations[f->images[n].first + i].len;
    return bytes;
}

/* Returns how many bytes of the meta the image's PNG takes. */
static uint64_t add_png(mr_coco_build *b, mr_coco_part *part, uint32_t n)
{
    mr_mask mask = {mr_coco_kinds[part->kind], mr_coco_png(b->tree, part, n)};
    if (mask.entry != MR_NO_ENTRY) {
        part->pngs++;
        return mr_plan_mask(b->plan, b->tree, &mask);
    }
    if (n != MR_COCO_NONE && part->file->images[n].count && !part->no_pngs++)
        part->no_png = n;
    return 0;
}

/* The PNGs of stuff are an extra: its annotations have the same masks. */
static void note_pngs(const mr_coco_build *b, const mr_coco_group *g)
{
    for (size_t i = 0; i < g->count; i++) {
        const mr_coco_part *part = &b->st->parts[g->first + i];
        bool expected = part->kind == MR_COCO_PANOPTIC || (part->kind == MR_COCO_STUFF && part->pngs);
        if (!expected || !part->no_pngs)
            continue;
        size_t len;
        const char *json = mr_tree_path(b->tree, part->entry, &len);
        int stem = (int)(len - (mr_name_ends(json, len, ".json") ? 5 : 0));
        mr_note_add(b->plan->notes, MR_NOTE_MISSING, json, len, 0,
                    "annotated images without a PNG in %.*s%s/: %" PRIu64 " of %" PRIu64 ", such as %.150s",
                    stem < 300 ? stem : 300, json, part->kind == MR_COCO_STUFF ? "_pixelmaps" : "", part->no_pngs,
                    part->no_pngs + part->pngs, part->file->images[part->no_png].file_name);
    }
}

/* One image of a group; where[0] is the group, where[1 + i] its number in part i. */
static mr_status add_sample(mr_coco_build *b, mr_coco_group *g, uint32_t entry, const uint32_t *where,
                            const mr_coco_image *image)
{
    mr_coco_state *st = b->st;
    mr_sample sample = {
        .entry = entry, .label = -1, .flags = MR_FLAG_UNANNOTATED, .aux = st->where_count, .meta_bytes = image->len};
    for (size_t i = 0; i < g->count; i++) {
        const mr_coco_file *f = st->parts[g->first + i].file;
        if (where[1 + i] == MR_COCO_NONE)
            continue;
        sample.meta_bytes += text_bytes(f, where[1 + i]);
        if (f->images[where[1 + i]].count)
            sample.flags = 0;
    }
    for (size_t i = 0; i <= g->count; i++) {
        if (!MR_GROW(st->where, st->where_count, st->where_capacity))
            return mr_fail_memory(b->err, "listing COCO images");
        st->where[st->where_count++] = where[i];
    }
    MR_TRY(mr_coco_image_split(b, g, entry, &sample.split));
    if (sample.split == MR_NO_ENTRY) {
        b->plan->used[entry] = MR_USE_LEFT_OUT;
        return MR_OK;
    }
    for (size_t i = 0; i < g->count; i++)
        sample.meta_bytes += add_png(b, &st->parts[g->first + i], where[1 + i]);
    return mr_plan_add(b->plan, &sample, b->err);
}

typedef struct merge {
    uint32_t where[1 + MR_COCO_KINDS];
    uint32_t next[MR_COCO_KINDS];
    uint64_t found, missing;
    const mr_coco_image *first; /* the first that is missing */
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
        char id[120];
        *status = mr_fail(b->err, MR_BAD_DATA,
                          "image id %s is %.150s in %s and %.150s in %s: the annotation "
                          "files do not belong together",
                          mr_coco_id_show(&b->st->ids, least->id, id), least->file_name, part_name(b, holder),
                          image->file_name, part_name(b, &parts[i]));
        *status = mr_source_dispensable(b->tree->source, parts[i].entry, "ingests without it", *status, b->err);
        return NULL;
    }
    return least;
}

/* A bad value in any of the files that list the image; NULL: none. */
static const mr_coco_file *bad_file(const mr_coco_build *b, const mr_coco_group *g, const merge *m, uint32_t *bad)
{
    for (size_t i = 0; i < g->count; i++) {
        const mr_coco_file *f = b->st->parts[g->first + i].file;
        *bad = m->where[1 + i] == MR_COCO_NONE ? 0 : f->images[m->where[1 + i]].bad;
        if (*bad)
            return f;
    }
    return NULL;
}

/* A name alone says little: an image of one split is not taken for another's. */
static mr_status check_first(const mr_coco_build *b, const mr_coco_group *g, uint32_t entry)
{
    if (!b->plan->used[entry]) {
        mr_coco_note_anywhere(b, g, entry);
        return MR_OK;
    }
    return mr_fail(
        b->err, MR_BAD_DATA,
        "the images of split %s are in no usual place, and %.250s, found by its name alone, is one of another "
        "split; move them to images/, or those of each split to a folder of its name, such as %s/",
        g->folder, mr_source_entry(b->tree->source, entry)->path, g->folder);
}

static mr_status place_image(mr_coco_build *b, mr_coco_group *g, merge *m, const mr_coco_image *image)
{
    mr_notes *notes = b->plan->notes;
    mr_coco_place p;
    char id[120];
    uint32_t bad;
    const mr_coco_file *file = bad_file(b, g, m, &bad);
    MR_TRY(mr_coco_find_place(b, g, image, &p));
    const mr_coco_bad *why = file ? &file->bads[bad - 1] : NULL;
    bool own = why && why->at > image->at && why->at <= image->at + image->len; /* its name may be what is bad */
    if (why && (p.entry != MR_NO_ENTRY || own)) {
        mr_coco_reject(b->tree, file, why, p.entry, b->plan);
        return MR_OK;
    }
    if (p.entry != MR_NO_ENTRY) {
        count_place(b, g, &p);
        if (g->anywhere && !m->found++)
            MR_TRY(check_first(b, g, p.entry));
        return add_sample(b, g, p.entry, m->where, image);
    }
    if (p.kind == MR_NAME_BAD) {
        mr_note_add(notes, MR_NOTE_REJECT, image->file_name, image->name_len, 0,
                    "file_name of image id %s of split %s, which names no file",
                    mr_coco_id_show(&b->st->ids, image->id, id), g->folder);
        return MR_OK;
    }
    m->first = m->missing++ ? m->first : image;
    if (g->any)
        mr_note_add(notes, MR_NOTE_MISSING, image->file_name, image->name_len, 0, "image id %s of split %s: %s",
                    mr_coco_id_show(&b->st->ids, image->id, id), g->folder,
                    p.kind == MR_NAME_FOREIGN
                        ? "this path is from another machine, and no image under the root ends with it"
                        : "no such file");
    return MR_OK;
}

static mr_status look_for_any(mr_coco_build *b, mr_coco_group *g)
{
    mr_status status = MR_OK;
    for (size_t i = 0; i < g->count; i++) {
        const mr_coco_file *f = b->st->parts[g->first + i].file;
        for (size_t n = 0; n < f->image_count && !g->any && status == MR_OK; n++) {
            uint32_t entry;
            status = mr_coco_find_image(b, g, &f->images[n], &entry);
            g->any = status == MR_OK && entry != MR_NO_ENTRY;
        }
    }
    return status;
}

/* If all are missing, one note replaces a hundred thousand. */
static mr_status find_any(mr_coco_build *b, mr_coco_group *g)
{
    MR_TRY(look_for_any(b, g));
    g->anywhere = !g->any;
    return g->any ? MR_OK : look_for_any(b, g);
}

mr_status mr_coco_open_part(const mr_coco_build *b, mr_coco_part *part)
{
    if (part->file)
        return MR_OK;
    mr_status status = mr_coco_parse(b->tree->source, part->entry, &b->st->ids, &part->file, b->err);
    return status == MR_OK || b->st->part_count == 1
               ? status
               : mr_source_dispensable(b->tree->source, part->entry, "ingests without it", status, b->err);
}

mr_status mr_coco_open_group(mr_coco_build *b, mr_coco_group *g)
{
    for (size_t i = 0; i < g->count; i++)
        MR_TRY(mr_coco_open_part(b, &b->st->parts[g->first + i]));
    return find_any(b, g);
}

mr_status mr_coco_plan_group(mr_coco_build *b, size_t n)
{
    mr_coco_group *g = &b->st->groups[n];
    merge m = {.where = {(uint32_t)n}};
    mr_status status = MR_OK;
    const mr_coco_image *image;
    while (status == MR_OK && (image = next_image(b, g, &m, &status)))
        status = place_image(b, g, &m, image);
    if (status == MR_OK) {
        note_places(b, g);
        note_pngs(b, g);
    }
    if (status == MR_OK && !g->any && m.missing)
        mr_coco_note_missing(b, g, m.first, m.missing);
    return status;
}

mr_status mr_coco_leave_out(mr_coco_build *b, mr_coco_group *g)
{
    for (size_t i = 0; i < g->count; i++) {
        mr_coco_part *part = &b->st->parts[g->first + i];
        mr_status status = mr_coco_open_part(b, part);
        if (status == MR_SYSTEM)
            return status;
        for (size_t n = 0; status == MR_OK && n < part->file->image_count; n++) { /* else it does not matter */
            uint32_t entry;
            MR_TRY(mr_coco_find_image(b, g, &part->file->images[n], &entry));
            if (entry != MR_NO_ENTRY && !b->plan->used[entry])
                b->plan->used[entry] = MR_USE_LEFT_OUT;
        }
        mr_coco_free(part->file);
        part->file = NULL;
    }
    return MR_OK;
}
