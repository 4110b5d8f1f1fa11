/* foreign.c - TFRecord, CVAT, LabelMe, PASCAL-Part and archives, recognised by names and by the first bytes of a few
 * files.
 * Source: the exports' own documents: CVAT's "CVAT for images 1.1" and "for video 1.1" are one annotations.xml with
 * <annotations>; LabelMe writes a JSON with "shapes" and "imagePath" for each image; TFRecord files are named so;
 * PASCAL-Part has a MATLAB file for each image in Annotations_Part/. */
#include "layout/foreign.h"

#include <string.h>

#include "base/text.h"

enum { HEAD = 4096, HEADS_MAX = 64 }; /* bytes of a file, and files, that are read */

static const char *name_of(const mr_entry *e)
{
    const char *slash = memrchr(e->path, '/', e->path_len);
    return slash ? slash + 1 : e->path;
}

/* Whether the file begins with text that contains both words. */
static bool has_words(const mr_source *s, uint32_t entry, const char *first, const char *second)
{
    char head[HEAD];
    uint64_t size = mr_source_entry(s, entry)->size;
    size_t len = size < sizeof head ? (size_t)size : sizeof head;
    return len && mr_source_pread(s, entry, head, len, 0, NULL) == MR_OK && memmem(head, len, first, strlen(first)) &&
           memmem(head, len, second, strlen(second));
}

static void say(const mr_entry *e, const char *text, mr_buf *out)
{
    mr_text_show(out, e->path, e->path_len);
    mr_buf_add_text(out, text);
}

static bool is_pascal_part(const mr_entry *e)
{
    return mr_name_ends(e->path, e->path_len, ".mat") && strstr(e->path, "Annotations_Part/");
}

void mr_foreign_hint(const mr_source *s, mr_buf *out)
{
    unsigned heads = 0;
    for (uint32_t i = 0; i < mr_source_count(s) && !out->len; i++) {
        const mr_entry *e = mr_source_entry(s, i);
        const char *name = name_of(e);
        if (is_pascal_part(e))
            say(e,
                " is an annotation of PASCAL-Part, a MATLAB file, which millrace does not read: ingest the VOC tree of "
                "its "
                "pictures (JPEGImages/, Annotations/ with XML files), or convert the parts to COCO first",
                out);
        else if (strstr(name, ".tfrecord"))
            say(e,
                " is a TFRecord file, which millrace does not read: export the dataset again as COCO, YOLO or Pascal "
                "VOC, or write its images and labels as a WebDataset tar",
                out);
        else if (heads < HEADS_MAX && !strcmp(name, "annotations.xml") && ++heads &&
                 has_words(s, i, "<annotations", "<version"))
            say(e,
                " is an export of CVAT in its own form, which millrace does not read: export it again from CVAT as "
                "'COCO 1.0', 'Ultralytics YOLO' or 'PASCAL VOC 1.1', with images",
                out);
        else if (heads < HEADS_MAX && mr_name_ends(e->path, e->path_len, ".json") && ++heads &&
                 has_words(s, i, "\"shapes\"", "\"points\""))
            say(e,
                " is a file of LabelMe, which millrace does not read: convert the folder to COCO or Pascal VOC, for "
                "example with labelme2coco or labelme2voc of LabelMe's examples",
                out);
        else if (mr_name_ends(e->path, e->path_len, ".tar"))
            say(e,
                " is an archive inside the source, where only ImageNet's class tars (n01440764.tar) and WebDataset's "
                "shards "
                "are opened: unpack it, or give it as another SRC",
                out);
    }
}
