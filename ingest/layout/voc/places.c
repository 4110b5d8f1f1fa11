/* places.c - where the images and the XML files of a Pascal VOC tree are.
 * Invariant: names decide, and the head of one XML file confirms that it is an annotation.
 *
 *      spot        images                  their XML
 *      ""          JPEGImages/a.jpg        Annotations/a.xml            folders of their own, at the root
 *      ""          images/train/a.jpg      annotations/train/a.xml      the same, with folders in them
 *      "train"     train/images/a.jpg      train/labels/a.xml           folders of their own, in a split
 *      "valid"     valid/b.jpg             valid/b.xml                  beside the image
 *      "valid"     valid/b.jpg             valid/annotations/b.xml      in a folder beside it */
#include <stdio.h>
#include <string.h>

#include "base/scope.h"
#include "ingest/source/names.h"
#include "ingest/layout/folder_names.h"
#include "ingest/layout/voc/voc.h"

enum { LOOK_AT = 512, HEAD = 4096, PATH_MAX_LEN = 4200 };

static const char *const images[] = {"JPEGImages", "images", "Images", "image", "imgs", "img"};
static const char *const annotations[] = {
    "Annotations", "annotations", "annotations/xmls", "Annotation", "annotation", "annots",
    "xmls",        "xml",         "labels",           "Labels"};

/* MR_NO_ENTRY: it is not one.  MR_SYSTEM: it could not be read. */
static mr_status is_annotation(const mr_tree *t, uint32_t entry, bool *yes, mr_error *err)
{
    char head[HEAD];
    *yes = false;
    if (entry == MR_NO_ENTRY)
        return MR_OK;
    uint64_t size = mr_source_entry(t->source, entry)->size;
    size_t len = size < sizeof head ? (size_t)size : sizeof head;
    mr_status status = len ? mr_source_pread(t->source, entry, head, len, 0, err) : MR_OK;
    *yes = status == MR_OK && memmem(head, len, "<annotation", strlen("<annotation"));
    return status == MR_SYSTEM ? status : MR_OK;
}

typedef struct look { /* at the first files of a folder */
    uint32_t xml;     /* MR_NO_ENTRY: none */
    size_t xmls, texts;
    bool image;
} look;

static void count_name(const mr_child *file, look *l)
{
    static const char classes[] = "classes.txt"; /* LabelImg's, for both formats */
    bool names = file->name_len == strlen(classes) && !memcmp(file->name, classes, file->name_len);
    if (mr_name_ends(file->name, file->name_len, ".xml"))
        l->xml = l->xmls++ ? l->xml : file->entry;
    l->texts += !names && mr_name_ends(file->name, file->name_len, ".txt");
    l->image = l->image || mr_name_is_image(file->name, file->name_len);
}

static look look_in(const mr_tree *t, const char *dir, size_t len)
{
    look l = {.xml = MR_NO_ENTRY};
    mr_child child = {0};
    for (int n = 0; n < LOOK_AT && mr_tree_next(t, dir, len, &child); n++)
        if (!child.is_dir && child.name[0] != '.')
            count_name(&child, &l);
    return l;
}

/* The same, and then in the first of its folders that holds such a file. */
static look look_below(const mr_tree *t, const char *dir, size_t len)
{
    look l = look_in(t, dir, len);
    mr_child child = {0};
    for (int n = 0; n < LOOK_AT && !l.image && !l.xmls && mr_tree_next(t, dir, len, &child); n++) {
        size_t path_len;
        const char *path = mr_tree_path(t, child.entry, &path_len);
        if (child.is_dir && child.name[0] != '.')
            l = look_in(t, path, (size_t)(child.name - path) + child.name_len);
    }
    return l;
}

static int join(const mr_voc_spot *spot, const char *folder, char out[PATH_MAX_LEN])
{
    int n = snprintf(out, PATH_MAX_LEN, "%.*s%s%s", (int)spot->len, spot->dir, spot->len ? "/" : "", folder);
    return n < PATH_MAX_LEN ? n : -1;
}

/* An XML in a folder of the annotations belongs to the folder of that name among the images. */
static bool is_parallel(const mr_tree *t, const mr_voc_spot *spot, const char *folder, uint32_t xml)
{
    char path[PATH_MAX_LEN];
    size_t len;
    int skip = join(spot, folder, path), at = join(spot, spot->images, path);
    const char *name = mr_tree_path(t, xml, &len), *slash = memrchr(name, '/', len);
    if (skip < 0 || at < 0 || slash - name <= skip)
        return true;
    at += snprintf(path + at, sizeof path - (size_t)at, "%.*s", (int)(slash - name - skip), name + skip);
    return (size_t)at < sizeof path && mr_tree_has_dir(t, path, (size_t)at);
}

/* The folder of the annotations of images that are in spot->images ("": in spot->dir itself).  Label files of YOLO
 * beside a few XML files are YOLO's. */
static mr_status find_annotations(const mr_tree *t, mr_voc_spot *spot, mr_error *err)
{
    char path[PATH_MAX_LEN];
    for (size_t k = 0; k < MR_COUNT(annotations) && !spot->annotations; k++) {
        bool yes = false;
        int len = join(spot, annotations[k], path);
        if (len < 0 || !mr_tree_has_dir(t, path, (size_t)len))
            continue;
        look l = look_below(t, path, (size_t)len);
        if (l.xmls > l.texts && is_parallel(t, spot, annotations[k], l.xml))
            MR_TRY(is_annotation(t, l.xml, &yes, err));
        spot->annotations = yes ? annotations[k] : NULL;
    }
    return MR_OK;
}

/* Folders of images and of annotations in spot->dir. */
static mr_status look_apart(const mr_tree *t, mr_voc_spot *spot, mr_error *err)
{
    char path[PATH_MAX_LEN];
    for (size_t i = 0; i < MR_COUNT(images) && !spot->annotations; i++) {
        int len = join(spot, images[i], path);
        spot->images = images[i];
        if (len >= 0 && mr_tree_has_dir(t, path, (size_t)len) && look_below(t, path, (size_t)len).image)
            MR_TRY(find_annotations(t, spot, err));
    }
    return MR_OK;
}

/* The XML files beside the images, or in a folder there. */
static mr_status look_beside(const mr_tree *t, mr_voc_spot *spot, mr_error *err)
{
    look l = look_in(t, spot->dir, spot->len);
    bool yes;
    MR_TRY(is_annotation(t, l.image ? l.xml : MR_NO_ENTRY, &yes, err));
    spot->images = "";
    spot->annotations = yes ? "" : NULL;
    return l.image && !yes ? find_annotations(t, spot, err) : MR_OK;
}

static void see(mr_voc_places *p, const mr_voc_spot *spot)
{
    int len = spot->len < 60 ? (int)spot->len : 60;
    const char *slash = len ? "/" : "";
    if (p->seen[0])
        return;
    if (*spot->annotations)
        snprintf(p->seen, sizeof p->seen, "%.*s%s%s%s, %.*s%s%s/%s", len, spot->dir, slash, spot->images,
                 *spot->images ? "/" : "*", len, spot->dir, slash, spot->annotations, p->sets ? ", ImageSets/" : "");
    else
        snprintf(p->seen, sizeof p->seen, "%.*s%s%san XML beside each image", len, spot->dir, slash,
                 len ? " with " : "");
}

static mr_status look_in_splits(const mr_tree *t, const mr_layout_options *o, mr_voc_places *p, mr_error *err)
{
    mr_split_dirs_find(t, o, &p->dirs);
    for (size_t i = 0; i < p->dirs.count; i++) {
        const mr_split_dir *d = &p->dirs.items[i];
        mr_voc_spot *spot = &p->spots[p->spot_count];
        *spot = (mr_voc_spot){.dir = d->name, .len = d->called};
        MR_TRY(look_apart(t, spot, err));
        if (!spot->annotations) {
            spot->len = d->len;
            MR_TRY(look_beside(t, spot, err));
        }
        if (!spot->annotations)
            continue;
        p->kind = MR_VOC_BESIDE;
        p->spot_count++;
        see(p, spot);
    }
    return MR_OK;
}

mr_status mr_voc_look(const mr_tree *t, const mr_layout_options *o, mr_voc_places *places, mr_error *err)
{
    mr_voc_spot *root = &places->spots[0];
    *places = (mr_voc_places){.sets = mr_tree_has_dir(t, "ImageSets", strlen("ImageSets"))};
    root->dir = "";
    MR_TRY(look_apart(t, root, err));
    if (root->annotations)
        places->kind = MR_VOC_APART;
    else
        MR_TRY(look_in_splits(t, o, places, err));
    if (!places->kind && !places->dirs.count) {
        *root = (mr_voc_spot){.dir = ""};
        MR_TRY(look_beside(t, root, err));
        places->kind = root->annotations ? MR_VOC_BESIDE : MR_VOC_NONE;
    }
    if (!places->kind || places->spot_count)
        return MR_OK;
    places->spot_count = 1;
    see(places, root);
    return MR_OK;
}

const mr_voc_spot *mr_voc_spot_of(const mr_voc_places *places, const char *path, size_t len, size_t *skip)
{
    for (size_t i = 0; i < places->spot_count; i++) {
        const mr_voc_spot *s = &places->spots[i];
        size_t dir = s->len + (s->len > 0), folder = strlen(s->images);
        if (len <= dir + folder || memcmp(path, s->dir, s->len) != 0 || (dir && path[s->len] != '/') ||
            memcmp(path + dir, s->images, folder) != 0 || (folder && path[dir + folder] != '/'))
            continue;
        *skip = dir + folder + (folder > 0);
        return s;
    }
    return NULL;
}

bool mr_voc_from_one(const mr_voc_spot *spot)
{
    return !strcmp(spot->images, "JPEGImages");
}

/* Adds the XML of that path, in lower or upper case, to those that were found. */
static void find_xml(const mr_tree *t, const char *path, size_t len, mr_voc_xmls *found)
{
    static const char *const endings[] = {".xml", ".XML"};
    char name[PATH_MAX_LEN];
    for (size_t i = 0; i < MR_COUNT(endings); i++) {
        int n = len < sizeof name - 8 ? snprintf(name, sizeof name, "%.*s%s", (int)len, path, endings[i]) : -1;
        uint32_t entry = n > 0 ? mr_tree_find(t, name, (size_t)n) : MR_NO_ENTRY;
        if (entry != MR_NO_ENTRY && found->count < MR_COUNT(found->entries))
            found->entries[found->count++] = entry;
    }
}

mr_voc_xmls mr_voc_xmls_of(const mr_tree *t, const mr_voc_places *places, uint32_t image)
{
    mr_voc_xmls found = {0};
    char path[PATH_MAX_LEN];
    size_t len, skip = 0;
    const char *name = mr_tree_path(t, image, &len), *dot = memrchr(name, '.', len), *slash = memrchr(name, '/', len);
    size_t stem = dot && (!slash || dot > slash) ? (size_t)(dot - name) : len;
    const mr_voc_spot *spot = mr_voc_spot_of(places, name, len, &skip);
    if (spot && *spot->annotations && skip <= stem) {
        int n = join(spot, spot->annotations, path);
        int more = n > 0 ? snprintf(path + n, sizeof path - (size_t)n, "/%.*s", (int)(stem - skip), name + skip) : -1;
        if (more > 0 && (size_t)(n + more) < sizeof path)
            find_xml(t, path, (size_t)(n + more), &found);
    }
    find_xml(t, name, stem, &found);
    return found;
}
