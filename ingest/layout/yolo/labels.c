/* labels.c - which text file holds the labels of an image, and which PNG its mask.
 * Source: Ultralytics takes the last folder "images" of a path for "labels"; without one the file is beside the image,
 * where LabelImg puts it in any folder.
 * Invariant: which file it is depends on names alone; contents only say whether a folder is YOLO's at all. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/scope.h"
#include "ingest/tables/lines.h"
#include "ingest/source/names.h"
#include "ingest/layout/yolo/yolo.h"

enum { LOOK_AT = 512, PROBES = 8, HEAD = 4096 };

static const char images[] = "images";
const char *const mr_yolo_label_folders[] = {"labels",        "labelTxt",      "labelTxt-v1.0",
                                             "labelTxt-v1.5", "labelTxt-v2.0", NULL};

/* Where the path's last folder named "images" begins; SIZE_MAX: none. */
static size_t last_images(const char *path, size_t len)
{
    size_t found = SIZE_MAX;
    for (size_t at = 0; at + 7 <= len; at++)
        if ((at == 0 || path[at - 1] == '/') && !strncasecmp(path + at, "images/", 7))
            found = at;
    return found;
}

void mr_yolo_add_folder(mr_buf *out, const char *word, const char *like)
{
    char text[32];
    size_t len = strlen(word);
    snprintf(text, sizeof text, "%s", word);
    for (size_t i = 0; i < len && i < sizeof text; i++)
        if (isupper((unsigned char)like[i ? 1 : 0]) && islower((unsigned char)text[i]))
            text[i] = (char)toupper((unsigned char)text[i]);
    mr_buf_add(out, text, strlen(text));
}

typedef struct image_name {
    const char *name;
    size_t at;   /* its last folder "images"; SIZE_MAX: none */
    size_t stem; /* its length without the ending */
} image_name;

/* In each folder of labels, and in none of them beside the image. */
static mr_yolo_claim find_texts(const mr_tree *t, const image_name *image, const char *ending, mr_buf *path)
{
    mr_yolo_claim claim = {MR_NO_ENTRY, MR_NO_ENTRY, false};
    for (size_t i = 0; image->at != SIZE_MAX && mr_yolo_label_folders[i] && claim.second == MR_NO_ENTRY; i++) {
        mr_buf_clear(path);
        mr_buf_add(path, image->name, image->at);
        mr_yolo_add_folder(path, mr_yolo_label_folders[i], image->name + image->at);
        mr_buf_add(path, image->name + image->at + strlen(images), image->stem - image->at - strlen(images));
        mr_buf_add_text(path, ending);
        uint32_t found = path->failed ? MR_NO_ENTRY : mr_tree_find(t, mr_buf_text(path), path->len);
        if (found == MR_NO_ENTRY)
            continue;
        claim.text = claim.label == MR_NO_ENTRY ? i > 0 : claim.text;
        *(claim.label == MR_NO_ENTRY ? &claim.label : &claim.second) = found;
    }
    if (claim.label == MR_NO_ENTRY) {
        mr_buf_clear(path);
        mr_buf_add(path, image->name, image->stem);
        mr_buf_add_text(path, ending);
        claim.label = path->failed ? MR_NO_ENTRY : mr_tree_find(t, mr_buf_text(path), path->len);
    }
    return claim;
}

mr_yolo_claim mr_yolo_label_of(const mr_tree *t, uint32_t image, mr_buf *path)
{
    static const char *const endings[] = {".txt", ".TXT", ".Txt"}; /* Windows writes them in upper case */
    mr_yolo_claim claim = {MR_NO_ENTRY, MR_NO_ENTRY, false};
    size_t len;
    const char *name = mr_tree_path(t, image, &len), *slash = memrchr(name, '/', len), *dot = memrchr(name, '.', len);
    const image_name parts = {name, last_images(name, len),
                              dot && (!slash || dot > slash) ? (size_t)(dot - name) : len};
    for (size_t i = 0; i < MR_COUNT(endings) && claim.label == MR_NO_ENTRY; i++)
        claim = find_texts(t, &parts, endings[i], path);
    return claim;
}

/* ---- masks ------------------------------------------------------------------------------------------------------- */

static const char *const mask_folders[] = {"labels", "masks", "annotations"};
_Static_assert(MR_COUNT(mask_folders) <= MR_MASKS_MAX, "an image has a mask in each");

size_t mr_yolo_masks(const mr_tree *t, const mr_plan *plan, const mr_sample *sample, mr_mask out[MR_MASKS_MAX])
{
    size_t len, count = 0;
    const char *name = mr_tree_path(t, sample->entry, &len), *dot = memrchr(name, '.', len);
    size_t at = last_images(name, len);
    (void)plan;
    for (size_t i = 0; i < MR_COUNT(mask_folders) && at != SIZE_MAX && dot; i++) {
        const char *rest = name + at + strlen(images);
        MR_AUTO(mr_buf_free) mr_buf path = {0};
        mr_buf_add(&path, name, at);
        mr_yolo_add_folder(&path, mask_folders[i], name + at);
        mr_buf_add(&path, rest, dot > rest ? (size_t)(dot - rest) : 0);
        mr_buf_add_text(&path, ".png");
        const char *text = mr_buf_text(&path);
        uint32_t entry = dot > rest && !path.failed ? mr_tree_find(t, text, path.len) : MR_NO_ENTRY;
        if (entry != MR_NO_ENTRY)
            out[count++] = (mr_mask){mask_folders[i], entry};
    }
    return count;
}

/* ---- whether files are labels ------------------------------------------------------------------------------------ */

static bool is_text(const char *name, size_t len)
{
    return mr_name_ends(name, len, ".txt") && !(len == 11 && !memcmp(name, "classes.txt", 11));
}

bool mr_yolo_has_labels(const mr_tree *t, const char *dir, size_t len)
{
    mr_child child = {0};
    if (!mr_tree_next(t, dir, len, &child))
        return false;
    uint32_t end = mr_tree_run_end(t, child.entry, len + 1);
    for (uint32_t e = child.entry; e < end && e - child.entry < LOOK_AT; e++) {
        size_t path_len;
        const char *path = mr_tree_path(t, e, &path_len), *slash = memrchr(path, '/', path_len);
        const char *name = slash ? slash + 1 : path;
        if (*name != '.' && is_text(name, path_len - (size_t)(name - path)))
            return true;
    }
    return false;
}

/* 1: lines of labels, -1: something else, 0: nothing. */
static int probe(const mr_tree *t, uint32_t entry)
{
    char head[HEAD];
    uint64_t size = mr_source_entry(t->source, entry)->size;
    size_t len = size < sizeof head ? (size_t)size : sizeof head;
    if (!len || mr_source_pread(t->source, entry, head, len, 0, NULL) != MR_OK)
        return 0;
    while (len < size && len && head[len - 1] != '\n' && head[len - 1] != '\r')
        len--;
    if (!len)
        return -1;
    const mr_yolo_rules rules = {.text = mr_yolo_is_text(head, len), .any = true};
    MR_AUTO(mr_yolo_reader_free) mr_yolo_reader reader = {.lines = mr_lines_of(head, len)};
    mr_yolo_line line;
    mr_status status;
    int lines = 0;
    while ((status = mr_yolo_next(&reader, &rules, &line)) == MR_OK)
        lines = 1;
    return status == MR_END ? lines : -1;
}

bool mr_yolo_has_labels_beside(const mr_tree *t, const char *dir, size_t len)
{
    MR_AUTO(mr_buf_free) mr_buf path = {0};
    mr_child child = {0};
    int labels = 0, probes = 0;
    for (int i = 0; i < LOOK_AT && probes < PROBES && labels >= 0 && mr_tree_next(t, dir, len, &child); i++) {
        if (child.is_dir || child.name[0] == '.' || !mr_name_is_image(child.name, child.name_len))
            continue;
        mr_yolo_claim claim = mr_yolo_label_of(t, child.entry, &path);
        int found = claim.label == MR_NO_ENTRY ? 0 : probe(t, claim.label);
        probes += claim.label != MR_NO_ENTRY;
        labels = found < 0 ? -1 : labels | found;
    }
    return labels > 0;
}
