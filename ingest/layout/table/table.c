/* table.c - a folder of images with a CSV or TSV that lists them.
 * Invariant: where folders say what an image's class or split is, this layout does not win by itself.
 *
 *      labels.csv: id_code,diagnosis       train.csv and test.csv, or a column "split"
 *                  000c1434d8d7,2          train_images/000c1434d8d7.png
 * An image may have several rows: captions, classes, or boxes. */
#include "ingest/layout/table/cub.h"
#include "ingest/layout/table/sidecars.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/scope.h"
#include "base/text.h"
#include "shards/manifest/format.h"
#include "ingest/layout/common/label_list.h"

enum {
    SCORE = 42,
    SCORE_TIE = 20,
    SCORE_BESIDE = 10,
    SCORE_REFUSED = 12,
    SCORE_PATTERN = 98,
    SCORE_CUB = 90,
    SCORE_TEXTS = 15,
    SCORE_TEXTS_BELOW = 30, /* more than that of one of the folders, and of folders that may be classes */
    ROWS_TRIED = 64
};

/* ---- bid ------------------------------------------------------------------------------------------------------ */

typedef struct evidence {
    char name[120];     /* the first table with a column of images */
    char column[80];    /* ... and this column */
    char claims[120];   /* a table that names images that are not here, or that cannot be read */
    bool unread;        /* ... that cannot be read */
    size_t in_class;    /* images in a folder whose name is not that of a split or container */
    size_t in_its_cell; /* those whose row has the folder's name in a cell */
    const char *folder; /* the last of these folders */
    size_t folder_len;
    bool folders; /* there are two */
    bool boxes;   /* a row is a box, which folders cannot say */
} evidence;

/* The folder of an image, unless it is that of a split or of all images. */
static bool class_folder(const mr_tree *t, uint32_t entry, const char **name, size_t *len)
{
    size_t path_len;
    const char *path = mr_tree_path(t, entry, &path_len), *slash = memrchr(path, '/', path_len);
    if (!slash)
        return false;
    const char *before = slash > path ? memrchr(path, '/', (size_t)(slash - path)) : NULL;
    *name = before ? before + 1 : path;
    *len = (size_t)(slash - *name);
    return !mr_folder_word(*name, *len);
}

static bool row_has(const mr_sheet *s, size_t row, const char *name, size_t len)
{
    for (size_t c = 0; c < s->csv.columns; c++) {
        const char *cell = mr_sheet_cell(s, row, c);
        if (strlen(cell) == len && !memcmp(cell, name, len))
            return true;
    }
    return false;
}

static void look_at_rows(const mr_tree *t, const mr_sheet *s, const mr_picture_index *index, evidence *e)
{
    for (size_t r = 0; r < s->csv.rows && r < ROWS_TRIED; r++) {
        uint32_t found[2];
        const char *folder;
        size_t len;
        mr_picture_match match = mr_picture_find(index, mr_sheet_cell(s, r, (size_t)s->path), s->word, found);
        if (match != MR_PICTURE_ONE && match != MR_PICTURE_SEVERAL)
            continue;
        if (!class_folder(t, index->entries[found[0]], &folder, &len))
            continue;
        e->folders = e->folders || (e->folder && (e->folder_len != len || memcmp(e->folder, folder, len)));
        e->folder = folder;
        e->folder_len = len;
        e->in_class++;
        e->in_its_cell += row_has(s, r, folder, len);
    }
}

static mr_status look_at_sheet(const mr_tree *t, const mr_layout_options *o, const mr_picture_index *index,
                               uint32_t entry, evidence *e, mr_error *err)
{
    MR_AUTO(mr_sheet_free) mr_sheet s = {0};
    mr_status status = mr_sheet_read(t, entry, true, &s, err);
    if (status == MR_OK)
        status = mr_sheet_settle_header(&s, index, err);
    if (status == MR_SYSTEM)
        return status;
    if (status != MR_OK) {
        e->unread = e->unread || !*e->claims;
        snprintf(e->claims, sizeof e->claims, "%s", s.name);
        return MR_OK;
    }
    status = mr_sheet_find_path(&s, index, NULL, err); /* two columns: plan() says so */
    if (status == MR_SYSTEM)
        return status;
    if (s.path < 0 && mr_sheet_claims(&s)) { /* images of later rows may be here */
        mr_sheet_free(&s);
        status = mr_sheet_read(t, entry, false, &s, err);
        if (status == MR_OK)
            status = mr_sheet_settle_header(&s, index, err);
        if (status == MR_OK)
            status = mr_sheet_find_path(&s, index, NULL, err);
        if (status == MR_SYSTEM)
            return status;
    }
    if (s.path < 0) {
        if (mr_sheet_claims(&s) && !*e->claims)
            snprintf(e->claims, sizeof e->claims, "%s", s.name);
        return MR_OK;
    }
    if (!*e->name) {
        snprintf(e->name, sizeof e->name, "%s", s.name);
        snprintf(e->column, sizeof e->column, "%s", s.csv.header[s.path]);
    }
    look_at_rows(t, &s, index, e);
    status = mr_sheet_find_boxes(&s, o, err); /* what is wrong with them plan() says */
    e->boxes = e->boxes || s.boxes.form;
    return status == MR_SYSTEM ? status : MR_OK;
}

static void bid_by(const evidence *e, mr_bid *bid)
{
    if (*e->name) {
        snprintf(bid->why, sizeof bid->why, "%s with images in column %s", e->name, e->column);
        bid->score = e->folders && !e->boxes ? SCORE_TIE : SCORE;
        if (e->folders && !e->boxes && e->in_its_cell * 2 >= e->in_class)
            bid->score = SCORE_BESIDE;
        bid->forced = SCORE;
    } else if (e->unread) {
        snprintf(bid->why, sizeof bid->why, "%s beside images", e->claims);
        bid->score = SCORE_REFUSED; /* the plan says what is wrong with it */
    } else if (*e->claims) {
        bid->score = SCORE_REFUSED;
        snprintf(bid->why, sizeof bid->why, "%s beside images", e->claims);
        snprintf(bid->refusal, sizeof bid->refusal,
                 "%s lists images, but no row names one that is in the source; put the images beside it "
                 "under the names that it gives, or leave it out with --exclude",
                 e->claims);
    }
}

static mr_status bid_without_sheet(const mr_tree *t, const mr_layout_options *o, const mr_picture_index *index,
                                   mr_bid *bid, mr_error *err)
{
    bool texts = false, below = false;
    if (!index->count)
        return MR_OK;
    if (o->class_pattern) {
        bid->score = SCORE_PATTERN;
        snprintf(bid->why, sizeof bid->why, "--class-pattern %.200s", o->class_pattern);
    } else if (mr_cub_is(t)) {
        bid->score = SCORE_CUB;
        snprintf(bid->why, sizeof bid->why, "images.txt and image_class_labels.txt");
    } else {
        MR_TRY(mr_sidecars_are(t, index, &texts, err));
        (void)mr_sidecars_may_be(t, &below);
        bid->score = texts ? (below ? SCORE_TEXTS_BELOW : SCORE_TEXTS) - mr_root_is_split(t) : 0;
        snprintf(bid->why, sizeof bid->why, "images beside texts of the same names");
    }
    return MR_OK;
}

static mr_status table_bid(const mr_tree *t, const mr_layout_options *o, mr_bid *bid, mr_error *err)
{
    mr_sheet_list list;
    evidence e = {0};
    mr_sheet_find(t, &list);
    bool below;
    if (!list.count && !o->class_pattern && !mr_cub_is(t) && !mr_sidecars_may_be(t, &below))
        return MR_OK;
    MR_AUTO(mr_picture_index_free) mr_picture_index index = {0};
    MR_TRY(mr_picture_index_make(t, &index, err));
    if (o->class_pattern || !list.count || mr_cub_is(t))
        return bid_without_sheet(t, o, &index, bid, err);
    for (size_t i = 0; index.count && i < list.count; i++)
        MR_TRY(look_at_sheet(t, o, &index, list.entries[i], &e, err));
    bid_by(&e, bid);
    if (list.texts && e.folders) /* a list beside folders that may be classes */
        bid->score = bid->score > SCORE_BESIDE ? SCORE_BESIDE : bid->score;
    bid->score -= bid->score && mr_root_is_split(t); /* the folder above has all splits */
    bid->forced -= bid->forced && mr_root_is_split(t);
    return MR_OK;
}

/* ---- meta ----------------------------------------------------------------------------------------------------- */

static void add_text(mr_buf *out, const char *text)
{
    size_t len = strlen(text);
    if (mr_utf8_valid(text, len))
        mr_json_add_string(out, text, len);
    else
        mr_json_add_path(out, text, len);
}

mr_status mr_table_add_labels(const mr_plan *plan, const mr_sheet *s, size_t row, mr_buf *out, mr_error *err)
{
    MR_AUTO(mr_buf_free) mr_buf labels = {0};
    MR_TRY(mr_table_row_labels(plan->state, plan, s, row, true, &labels, err));
    mr_label_list_write(plan, &labels, out);
    return MR_OK;
}

static void add_row(const mr_sheet *s, size_t row, mr_buf *out)
{
    mr_buf_add_text(out, "{");
    for (size_t c = 0, n = 0; c < s->csv.columns; c++) {
        if ((int)c == s->path)
            continue;
        mr_buf_add_text(out, n++ ? "," : "");
        add_text(out, s->csv.header[c]);
        mr_buf_add_text(out, ":");
        add_text(out, mr_sheet_cell(s, row, c));
    }
    mr_buf_add_text(out, "}");
}

/* An object, or of an image with several rows a list of them. */
static void add_columns(const mr_sheet *s, size_t row, mr_buf *out)
{
    bool several = mr_sheet_next_row(s, row + 1);
    mr_buf_add_text(out, several ? ",\"columns\":[" : ",\"columns\":");
    for (size_t r = row + 1; r; r = mr_sheet_next_row(s, r)) {
        mr_buf_add_text(out, r == row + 1 ? "" : ",");
        add_row(s, r - 1, out);
    }
    mr_buf_add_text(out, several ? "]" : "");
}

static void add_captions(const mr_sheet *s, size_t row, mr_buf *out)
{
    size_t count = 0;
    for (size_t r = row + 1; r && s->text >= 0; r = mr_sheet_next_row(s, r)) {
        const char *text = mr_sheet_cell(s, r - 1, (size_t)s->text);
        if (!*text)
            continue;
        mr_buf_add_text(out, count++ ? "," : ",\"captions\":[");
        add_text(out, text);
    }
    mr_buf_add_text(out, count ? "]" : "");
}

mr_status mr_table_meta(const mr_tree *t, const mr_plan *plan, const mr_sample *sample, mr_buf *out, mr_error *err)
{
    const mr_table_state *st = plan->state;
    if (st->sidecars)
        return mr_sidecars_meta(t, plan, sample, out, err);
    if (!sample->aux)
        return MR_OK;
    const mr_sheet *s = &st->sheets[sample->aux >> 32];
    size_t row = (uint32_t)sample->aux - 1;
    if (sample->flags & MR_FLAG_MULTI_LABEL)
        MR_TRY(mr_table_add_labels(plan, s, row, out, err));
    add_columns(s, row, out);
    add_captions(s, row, out);
    return mr_buf_status(out, err, "writing a sample's columns");
}

const mr_layout mr_layout_table = {
    .name = "table",
    .title = "images with a CSV or TSV that lists them with labels, captions or boxes: labels.csv, or train.csv and "
             "test.csv",
    .needs = "a CSV or TSV with a column of images (names, paths or ids) beside the images or their folders, "
             "CUB's images.txt and image_class_labels.txt, 1.txt (or 1.caption) beside 1.jpg, or --class-pattern",
    .options = MR_OPTION_LABEL | MR_OPTION_IMAGE | MR_OPTION_TEXT | MR_OPTION_UNLISTED | MR_OPTION_SEPARATOR |
               MR_OPTION_PATTERN,
    .bid = table_bid,
    .plan = mr_table_plan,
    .meta = mr_table_meta,
    .objects = mr_table_objects,
    .free_state = mr_table_free,
};
