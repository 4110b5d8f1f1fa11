/* webdataset.h - what the files of the layout webdataset share: webdataset.c (bid, meta), plan.c (folders),
 * samples.c (one key), splits.c (of folders), names.c (of samples and shards), gaps.c (missing shards), groups.c (the
 * files of a key), labels.c (classes), facts.c (names). Invariant: nothing of the state changes after plan(), so meta()
 * may run on many threads.
 *
 *      train-000000.tar/0001.jpg  0001.cls  0001.json  0001.txt      a numbered tar is a folder of the tree
 *      train/0001.jpg ...                                            as `export --to tar` writes it                 */
#ifndef MR_LAYOUT_WEBDATASET_H
#define MR_LAYOUT_WEBDATASET_H

#include "shards/format/meta.h"
#include "ingest/layout/common/label_census.h"
#include "ingest/layout/common/labels.h"

typedef struct mr_webdataset_row { /* the members of a sample beside its image; MR_NO_ENTRY: it has none */
    uint32_t json, text;
    bool own; /* the .json is a meta that millrace exported */
} mr_webdataset_row;

typedef struct mr_webdataset_state {
    mr_webdataset_row *rows; /* by sample.aux */
    size_t count, capacity;
    char *text_column; /* NULL: none */
} mr_webdataset_state;

/* Splits a file's name as WebDataset does: the key goes up to the first dot, the rest is the member's name ("jpg",
 * "seg.png").  False: the name has no dot, or begins with it; such a file belongs to no sample. */
bool mr_webdataset_name(const char *name, size_t len, size_t *key_len);

/* Notes the shards of a folder that are missing between others of their names, or of as many as their names say. */
void mr_webdataset_gaps(const mr_tree *t, const char *dir, size_t dir_len, mr_notes *notes);

/* The length of a shard's name without its number: "train" of "train-000012.tar"; 0: the name is not a shard's. */
size_t mr_webdataset_shard(const char *name, size_t len);

/* Whether this JSON begins like the meta of a millrace dataset, which `export --to tar` writes? */
bool mr_webdataset_own(const void *json, size_t len);
/* Where the members that the layout added to such a meta begin; mr_meta_begin() rewrites what precedes them.
 * At most `len`. */
size_t mr_webdataset_added(const char *json, size_t len);

enum { MR_WEBDATASET_JSON_MAX = 64 << 20 }; /* bytes of one .json */

/* The text of a .json without the blanks around it; replaces out's contents.  MR_BAD_DATA: it does not look like one
 * object, or is too large; the caller checks that it is JSON. */
mr_status mr_webdataset_json(const mr_tree *t, uint32_t entry, mr_buf *out, mr_error *err);

mr_status mr_webdataset_plan(const mr_tree *t, const mr_layout_options *o, mr_plan *plan, mr_error *err);

/* ---- names ---------------------------------------------------------------------------------------------------- */

#define MR_WEBDATASET_FACTS "__millrace__/dataset.json"

typedef struct mr_webdataset_facts { /* zeroed: there is no such file */
    mr_buf splits, classes;          /* "name\0" each */
    size_t split_count, class_count;
} mr_webdataset_facts;

/* Reads the file if it exists.  MR_BAD_DATA: not an object with lists of names. */
mr_status mr_webdataset_facts_read(const mr_tree *t, mr_plan *plan, mr_webdataset_facts *facts, mr_error *err);
bool mr_webdataset_facts_split(const mr_webdataset_facts *facts, const char *name, size_t len);
void mr_webdataset_facts_free(mr_webdataset_facts *facts);

/* ---- labels --------------------------------------------------------------------------------------------------- */

typedef struct mr_webdataset_labels { /* zero but for `column.asked`, and `highest`: -1 */
    mr_labels column;                 /* --label-column: a member of the JSON */
    mr_buf texts;                     /* "text\0" per sample: from .cls, or from our own meta; "" for none */
    mr_buf names;                     /* "class\0" per sample: from our own meta */
    mr_label_census census;           /* of the texts */
    mr_label_gaps gaps;
    int32_t highest; /* the highest number in our own metas with several labels */
} mr_webdataset_labels;

/* splits.c: the split that a folder's path names, as the source calls it.  False: none of its names does, or *several:
 * one names several; the split is "train" then. */
bool mr_webdataset_split(const mr_webdataset_facts *facts, const mr_layout_options *o, const char *dir, size_t dir_len,
                         const char **name, size_t *len, bool *several);

enum { MR_WEBDATASET_LABEL_MAX = 99999 }; /* the largest number that is the number of its class */

/* Keeps the label of the next sample: `text` of .cls (len 0: none), and what its JSON says. */
mr_status mr_webdataset_label(mr_webdataset_labels *l, const char *text, size_t len, const char *file, mr_error *err);
/* Makes the classes and gives each sample its own.  If `facts` lists the classes, a label must be the number or the
 * name of one, and a sample with any other is rejected. */
mr_status mr_webdataset_classes(mr_webdataset_labels *l, const mr_webdataset_facts *facts, const mr_tree *t,
                                mr_plan *plan, mr_error *err);
void mr_webdataset_labels_free(mr_webdataset_labels *l);

#endif
