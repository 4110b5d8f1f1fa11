/* coco_parse.h - the parser of COCO annotation files; private to coco_json.c, coco_parse.c (sections, elements) and
 * coco_fields.c (their members).
 * Invariant: the parser keeps one element's fields; everything else goes into the file's tables at once.  A bad value
 * spoils its image or annotation, and never the file. */
#ifndef MR_COCO_PARSE_H
#define MR_COCO_PARSE_H

#include "base/json/json_stream.h"
#include "ingest/tables/coco_json.h"
#include "ingest/tables/json_repair.h"

enum { MR_COCO_LEVELS = 4, MR_COCO_DEPTH_MAX = 200 };

enum mr_coco_section { OTHER, IMAGES, ANNOTATIONS, CATEGORIES, INFO, LICENSES, SECTIONS };
enum mr_coco_field {
    NO_FIELD,
    ID,
    IMAGE_ID,
    CATEGORY_ID,
    FILE_NAME,
    COCO_URL,
    NAME,
    SPLIT,
    BBOX,
    CAPTION,
    SEGMENTS_INFO,
    SEGMENTATION,
    KEYPOINTS
};

typedef struct mr_coco_parser {
    unsigned fields; /* fields of the current section; 0: it is not read */
    enum mr_coco_section section;
    enum mr_coco_field field; /* the member whose value comes next */
    unsigned seen_fields, seen_sections;
    uint64_t at; /* the element's first byte */
    int64_t id, category_id;
    char *text; /* file_name or name of the element */
    uint32_t text_len;
    char *url;           /* coco_url of the element */
    unsigned bbox_count; /* numbers of its bbox */
    char why[200];       /* what is wrong with it; empty: nothing */
    uint64_t why_at;
    mr_json_repair repair;
    size_t flaw; /* the first that may be in what comes */
    mr_coco_ids *ids;

    mr_json_stream *stream;
    const char *name; /* the file's, for messages */
    mr_coco_file *file;
    mr_error *err;
} mr_coco_parser;

/* ---- coco_fields.c ----------------------------------------------------------------------------------------------- */

extern const char *const mr_coco_sections[SECTIONS], *const mr_coco_fields[]; /* as they are in the file */

/* Keeps it, if it is the first thing that is wrong with the element.  MR_OK. */
MR_PRINTF(2, 3) mr_status mr_coco_spoil(mr_coco_parser *p, const char *format, ...);
mr_status mr_coco_no_memory(mr_coco_parser *p);
/* The key of a member sets p->field, or p->seen_fields where the key says enough. */
void mr_coco_key_field(mr_coco_parser *p, const char *key, size_t len);
/* The value of p->field, and what is within it. */
mr_status mr_coco_take_field(mr_coco_parser *p, const mr_json_token *t);
mr_status mr_coco_take_inner(mr_coco_parser *p, const mr_json_token *t);

/* ---- coco_parse.c ------------------------------------------------------------------------------------------------ */

/* For mr_json_rules; `parser` is a mr_coco_parser. */
mr_status mr_coco_take(void *parser, const mr_json_token *token);

#endif
