/* json.h - annotation files and layouts under test.
 * Invariant: everything opened here is closed by its *_done(), the folder on disk too. */
#ifndef MR_SUPPORT_JSON_H
#define MR_SUPPORT_JSON_H

#include "ingest/layout/layout.h"
#include "tests/support/support.h"
#include "ingest/tables/coco_json.h"

/* ---- one COCO file -------------------------------------------------------------------------------------------- */

typedef struct support_coco {
    char *dir; /* holds it as a.json */
    mr_notes notes;
    mr_source *source;
    mr_coco_ids *ids;
    mr_coco_file *file; /* if status is MR_OK */
    mr_status status;
    mr_error err;
} support_coco;

support_coco support_coco_parse(const void *bytes, size_t len);
support_coco support_coco_text(const char *text);
void support_coco_done(support_coco *o);

/* ---- a layout over a folder ----------------------------------------------------------------------------------- */

typedef struct support_plan {
    const mr_layout *layout;
    mr_notes notes;
    mr_source *source;
    mr_tree tree;
    mr_bid bid;
    mr_plan plan;
    mr_status status; /* of plan() */
    mr_error err;
} support_plan;

/* Bids and plans `dir`/`root`; root is "" or ends with '/'. options may be NULL. */
support_plan support_plan_at(const mr_layout *layout, char *dir, const char *root, const mr_layout_options *options);
/* Expects success. */
support_plan support_plan_ok(const mr_layout *layout, char *dir, const mr_layout_options *options);
/* Expects this status and this part of the sentence. */
void support_plan_fails(const mr_layout *layout, char *dir, const mr_layout_options *options, mr_status status,
                        const char *why);
void support_plan_done(support_plan *p);

/* Number of notes of a kind, and whether one of them has this path and this part of the detail. */
size_t support_notes(const support_plan *p, mr_note_kind kind);
bool support_has_note(const support_plan *p, mr_note_kind kind, const char *path, const char *detail);

/* Expects these samples, "split path label flags\n" each, in this order. */
void support_assert_samples(const support_plan *p, const char *expected);
/* A sample's meta as the layout writes it; heap. */
char *support_plan_meta(const support_plan *p, size_t sample);
void support_assert_meta(const support_plan *p, size_t sample, const char *expected);

#endif
