/* coco_parse.h - between the file (coco_json.c) and what stands in it (coco_parse.c); nobody else includes this.
 * Invariant: `chunk` holds the bytes that yajl is looking at, so base + bytes consumed is the place in the file. */
#ifndef MR_COCO_PARSE_H
#define MR_COCO_PARSE_H

#include "json/json_memory.h"
#include "tables/coco_json.h"

enum { MR_COCO_DEPTH_MAX = 200 }; /* yajl has no limit of its own */

enum mr_coco_section { OTHER, IMAGES, ANNOTATIONS, CATEGORIES, INFO, LICENSES, SECTIONS };
enum mr_coco_field { NO_FIELD, ID, IMAGE_ID, CATEGORY_ID, FILE_NAME, NAME };

typedef struct mr_coco_parser {
    unsigned depth;  /* containers open */
    unsigned fields; /* of the section we are in; 0: a section we do not read */
    enum mr_coco_section section;
    enum mr_coco_field field; /* the member whose value comes next */
    unsigned seen_fields, seen_sections;
    uint64_t events; /* values and keys so far */
    uint64_t at;     /* the element's first byte */
    uint64_t end;    /* where the document closed; 0 until then */
    int64_t id, category_id;
    char *text; /* file_name or name of the element */
    uint32_t text_len;

    mr_yajl memory;
    yajl_handle yajl; /* its parser */
    const unsigned char *chunk;
    uint64_t base;           /* the chunk's place in the file */
    uint64_t lines, line_at; /* line ends before it, and where the line begins in which it does */
    const char *name;        /* the file's, for messages */
    mr_coco_file *file;
    mr_status status;
    mr_error *err;
} mr_coco_parser;

static inline uint64_t mr_coco_here(const mr_coco_parser *p)
{
    return p->base + yajl_get_bytes_consumed(p->yajl);
}

extern const yajl_callbacks mr_coco_callbacks;

#endif
