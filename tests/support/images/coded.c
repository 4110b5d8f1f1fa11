/* coded.c - coded batches for tests; see coded.h. */
#include "tests/support/images/coded.h"

#include <stdlib.h>
#include <string.h>

#include "base/scope.h"
#include "device/decode/decode.h"

mr_status coded_begin(coded_batch *b, uint32_t size, mr_error *err)
{
    if (!b->planner)
        b->planner = mr_coded_planner_new();
    if (!b->planner)
        return mr_fail_memory(err, "a batch");
    b->used = MR_CODED_RECORDS;
    b->count = 0;
    b->size = size;
    return mr_slab_reserve(&b->slab, b->used, 0, NULL, err);
}

mr_status coded_add(coded_batch *b, const mr_coded_picture *picture, bool *taken, mr_error *err)
{
    mr_coded_picture p = *picture;
    uint64_t len = mr_coded_record(p.len);
    p.at = b->used - MR_CODED_RECORDS;
    MR_TRY(mr_coded_describe(b->planner, &p, &b->descriptions[b->count], taken, err));
    if (!*taken)
        return MR_OK;
    MR_TRY(mr_slab_reserve(&b->slab, b->used + len, b->used, NULL, err));
    memset(b->slab.data + b->used, 0, len);
    memcpy(b->slab.data + b->used, p.bytes, p.len);
    b->used += len;
    b->slots[b->count++] = (mr_coded_slot){.kind = MR_CODED_IMAGE};
    return MR_OK;
}

mr_status coded_end(coded_batch *b, const float mean[3], const float std[3], mr_error *err)
{
    mr_buf tables = {0};
    mr_resize_norm norm = {.set = false};
    mr_coded_batch all = {.slab = &b->slab,
                          .records = b->used,
                          .used = b->used,
                          .slots = b->slots,
                          .descriptions = b->descriptions,
                          .count = b->count,
                          .size = b->size,
                          .mean = mean,
                          .std = std,
                          .norm = &norm,
                          .piece_bytes = b->piece_bytes};
    mr_status status = mr_coded_pack(&all, &tables, &b->bytes, err);
    mr_buf_free(&tables);
    return status;
}

void coded_free(coded_batch *b)
{
    mr_coded_planner_free(b->planner);
    mr_slab_free(&b->slab, NULL);
    for (size_t i = 0; i < CODED_MOST; i++)
        mr_coded_description_free(&b->descriptions[i]);
    *b = (coded_batch){.count = 0};
}

static void *copy(const uint8_t *slab, uint64_t at, uint64_t bytes)
{
    void *own = malloc(bytes ? bytes : 1);
    if (own)
        memcpy(own, slab + at, bytes);
    return own;
}

static void run_piece(const uint8_t *slab, mr_decode *x, uint32_t n)
{
    const mr_coded *h = (const mr_coded *)(const void *)slab;
    memcpy(&x->piece, slab + h->pieces_at + n * sizeof x->piece, sizeof x->piece);
    x->coef = calloc(x->piece.coef, 1);
    x->samples = malloc(x->piece.samples);
    x->rgb = malloc(x->piece.rgb);
    x->lines = malloc(x->piece.lines);
    for (mr_decode_step step = 0; step < MR_DECODE_STEPS; step++)
        for (size_t task = 0; task < mr_decode_tasks(x, step); task++)
            mr_decode_task(x, step, task);
    free(x->coef);
    free(x->samples);
    free(x->rgb);
    free(x->lines);
}

bool coded_run_plain(const void *data, float *values, uint32_t *failed)
{
    const uint8_t *slab = data;
    const mr_coded *h = data;
    void *const own[] = {copy(slab, h->records_at, h->records_bytes),
                         copy(slab, h->images_at, h->images * sizeof(mr_coded_image)),
                         copy(slab, h->parts_at, h->parts * sizeof(mr_coded_part)),
                         copy(slab, h->codes_at, h->codes * sizeof(mr_coded_codes)),
                         copy(slab, h->quants_at, h->quants * (64 * sizeof(int16_t))),
                         copy(slab, h->weights_at, h->weights * sizeof(int32_t)),
                         copy(slab, h->starts_at, h->starts * sizeof(uint32_t)),
                         copy(slab, h->norm_at, 3 * 256 * sizeof(float))};
    bool ok = true;
    for (size_t i = 0; i < MR_COUNT(own); i++)
        ok = ok && own[i];
    mr_decode x = {.size = h->size, .out = values, .failed = failed};
    x.records = own[0];
    x.images = own[1];
    x.parts = own[2];
    x.codes = own[3];
    x.quants = own[4];
    x.weights = own[5];
    x.starts = own[6];
    x.norm = own[7];
    memset(failed, 0, h->images * sizeof *failed);
    for (uint32_t n = 0; n < h->pieces && ok; n++)
        run_piece(slab, &x, n);
    for (size_t i = 0; i < MR_COUNT(own); i++)
        free(own[i]);
    return ok;
}

float *coded_floats(mr_loader *l, const mr_batch *b, coded_ways *ways, mr_status *status, mr_error *err)
{
    const uint8_t *slab = b->data;
    const mr_coded *h = b->data;
    const mr_coded_slot *slots = (const mr_coded_slot *)(const void *)(slab + h->slots_at);
    size_t tensor = (size_t)3 * h->size * h->size;
    coded_ways ignored = {.images = 0}, *w = ways ? ways : &ignored;
    float *out = calloc(b->count * tensor + 1, sizeof *out);
    uint32_t *failed = calloc(h->images + 1, sizeof *failed);
    *status = out && failed && coded_run_plain(slab, out, failed) ? MR_OK : mr_fail_memory(err, "decoding");
    w->images += h->images;
    for (uint64_t i = 0; i < b->count && *status == MR_OK; i++) {
        w->tensors += slots[i].kind == MR_CODED_TENSOR;
        w->zeros += slots[i].kind == MR_CODED_ZEROS;
        if (slots[i].kind == MR_CODED_TENSOR)
            memcpy(out + i * tensor, slab + slots[i].at, tensor * sizeof *out);
        if (slots[i].kind != MR_CODED_IMAGE || !failed[slots[i].image])
            continue;
        w->failed++;
        *status = mr_batch_decode(l, b, i, out + i * tensor, err);
    }
    free(failed);
    return out;
}
