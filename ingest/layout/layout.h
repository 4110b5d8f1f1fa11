/* layout.h - how a source tree is arranged: an interface per layout, each in a file or a folder, and in MR_LAYOUTS.
 * Invariant: plan() depends only on names and contents under the root, never on the kind of source, so a folder and
 * its archive give the same samples in the same order. */
#ifndef MR_LAYOUT_H
#define MR_LAYOUT_H

#include "shards/manifest/manifest.h"
#include "shards/format/objects.h"
#include "ingest/source/source.h"

typedef struct mr_sample {
    uint32_t split;               /* index in plan->splits */
    uint32_t entry;               /* the image file */
    int32_t label;                /* -1: none */
    uint32_t flags;               /* MR_FLAG_MULTI_LABEL, MR_FLAG_UNANNOTATED */
    uint32_t labels;              /* with MR_FLAG_MULTI_LABEL, a hash of all labels in any order; else 0 */
    uint32_t group_at, group_len; /* the part of the entry's full path that names its group of copies; len 0: none */
    uint64_t aux;                 /* the layout's own: a row number, an image's place in its tables */
    uint64_t meta_bytes;          /* about how long its meta will be; shards are cut by it */
} mr_sample;

typedef struct mr_split_alias { /* a split of the source */
    const char *name;           /* not NUL-terminated, lent by the source */
    size_t len;
    bool mapped; /* by --split-map, not by usage */
} mr_split_alias;

enum { MR_SPLIT_ALIASES = 8 };

typedef struct mr_plan_split {
    char name[64];                            /* as stored: train, val, test ... (mr_split_name_ok) */
    mr_split_alias aliases[MR_SPLIT_ALIASES]; /* the first ones, without duplicates */
    size_t alias_count;
} mr_plan_split;

typedef struct mr_plan {
    const char *variant; /* static text: "folder", "multi-class"; see mr_plan_variant() */
    char *variant_text;  /* malloc'ed path text that goes before it ("matching"), or NULL */
    char *licence;       /* malloc'ed path text, or NULL */
    mr_sample *samples;  /* in order; the samples of a split keep their relative order */
    size_t sample_count, sample_capacity;
    mr_plan_split *splits;
    size_t split_count, split_capacity;
    mr_class *classes;
    size_t class_count, class_capacity;
    struct mr_class_place *places; /* see mr_plan_classes_place(); NULL: the classes are sorted themselves */
    size_t place_count;
    uint64_t maps_used; /* bit i: --split-map number i found its split */
    uint8_t *used;      /* mr_use of each entry */
    bool by_folder;     /* a sample's class is its folder */
    bool flat;          /* by_folder, and without split folders */
    bool answers;       /* labels answer questions: equal images may have different ones */
    mr_notes *notes;
    void *state; /* the layout's own, see free_state */
} mr_plan;

typedef enum mr_use {                  /* what a plan makes of an entry */
                      MR_USE_NONE,     /* not part of the layout: reported as ignored */
                      MR_USE_TAKEN,    /* a sample, or a file that was read: a table, a label */
                      MR_USE_MASK,     /* a mask of a sample */
                      MR_USE_LEFT_OUT, /* on purpose, by an option */
                      MR_USE_REJECTED, /* noted as MR_NOTE_REJECT */
} mr_use;

typedef struct mr_split_map { /* --split-map test=val: stored under another name; to "" : left out */
    const char *from, *to;
} mr_split_map;

/* Members of mr_layout_options that some layouts do not use. */
enum {
    MR_OPTION_LABEL = 1,
    MR_OPTION_CONFIG = 2,
    MR_OPTION_IMAGE = 4,
    MR_OPTION_TEXT = 8,
    MR_OPTION_UNLISTED = 16,
    MR_OPTION_DEPTH = 32,
    MR_OPTION_ANNOTATIONS = 64,
    MR_OPTION_SEPARATOR = 128,
    MR_OPTION_PATTERN = 256,
};

typedef struct mr_layout_options {
    const char *label_column;               /* NULL: the layout's own label */
    const char *config;                     /* newyorker, hub: which config; NULL: the only one */
    const char *image_column, *text_column; /* hub; NULL: found by type, and none */
    const char *const *annotations;         /* coco: its files, from the top level of the source; none: found */
    size_t annotation_count;
    const char *label_separator; /* table: bytes between two classes of a cell; NULL: found by looking */
    const char *class_pattern;   /* table: the class in the file's name: "{class}_#"; NULL: none */
    bool keep_unlisted;
    bool skip_unmatched;  /* leaves out what the ledger would refuse: images without an annotation, and the reverse */
    const char *root;     /* the dataset's root in the source; NULL: found by bidding */
    unsigned class_depth; /* folders that form a class's name, below its split; 0: 1, unless that looks wrong */
    const mr_split_map *maps;
    size_t map_count;
    const mr_split_map *lists; /* from: a file, from the top level of the source */
    size_t list_count;
} mr_layout_options;

typedef struct mr_bid {
    int score;         /* 0: not mine; 100: certain */
    int forced;        /* for a tree that it leaves to another layout: its score under --layout */
    char why[300];     /* the evidence: "train/ and val/ with 10 folders of images" */
    char refusal[300]; /* set: recognised, but not supported: what to do instead */
} mr_bid;

typedef struct mr_layout_files { /* files that a program turns into rows before plan() */
    uint32_t *entries;
    size_t count, capacity;
    uint64_t memory;      /* that it needs for any file; 0: its memory is not limited */
    const char *argv[16]; /* the program and its options, ends with NULL; lent by the options or `owned` */
    char *owned[2];       /* freed with it */
} mr_layout_files;

typedef struct mr_mask {
    const char *name; /* its member of "masks" in the meta: "panoptic" */
    uint32_t entry;
} mr_mask;

enum { MR_MASKS_MAX = 3 };

typedef struct mr_layout {
    const char *name;
    const char *title; /* one line for help */
    const char *needs; /* what it looks for, for the message when no layout bids */
    unsigned options;  /* MR_OPTION_*: those that it uses */
    /* Cheap: looks at names, and at most the first 64 KiB of a few files.  MR_SYSTEM: reading failed, so that none can
     * be chosen. */
    mr_status (*bid)(const mr_tree *t, const mr_layout_options *o, mr_bid *bid, mr_error *err);
    /* For layouts with rows inside of files: which of them to open, and how.  Before plan() each of them becomes a
     * folder of its own name in the tree, with what the program wrote.  The plan is empty; its state may be begun here
     * (paths of entries stay where they are, their numbers change).  NULL: nothing to open. */
    mr_status (*open)(const mr_tree *t, const mr_layout_options *o, mr_plan *plan, mr_layout_files *out, mr_error *err);
    mr_status (*plan)(const mr_tree *t, const mr_layout_options *o, mr_plan *plan, mr_error *err);
    /* Appends the layout's members of a sample's meta, each starting with a comma: ,"columns":{...}  Thread-safe.
     * NULL: nothing to add. */
    mr_status (*meta)(const mr_tree *t, const mr_plan *plan, const mr_sample *sample, mr_buf *out, mr_error *err);
    /* The sample's objects, in pixels of `picture`; sets out->known where the source has objects, even if none.
     * Thread-safe. NULL: the layout has none. */
    mr_status (*objects)(const mr_tree *t, const mr_plan *plan, const mr_sample *sample, const mr_stored *picture,
                         mr_objects *out, mr_error *err);
    /* The sample's masks: PNGs with a value for each pixel.  Returns their count.  The pipeline puts them into its
     * meta; the plan has called mr_plan_mask() for each.  Thread-safe.  NULL: none. */
    size_t (*masks)(const mr_tree *t, const mr_plan *plan, const mr_sample *sample, mr_mask out[MR_MASKS_MAX]);
    void (*free_state)(void *state);
} mr_layout;

#define MR_LAYOUTS(X)                                                                                                  \
    X(imagenette)                                                                                                      \
    X(roboflow)                                                                                                        \
    X(coco) X(newyorker) X(hub) X(webdataset) X(yolo) X(voc) X(createml) X(ilsvrc) X(imagefolder) X(table) X(flat)
#define MR_LAYOUT_DECLARE(word) extern const mr_layout mr_layout_##word;
MR_LAYOUTS(MR_LAYOUT_DECLARE)
extern const mr_layout *const mr_layouts[]; /* NULL-terminated, in the table's order */

/* ---- for layouts ---------------------------------------------------------------------------------------------- */

/* The stored split for a source folder name: --split-map first, then the usual words (valid, dev -> val).  Adds it if
 * it is new; the name must outlive the plan.  *split is MR_NO_ENTRY when the map leaves it out.  MR_BAD_DATA: two names
 * of the source are one split by usage (dev and eval), and no map tells them apart. */
mr_status mr_plan_split_get(mr_plan *plan, const mr_layout_options *o, const char *name, size_t len, uint32_t *split,
                            mr_error *err);
/* The stored split of this name; adds it if it is new.  `called`: its name in the source, which must outlive the plan;
 * NULL: none. */
mr_status mr_plan_split_named(mr_plan *plan, const char *name, const char *called, uint32_t *split, mr_error *err);
/* The map that mr_plan_split_get() applies; NULL: none. */
const mr_split_map *mr_split_map_find(const mr_layout_options *o, const char *name, size_t len);
/* Names the variant by the path text in `name`, which is empty afterwards. */
mr_status mr_plan_variant_set(mr_plan *plan, mr_buf *name, mr_error *err);
mr_status mr_plan_add(mr_plan *plan, const mr_sample *sample, mr_error *err); /* marks the entry used */
/* Marks the entries of a folder that --split-map leaves out, and notes their number and bytes. */
void mr_plan_leave_out(mr_plan *plan, const mr_source *s, const char *name, size_t len, uint32_t begin, uint32_t end);
/* Adds a class (name bytes are escaped to path text) after the others. */
mr_status mr_plan_class(mr_plan *plan, const char *name, size_t len, bool has_id, int64_t id, mr_error *err);
/* Marks a mask as used; returns about how many bytes of a meta it takes. */
uint64_t mr_plan_mask(mr_plan *plan, const mr_tree *t, const mr_mask *mask);
/* Index of the class of that name (path text of the bytes), -1: none. Among the classes at the last
 * mr_plan_classes_sort(), or, where they keep their order, at the last mr_plan_classes_place(). */
int32_t mr_plan_class_find(const mr_plan *plan, const char *name, size_t len);
void mr_plan_classes_sort(mr_plan *plan);                      /* bytewise by name, duplicates removed */
mr_status mr_plan_classes_place(mr_plan *plan, mr_error *err); /* no two have one name */

/* ---- for ingest ----------------------------------------------------------------------------------------------- */

/* MR_MISUSE: the layout does not use a given option; the message names both. */
mr_status mr_layout_check(const mr_layout *layout, const mr_layout_options *o, mr_error *err);
/* Checks across layouts.  MR_MISUSE: a split map found no split, or a label column no label.  Notes splits of the
 * source that are stored as one, and what mr_plan_classes_note() notes. */
mr_status mr_plan_review(const mr_tree *t, const mr_plan *plan, const mr_layout_options *o, mr_error *err);
/* Notes classes whose names are equal, or differ only in the case of ASCII letters or in the spaces around them, and
 * class folders that are numbers, whose labels are others. */
mr_status mr_plan_classes_note(const mr_plan *plan, mr_error *err);
const char *mr_plan_variant(const mr_plan *plan); /* NULL: it has no name */

typedef struct mr_choice { /* the outcome of the bidding */
    bool unknown;          /* no layout bids: the message lists what each needs */
    const mr_layout *layout;
    mr_tree tree;
    mr_bid bid;
} mr_choice;

/* Lets every layout bid on every folder that may be a root, or on o->root alone.  Forced: only that layout, with the
 * higher of its two scores; if bids are equal, the one at or around the root that all layouts together choose; if it
 * bids nowhere, that root.  MR_BAD_DATA: no bid, a tie, or an unsupported format: the message says what was found and
 * what each layout needs. MR_MISUSE: o->root does not exist. */
mr_status mr_layout_choose(const mr_source *s, const char *forced, const mr_layout_options *o, mr_choice *out,
                           mr_error *err);

/* A plan without a sample is MR_BAD_DATA; `source`: for the message. */
mr_status mr_plan_check(const mr_plan *plan, const mr_layout_options *o, const mr_layout *layout, const char *source,
                        mr_error *err);
void mr_plan_free(const mr_layout *layout, mr_plan *plan); /* contents, not the struct */

#endif
