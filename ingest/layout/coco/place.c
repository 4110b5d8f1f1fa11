/* place.c - COCO: the file of an image.
 * Invariant: the best claim wins, and two files with equal claims are an error that names both. */
#include <stdio.h>
#include <string.h>

#include "base/scope.h"
#include "ingest/layout/coco/coco.h"

/* Where the file of an image may be, best claim first:
 *
 *      OWN      FOLDER/NAME  images/FOLDER/NAME             the split's mr_coco_group.folder
 *      NAMED    images/NAME  NAME, if it names a folder     what the JSON names, from the root
 *      LOOSE    NAME  annotations/NAME  data/NAME           next to everything else; and in the folder of the JSON,
 *                                                           and in images/ and data/ there
 *
 * Where that gives no image of a split at all, a NAME without a folder may be anywhere, but not in another split's.
 * A NAME that begins with one of these folders itself ("train2017/1.jpg", "images/1.jpg") has that folder's claim.  The
 * best claim wins, however many files of the same name exist elsewhere; folders of other splits are never searched. */
static bool begins(const char *path, size_t len, const char *before, const char *folder)
{
    size_t first = strlen(before), second = strlen(folder);
    return len > first + second && !memcmp(path, before, first) && !memcmp(path + first, folder, second) &&
           path[first + second] == '/';
}

static enum mr_coco_claim claim_of(const mr_coco_group *g, const char *path, size_t len, size_t prefix)
{
    if (begins(path, len, "", g->folder) || begins(path, len, "images/", g->folder))
        return MR_COCO_CLAIM_OWN;
    if (begins(path, len, "", "images") || (!prefix && memchr(path, '/', len)))
        return MR_COCO_CLAIM_NAMED;
    return MR_COCO_CLAIM_LOOSE;
}

static mr_status ambiguous(const mr_coco_build *b, const mr_coco_group *g, const char *name, size_t len,
                           const mr_coco_place *p)
{
    const mr_source *s = b->tree->source;
    const char *path = mr_source_entry(s, p->entry)->path, *rival = mr_source_entry(s, p->rival)->path;
    size_t leave = mr_source_entry(s, p->rival)->path_len;
    mr_buf option = {0};
    if (p->rival_dir == 1) /* images/FOLDER/ probably exists twice */
        leave = b->tree->root_len + strlen("images/") + strlen(g->folder);
    mr_source_leave_out(rival, leave, &option);
    mr_fail(b->err, MR_BAD_DATA, "%.*s of split %s may be %.250s or %.250s: remove one, or leave it out with %s",
            len > 150 ? 150 : (int)len, name, g->folder, path, rival, mr_buf_text(&option));
    mr_buf_free(&option);
    return MR_BAD_DATA;
}

static mr_status resolve(const mr_coco_build *b, mr_coco_group *g, const char *name, size_t len, mr_coco_place *p)
{
    static const char *const before[] = {"", "images/", "", "images/", "annotations/", "data/", "", "images/", "data/"};
    char path[4096];
    *p = (mr_coco_place){MR_COCO_CLAIM_NONE, p->kind, MR_NO_ENTRY, MR_NO_ENTRY, 0, 0};
    for (size_t i = 0; i < MR_COUNT(before) && len <= sizeof path / 2; i++) {
        bool own = i < 2, beside = i >= 6;
        size_t at = (size_t)snprintf(path, sizeof path, "%.*s%s%s%s", beside ? (int)g->beside_len : 0, g->beside,
                                     before[i], own ? g->folder : "", own ? "/" : "");
        if (beside && !g->beside_len)
            break;
        memcpy(path + at, name, len);
        enum mr_coco_claim claim = beside && at ? MR_COCO_CLAIM_LOOSE : claim_of(g, path, at + len, at);
        uint32_t entry = claim > p->claim ? MR_NO_ENTRY : mr_tree_find(b->tree, path, at + len);
        if (entry == MR_NO_ENTRY || entry == p->entry)
            continue;
        if (claim < p->claim)
            *p = (mr_coco_place){claim, p->kind, entry, MR_NO_ENTRY, i, 0};
        else if (p->rival == MR_NO_ENTRY) {
            p->rival = entry;
            p->rival_dir = i;
        }
    }
    return p->rival == MR_NO_ENTRY ? MR_OK : ambiguous(b, g, name, len, p);
}

/* Label Studio and others write "my%20cat.jpg". */
static mr_status resolve_decoded(const mr_coco_build *b, mr_coco_group *g, mr_coco_place *p)
{
    MR_AUTO(mr_buf_free) mr_buf name = {0};
    mr_buf_add(&name, b->name.data, b->name.len);
    if (!mr_name_decode(&name))
        return mr_buf_status(&name, b->err, "listing COCO images");
    return resolve(b, g, mr_buf_text(&name), name.len, p);
}

/* A path of another machine is looked up where the name is not one of this tree. */
mr_status mr_coco_find_place(mr_coco_build *b, mr_coco_group *g, const mr_coco_image *image, mr_coco_place *p)
{
    uint32_t entry;
    *p = (mr_coco_place){.claim = MR_COCO_CLAIM_NONE, .entry = MR_NO_ENTRY};
    if (memchr(image->file_name, '\\', image->name_len) && mr_path_beside("", 0, image->file_name, &b->name) &&
        !memchr(image->file_name, '\0', image->name_len)) {
        p->kind = MR_NAME_PLAIN;
        MR_TRY(resolve(b, g, mr_buf_text(&b->name), b->name.len, p));
        if (p->entry != MR_NO_ENTRY)
            return MR_OK;
    }
    p->kind = mr_name_clean(image->file_name, image->name_len, &b->name);
    b->plan->notes->failed = b->plan->notes->failed || b->name.failed;
    if (p->kind == MR_NAME_PLAIN)
        MR_TRY(resolve(b, g, mr_buf_text(&b->name), b->name.len, p));
    if (p->kind == MR_NAME_PLAIN && p->entry == MR_NO_ENTRY)
        MR_TRY(resolve_decoded(b, g, p));
    bool foreign = p->kind == MR_NAME_FOREIGN;
    bool bare = !memchr(mr_buf_text(&b->name), '/', b->name.len);
    if (p->kind == MR_NAME_BAD || p->entry != MR_NO_ENTRY || (!foreign && bare && !g->anywhere))
        return MR_OK;
    MR_TRY(mr_coco_look_up(b, g, foreign || bare, mr_buf_text(&b->name), b->name.len, &entry));
    p->entry = entry;
    p->claim = entry == MR_NO_ENTRY ? MR_COCO_CLAIM_NONE : MR_COCO_CLAIM_NAMED;
    return MR_OK;
}

mr_status mr_coco_find_image(mr_coco_build *b, mr_coco_group *g, const mr_coco_image *image, uint32_t *entry)
{
    mr_coco_place p;
    MR_TRY(mr_coco_find_place(b, g, image, &p));
    *entry = p.entry;
    return MR_OK;
}
