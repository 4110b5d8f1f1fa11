/* places.c - where the images and the XML files of a Pascal VOC tree are.
 * Invariant: names decide, and the head of one XML file confirms that it is an annotation. */
#include <stdio.h>
#include <string.h>

#include "base/scope.h"
#include "voc/voc.h"

enum { LOOK_AT = 512, HEAD = 4096, PATH_MAX_LEN = 4200 };

/* MR_NO_ENTRY is none.  MR_SYSTEM: it could not be read. */
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

/* Checks the first files of a folder; *xml: the first .xml, *image: one is an image. */
static void look_in(const mr_tree *t, const char *dir, size_t len, uint32_t *xml, bool *image)
{
    mr_child child = {0};
    *xml = MR_NO_ENTRY;
    *image = false;
    for (int n = 0; n < LOOK_AT && (*xml == MR_NO_ENTRY || !*image) && mr_tree_next(t, dir, len, &child); n++) {
        if (child.is_dir || child.name[0] == '.')
            continue;
        if (*xml == MR_NO_ENTRY && mr_name_ends(child.name, child.name_len, ".xml"))
            *xml = child.entry;
        *image = *image || mr_name_is_image(child.name, child.name_len);
    }
}

static mr_status look_apart(const mr_tree *t, mr_voc_places *p, mr_error *err)
{
    static const char *const images[] = {"JPEGImages", "images", "Images"};
    static const char *const annotations[] = {"Annotations", "annotations", "annotations/xmls"};
    uint32_t xml;
    bool image, unused;
    for (size_t i = 0; i < MR_COUNT(images) && !p->kind; i++) {
        look_in(t, images[i], strlen(images[i]), &xml, &image);
        for (size_t k = 0; k < MR_COUNT(annotations) && image && !p->kind; k++) {
            bool yes;
            look_in(t, annotations[k], strlen(annotations[k]), &xml, &unused);
            MR_TRY(is_annotation(t, xml, &yes, err));
            if (!yes)
                continue;
            p->kind = MR_VOC_APART;
            p->images = images[i];
            p->annotations = annotations[k];
            p->sets = mr_tree_has_dir(t, "ImageSets", strlen("ImageSets"));
            snprintf(p->seen, sizeof p->seen, "%s/, %s/%s", images[i], annotations[k], p->sets ? ", ImageSets/" : "");
        }
    }
    return MR_OK;
}

static mr_status look_beside(const mr_tree *t, const mr_layout_options *o, mr_voc_places *p, mr_error *err)
{
    uint32_t xml;
    bool image, yes;
    mr_split_dirs_find(t, o, &p->dirs);
    for (size_t i = 0; i < p->dirs.count && !p->kind; i++) {
        const mr_split_dir *d = &p->dirs.items[i];
        look_in(t, d->name, d->len, &xml, &image);
        MR_TRY(is_annotation(t, image ? xml : MR_NO_ENTRY, &yes, err));
        if (!yes)
            continue;
        p->kind = MR_VOC_BESIDE;
        snprintf(p->seen, sizeof p->seen, "%.*s/ with an XML beside each image", d->len < 80 ? (int)d->len : 80,
                 d->name);
    }
    if (p->kind || p->dirs.count)
        return MR_OK;
    look_in(t, "", 0, &xml, &image);
    MR_TRY(is_annotation(t, image ? xml : MR_NO_ENTRY, &yes, err));
    if (!yes)
        return MR_OK;
    p->kind = MR_VOC_BESIDE;
    snprintf(p->seen, sizeof p->seen, "an XML beside each image");
    return MR_OK;
}

mr_status mr_voc_look(const mr_tree *t, const mr_layout_options *o, mr_voc_places *places, mr_error *err)
{
    *places = (mr_voc_places){0};
    MR_TRY(look_apart(t, places, err));
    return places->kind ? MR_OK : look_beside(t, o, places, err);
}

uint32_t mr_voc_xml_of(const mr_tree *t, const mr_voc_places *places, uint32_t image)
{
    static const char ending[] = ".xml";
    char path[PATH_MAX_LEN];
    size_t len, skip = places->kind == MR_VOC_APART ? strlen(places->images) : 0;
    const char *name = mr_tree_path(t, image, &len), *dot = memrchr(name, '.', len);
    const char *folder = skip ? places->annotations : "";
    size_t stem = dot ? (size_t)(dot - name) : len, before = strlen(folder);
    if (stem < skip || before + stem - skip + sizeof ending > sizeof path)
        return MR_NO_ENTRY;
    memcpy(path, folder, before);
    memcpy(path + before, name + skip, stem - skip);
    memcpy(path + before + stem - skip, ending, sizeof ending);
    return mr_tree_find(t, path, before + stem - skip + strlen(ending));
}
