/* shard_tar.c - which archives become a folder of their name: shards of WebDataset (source.h), and archives of splits
 * whose images are in no folder, which would be mixed with those of other splits.
 * Invariant: the verdict depends on the archive's name, its first entries and whether it stands alone, never on the
 * file system.
 *
 *      train-000012.tar            five digits or more: always
 *      imagenet1k-val-00.tar       a digit, or among other archives, if it holds files that share a key:
 *      train.tar, val.tar              7.jpg 7.cls        7.png 7.json        7.jpg 7.txt
 *      train/0000.tar              further down in a folder: by its files alone
 *      train.zip, val.zip          among other archives, if their images are at the top: train/, val/ */
#include <ctype.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/hash.h"
#include "base/scope.h"
#include "ingest/source/names.h"
#include "ingest/archive/archive.h"

enum { ENTRIES = 256, HEAD = 4096, UNPACKED_MAX = 64 << 20 };

enum { HAS_IMAGE = 1, HAS_SIDECAR = 2 };

typedef struct key {
    uint64_t hash;
    unsigned has;
} key;

typedef struct look {
    unpack u;
    key keys[ENTRIES];
    size_t count;
    bool image, shard;
    bool whole;  /* a dataset with folders for its splits */
    bool folder; /* a file is in a folder */
    mr_buf name;
} look;

bool mr_archive_is_shard(const char *name, size_t stem_len)
{
    size_t digits = 0;
    while (digits < stem_len && name[stem_len - 1 - digits] >= '0' && name[stem_len - 1 - digits] <= '9')
        digits++;
    return digits >= MR_SHARD_DIGITS && strncasecmp(name + stem_len, ".tar", 4) == 0;
}

bool mr_archive_is_tar(const char *name, size_t stem_len)
{
    return strncasecmp(name + stem_len, ".tar", 4) == 0 || strcasecmp(name + stem_len, ".tgz") == 0;
}

/* ---- one entry --------------------------------------------------------------------------------------------------- */

static bool is_split_folder(const char *path, size_t len)
{
    static const char *const names[] = {"train",      "training", "val",     "valid",
                                        "validation", "test",     "testing", "__millrace__"};
    for (size_t i = 0; i < MR_COUNT(names); i++)
        if (strlen(names[i]) == len && strncasecmp(path, names[i], len) == 0)
            return true;
    return false;
}

/* One word of "train_images" or "val2017" is a split's. */
static bool names_split(const char *name, size_t len)
{
    for (size_t at = 0, word; at < len; at += word + 1) {
        for (word = 0; at + word < len && isalpha((unsigned char)name[at + word]);)
            word++;
        if (is_split_folder(name + at, word))
            return true;
    }
    return false;
}

/* Two letters beside each other: numbers, such as the boxes of a YOLO label, have none. */
static bool has_words(const char *text, size_t len)
{
    for (size_t i = 1; i < len; i++)
        if ((isalpha((unsigned char)text[i]) || (unsigned char)text[i] >= 0x80) &&
            (isalpha((unsigned char)text[i - 1]) || (unsigned char)text[i - 1] >= 0x80))
            return true;
    return false;
}

/* A .json may be an annotation of LabelMe, a .txt one of YOLO: those are not WebDataset's. */
static bool is_sidecar(look *l, const char *end, size_t len, bool flat)
{
    char head[HEAD];
    bool json = len == 4 && strncasecmp(end, "json", 4) == 0, text = len == 3 && strncasecmp(end, "txt", 3) == 0;
    if (len == 3 && strncasecmp(end, "cls", 3) == 0)
        return true;
    if (!flat || (!json && !text))
        return false;
    la_ssize_t n = archive_read_data(l->u.archive, head, sizeof head);
    if (n <= 0)
        return false;
    if (text)
        return has_words(head, (size_t)n);
    return !memmem(head, (size_t)n, "\"shapes\"", 8) || !memmem(head, (size_t)n, "\"points\"", 8);
}

static void take_entry(look *l, const char *path, size_t len)
{
    const char *slash = memrchr(path, '/', len), *base = slash ? slash + 1 : path, *top = memchr(path, '/', len);
    const char *dot = memchr(base, '.', len - (size_t)(base - path));
    if (len > 9 && !memcmp(path, "__MACOSX/", 9))
        return;
    l->whole = l->whole || (top && is_split_folder(path, (size_t)(top - path)));
    l->folder = l->folder || top;
    if (!dot || dot == base)
        return;
    uint64_t hash = mr_hash64(path, (size_t)(dot - path));
    size_t at = 0;
    while (at < l->count && l->keys[at].hash != hash)
        at++;
    if (at == l->count)
        l->keys[l->count++] = (key){.hash = hash};
    if (mr_name_is_image(path, len)) {
        l->keys[at].has |= HAS_IMAGE;
        l->image = true;
    } else if (is_sidecar(l, dot + 1, len - (size_t)(dot + 1 - path), !slash)) {
        l->keys[at].has |= HAS_SIDECAR;
    }
    l->shard = l->shard || l->keys[at].has == (HAS_IMAGE | HAS_SIDECAR);
}

/* ---- a tar ------------------------------------------------------------------------------------------------------- */

/* A tar that cannot be read further is a shard if images came first: then its damage is an error that names it. */
static void look_at_entries(look *l)
{
    struct archive_entry *e;
    uint64_t total = 0;
    for (size_t n = 0; n < ENTRIES && !l->whole && !l->shard; n++) {
        int r = archive_read_next_header(l->u.archive, &e);
        if (r == ARCHIVE_EOF)
            return;
        if (r < ARCHIVE_WARN) {
            l->shard = l->image;
            return;
        }
        size_t len;
        const char *name = mr_archive_input_name(e, &len);
        int64_t size = archive_entry_size(e);
        total += size > 0 ? (uint64_t)size : 0;
        if (!name || (total > UNPACKED_MAX && !mr_archive_input_is_file(l->u.input)))
            return;
        mr_list_plain_name(name, len, &l->name);
        if (archive_entry_filetype(e) != AE_IFDIR)
            take_entry(l, mr_buf_text(&l->name), l->name.len);
    }
}

static mr_status look_at(list *l, int fd, const char *path, look *at, mr_error *err)
{
    struct stat st;
    *at = (look){.u = {.list = l, .name = path, .fd = fd, .holder = MR_NO_ENTRY}};
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))
        return MR_OK;
    mr_status status = mr_unpack_begin(&at->u, err);
    if (status == MR_OK) {
        at->u.input->fd = fd;
        at->u.input->seekable = true;
        at->u.input->size = (uint64_t)st.st_size;
        if (mr_archive_input_begin(at->u.input) && mr_archive_input_open(at->u.archive, at->u.input) >= ARCHIVE_WARN)
            look_at_entries(at);
    }
    mr_unpack_end(&at->u);
    mr_buf_free(&at->name);
    return status;
}

mr_status mr_list_looks_like_shard(list *l, int fd, const char *path, bool *shard, mr_error *err)
{
    look at;
    MR_TRY(look_at(l, fd, path, &at, err));
    *shard = at.shard && !at.whole;
    return MR_OK;
}

static bool has_digit(const char *text, size_t len)
{
    while (len && !isdigit((unsigned char)text[len - 1]))
        len--;
    return len > 0;
}

mr_status mr_list_shard(list *l, int fd, const char *path, const char *name, mr_error *err)
{
    size_t stem;
    const char *slash = strrchr(name, '/'), *base = slash ? slash + 1 : name;
    bool archive = mr_archive_name(base, strlen(base), &stem), tar = archive && mr_archive_is_tar(base, stem);
    bool shard = tar && (slash || mr_archive_is_shard(base, stem)), flat = false; /* further down, only shards */
    bool split = archive && !slash && l->several && names_split(base, stem);
    if (!shard && (split || (tar && (l->several || has_digit(base, stem))))) {
        look at;
        MR_TRY(look_at(l, fd, path, &at, err));
        shard = tar && at.shard && !at.whole;
        flat = split && !shard && at.image && !at.folder;
    }
    if (!shard && !flat)
        return mr_list_archive(l, fd, path, err);
    MR_AUTO(mr_buf_free) mr_buf prefix = {0};
    bool is_class = mr_archive_is_class(name, strlen(name));
    if (is_class)
        MR_TRY(mr_list_class_tar(l, name, strlen(name), path, &prefix, err));
    else
        mr_buf_printf(&prefix, "%.*s/", flat ? (int)stem : (int)strlen(name), name);
    l->prefix = mr_buf_text(&prefix);
    mr_status status = prefix.failed ? mr_fail_memory(err, path) : mr_list_archive(l, fd, path, err);
    l->prefix = NULL;
    if (is_class)
        mr_list_end_class_tar(l);
    return status;
}
