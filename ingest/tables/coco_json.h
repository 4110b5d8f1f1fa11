/* coco_json.h - a COCO annotation file, streamed: only the position of each object in the file is kept.
 * Invariant: memory is a few dozen bytes per image and annotation, however large their polygons; the text is read again
 * from the source when a sample's meta is written, so every number keeps the source's spelling.
 *
 * Other tables of this module are JSON lines (jsonl.h) and CSV (csv.h); it uses source/ and json/. */
#ifndef MR_COCO_JSON_H
#define MR_COCO_JSON_H

#include "ingest/source/source.h"
#include "ingest/tables/coco_ids.h"

typedef struct mr_coco_image {
    int64_t id;
    char *file_name; /* UTF-8 and a NUL; a hostile one may contain a NUL before name_len */
    uint64_t at;     /* the object's text in the file */
    uint32_t len, name_len;
    uint32_t first, count; /* its annotations: file->annotations[first .. first + count - 1] */
    uint32_t bad;          /* what is wrong with it or with one of them: file->bads[bad - 1]; 0: nothing */
} mr_coco_image;

typedef struct mr_coco_bad { /* a value that cannot be what it should be */
    int64_t image_id;        /* MR_COCO_NO_ID: the image is unknown, or it is a category */
    int64_t category_id;     /* the id of a category; else MR_COCO_NO_ID */
    uint64_t at;             /* the byte, from 1 */
    char *why;
    bool used; /* an image has it */
} mr_coco_bad;

typedef struct mr_coco_annotation {
    int64_t image_id;
    int64_t category_id; /* MR_COCO_NO_ID: none (captions, panoptic) */
    uint64_t at;
    uint32_t len;
    uint32_t png; /* panoptic: file->pngs[png - 1] has its segments; 0: it names none */
} mr_coco_annotation;

typedef struct mr_coco_category {
    int64_t id;
    char *name;
} mr_coco_category;

enum { /* what at least one annotation has */
       MR_COCO_HAS_CAPTION = 1,
       MR_COCO_HAS_SEGMENTS = 2, /* segments_info: panoptic */
       MR_COCO_HAS_PLACE = 4,    /* a bbox, a segmentation or keypoints that are not empty */
};

enum { MR_COCO_SPLIT = 24 };

typedef struct mr_coco_file {
    uint32_t entry;
    char splits[2][MR_COCO_SPLIT];   /* two different values of "split" in images; empty: there are none */
    const mr_coco_ids *ids;          /* the ids that are strings; lent by the caller of mr_coco_parse() */
    mr_coco_image *images;           /* sorted by id */
    mr_coco_annotation *annotations; /* sorted by image id, then by position in the file */
    mr_coco_category *categories;    /* in the file's order */
    char **pngs;                     /* names of files, UTF-8 */
    mr_coco_bad *bads;               /* in the file's order */
    size_t bad_count, bad_capacity;
    bool repaired;   /* something of it is not JSON */
    mr_buf licences; /* the names of "licenses", path text, each ends with a newline */
    size_t image_count, image_capacity, annotation_count, annotation_capacity, category_count, category_capacity;
    size_t png_count, png_capacity;
    unsigned has;     /* MR_COCO_HAS_* */
    uint64_t orphans; /* annotations of an image that the file does not list */
} mr_coco_file;

/* Parses entry `entry` in chunks; ids that are strings are added to `ids`, which must outlive the file. A bad
 * value of an image, annotation or category is in `bads`. MR_BAD_DATA: not JSON, not a COCO object (a bare list is
 * reported as a COCO *result* file), a duplicate image or category id; the message names file and byte. */
mr_status mr_coco_parse(const mr_source *s, uint32_t entry, mr_coco_ids *ids, mr_coco_file **out, mr_error *err);
void mr_coco_free(mr_coco_file *f);

/* Appends the JSON list of the annotations of image number `n` of the file, as the source wrote each. */
mr_status mr_coco_annotations(const mr_source *s, const mr_coco_file *f, size_t n, mr_buf *out, mr_error *err);
/* Appends the image's own object as the source wrote it. */
mr_status mr_coco_image_text(const mr_source *s, const mr_coco_file *f, size_t n, mr_buf *out, mr_error *err);

#endif
