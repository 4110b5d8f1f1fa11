/* walk.c - LMDB pages read with bounds checks, without LMDB.
 * Invariant: every number taken from a page is checked before it is used, and a page that was seen is never entered
 * again, so the work is bounded by the number of pages in the file.
 *
 *   a page                                              a node, at one of ptr[]
 *   0  u64 its own number                               0 u16 low, 2 u16 high: length of the data, or child page 0-31
 *   8  u16 pad       10 u16 flags                       4 u16 flags, or bits 32-47 of the child page
 *   12 u16 lower     14 u16 upper   (u32 pages: a run)  6 u16 length of the key
 *   16 u16 ptr[], up to `lower`                         8 key, then data (F_BIGDATA: u64 page of the run that has it)
 *      free space, then nodes from `upper` to the end */
#include "shards/format/walk.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/files/file.h"
#include "base/scope.h"

enum {
    PAGE_HEADER = 16,
    NODE_HEADER = 8,
    DB_SIZE = 48,
    MAX_DEPTH = 32, /* LMDB's own limit, CURSOR_STACK */
    P_BRANCH = 0x01,
    P_LEAF = 0x02,
    P_OVERFLOW = 0x04,
    P_META = 0x08,
    F_BIGDATA = 0x01,
    F_SUBDATA = 0x02,
};

#define META_MAGIC 0xBEEFC0DEu
#define NO_ROOT    UINT64_MAX

typedef struct tree { /* LMDB's MDB_db: what it says, and what the walk has counted */
    uint16_t depth;
    uint64_t branches, leaves, runs, entries, root;
    uint64_t seen_branches, seen_leaves, seen_runs, seen_entries;
} tree;

typedef struct walk {
    int fd;
    const char *name;
    uint64_t pages; /* whole pages in the file, and no more than LMDB says are in use */
    uint8_t *seen;  /* one bit a page */
    uint64_t least; /* smallest key that may come next */
    bool full;      /* the greatest possible key was passed */
    tree db;
    mr_walk_fn fn;
    void *ctx;
    mr_error *err;
    uint8_t stack[MAX_DEPTH][MR_LMDB_PAGE];
} walk;

typedef struct node {
    uint16_t flags, key_len;
    uint64_t child;    /* the page below, in a branch */
    uint32_t data_len; /* bytes of data, in a leaf */
    size_t key, data;  /* places in the page */
} node;

static mr_status bad(const walk *w, uint64_t page, const char *what)
{
    return mr_fail(w->err, MR_BAD_DATA, "%s: page %llu: %s", w->name, (unsigned long long)page, what);
}

static mr_status visit(walk *w, uint64_t page)
{
    if (page < 2 || page >= w->pages)
        return bad(w, page, "a reference leads to it, but it is not a data page of this file");
    uint8_t bit = (uint8_t)(1 << page % 8);
    if (w->seen[page / 8] & bit)
        return bad(w, page, "a second reference leads to it");
    w->seen[page / 8] |= bit;
    return MR_OK;
}

/* A branch or leaf page: the array of offsets is below `upper`, the nodes are above. */
static mr_status read_page(walk *w, uint64_t page, unsigned flags, uint8_t *p, unsigned *nodes)
{
    MR_TRY(visit(w, page));
    MR_TRY(mr_file_pread(w->fd, p, MR_LMDB_PAGE, page * MR_LMDB_PAGE, w->name, w->err));
    unsigned lower = mr_get16le(p + 12), upper = mr_get16le(p + 14);
    if (mr_get64le(p) != page)
        return bad(w, page, "carries the number of another page");
    if (mr_get16le(p + 10) != flags)
        return bad(w, page,
                   flags == P_LEAF ? "is not the leaf page it should be" : "is not the branch page it should be");
    if (lower <= PAGE_HEADER || lower % 2 || lower > upper || upper > MR_LMDB_PAGE)
        return bad(w, page, "the bounds of its free space are wrong");
    *nodes = (lower - PAGE_HEADER) / 2;
    return MR_OK;
}

static mr_status read_node(const walk *w, uint64_t page, const uint8_t *p, unsigned i, bool leaf, node *n)
{
    size_t at = mr_get16le(p + PAGE_HEADER + 2 * i);
    if (at < mr_get16le(p + 14) || at + NODE_HEADER > MR_LMDB_PAGE)
        return bad(w, page, "a node is outside the page");
    uint32_t low = mr_get32le(p + at);
    *n = (node){.flags = mr_get16le(p + at + 4), .key_len = mr_get16le(p + at + 6), .key = at + NODE_HEADER};
    n->child = low | (uint64_t)n->flags << 32;
    n->data_len = low;
    n->data = n->key + n->key_len;
    uint64_t inside = !leaf ? 0 : n->flags & F_BIGDATA ? 8 : n->data_len;
    if (n->data + inside > MR_LMDB_PAGE)
        return bad(w, page, "a node ends outside the page");
    return MR_OK;
}

/* Takes the next key, or the least key that a child page may hold, and makes sure that the order is kept. */
static mr_status take_key(walk *w, uint64_t page, const uint8_t *p, const node *n, uint64_t *key)
{
    if (n->key_len != MR_LMDB_KEY)
        return bad(w, page, "a key is not 8 bytes long");
    *key = mr_key_unpack(p + n->key);
    if (w->full || *key < w->least)
        return bad(w, page, "the keys are not in ascending order");
    w->least = *key;
    return MR_OK;
}

/* A record too long for a page has a run of pages of its own, whose first page starts with a header. */
static mr_status find_run(walk *w, uint64_t page, const uint8_t *p, const node *n, uint64_t *offset)
{
    uint8_t header[PAGE_HEADER];
    uint64_t first = mr_get64le(p + n->data), count = (PAGE_HEADER - 1 + (uint64_t)n->data_len) / MR_LMDB_PAGE + 1;
    if (first >= w->pages || count > w->pages - first)
        return bad(w, page, "a record's run of pages is outside the file");
    for (uint64_t i = 0; i < count; i++)
        MR_TRY(visit(w, first + i));
    MR_TRY(mr_file_pread(w->fd, header, sizeof header, first * MR_LMDB_PAGE, w->name, w->err));
    if (mr_get64le(header) != first || mr_get16le(header + 10) != P_OVERFLOW || mr_get32le(header + 12) != count)
        return bad(w, first, "is not the start of the record's run of pages");
    w->db.seen_runs += count;
    *offset = first * MR_LMDB_PAGE + PAGE_HEADER;
    return MR_OK;
}

static mr_status walk_leaf(walk *w, uint64_t page, const uint8_t *p, unsigned nodes)
{
    w->db.seen_leaves++;
    for (unsigned i = 0; i < nodes; i++) {
        node n;
        mr_walk_record record;
        MR_TRY(read_node(w, page, p, i, true, &n));
        MR_TRY(take_key(w, page, p, &n, &record.sample));
        if (n.flags & ~F_BIGDATA)
            return bad(w, page, "a node has flags that a record never has");
        w->full = record.sample == UINT64_MAX;
        w->least = record.sample + 1;
        record.len = n.data_len;
        record.offset = page * MR_LMDB_PAGE + n.data;
        if (n.flags & F_BIGDATA)
            MR_TRY(find_run(w, page, p, &n, &record.offset));
        w->db.seen_entries++;
        MR_TRY(w->fn(w->ctx, &record, w->err));
    }
    return MR_OK;
}

/* `level` counts from the root, 0; only pages of the last level are leaves.  The recursion ends at MAX_DEPTH. */
static mr_status walk_page(walk *w, uint64_t page, unsigned level)
{
    uint8_t *p = w->stack[level];
    unsigned nodes;
    bool leaf = level + 1 == w->db.depth;
    MR_TRY(read_page(w, page, leaf ? P_LEAF : P_BRANCH, p, &nodes));
    if (leaf)
        return walk_leaf(w, page, p, nodes);
    w->db.seen_branches++;
    for (unsigned i = 0; i < nodes; i++) {
        node n;
        uint64_t key;
        MR_TRY(read_node(w, page, p, i, false, &n));
        if (i > 0) /* the first child's key means "everything before the second" */
            MR_TRY(take_key(w, page, p, &n, &key));
        MR_TRY(walk_page(w, n.child, level + 1));
    }
    return MR_OK;
}

static void read_db(const uint8_t *p, tree *db)
{
    *db = (tree){
        .depth = mr_get16le(p + 6),
        .branches = mr_get64le(p + 8),
        .leaves = mr_get64le(p + 16),
        .runs = mr_get64le(p + 24),
        .entries = mr_get64le(p + 32),
        .root = mr_get64le(p + 40),
    };
}

/* The meta page of the later transaction is the valid one. */
static mr_status read_metas(walk *w, uint64_t size, tree *main_db)
{
    uint8_t p[2][MR_LMDB_PAGE];
    if (size % MR_LMDB_PAGE || size < 2 * MR_LMDB_PAGE)
        return mr_fail(w->err, MR_BAD_DATA, "%s: %llu bytes are not a whole number of pages of %d", w->name,
                       (unsigned long long)size, MR_LMDB_PAGE);
    MR_TRY(mr_file_pread(w->fd, p, sizeof p, 0, w->name, w->err));
    for (unsigned i = 0; i < 2; i++)
        if (!(mr_get16le(p[i] + 10) & P_META) || mr_get32le(p[i] + 16) != META_MAGIC || mr_get32le(p[i] + 20) != 1)
            return bad(w, i, "is not the start of an LMDB file (version 1)");
    const uint8_t *meta = p[mr_get64le(p[1] + 144) > mr_get64le(p[0] + 144)];
    if (mr_get32le(meta + 40) != MR_LMDB_PAGE)
        return mr_fail(w->err, MR_BAD_DATA, "%s: pages of %u bytes; shards have pages of %d", w->name,
                       mr_get32le(meta + 40), MR_LMDB_PAGE);
    uint64_t last = mr_get64le(meta + 136);
    w->pages = size / MR_LMDB_PAGE;
    if (last < w->pages)
        w->pages = last + 1;
    read_db(meta + 88, main_db);
    return MR_OK;
}

/* A shard has two databases, so the tree of their names is one leaf page. */
static mr_status find_database(walk *w, const tree *main_db, const char *database)
{
    uint8_t *p = w->stack[0];
    unsigned nodes;
    if (main_db->depth != 1)
        return mr_fail(w->err, MR_BAD_DATA, "%s: the table of databases is empty or is not one page", w->name);
    MR_TRY(read_page(w, main_db->root, P_LEAF, p, &nodes));
    for (unsigned i = 0; i < nodes; i++) {
        node n;
        MR_TRY(read_node(w, main_db->root, p, i, true, &n));
        if (n.key_len != strlen(database) || memcmp(p + n.key, database, n.key_len) != 0)
            continue;
        if (n.flags != F_SUBDATA || n.data_len != DB_SIZE)
            return bad(w, main_db->root, "the entry of a database is not a database");
        if (mr_get16le(p + n.data + 4))
            return bad(w, main_db->root, "a database has flags (duplicate or reversed keys) that shards never have");
        read_db(p + n.data, &w->db);
        return MR_OK;
    }
    return mr_fail(w->err, MR_BAD_DATA, "%s: has no database \"%s\"", w->name, database);
}

static mr_status check_counts(const walk *w, const char *database)
{
    const tree *db = &w->db;
    if (db->seen_entries != db->entries)
        return mr_fail(w->err, MR_BAD_DATA, "%s: database \"%s\" says %llu records and has %llu", w->name, database,
                       (unsigned long long)db->entries, (unsigned long long)db->seen_entries);
    if (db->seen_branches != db->branches || db->seen_leaves != db->leaves || db->seen_runs != db->runs)
        return mr_fail(w->err, MR_BAD_DATA, "%s: the page counts of database \"%s\" are wrong", w->name, database);
    return MR_OK;
}

static void free_walk(walk **w)
{
    if (*w)
        free((*w)->seen);
    free(*w);
}

mr_status mr_walk(int fd, uint64_t size, const char *name, const char *database, mr_walk_fn fn, void *ctx,
                  mr_error *err)
{
    tree main_db = {0};
    MR_AUTO(free_walk) walk *w = mr_alloc(1, sizeof *w);
    if (!w)
        return mr_fail_memory(err, "reading a shard");
    w->fd = fd;
    w->name = name;
    w->fn = fn;
    w->ctx = ctx;
    w->err = err;
    MR_TRY(read_metas(w, size, &main_db));
    w->seen = mr_alloc((size_t)(w->pages / 8 + 1), 1);
    if (!w->seen)
        return mr_fail_memory(err, "reading a shard");
    MR_TRY(find_database(w, &main_db, database));
    if (w->db.root == NO_ROOT)
        w->db.depth = 0;
    else if (w->db.depth < 1 || w->db.depth > MAX_DEPTH)
        return mr_fail(err, MR_BAD_DATA, "%s: database \"%s\" is %u levels deep", name, database, w->db.depth);
    else
        MR_TRY(walk_page(w, w->db.root, 0));
    return check_counts(w, database);
}
