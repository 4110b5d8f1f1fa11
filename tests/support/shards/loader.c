/* loader.c - loaders run to their end, and what they gave; see support/loader.h. */
#include "tests/support/shards/loader.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/hash.h"
#include "tests/support/shards/dataset_maker.h"
#include "shards/manifest/format.h"

/* ---- data ------------------------------------------------------------------------------------------------------- */

static picture draw(mr_random *r, size_t i)
{
    unsigned width = 8 + (unsigned)mr_random_below(r, 63), height = 8 + (unsigned)mr_random_below(r, 63);
    picture exif = make_exif(i % 2, 3, 1, 1 + (uint32_t)(i % 8)), p;
    switch (i % 5) {
    case 0:
        p = make_png(width, height, 2, 8, i % 2);
        break;
    case 1:
        p = make_webp(width, height, i % 2, false);
        break;
    default:
        p = make_jpeg((jpeg_kind){
            .width = width, .height = height, .components = i % 3 ? 3 : 1, .progressive = i % 7 == 0, .exif = &exif});
    }
    picture_free(&exif);
    return p;
}

/* Only the first ten bytes of the coded pixels are left, followed by the end marker: the structure is sound. */
static void break_pixels(picture *p)
{
    size_t scan = jpeg_marker(*p, 0xda), len = scan + 2 + ((size_t)p->bytes[scan + 2] << 8 | p->bytes[scan + 3]) + 10;
    assert_true(len + 2 < p->len);
    memcpy(p->bytes + len, "\xff\xd9", 2);
    picture cut = picture_copy(p->bytes, len + 2);
    picture_free(p);
    *p = cut;
}

static bool listed(const int *list, int n)
{
    for (; list && *list >= 0; list++)
        if (*list == n)
            return true;
    return false;
}

void make_pictures(const char *dir, size_t count, size_t per_shard, const int *broken)
{
    static const char *const classes[3] = {"ant", "bee", "cat"}; /* as dataset_make() names them */
    made *samples = mr_alloc(count, sizeof *samples);
    mr_random r = support_random();
    assert_non_null(samples);
    for (size_t i = 0; i < count; i++) {
        samples[i] = (made){.source = support_path("pictures/%zu", i),
                            .image = draw(&r, i),
                            .more = support_path(",\"label\":%zu,\"class\":\"%s\"", i % 3, classes[i % 3])};
        if (listed(broken, (int)i))
            break_pixels(&samples[i].image);
    }
    made_split split = {.name = "train", .samples = samples, .count = count, .per_shard = per_shard};
    dataset_make(dir, &split, 1);
    for (size_t i = 0; i < count; i++) {
        free((char *)(uintptr_t)samples[i].source);
        free((char *)(uintptr_t)samples[i].more);
        picture_free(&samples[i].image);
    }
    free(samples);
}

void hurt_byte(const char *dir, const char *name, uint64_t offset, uint8_t value)
{
    char *path = support_path("%s/%s", dir, name);
    int fd = open(path, O_RDWR);
    uint8_t byte;
    assert_int_equal(pread(fd, &byte, 1, (off_t)offset), 1);
    byte = (uint8_t)(byte + value);
    assert_int_equal(pwrite(fd, &byte, 1, (off_t)offset), 1);
    close(fd);
    free(path);
}

static mr_row row_of(const char *dir, uint64_t n, uint64_t per_shard)
{
    mr_row row;
    char *path = support_path("%s/train-%05llu.idx", dir, (unsigned long long)(n / per_shard));
    uint8_t *idx = support_read(path, NULL);
    mr_row_unpack(idx + MR_INDEX_HEADER + n % per_shard * MR_INDEX_ROW, &row);
    free(idx);
    free(path);
    return row;
}

static void hurt_shard(const char *dir, const char *suffix, uint64_t shard, uint64_t offset, uint8_t value)
{
    char *name = support_path("train-%05llu.%s", (unsigned long long)shard, suffix);
    hurt_byte(dir, name, offset, value);
    free(name);
}

void hurt_image(const char *dir, uint64_t n, uint64_t per_shard)
{
    mr_row row = row_of(dir, n, per_shard);
    hurt_shard(dir, "mdb", n / per_shard, row.image_offset + row.image_len / 2, 1);
}

void hurt_meta(const char *dir, uint64_t n, uint64_t per_shard)
{
    hurt_shard(dir, "mdb", n / per_shard, row_of(dir, n, per_shard).meta_offset + 2, 1);
}

/* The offset's highest byte: it points far outside of the shard. */
void hurt_row(const char *dir, uint64_t n, uint64_t per_shard)
{
    hurt_shard(dir, "idx", n / per_shard, MR_INDEX_HEADER + n % per_shard * MR_INDEX_ROW + 7, 0x40);
}

/* ---- runs ------------------------------------------------------------------------------------------------------- */

mr_dataset *open_dataset_at(const char *dir)
{
    mr_dataset *ds = NULL;
    mr_error err;
    if (mr_dataset_open(dir, &ds, &err) != MR_OK)
        fail_msg("%s", err.text);
    return ds;
}

mr_loader *open_loader(const mr_dataset *ds, const mr_loader_options *o)
{
    mr_loader *l = NULL;
    mr_error err;
    if (mr_loader_open(ds, o, &l, &err) != MR_OK)
        fail_msg("%s", err.text);
    return l;
}

void expect_no_loader(const mr_dataset *ds, const mr_loader_options *o, mr_status status, const char *words)
{
    mr_loader *l = NULL;
    mr_error err = {.text = ""};
    mr_status got = mr_loader_open(ds, o, &l, &err);
    if (got != status || l || !strstr(err.text, words))
        fail_msg("status %d, \"%s\" does not mention \"%s\"", got, err.text, words);
}

static uint64_t facts_hash(const mr_sample_facts *f, bool coded)
{
    uint64_t numbers[] = {f->sample,
                          f->width,
                          f->height,
                          f->codec,
                          f->orientation,
                          f->components,
                          f->bits,
                          f->flags,
                          coded ? 0 : f->length,
                          f->left,
                          f->top,
                          f->crop_width,
                          f->crop_height,
                          f->flip,
                          (uint32_t)f->label,
                          f->other,
                          (uint32_t)f->other_label,
                          (uint64_t)((double)f->share * 0x1p40)};
    return mr_hash64(numbers, sizeof numbers);
}

static void see(seen_list *s, mr_loader *l, const mr_batch *b, const mr_loader_options *o)
{
    bool coded = o->deliver == MR_DELIVER_CODED;
    uint64_t noted = b->replaced;
    float *floats = coded ? coded_floats(l, b, &s->ways, &s->status, &s->error) : NULL;
    size_t each = b->count && o->deliver != MR_DELIVER_ENCODED ? b->data_bytes / b->count : 0;
    if (coded)
        each = (size_t)3 * sizeof(float) * o->transform.size * o->transform.size;
    assert_true(b->replaced >= noted);
    assert_int_equal((uintptr_t)b->data % 64, 0);
    for (uint64_t i = 0; i < b->count; i++) {
        const mr_sample_facts *f = &b->samples[i];
        const uint8_t *data = coded ? (const uint8_t *)floats : b->data;
        assert_true(MR_GROW(s->items, s->count, s->capacity));
        if (o->deliver == MR_DELIVER_ENCODED)
            assert_true(f->offset % 64 == 0 && f->offset + f->length <= b->data_bytes);
        if (o->with_meta && f->meta)
            assert_int_equal(strlen(f->meta), f->meta_len);
        s->items[s->count++] = (seen){
            .epoch = b->epoch,
            .step = b->step,
            .sample = f->sample,
            .facts = facts_hash(f, coded),
            .weight = f->weight,
            .label = f->label,
            .meta = f->meta ? mr_hash64(f->meta, f->meta_len) : 0,
            .bytes = each        ? mr_hash64(data + i * each, each)
                     : f->length ? mr_hash64(data + f->offset, f->length)
                                 : mr_hash64("", 0),
        };
    }
    s->batches++;
    s->replaced += b->replaced;
    free(floats);
}

seen_list run_loader(const mr_dataset *ds, const mr_loader_options *o, uint64_t batches)
{
    return run_ranks(ds, *o, o->world ? o->world : 1, o->threads, batches);
}

seen_list run_ranks(const mr_dataset *ds, mr_loader_options o, unsigned world, unsigned threads, uint64_t batches)
{
    seen_list s = {.status = MR_OK};
    mr_loader **loaders = mr_alloc(world, sizeof *loaders);
    assert_non_null(loaders);
    o.world = world;
    o.threads = threads;
    for (o.rank = 0; o.rank < world; o.rank++)
        loaders[o.rank] = open_loader(ds, &o);
    for (uint64_t k = 0; s.status == MR_OK && (batches == 0 || k < batches); k++)
        for (unsigned rank = 0; rank < world && s.status == MR_OK; rank++) {
            const mr_batch *b = NULL;
            s.status = mr_loader_next(loaders[rank], &b, &s.error);
            if (s.status != MR_OK)
                break;
            see(&s, loaders[rank], b, &o);
            mr_batch_release(loaders[rank], b);
        }
    s.cursor = mr_loader_cursor(loaders[0]);
    for (unsigned rank = 0; rank < world; rank++)
        mr_loader_free(loaders[rank]);
    free(loaders);
    return s;
}

void seen_free(seen_list *s)
{
    free(s->items);
    *s = (seen_list){.items = NULL};
}

void assert_same_seen(const seen_list *a, size_t from, const seen_list *b)
{
    assert_true(from <= a->count);
    assert_int_equal(a->count - from, b->count);
    for (size_t i = 0; i < b->count; i++) {
        const seen *x = &a->items[from + i], *y = &b->items[i];
        if (x->epoch != y->epoch || x->step != y->step || x->sample != y->sample || x->facts != y->facts ||
            x->bytes != y->bytes || x->meta != y->meta || x->weight != y->weight)
            fail_msg("slot %zu: epoch %llu step %llu sample %llu is not epoch %llu step %llu sample %llu", i,
                     (unsigned long long)x->epoch, (unsigned long long)x->step, (unsigned long long)x->sample,
                     (unsigned long long)y->epoch, (unsigned long long)y->step, (unsigned long long)y->sample);
    }
}

/* ---- what tests have in common ----------------------------------------------------------------------------------- */

mr_loader_options usual_options(mr_delivery deliver, mr_tail tail)
{
    return (mr_loader_options){
        .split = "train",
        .global_batch = 8,
        .seed = 5,
        .tail = tail,
        .deliver = deliver,
        .epochs = 2,
        .with_meta = 1,
        .transform = {.size = 24, .flip = 0.5f, .apply_orientation = tail == MR_TAIL_PAD},
    };
}

void *account_take(void *ctx, size_t bytes)
{
    account *a = ctx;
    uint8_t *block;
    if (a->calls++ >= a->refuse_after || posix_memalign((void **)&block, 64, bytes + 64) != 0)
        return NULL;
    a->bytes += bytes;
    if (a->bytes > a->peak)
        a->peak = a->bytes;
    memset(block, 0xAA, bytes + 64);
    return block + a->shift;
}

void account_give_back(void *ctx, void *memory, size_t bytes)
{
    account *a = ctx;
    a->bytes -= bytes;
    free((uint8_t *)memory - a->shift);
}
