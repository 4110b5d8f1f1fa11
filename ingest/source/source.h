/* source.h - folders, archives and standard input as one sorted tree of regular files.
 * Invariant: every entry's path is relative, has no empty, "." or ".." part and no NUL, and occurs once; entries are
 * sorted bytewise by path, so everything under a folder is one run.  What breaks these rules is in the notes.
 *
 * This module: source.c collects the listing (list.h) from folder.c (with hub_cache.c, which knows the links of a hub
 * cache) and archive.c; links.c, settle.c, leave_out.c and case_names.c make it final; tree.c is a layout's view of it.
 * archive_*.c, gzip_input.c and zip_*.c read archives and check what libarchive does not; shard_tar.c says which are
 * shards; expand.c opens files by running programs (program.c); pack.c sends the listing to other ranks, and sight.c
 * compares what their hosts see; notes.c collects what is reported.  The module uses base/ and libarchive. */
#ifndef MR_SOURCE_H
#define MR_SOURCE_H

#include "ingest/source/notes.h"

#define MR_NO_ENTRY UINT32_MAX

typedef struct mr_entry {
    const char *path; /* NUL-terminated bytes, '/' between parts */
    uint32_t path_len;
    uint32_t holder; /* which folder, archive or spool has the bytes */
    uint64_t size;
    uint64_t offset;  /* in the holder, if that is a file */
    const char *file; /* in the holder, if that is a folder: a link's target, else the path */
} mr_entry;

typedef struct mr_source mr_source;

typedef struct mr_source_options {
    uint64_t max_entry;     /* larger images are left out and noted; 0: 1 GiB */
    uint64_t max_entries;   /* 0: 20,000,000 */
    uint64_t max_ratio;     /* see mr_source_max_expansion() */
    char *const *leave_out; /* files, folders and patterns (fnmatch) to ignore */
    size_t leave_out_count;
    const char *downloads; /* a folder, made when it is needed, for SRCs that are URLs; NULL: they are refused */
    bool quiet;            /* no progress */
    int progress;          /* mr_progress_begin()'s `to` */
} mr_source_options;

/* A tar whose name ends in this many digits or more (train-000012.tar) is one shard of several: its entries are put
 * into a folder of its name (train-000012.tar/0001.jpg), so that equal names in two shards do not collide.  Others are
 * recognised by their files (shard_tar.c). */
enum { MR_SHARD_DIGITS = 5 };

enum { MR_SOURCE_ALLOWANCE = 64 << 20 }; /* beyond the ratio: small files may be repetitive */

/* 0: the default. */
static inline uint64_t mr_source_ratio(uint64_t max_ratio)
{
    return max_ratio ? max_ratio : 100;
}

/* The size limit of an image; 0: the default. */
static inline uint64_t mr_source_max_entry(uint64_t max_entry)
{
    return max_entry ? max_entry : (uint64_t)1 << 30;
}

/* The size that untrusted bytes may expand to (an archive to its files, a source to its metas): the ratio times as
 * many, plus 64 MiB. */
static inline uint64_t mr_source_max_expansion(uint64_t bytes, uint64_t max_ratio)
{
    uint64_t max;
    bool over = __builtin_mul_overflow(bytes, mr_source_ratio(max_ratio), &max) ||
                __builtin_add_overflow(max, (uint64_t)MR_SOURCE_ALLOWANCE, &max);
    return over ? UINT64_MAX : max;
}

/* Opens and lists all SRCs ("-": standard input, an archive; or a URL of an archive or file).  Archives are read once;
 * what cannot be read in place is copied to the file descriptor `spool` (an empty file in DATASET's file system; -1: an
 * unlinked file in TMPDIR). MR_MISUSE: a SRC does not exist, or leave_out matches nothing; MR_BAD_DATA: an archive that
 * cannot be read to its end (named). */
mr_status mr_source_open(char *const *srcs, size_t count, int spool, const mr_source_options *o, mr_notes *notes,
                         mr_source **out, mr_error *err);
void mr_source_free(mr_source *s);

uint32_t mr_source_count(const mr_source *s);
const mr_entry *mr_source_entry(const mr_source *s, uint32_t n);
uint32_t mr_source_lower(const mr_source *s, const char *path, size_t len); /* first entry with path >= this */

/* Thread-safe. Exactly len bytes at `at` inside the entry, MR_BAD_DATA if it has become shorter, or is damaged in
 * its archive. */
mr_status mr_source_pread(const mr_source *s, uint32_t entry, void *bytes, size_t len, uint64_t at, mr_error *err);
/* The whole entry; replaces out's contents. */
mr_status mr_source_read(const mr_source *s, uint32_t entry, mr_buf *out, mr_error *err);

/* MR_BAD_DATA: the bytes of a damaged entry were requested; names archive and entry.  Other damage is only noted. */
mr_status mr_source_check(const mr_source *s, mr_error *err);

/* A symbolic link that is not followed, though it may lead to an image or a folder of images. */
typedef struct mr_unfollowed_link {
    const char *path; /* bytes, from the top level of the source; lives as long as the source */
    uint32_t len;
} mr_unfollowed_link;

/* In order of path; empty in a source unpacked from another rank. */
size_t mr_source_unfollowed_links(const mr_source *s, const mr_unfollowed_link **links);

/* ---- a layout's view: the tree under a root ------------------------------------------------------------------- */

typedef struct mr_tree {
    const mr_source *source;
    const char *root; /* "" or "imagenette2-160/": a prefix of paths; not NUL-terminated at root_len */
    size_t root_len;
    uint32_t begin, end; /* the entries under it */
} mr_tree;

mr_tree mr_tree_at(const mr_source *s, const char *root, size_t root_len);

typedef struct mr_child {
    const char *name; /* not NUL-terminated: points into an entry's path */
    size_t name_len;
    bool is_dir;
    uint32_t entry; /* the file, or the first entry of the directory */
    uint32_t end;   /* one past the child's entries */
} mr_child;

/* Iterates the children of directory `dir` ("" or "train/x", no trailing slash) in bytewise order of their full paths.
 *      mr_child c = {0};
 *      while (mr_tree_next(&tree, "train", 5, &c)) ...                                                              */
bool mr_tree_next(const mr_tree *t, const char *dir, size_t dir_len, mr_child *child);

/* The end of the run of entries, from `entry` on, whose paths under the root begin with the same `len` bytes. */
uint32_t mr_tree_run_end(const mr_tree *t, uint32_t entry, size_t len);
uint32_t mr_tree_find(const mr_tree *t, const char *path, size_t len); /* a file; MR_NO_ENTRY */
/* The first file from `entry` on whose name without folder is alike (mr_name_alike()); MR_NO_ENTRY. */
uint32_t mr_tree_find_alike(const mr_tree *t, uint32_t entry, const char *name, size_t len);
bool mr_tree_has_dir(const mr_tree *t, const char *path, size_t len);
/* An entry's path without the root. */
const char *mr_tree_path(const mr_tree *t, uint32_t entry, size_t *len);

/* Resolves `target` relative to the file at `path`: from "a/rows.parquet", "../b/c.jpg" is "b/c.jpg".  Replaces out's
 * contents; false: it leads out of the tree, or is empty. */
bool mr_path_beside(const char *path, size_t len, const char *target, mr_buf *out);

/* Appends a path as reports write it, quoted for a shell if needed: --exclude and --root accept it. */
void mr_source_quote(const char *path, size_t len, mr_buf *out);
/* Appends the option that leaves out this file or folder, as the source lists it: --exclude 'my data/a.txt'. */
void mr_source_leave_out(const char *path, size_t len, mr_buf *out);
/* For a table that ingest can do without: returns `status`; if that is MR_BAD_DATA, appends "; --exclude PATH WHAT"
 * to the sentence. */
mr_status mr_source_dispensable(const mr_source *s, uint32_t entry, const char *what, mr_status status, mr_error *err);

/* ---- for ranks: rank 0 lists, the others use its listing ------------------------------------------------------- */

mr_status mr_source_pack(const mr_source *s, mr_buf *out, mr_error *err);
/* Opens the same folders and archives by path; `spool`: the shared spool file (taken over), or -1. */
mr_status mr_source_unpack(const mr_buf *packed, int spool, mr_source **out, mr_error *err);

#endif
