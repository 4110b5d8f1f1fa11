/* coco_parse.h - the parser of COCO annotation files; private to coco_json.c and coco_parse.c.
 * Invariant: the parser keeps one element's fields; everything else goes into the file's tables at once. */
#ifndef MR_COCO_PARSE_H
#define MR_COCO_PARSE_H

#include "json/json_stream.h"
#include "tables/coco_json.h"

enum { MR_COCO_LEVELS = 3, MR_COCO_DEPTH_MAX = 200 };

enum mr_coco_section { OTHER, IMAGES, ANNOTATIONS, CATEGORIES, INFO, LICENSES, SECTIONS };
enum mr_coco_field { NO_FIELD, ID, IMAGE_ID, CATEGORY_ID, FILE_NAME, NAME, CAPTION, SEGMENTS_INFO };

typedef struct mr_coco_parser {
    unsigned fields; /* of the current section; 0: one that is not read */
    enum mr_coco_section section;
    enum mr_coco_field field; /* the member whose value comes next */
    unsigned seen_fields, seen_sections;
    uint64_t at; /* the element's first byte */
    int64_t id, category_id;
    char *text; /* file_name or name of the element */
    uint32_t text_len;
    mr_coco_ids *ids;

    mr_json_stream *stream;
    const char *name; /* the file's, for messages */
    mr_coco_file *file;
    mr_error *err;
} mr_coco_parser;

/* For mr_json_rules; `parser` is a mr_coco_parser. */
mr_status mr_coco_take(void *parser, const mr_json_token *token);

#endif
