/* dataset_maker.c - small datasets to a test's own measure; see dataset_maker.h. */
#include "tests/support/shards/dataset_maker.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files/file.h"
#include "shards/format/index.h"
#include "tests/support/shards/lmdb.h"

static void digest_of(const char *path, mr_digest *out)
{
    mr_error err;
    int fd;
    uint64_t size;
    if (mr_file_open(AT_FDCWD, path, false, &fd, &size, &err) != MR_OK ||
        mr_file_digest(fd, size, true, path, out, &err) != MR_OK)
        fail_msg("%s", err.text);
    close(fd);
}

static void write_index(const char *dir, const mr_shard *shard)
{
    char *mdb = support_path("%s/%s.mdb", dir, shard->name), *idx = support_path("%s/%s.idx", dir, shard->name);
    mr_buf index = {0};
    mr_error err;
    int fd;
    uint64_t size;
    if (mr_file_open(AT_FDCWD, mdb, false, &fd, &size, &err) != MR_OK ||
        mr_index_build(fd, size, shard->name, shard->first, shard->samples, &index, &err) != MR_OK)
        fail_msg("%s", err.text);
    support_write(idx, index.data, index.len);
    mr_buf_free(&index);
    close(fd);
    free(mdb);
    free(idx);
}

static void write_mdb(const char *dir, const made *samples, mr_shard *shard)
{
    char *path = support_path("%s/%s.mdb", dir, shard->name);
    unlink(path); /* of a dataset made here before */
    lmdb_file *f = lmdb_create(path, 0, 0);
    for (uint64_t i = 0; i < shard->samples; i++) {
        const made *m = &samples[shard->first + i];
        char *same =
            m->shares ? support_path(",\"image_of\":%llu", (unsigned long long)m->image_of) : support_path("%s", "");
        char *meta = support_path("{\"source\":\"%s\"%s%s}", m->source, same, m->more ? m->more : "");
        if (!m->shares) {
            lmdb_put(f, true, shard->first + i, m->image.bytes, m->image.len);
            shard->images++;
            shard->image_bytes += m->image.len;
        }
        lmdb_put(f, false, shard->first + i, meta, strlen(meta));
        free(meta);
        free(same);
    }
    lmdb_finish(f);
    free(path);
}

static void write_manifest(const char *dir, mr_manifest *m)
{
    mr_buf text = {0};
    mr_error err;
    for (size_t i = 0; i < m->split_count; i++) {
        for (size_t k = 0; k < m->splits[i].shard_count; k++) {
            mr_shard *s = &m->splits[i].shards[k];
            char *mdb = support_path("%s/%s.mdb", dir, s->name), *idx = support_path("%s/%s.idx", dir, s->name);
            digest_of(mdb, &s->mdb);
            digest_of(idx, &s->idx);
            free(mdb);
            free(idx);
        }
    }
    char *path = support_path("%s/manifest.json", dir);
    if (mr_manifest_write(m, &text, &err) != MR_OK)
        fail_msg("%s", err.text);
    support_write(path, text.data, text.len);
    mr_buf_free(&text);
    free(path);
}

static void make_split(const char *dir, const made_split *from, mr_split *split)
{
    snprintf(split->name, sizeof split->name, "%s", from->name);
    split->shard_count = (from->count + from->per_shard - 1) / from->per_shard;
    split->shards = mr_alloc(split->shard_count, sizeof *split->shards);
    assert_non_null(split->shards);
    split->samples = from->count;
    for (size_t k = 0; k < split->shard_count; k++) {
        mr_shard *s = &split->shards[k];
        size_t left = from->count - k * from->per_shard;
        snprintf(s->name, sizeof s->name, "%s-%05zu", from->name, k);
        s->first = k * from->per_shard;
        s->samples = left < from->per_shard ? left : from->per_shard;
        write_mdb(dir, from->samples, s);
        write_index(dir, s);
        split->images += s->images;
        split->image_bytes += s->image_bytes;
    }
}

void dataset_make(const char *dir, const made_split *splits, size_t count)
{
    char layout[] = "imagenette", variant[] = "test", a[] = "ant", b[] = "bee", c[] = "cat";
    mr_class classes[3] = {{.name = a}, {.name = b}, {.name = c, .has_id = true, .id = 90}};
    mr_manifest m = {.layout = layout, .variant = variant, .class_count = 3, .classes = classes, .split_count = count};
    m.splits = mr_alloc(count, sizeof *m.splits);
    assert_non_null(m.splits);
    for (size_t i = 0; i < count; i++)
        make_split(dir, &splits[i], &m.splits[i]);
    write_manifest(dir, &m);
    for (size_t i = 0; i < count; i++)
        free(m.splits[i].shards);
    free(m.splits);
}

static mr_manifest *open_manifest(const char *dir)
{
    mr_manifest *m;
    mr_error err;
    if (mr_manifest_open(dir, &m, NULL, &err) != MR_OK)
        fail_msg("%s", err.text);
    return m;
}

void dataset_reseal(const char *dir)
{
    mr_manifest *m = open_manifest(dir);
    write_manifest(dir, m);
    mr_manifest_free(m);
}

void dataset_seal(const char *dir)
{
    char *path = support_path("%s/manifest.json", dir), *text = (char *)support_read(path, NULL);
    char *seal = strstr(text, ",\n \"seal\": \""), *end = seal ? seal : strrchr(text, '}');
    mr_buf sealed = {0};
    assert_non_null(end);
    while (!seal && end > text && end[-1] == '\n')
        end--;
    mr_buf_printf(&sealed, "%.*s\n}\n", (int)(end - text), text);
    assert_int_equal(mr_manifest_seal(&sealed, 0, NULL), MR_OK);
    support_write(path, sealed.data, sealed.len);
    mr_buf_free(&sealed);
    free(text);
    free(path);
}
