/* shard.c - shards and whole datasets of drawn samples; see support/shard.h. */
#include "tests/support/shards/shard.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files/file.h"
#include "shards/format/index.h"
#include "tests/support/shards/lmdb.h"

enum { LABELS = 7 };

static bool shares(uint64_t seed, uint64_t first, uint64_t n)
{
    mr_random r;
    mr_random_stream(&r, seed, n);
    return n > first && mr_random_below(&r, 5) == 0;
}

/* A picture of a kind of its own, made longer by a chunk that readers skip: 100 bytes to three pages. */
static picture draw_image(mr_random *r)
{
    uint8_t filler[3 * 4096] = {0}; /* not static: samples are drawn on several threads */
    unsigned width = 1 + (unsigned)mr_random_below(r, 9), height = 1 + (unsigned)mr_random_below(r, 9);
    if (mr_random_below(r, 3) == 0)
        return make_jpeg(
            (jpeg_kind){.width = width, .height = height, .components = 3, .progressive = mr_random_below(r, 2)});
    picture plain = make_png(width, height, mr_random_below(r, 2) ? 2 : 0, 8, false);
    mr_random_bytes(r, filler, 16);
    picture out = png_with(plain, "IDAT", "prVt", filler, mr_random_below(r, 1 + mr_random_below(r, sizeof filler)));
    picture_free(&plain);
    return out;
}

drawn draw_sample(uint64_t seed, uint64_t first, uint64_t n)
{
    mr_random r;
    drawn d = {.shares = shares(seed, first, n), .image_of = n};
    while (shares(seed, first, d.image_of))
        d.image_of--;
    mr_random_stream(&r, seed + 1000, d.image_of);
    d.image = draw_image(&r);
    mr_random_stream(&r, seed + 2000, n);
    char *text = support_path("{\"source\":\"a/%llu.png\"", (unsigned long long)n), *more;
    unsigned kind = (unsigned)mr_random_below(&r, 4);
    more = support_path(kind == 0   ? "%s,\"label\":%llu"
                        : kind == 1 ? "%s,\"labels\":[0,%llu]"
                        : kind == 2 ? "%s,\"unannotated\":true,\"columns\":{\"label\":%llu}"
                                    : "%s,\"annotations\":[{\"image_of\":%llu,\"x\":1.50}]",
                        text, (unsigned long long)(n % LABELS));
    free(text);
    if (d.shares) {
        text = support_path("%s,\"image_of\":%llu", more, (unsigned long long)d.image_of);
        free(more);
        more = text;
    }
    d.meta = support_path("%s}", more);
    free(more);
    return d;
}

void drawn_free(drawn *d)
{
    picture_free(&d->image);
    free(d->meta);
}

mr_shard draw_shard(const char *dir, const char *name, uint64_t seed, uint64_t first, uint64_t samples)
{
    char *mdb = support_path("%s/%s.mdb", dir, name), *idx = support_path("%s/%s.idx", dir, name);
    mr_shard s = {.first = first, .samples = samples};
    mr_buf index = {0};
    mr_error err;
    int fd;
    uint64_t size;
    snprintf(s.name, sizeof s.name, "%s", name);
    lmdb_file *f = lmdb_create(mdb, 50000, 0);
    for (uint64_t n = first; n < first + samples; n++) {
        drawn d = draw_sample(seed, first, n);
        if (!d.shares) {
            lmdb_put(f, true, n, d.image.bytes, d.image.len);
            s.images++;
            s.image_bytes += d.image.len;
        }
        lmdb_put(f, false, n, d.meta, strlen(d.meta));
        drawn_free(&d);
    }
    lmdb_finish(f);
    assert_int_equal(mr_file_open(AT_FDCWD, mdb, false, &fd, &size, &err), MR_OK);
    if (mr_index_build(fd, size, name, first, samples, &index, &err) != MR_OK)
        fail_msg("%s", err.text);
    support_write(idx, index.data, index.len);
    assert_int_equal(mr_file_digest(fd, size, true, mdb, &s.mdb, &err), MR_OK);
    close(fd);
    assert_int_equal(mr_file_open(AT_FDCWD, idx, false, &fd, &size, &err), MR_OK);
    assert_int_equal(mr_file_digest(fd, size, true, idx, &s.idx, &err), MR_OK);
    close(fd);
    mr_buf_free(&index);
    free(mdb);
    free(idx);
    return s;
}

void draw_dataset(const char *dir)
{
    mr_shard train[2] = {draw_shard(dir, "train-00000", 1, 0, 40), draw_shard(dir, "train-00001", 2, 40, 30)};
    mr_shard val = draw_shard(dir, "val-00000", 3, 0, 12);
    mr_split splits[2] = {
        {.name = "train", .samples = 70, .shard_count = 2, .shards = train},
        {.name = "val", .samples = 12, .shard_count = 1, .shards = &val},
    };
    for (int i = 0; i < 2; i++)
        for (size_t k = 0; k < splits[i].shard_count; k++) {
            splits[i].images += splits[i].shards[k].images;
            splits[i].image_bytes += splits[i].shards[k].image_bytes;
        }
    char layout[] = "imagenette", variant[] = "folder", names[7][2] = {"a", "b", "c", "d", "e", "f", "g"};
    mr_class classes[7] = {{0}};
    for (size_t i = 0; i < MR_COUNT(classes); i++)
        classes[i].name = names[i];
    mr_manifest m = {.layout = layout,
                     .variant = variant,
                     .class_count = MR_COUNT(classes),
                     .classes = classes,
                     .split_count = 2,
                     .splits = splits};
    mr_buf text = {0};
    mr_error err;
    char *path = support_path("%s/manifest.json", dir);
    if (mr_manifest_write(&m, &text, &err) != MR_OK)
        fail_msg("%s", err.text);
    support_write(path, text.data, text.len);
    mr_buf_free(&text);
    free(path);
}
