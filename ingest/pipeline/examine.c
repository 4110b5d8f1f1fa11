/* examine.c - pass 1: every image file is read once, hashed and checked; work is shared by threads and ranks.
 * Invariant: the result for a file depends on its bytes and the limits alone. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/system/pool.h"
#include "base/scope.h"
#include "base/cli/term.h"
#include "ingest/pipeline/ingest_state.h"

enum {
    RANK_BLOCK = 64,  /* neighboring files go to the same rank */
    LARGE = 64 << 20, /* larger files are read one at a time: memory is the largest one, not that times threads */
    HEAD = 4096,
};

typedef struct pass {
    mr_ingest *in;
    mr_buf *buffers; /* one per worker */
    mr_progress *progress;
    pthread_mutex_t large;
} pass;

static bool mine(const mr_ingest *in, size_t file)
{
    return file / RANK_BLOCK % mr_ranks_world(in->ranks) == mr_ranks_rank(in->ranks);
}

/* Every pixel, if it was asked for; `look`, unless NULL, becomes the image's hash in the same pass.  Without --check
 * decode an image that cannot be decoded is not rejected, but has no hash. */
static mr_status decode(const mr_ingest *in, const mr_buf *bytes, mr_examined *x, mr_near_picture *look, mr_error *err)
{
    const mr_ingest_options *o = in->options;
    mr_alike cells;
    uint32_t oddities;
    if (!look && !o->decode)
        return MR_OK;
    mr_status status = mr_image_decode_look(bytes->data, bytes->len, &o->limits, &oddities, look ? &cells : NULL, err);
    if (look && (status == MR_OK || status == MR_BAD_SAMPLE))
        mr_near_set(look, status == MR_OK ? &cells : NULL);
    if (!o->decode)
        return status == MR_BAD_SAMPLE ? MR_OK : status;
    x->oddities = oddities;
    return status;
}

/* Hashes and checks the bytes of a file. */
static mr_status check(const mr_ingest *in, const mr_buf *bytes, size_t file, mr_error *err)
{
    mr_examined *x = &in->examined[file];
    mr_error why;
    x->hash = mr_hash64(bytes->data, bytes->len);
    mr_hash128(bytes->data, bytes->len, x->hash128);
    mr_status status = mr_image_examine(bytes->data, bytes->len, &in->options->limits, &x->facts, &why);
    if (status == MR_OK)
        status = decode(in, bytes, x, in->looks ? &in->looks[file] : NULL, &why);
    if (status == MR_SYSTEM || status == MR_MISUSE) {
        if (err)
            *err = why;
        return status;
    }
    if (status != MR_OK && !(x->why = strdup(why.text)))
        return mr_fail_memory(err, "examining images");
    return MR_OK;
}

/* A large file that is not an image is rejected by its first bytes: 10 KB of archive can unpack to a gigabyte. */
static mr_status examine_large(pass *p, size_t file, mr_buf *bytes, mr_error *err)
{
    uint32_t entry = p->in->files[file];
    if (!mr_buf_reserve(bytes, HEAD))
        return mr_fail_memory(err, "examining images");
    MR_TRY(mr_source_pread(p->in->source, entry, bytes->data, HEAD, 0, err));
    bytes->len = HEAD;
    if (!mr_codec_find(bytes->data, HEAD, NULL))
        return check(p->in, bytes, file, err);
    pthread_mutex_lock(&p->large);
    mr_status status = mr_source_read(p->in->source, entry, bytes, err);
    if (status == MR_OK)
        status = check(p->in, bytes, file, err);
    mr_buf_free(bytes);
    pthread_mutex_unlock(&p->large);
    return status;
}

/* The listing has this limit only for names that end like an image's. */
static mr_status reject_size(mr_examined *x, uint64_t max, mr_error *err)
{
    mr_error why;
    mr_fail(&why, MR_BAD_DATA, "larger than the limit of %llu bytes", (unsigned long long)max);
    x->why = strdup(why.text);
    return x->why ? MR_OK : mr_fail_memory(err, "examining images");
}

static mr_status examine_file(void *ctx, size_t file, unsigned worker, mr_error *err)
{
    pass *p = ctx;
    mr_ingest *in = p->in;
    mr_buf *bytes = &p->buffers[worker];
    uint32_t entry = in->files[file];
    uint64_t size = mr_source_entry(in->source, entry)->size;
    uint64_t max = mr_source_max_entry(in->options->for_source.max_entry);
    if (!mine(in, file))
        return MR_OK;
    mr_buf_clear(bytes);
    if (size > max) {
        MR_TRY(reject_size(&in->examined[file], max, err));
    } else if (size > LARGE) {
        MR_TRY(examine_large(p, file, bytes, err));
    } else {
        MR_TRY(mr_source_read(in->source, entry, bytes, err));
        MR_TRY(check(in, bytes, file, err));
    }
    mr_progress_add(p->progress, 1, size);
    return MR_OK;
}

/* Each image file once, however many samples show it. */
static mr_status list_files(mr_ingest *in, mr_error *err)
{
    size_t entries = mr_source_count(in->source);
    in->file_of = mr_alloc(entries, sizeof *in->file_of);
    in->files = mr_alloc(in->plan.sample_count, sizeof *in->files);
    if (!in->file_of || !in->files)
        return mr_fail_memory(err, "examining images");
    memset(in->file_of, 0xFF, entries * sizeof *in->file_of);
    for (size_t i = 0; i < in->plan.sample_count; i++)
        in->file_of[in->plan.samples[i].entry] = 0;
    for (uint32_t e = 0; e < entries; e++) {
        if (in->file_of[e] == MR_NO_ENTRY)
            continue;
        in->file_of[e] = (uint32_t)in->file_count;
        in->files[in->file_count++] = e;
    }
    in->examined = mr_alloc(in->file_count, sizeof *in->examined);
    if (in->options->near)
        in->looks = mr_alloc(in->file_count, sizeof *in->looks);
    return in->examined && (in->looks || !in->options->near) ? MR_OK : mr_fail_memory(err, "examining images");
}

/* What this rank examined: for each file the struct, u32 length of the reason, the reason, and how it looks. */
static mr_status pack_examined(const mr_ingest *in, mr_buf *out, mr_error *err)
{
    for (size_t i = 0; i < in->file_count; i++) {
        if (!mine(in, i))
            continue;
        uint32_t len = in->examined[i].why ? (uint32_t)strlen(in->examined[i].why) + 1 : 0;
        mr_buf_add(out, &in->examined[i], sizeof in->examined[i]);
        mr_buf_add(out, &len, sizeof len);
        mr_buf_add(out, in->examined[i].why, len);
        mr_buf_add(out, in->looks ? &in->looks[i] : NULL, in->looks ? sizeof *in->looks : 0);
    }
    return mr_buf_status(out, err, "examining images");
}

static mr_status take_examined(const mr_buf *all, size_t *at, mr_ingest *in, size_t file, mr_error *err)
{
    mr_examined *x = &in->examined[file];
    uint32_t len = 0;
    size_t look = in->looks ? sizeof *in->looks : 0;
    size_t capacity = all->len - *at, head = sizeof *x + sizeof len;
    if (capacity >= head)
        memcpy(&len, all->data + *at + sizeof *x, sizeof len);
    if (capacity < head || capacity - head < len + look)
        return mr_fail(err, MR_SYSTEM, MR_RANKS_DIFFER("listed different files"));
    free(x->why);
    memcpy(x, all->data + *at, sizeof *x);
    x->why = len ? strdup((char *)all->data + *at + head) : NULL;
    if (len && !x->why)
        return mr_fail_memory(err, "examining images");
    if (look)
        memcpy(&in->looks[file], all->data + *at + head + len, look);
    *at += head + len + look;
    return MR_OK;
}

/* What all ranks examined, on every rank. */
static mr_status exchange(mr_ingest *in, mr_error *err)
{
    MR_AUTO(mr_buf_free) mr_buf part = {0};
    MR_AUTO(mr_buf_free) mr_buf all = {0};
    unsigned world = mr_ranks_world(in->ranks);
    size_t at = 0;
    if (world == 1)
        return MR_OK;
    MR_TRY(mr_ranks_agree(in->ranks, pack_examined(in, &part, err), err));
    MR_TRY(mr_ranks_gather(in->ranks, &part, &all, NULL, err));
    for (unsigned rank = 0; rank < world; rank++)
        for (size_t i = 0; i < in->file_count; i++)
            if (i / RANK_BLOCK % world == rank)
                MR_TRY(take_examined(&all, &at, in, i, err));
    return MR_OK;
}

typedef struct content_key {
    uint8_t hash128[16];
    uint64_t size;
    uint32_t file;
} content_key;

static int by_content(const void *a, const void *b)
{
    const content_key *x = a, *y = b;
    int order = memcmp(x->hash128, y->hash128, sizeof x->hash128);
    if (order == 0)
        order = (x->size > y->size) - (x->size < y->size);
    return order ? order : (x->file > y->file) - (x->file < y->file);
}

static mr_status number_contents(mr_ingest *in, mr_error *err)
{
    MR_AUTO(mr_scope_free) content_key *keys = mr_alloc(in->file_count, sizeof *keys);
    if (!keys)
        return mr_fail_memory(err, "examining images");
    for (size_t i = 0; i < in->file_count; i++) {
        memcpy(keys[i].hash128, in->examined[i].hash128, sizeof keys[i].hash128);
        keys[i].size = mr_source_entry(in->source, in->files[i])->size;
        keys[i].file = (uint32_t)i;
    }
    if (in->file_count)
        qsort(keys, in->file_count, sizeof *keys, by_content);
    for (size_t i = 0; i < in->file_count; i++) {
        bool same = i > 0 && memcmp(keys[i].hash128, keys[i - 1].hash128, 16) == 0 && keys[i].size == keys[i - 1].size;
        in->content_count += !same;
        in->examined[keys[i].file].content = (uint32_t)in->content_count - 1;
    }
    return MR_OK;
}

/* One note per kind of oddity, with the first file that has it. */
static void note_oddities(mr_ingest *in)
{
    for (int oddity = 0; oddity < MR_ODDITY_COUNT; oddity++) {
        size_t count = 0, first = 0, len;
        for (size_t i = 0; i < in->file_count; i++) {
            if (in->examined[i].why || !(in->examined[i].oddities >> oddity & 1))
                continue;
            first = count++ ? first : i;
        }
        if (count == 0)
            continue;
        const char *path = mr_tree_path(&in->choice.tree, in->files[first], &len);
        mr_note_add(&in->notes, MR_NOTE_INFO, path, len, mr_source_entry(in->source, in->files[first])->size,
                    "%s, in %zu image%s: harmless, every decoder gives the same pixels", mr_oddity_words[oddity], count,
                    count == 1 ? "" : "s, this one first");
    }
}

static void note_rejects(mr_ingest *in)
{
    for (size_t i = 0; i < in->file_count; i++) {
        size_t len;
        const char *path = mr_tree_path(&in->choice.tree, in->files[i], &len);
        if (in->examined[i].why)
            mr_note_add(&in->notes, MR_NOTE_REJECT, path, len, mr_source_entry(in->source, in->files[i])->size, "%s",
                        in->examined[i].why);
    }
    in->rejects = mr_rejects(in);
}

/* This rank's share. */
static mr_status examine_files(mr_ingest *in, mr_error *err)
{
    pass p = {.in = in, .large = PTHREAD_MUTEX_INITIALIZER};
    unsigned jobs = in->options->jobs ? in->options->jobs : 1;
    MR_TRY(list_files(in, err));
    p.buffers = mr_alloc(jobs, sizeof *p.buffers);
    if (!p.buffers)
        return mr_fail_memory(err, "examining images");
    p.progress = mr_progress_begin("checking", in->file_count / mr_ranks_world(in->ranks), mr_ingest_progress(in));
    mr_status status = mr_pool_run(in->file_count, jobs, examine_file, &p, err);
    mr_progress_end(p.progress);
    for (unsigned i = 0; i < jobs; i++)
        mr_buf_free(&p.buffers[i]);
    free(p.buffers);
    return status;
}

mr_status mr_examine(mr_ingest *in, mr_error *err)
{
    MR_TRY(mr_ranks_agree(in->ranks, examine_files(in, err), err));
    MR_TRY(exchange(in, err));
    MR_TRY(number_contents(in, err));
    note_rejects(in);
    note_oddities(in);
    return MR_OK;
}
