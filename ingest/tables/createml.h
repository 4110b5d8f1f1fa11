/* createml.h - a CreateML annotation file, streamed: only where each image's object is in the file is kept.
 * Invariant: the text is read again when a sample's meta is written, so every number keeps the source's spelling.
 * Source: "Building an object detector data source" in Apple's documentation of Create ML.
 *
 *      [ { "image": "a.jpg", "annotations": [ { "label": "dog", "coordinates": { "x": 8, "y": 9, "width": 4, ... */
#ifndef MR_CREATEML_TABLE_H
#define MR_CREATEML_TABLE_H

#include "ingest/source/source.h"

typedef struct mr_createml_image {
    char *name;  /* UTF-8 and a NUL; a hostile one may hold a NUL before name_len */
    uint64_t at; /* the object's text in the file */
    uint32_t len, name_len;
    uint32_t objects; /* its annotations */
    const char *why;  /* what is wrong with it, static text; NULL: nothing.  The name may then be empty */
    uint64_t why_at;  /* the byte, from 1 */
} mr_createml_image;

typedef struct mr_createml_file {
    uint32_t entry;
    mr_createml_image *images; /* in the file's order */
    size_t count, capacity;
} mr_createml_file;

/* Is handed every label; a failure ends the parse. */
typedef mr_status mr_createml_label(void *ctx, const char *text, size_t len, mr_error *err);

/* A bad value of an image is in its `why`.  MR_BAD_DATA: not JSON, not a list of objects; names file and byte. */
mr_status mr_createml_parse(const mr_source *s, uint32_t entry, mr_createml_label *label, void *ctx,
                            mr_createml_file **out, mr_error *err);
void mr_createml_free(mr_createml_file *f);

/* Appends the object of image number `n` as the source wrote it. */
mr_status mr_createml_text(const mr_source *s, const mr_createml_file *f, size_t n, mr_buf *out, mr_error *err);

#endif
