/* power.c - what a power loss may leave of a folder.
 * Invariant: an object is a file or folder from its creation on, whatever its names; numbers are never used again,
 * while the inodes of the log may be.  Object 0 is the root. */
#include "tests/support/power.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/faults/faults.h"

enum { NOBODY = -1, EVERYBODY = -2 };

typedef struct place { /* a name */
    int dir, object;
    const char *name;
} place;

typedef struct places {
    place *items;
    size_t count, capacity;
} places;

typedef struct op {
    log_kind kind;
    int object, dir, other_dir, other; /* other: what an exchange swaps it with */
    const char *name, *other_name;
    const uint8_t *bytes;
    uint64_t at;
    size_t len;
} op;

typedef struct thing {
    uint64_t inode; /* 0: removed */
    bool folder;
} thing;

struct power {
    uint8_t *log;
    op *ops;
    thing *objects;
    size_t count, op_capacity, objects_count, object_capacity;
};

/* ---- names ------------------------------------------------------------------------------------------------------ */

static void *grow(void *items, size_t count, size_t *capacity, size_t size)
{
    if (count < *capacity)
        return items;
    *capacity = *capacity ? *capacity * 2 : 64;
    items = realloc(items, *capacity * size);
    assert_non_null(items);
    return items;
}

static place *find(places *all, int dir, const char *name)
{
    for (size_t i = 0; i < all->count; i++)
        if (all->items[i].dir == dir && strcmp(all->items[i].name, name) == 0)
            return &all->items[i];
    return NULL;
}

static int look_up(places *all, int dir, const char *name)
{
    place *at = find(all, dir, name);
    return at ? at->object : NOBODY;
}

/* NOBODY: the name goes. */
static void set(places *all, int dir, const char *name, int object)
{
    place *at = find(all, dir, name);
    if (object == NOBODY) {
        if (at)
            *at = all->items[--all->count];
        return;
    }
    if (!at) {
        all->items = grow(all->items, all->count, &all->capacity, sizeof *all->items);
        at = &all->items[all->count++];
    }
    *at = (place){dir, object, name};
}

/* What an op did, or would do, to the names; only if the object still is where it was. */
static void apply_names(places *all, const op *o)
{
    switch (o->kind) {
    case LOG_CREATE:
    case LOG_MKDIR:
        set(all, o->dir, o->name, o->object);
        break;
    case LOG_RENAME:
        if (look_up(all, o->dir, o->name) == o->object)
            set(all, o->dir, o->name, NOBODY);
        set(all, o->other_dir, o->other_name, o->object);
        break;
    case LOG_EXCHANGE:
        set(all, o->dir, o->name, o->other);
        set(all, o->other_dir, o->other_name, o->object);
        break;
    case LOG_REMOVE:
        if (look_up(all, o->dir, o->name) == o->object)
            set(all, o->dir, o->name, NOBODY);
        break;
    default:
        break;
    }
}

static bool is_of_names(const op *o)
{
    return o->kind == LOG_CREATE || o->kind == LOG_MKDIR || o->kind == LOG_RENAME || o->kind == LOG_EXCHANGE ||
           o->kind == LOG_REMOVE;
}

/* ---- reading the log -------------------------------------------------------------------------------------------- */

static int by_inode(const power *p, uint64_t inode)
{
    for (size_t i = p->objects_count; inode && i-- > 0;)
        if (p->objects[i].inode == inode)
            return (int)i;
    return NOBODY;
}

static int new_object(power *p, uint64_t inode, bool folder)
{
    p->objects = grow(p->objects, p->objects_count, &p->object_capacity, sizeof *p->objects);
    p->objects[p->objects_count] = (thing){inode, folder};
    return (int)p->objects_count++;
}

/* False: outside of the root, or of no consequence. */
static bool resolve(power *p, places *now, const log_record *r, const char *text, op *o)
{
    *o = (op){.kind = (log_kind)r->kind,
              .object = NOBODY,
              .dir = by_inode(p, r->dir),
              .other_dir = by_inode(p, r->other_dir),
              .other = NOBODY,
              .at = r->at,
              .len = r->len,
              .bytes = (const uint8_t *)text,
              .name = text};
    if (o->kind == LOG_ACK)
        return true;
    if (o->kind == LOG_SYNC && !r->file)
        o->object = EVERYBODY;
    else if (!is_of_names(o))
        return (o->object = by_inode(p, r->file)) != NOBODY;
    if (o->kind == LOG_SYNC)
        return true;
    if (o->dir == NOBODY)
        return false;
    if (o->kind == LOG_CREATE || o->kind == LOG_MKDIR) {
        o->object = new_object(p, r->file, o->kind == LOG_MKDIR);
        return true;
    }
    o->object = look_up(now, o->dir, text);
    if (o->kind == LOG_REMOVE)
        return o->object != NOBODY;
    o->other_name = text + strlen(text) + 1;
    o->other = look_up(now, o->other_dir, o->other_name);
    return o->object != NOBODY && o->other_dir != NOBODY;
}

power *power_load(const char *log, const char *root)
{
    power *p = calloc(1, sizeof *p);
    assert_non_null(p);
    size_t len;
    struct stat st;
    places now = {0};
    p->log = support_read(log, &len);
    assert_int_equal(stat(root, &st), 0);
    new_object(p, st.st_ino, true);
    for (size_t at = 0; at < len;) {
        log_record r;
        assert_true(len - at >= sizeof r);
        memcpy(&r, p->log + at, sizeof r);
        const char *text = (const char *)p->log + at + sizeof r;
        at += sizeof r + r.len;
        assert_true(at <= len);
        p->ops = grow(p->ops, p->count, &p->op_capacity, sizeof *p->ops);
        op *o = &p->ops[p->count];
        if (!resolve(p, &now, &r, text, o))
            continue;
        p->count++;
        if (o->kind == LOG_REMOVE || (o->kind == LOG_RENAME && o->other != NOBODY))
            p->objects[o->kind == LOG_REMOVE ? o->object : o->other].inode = 0;
        apply_names(&now, o);
    }
    free(now.items);
    return p;
}

void power_free(power *p)
{
    free(p->log);
    free(p->ops);
    free(p->objects);
    free(p);
}

void power_acknowledge(const char *log)
{
    log_record r = {.kind = LOG_ACK};
    int fd = open(log, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0 && write(fd, &r, sizeof r) == sizeof r);
    close(fd);
}

size_t power_moments(const power *p)
{
    return p->count + 1;
}

unsigned power_acknowledged(const power *p, size_t moment)
{
    unsigned n = 0;
    for (size_t i = 0; i < moment; i++)
        n += p->ops[i].kind == LOG_ACK;
    return n;
}

/* ---- an image --------------------------------------------------------------------------------------------------- */

static bool syncs(const op *o, int object)
{
    return o->kind == LOG_SYNC && (o->object == object || o->object == EVERYBODY);
}

static bool synced(const power *p, int object, size_t after, size_t moment)
{
    for (size_t i = after + 1; i < moment; i++)
        if (syncs(&p->ops[i], object))
            return true;
    return false;
}

static bool is_safe(const power *p, size_t i, size_t moment)
{
    const op *o = &p->ops[i];
    if (!is_of_names(o))
        return synced(p, o->object, i, moment);
    return synced(p, o->dir, i, moment) &&
           (o->other_dir == NOBODY || o->other_dir == o->dir || synced(p, o->other_dir, i, moment));
}

typedef struct content {
    uint8_t *bytes;
    size_t len;
} content;

static void resize(content *c, size_t len)
{
    c->bytes = realloc(c->bytes, len ? len : 1);
    assert_non_null(c->bytes);
    if (len > c->len)
        memset(c->bytes + c->len, 0, len - c->len);
    c->len = len;
}

/* `part` of the bytes arrive; `reach`: how far the file's size does. */
static void write_part(content *c, const op *o, size_t part, size_t reach)
{
    if (c->len < o->at + reach)
        resize(c, o->at + reach);
    if (part)
        memcpy(c->bytes + o->at, o->bytes, part);
}

static void put_tree(const power *p, const places *all, const content *contents, int dir, const char *path, int depth)
{
    assert_true(depth < 50);
    assert_int_equal(mkdir(path, 0777), 0);
    for (size_t i = 0; i < all->count; i++) {
        const place *at = &all->items[i];
        if (at->dir != dir)
            continue;
        char *name = support_path("%s/%s", path, at->name);
        if (p->objects[at->object].folder)
            put_tree(p, all, contents, at->object, name, depth + 1);
        else
            support_write(name, contents[at->object].bytes ? (const void *)contents[at->object].bytes : "",
                          contents[at->object].len);
        free(name);
    }
}

typedef enum luck { NONE, ORDERED, ANY, ALL } luck; /* of what is not safe */

static size_t last_sync(const power *p, size_t moment)
{
    while (moment && p->ops[moment - 1].kind != LOG_SYNC)
        moment--;
    return moment;
}

static bool survives(const power *p, size_t i, size_t moment, luck names, luck bytes, size_t cut, mr_random *chance)
{
    if (is_safe(p, i, moment))
        return true;
    luck l = is_of_names(&p->ops[i]) ? names : bytes;
    return l == ALL || (l == ORDERED && i < cut) || (l == ANY && mr_random_below(chance, 2));
}

void power_image(const power *p, size_t moment, mr_random *chance, const char *out)
{
    places all = {0};
    content *contents = calloc(p->objects_count, sizeof *contents);
    assert_non_null(contents);
    luck names = (luck)mr_random_below(chance, ALL + 1), bytes = (luck)mr_random_below(chance, ALL + 1);
    /* A journal takes all changes of names up to some moment, which is not before the last sync of anything. */
    size_t least = last_sync(p, moment), cut = mr_random_between(chance, least, moment);
    for (size_t i = 0; i < moment; i++) {
        const op *o = &p->ops[i];
        bool lives = survives(p, i, moment, names, bytes, cut, chance), torn = !is_safe(p, i, moment) && bytes == ANY;
        if (is_of_names(o) && lives)
            apply_names(&all, o);
        else if (o->kind == LOG_SIZE && lives)
            resize(&contents[o->object], o->at);
        else if (o->kind == LOG_WRITE && lives)
            write_part(&contents[o->object], o,
                       torn && mr_random_below(chance, 4) == 0 ? mr_random_below(chance, o->len) : o->len, o->len);
        else if (o->kind == LOG_WRITE && mr_random_below(chance, 4) == 0)
            write_part(&contents[o->object], o, 0, o->len);
    }
    put_tree(p, &all, contents, 0, out, 0);
    for (size_t i = 0; i < p->objects_count; i++)
        free(contents[i].bytes);
    free(contents);
    free(all.items);
}

/* ---- order ------------------------------------------------------------------------------------------------------ */

/* The last change of an object's own bytes or names before `end`; true if a sync follows it. */
static bool settled(const power *p, int object, size_t end)
{
    for (size_t i = end; i-- > 0;) {
        const op *o = &p->ops[i];
        if (syncs(o, object))
            return true;
        if (is_of_names(o) ? o->dir == object || o->other_dir == object
                           : (o->kind == LOG_WRITE || o->kind == LOG_SIZE) && o->object == object)
            return false;
    }
    return true;
}

/* The name of something below `object`, or its own, that is not on disk yet; NULL: all is. */
static const char *unsettled(const power *p, const places *now, int object, const char *name, size_t end)
{
    if (!settled(p, object, end))
        return name;
    for (size_t i = 0; i < now->count; i++) {
        const char *found =
            now->items[i].dir != object ? NULL : unsettled(p, now, now->items[i].object, now->items[i].name, end);
        if (found)
            return found;
    }
    return NULL;
}

/* Names with a dot in front, and those set aside, are not read by anybody. */
static bool is_public(const char *name)
{
    return name[0] != '.' && !strstr(name, ".old") && !strstr(name, ".gone");
}

char *power_disorder(const power *p, size_t *published)
{
    places now = {0};
    char *found = NULL;
    *published = 0;
    for (size_t i = 0; i < p->count && !found; i++) {
        const op *o = &p->ops[i];
        if ((o->kind == LOG_RENAME || o->kind == LOG_EXCHANGE) && is_public(o->other_name)) {
            const char *early = unsettled(p, &now, o->object, o->name, i);
            size_t end = i;
            while (end < p->count && p->ops[end].kind != LOG_ACK)
                end++;
            ++*published;
            if (early)
                found = support_path("'%s' became '%s' before '%s' was on disk", o->name, o->other_name, early);
            else if (!synced(p, o->other_dir, i, end))
                found = support_path("'%s' became '%s', and its folder was not synced", o->name, o->other_name);
        }
        apply_names(&now, o);
    }
    free(now.items);
    return found;
}
