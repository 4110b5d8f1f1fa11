/* list.h - the listing while it grows; private to this module.
 * Invariant: a path gets in only through mr_list_add(), which rejects unsafe ones with a note. */
#ifndef MR_SOURCE_LIST_H
#define MR_SOURCE_LIST_H

#include <stdatomic.h>
#include <sys/types.h>

#include "ingest/source/source.h"

/* HOLD_DAMAGED: one damaged entry of an archive; its `path` is the error message. */
typedef enum holder_kind { HOLD_FOLDER, HOLD_ARCHIVE, HOLD_SPOOL, HOLD_DAMAGED } holder_kind;

typedef struct holder {
    char *path; /* as given, for messages */
    int fd;
    holder_kind kind;
    atomic_bool requested; /* HOLD_DAMAGED: the entry was read */
} holder;

typedef struct list_part { /* a folder, a file or an archive that is listed: a SRC, or an archive in one */
    char *name;            /* as given, for messages */
    const char *first;     /* the first of the names that occur again; lent by the source */
    uint64_t replaced;     /* entries that a later one of the same name replaces */
} list_part;

typedef struct listed {
    mr_entry entry;
    uint32_t order; /* order of arrival */
    uint32_t part;  /* see mr_list_settle() */
} listed;

typedef enum link_end { /* what a link in a folder leads to, as stat() reports it; unknown in archives */
                        LINK_UNKNOWN,
                        LINK_FOLDER,
                        LINK_FILE,
                        LINK_DEVICE,
                        LINK_NOTHING
} link_end;

typedef struct pending_link {  /* a link in a folder or an archive: another name for bytes of the tree */
    const char *path, *target; /* the target is a path in the tree as well; "": outside */
    uint32_t path_len, target_len;
    uint32_t order; /* order of arrival, counted with the files */
    uint32_t part;
    link_end end; /* only for messages: what is followed depends on names */
    bool symbolic, done;
    bool bound;     /* a hard link whose bytes are known: */
    mr_entry bytes; /* its target at the link's place in the archive */
} pending_link;

typedef struct class_tar { /* a tar of one ImageNet class: its files are in a folder of its name */
    const char *path;      /* without ".tar" */
    const char *where;     /* the archive or folder that holds it, for messages */
    size_t begin, end;     /* its files in the list */
} class_tar;

typedef struct block { /* paths live in blocks that never move */
    struct block *next;
    size_t used, size;
    char bytes[];
} block;

struct mr_source {
    holder *holders;
    size_t holder_count, holder_capacity;
    mr_entry *entries;
    size_t count;
    mr_unfollowed_link *unfollowed;
    size_t unfollowed_count, unfollowed_capacity;
    uint64_t excess; /* bytes that came out of its archives beyond the ratio */
    block *blocks;
};

typedef struct list {
    mr_source *source;
    mr_notes *notes;
    mr_source_options options;
    listed *items;
    size_t count, capacity;
    pending_link *links;
    size_t link_count, link_capacity;
    list_part *parts; /* the last one is listed now */
    size_t part_count, part_capacity;
    class_tar *class_tars;
    size_t class_tar_count, class_tar_capacity;
    uint32_t arrived;       /* files and links */
    bool several;           /* more than one SRC, or archive of a folder */
    int spool;              /* where archives unpack to */
    const char *spool_path; /* where other ranks open that file; NULL: they get its descriptor */
    const char *prefix;     /* put before the names of an archive's entries: "data/rows.parquet/"; NULL: none */
    mr_buf prefixed;
    uint64_t made_from; /* if the archive is a program's output: the bytes of its input, at least 1; otherwise 0 */
    uint32_t spool_holder;
    uint64_t spool_at;
    struct mr_download *coming; /* the archive that is listed now is still being downloaded; NULL: it is all there */
} list;

enum { LIST_PATH_MAX = 4096 }; /* bytes */
enum { FOLLOW_LINK = 1 };      /* entry.offset of a file from the command line, which may be a link to anywhere */

char *mr_list_keep(mr_source *s, const char *bytes, size_t len); /* a copy that lives as long as s; NULL: no memory */
/* Takes over fd, on failure too. */
mr_status mr_list_holder(list *l, const char *path, int fd, holder_kind kind, uint32_t *out, mr_error *err);
/* What is listed from now on is of another part. */
mr_status mr_list_begin_part(list *l, const char *name, mr_error *err);
/* An archive's name for an entry without empty and "." parts, as it is unpacked: "/a//./b/" is "a/b".  Replaces out's
 * contents. */
void mr_list_plain_name(const char *name, size_t len, mr_buf *out);
/* False: the name was rejected, with a note. */
bool mr_list_name_ok(list *l, const char *path, size_t len);
/* The path is copied; a `file` must live as long as the list's source (NULL: the path).  Too large: noted, left out. */
mr_status mr_list_add(list *l, const mr_entry *entry, mr_error *err);
/* Opens an entry in a folder. */
mr_status mr_list_open(const mr_source *s, const mr_entry *e, int *fd, uint64_t *size, mr_error *err);
/* Links, in links.c: kept until everything is listed, then resolved. */
mr_status mr_list_link(list *l, const char *path, size_t len, const char *target, mr_error *err);
mr_status mr_list_symlink(list *l, const char *path, size_t len, const char *target, link_end end, mr_error *err);
/* Before the list is settled: what hard links lead to. */
void mr_list_bind(list *l);
mr_status mr_list_resolve(list *l, mr_error *err);
/* Puts the list's prefix before the name, lent until the next call; NULL and "" are left alone. */
mr_status mr_list_prefixed(list *l, const char **path, size_t *len, mr_error *err);
const char *mr_list_unsafe(const char *path, size_t len); /* why the name is rejected; NULL: it is safe */
int mr_list_compare(const char *a, size_t a_len, const char *b, size_t b_len); /* bytewise, as memcmp() */
uint32_t mr_list_find(const mr_source *s, const char *path, size_t len);       /* once settled; MR_NO_ENTRY */
/* Sorts, drops duplicates, and publishes the entries in the source.  If names are equal, that of the first part counts,
 * with a note; within one part, which is then an archive, the last, as when it is unpacked. */
mr_status mr_list_settle(list *l, mr_error *err);
/* By name; among equal names, the one that counts comes first. */
int mr_list_compare_listed(const listed *a, const listed *b);
/* Drops the entries for which `gone` is true; the list is settled. */
void mr_list_keep_only(list *l, const bool *gone);
/* An entry of the part is replaced by a later one. */
void mr_list_count_replaced(list *l, uint32_t part, const char *path);
/* A remark for each archive in which names occur again. */
void mr_list_note_replaced(list *l);
/* Once settled: a file "a" is gone where its archive has "a/b" later, as unpacking makes a folder of it. */
mr_status mr_list_drop_replaced_files(list *l, mr_error *err);
/* The last step: drops entries under the name of a file, with a note. */
mr_status mr_list_drop_under_files(list *l, mr_error *err);
/* A remark on names that differ only in case. */
mr_status mr_list_note_case(list *l, mr_error *err);
/* The number of the first leave_out option that names the path or a folder above it; leave_out_count: none. */
size_t mr_list_left_out(const list *l, const char *path, size_t len);
/* Drops what the options leave out, with a note each.  MR_MISUSE: an option matches nothing. */
mr_status mr_list_leave_out(list *l, mr_error *err);
void mr_list_free(list *l); /* with its source, unless that is NULL */
uint64_t mr_list_max_entries(const list *l);
/* MR_BAD_DATA: there are more files than that. */
mr_status mr_list_too_many(const list *l, mr_error *err);
uint64_t mr_list_max_size(const list *l, const char *path, size_t len);
/* Notes a larger file: an image is a reject, anything else is ignored. */
void mr_list_note_large(list *l, const char *path, size_t len, uint64_t size);

mr_status mr_list_folder(list *l, const char *path, mr_error *err);
/* A file that is a source and not an archive: a folder with this one entry. */
mr_status mr_list_lone_file(list *l, const char *path, uint64_t size, mr_error *err);
/* An archive, a Parquet or a JSON file. */
mr_status mr_list_file(list *l, const char *path, mr_error *err);
/* elsewhere.c: the same behind a URL, which is the `number`th SRC. */
mr_status mr_list_url(list *l, const char *url, size_t number, mr_error *err);
mr_status mr_list_archive(list *l, int fd, const char *path, mr_error *err);
bool mr_archive_name(const char *name, size_t len, size_t *stem_len);
bool mr_archive_is_tar(const char *name, size_t stem_len);
bool mr_archive_is_shard(const char *name, size_t stem_len); /* see MR_SHARD_DIGITS */
/* Looks into a tar: does it hold files that share a key, as a shard of WebDataset? */
mr_status mr_list_looks_like_shard(list *l, int fd, const char *path, bool *shard, mr_error *err);
/* Whether a path is a class tar of ImageNet: n01440764.tar.  Only such a tar is opened inside another archive, and none
 * inside it. */
bool mr_archive_is_class(const char *path, size_t len);
/* Whether an option leaves this class tar out: it is then not opened, and a file like any other. */
bool mr_list_leaves_class_tar(const list *l, const char *path, size_t len);
/* Lists the names of the next archive in the folder `path`, a class tar's without ".tar"; replaces `prefix`. */
mr_status mr_list_class_tar(list *l, const char *path, size_t len, const char *where, mr_buf *prefix, mr_error *err);
void mr_list_end_class_tar(list *l); /* all of its files are listed */
/* MR_BAD_DATA: two class tars have one path, or one has that of a folder. */
mr_status mr_list_check_class_tars(list *l, mr_error *err);
/* mr_list_archive(), into a folder of its own name if it is a shard, or of its split's if the images of a split are in
 * no folder; `name`: its path in the tree. */
mr_status mr_list_shard(list *l, int fd, const char *path, const char *name, mr_error *err);

#endif
