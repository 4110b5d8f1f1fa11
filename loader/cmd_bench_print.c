/* cmd_bench_print.c - what `millrace bench` prints: rates beside their limits, the steps, and the bottleneck.
 * Invariant: text and JSON have the same figures. */
#include <stdio.h>

#include "base/cli/term.h"
#include "base/json/json.h"
#include "base/scope.h"
#include "base/system/pool.h"
#include "base/text.h"
#include "image/codec/image.h"
#include "loader/cmd_bench.h"

#define SPREAD 1.5 /* upper quartile of the turns to the lower: beyond it medians mean little */

const char *const mr_bench_stage_words[] = {
    [MR_BENCH_READ] = "read", [MR_BENCH_DECODE] = "decode", [MR_BENCH_INPUT] = "input", NULL};

/* Name of a stage's limit, in JSON and in text. */
static const char *const limits[] = {
    [MR_BENCH_READ] = "plain pread", [MR_BENCH_DECODE] = "plain full decode", [MR_BENCH_INPUT] = "plain full decode"};

/* ---- the bottleneck --------------------------------------------------------------------------------------------- */

/* One sentence: idle threads first, otherwise the most expensive step. */
static void bottleneck(const mr_bench_request *q, const mr_bench_result *r, unsigned world, char *out, size_t capacity)
{
    struct {
        const char *what;
        double ms;
    } steps[] = {
        {"copying records out of the page cache", r->read_ms},
        {"hashing records", r->hash_ms},
        {"decoding images", r->decode_ms},
        {"resizing and normalising", r->resize_ms},
    };
    size_t top = 0;
    unsigned threads = q->bench.loader.threads ? q->bench.loader.threads : 1;
    double sum = 0, busy = r->product.cpu_ms * r->product.images_per_second / (1e3 * threads * world);
    for (size_t i = 0; i < MR_COUNT(steps); i++) {
        sum += steps[i].ms;
        if (steps[i].ms > steps[top].ms)
            top = i;
    }
    if (busy < 0.75)
        snprintf(out, capacity,
                 "The bottleneck is a lack of processors: the threads run only %.0f %% of the time, because there are "
                 "more threads than free processors or they wait for the disk.",
                 busy * 100);
    else
        snprintf(out, capacity, "The bottleneck is the processor, %s: %.3f of %.3f ms per image (%.0f %%).",
                 steps[top].what, steps[top].ms, sum, sum > 0 ? 100 * steps[top].ms / sum : 0);
}

/* The first batch cannot be faster: its work when everything is warm, on as many threads as can run. */
static double first_batch_limit(const mr_bench_request *q, const mr_bench_result *r)
{
    unsigned threads = q->bench.loader.threads ? q->bench.loader.threads : 1, processors = mr_pool_processors();
    return r->batch * r->product.cpu_ms / (threads < processors ? threads : processors);
}

/* ---- output ----------------------------------------------------------------------------------------------------- */

static const char *augment_word(const mr_transform *t)
{
    return t->kind == MR_TRANSFORM_TRAIN ? "train" : t->kind == MR_TRANSFORM_SQUARE ? "eval" : "center";
}

static void add_real(json_t *doc, const char *key, double value)
{
    if (value > 0)
        json_object_set_new(doc, key, json_real(value));
}

static json_t *on_device_json(const mr_bench_on_device *d)
{
    return json_pack("{s:I,s:I,s:I,s:f,s:f,s:f,s:o}", "decoded_on_device", (json_int_t)d->counts.device,
                     "decoded_on_host", (json_int_t)d->counts.host, "flagged_by_device", (json_int_t)d->counts.flagged,
                     "read_us", d->read_us, "describe_us", d->describe_us, "device_us", d->device_us, "work",
                     mr_bench_work_json(&d->work));
}

static mr_status print_json(const mr_bench_request *q, const mr_bench_result *r, unsigned world, mr_error *err)
{
    const mr_loader_options *o = &q->bench.loader;
    char words[256];
    words[0] = '\0';
    if (!q->bench.device)
        bottleneck(q, r, world, words, sizeof words);
    json_t *doc =
        json_pack("{s:s, s:s, s:i, s:i, s:i, s:s, s:i, s:i, s:i, s:i}", "stage", mr_bench_stage_words[q->bench.stage],
                  "split", o->split, "threads", (int)o->threads, "ranks", (int)world, "size", (int)o->transform.size,
                  "augment", augment_word(&o->transform), "batch", (int)r->batch, "turns", (int)r->turns, "images",
                  (int)r->images, "mean_record_bytes", (int)r->mean_bytes);
    if (!doc)
        return mr_fail_memory(err, "printing");
    add_real(doc, "images_per_second", r->product.images_per_second);
    add_real(doc, "cpu_ms_per_image", r->product.cpu_ms);
    add_real(doc, "cpu_ms_lower_quartile", r->cpu_low_ms);
    add_real(doc, "cpu_ms_upper_quartile", r->cpu_high_ms);
    json_object_set_new(doc, "limit", json_string(limits[q->bench.stage]));
    add_real(doc, "limit_images_per_second", r->limit.images_per_second);
    add_real(doc, "limit_cpu_ms_per_image", r->limit.cpu_ms);
    add_real(doc, "cpu_ratio", r->cpu_ratio);
    add_real(doc, "rate_ratio", r->rate_ratio);
    add_real(doc, "cpu_ratio_with_resize", r->resized_ratio);
    add_real(doc, "memcpy_images_per_second", r->copy.images_per_second);
    add_real(doc, "memcpy_cpu_ms_per_image", r->copy.cpu_ms);
    add_real(doc, "read_ms", r->read_ms);
    add_real(doc, "hash_ms", r->hash_ms);
    add_real(doc, "decode_ms", r->decode_ms);
    add_real(doc, "resize_ms", r->resize_ms);
    if (r->jpegs) {
        json_object_set_new(doc, "own_jpeg_share", json_real((double)r->own_jpegs / (double)r->jpegs));
        json_object_set_new(doc, "seek_refused", json_integer((json_int_t)r->seek_refused));
        json_object_set_new(doc, "seek_jpeg_share", json_real((double)r->seek_jpegs / (double)r->jpegs));
    }
    if (r->on_device.device_us > 0)
        json_object_set_new(doc, "on_device", on_device_json(&r->on_device));
    if (r->stages.pictures)
        json_object_set_new(doc, "own_decoder",
                            json_pack("{s:I,s:I,s:f,s:f,s:f,s:f}", "pictures", (json_int_t)r->stages.pictures,
                                      "with_seek", (json_int_t)r->stages.with_seek, "parse_ms", r->stages.parse_ms,
                                      "entropy_ms", r->stages.entropy_ms, "idct_ms", r->stages.idct_ms, "colour_ms",
                                      r->stages.colour_ms));
    add_real(doc, "first_batch_ms", r->first_batch_ms);
    add_real(doc, "first_batch_limit_ms", first_batch_limit(q, r));
    if (words[0])
        json_object_set_new(doc, "bottleneck", json_string(words));
    mr_status status = mr_json_print(doc, err);
    json_decref(doc);
    return status;
}

static void row(mr_table *t, const char *what, const mr_bench_rate *r, double bytes)
{
    char cpu[32], rate[32], volume[32], text[40];
    if (r->cpu_ms <= 0)
        return;
    snprintf(cpu, sizeof cpu, "%.3f", r->cpu_ms);
    mr_text_count((uint64_t)r->images_per_second, rate);
    snprintf(text, sizeof text, "%s", mr_text_bytes((uint64_t)(r->images_per_second * bytes), volume));
    mr_table_row(t, what, cpu, rate, text);
}

/* Which decoders the JPEGs used, and the stages of millrace's own. */
static void print_decoders(const mr_bench_result *r)
{
    double percent = r->jpegs ? 100.0 / (double)r->jpegs : 0;
    const mr_bench_stages *s = &r->stages;
    char count[32];
    if (r->jpegs)
        printf("  JPEGs: %.1f %% by millrace's decoder with a seek index, %.1f %% without, %.1f %% by libjpeg-turbo\n",
               percent * (double)r->seek_jpegs, percent * (double)(r->own_jpegs - r->seek_jpegs),
               percent * (double)(r->jpegs - r->own_jpegs));
    if (r->seek_refused)
        printf("  seek index: damaged or from other shards, not used in %llu cases; `millrace seek` rebuilds it\n",
               (unsigned long long)r->seek_refused);
    else if (r->own_jpegs && !r->seek_jpegs)
        printf("  no seek index: `millrace seek` creates one, so that crops decode faster\n");
    if (s->pictures)
        printf("  millrace's decoder, %s images one by one: header and tables %.3f, entropy %.3f, IDCT %.3f, "
               "upsampling and colour %.3f ms\n",
               mr_text_count(s->pictures, count), s->parse_ms, s->entropy_ms, s->idct_ms, s->colour_ms);
}

static void print_steps(const mr_bench_result *r)
{
    printf("  step by step: read %.3f, hash %.3f", r->read_ms, r->hash_ms);
    if (r->decode_ms > 0)
        printf(", decode %.3f", r->decode_ms);
    if (r->resize_ms > 0)
        printf(", resize %.3f", r->resize_ms);
    printf(" ms\n");
    print_decoders(r);
}

static mr_status print_device(const mr_bench_request *q, const mr_bench_on_device *d, mr_error *err)
{
    MR_AUTO(mr_buf_free) mr_buf work = {0};
    const mr_device *device = q->bench.device;
    double all = (double)(d->counts.device + d->counts.host);
    printf("  decoded on %s: %.1f %% of the images, %llu of %llu flagged\n", device->iface->name,
           100 * (double)d->counts.device / all, (unsigned long long)d->counts.flagged,
           (unsigned long long)(d->counts.device + d->counts.host));
    printf("  per image: %.1f us of a host thread to read and hash, %.1f us to describe or decode; %.1f us of the "
           "device\n",
           d->read_us, d->describe_us, d->device_us);
    mr_bench_work_text(&d->work, &work);
    MR_TRY(mr_buf_status(&work, err, "printing"));
    fputs(mr_buf_text(&work), stdout);
    return MR_OK;
}

/* On a busy machine, or one that changes its clock, it is better to measure again than to trust the figures. */
static void warn_of_spread(const mr_bench_result *r)
{
    if (r->cpu_high_ms > SPREAD * r->cpu_low_ms)
        printf("  the rounds disagree: a quarter took less than %.3f ms of CPU per image, a quarter more than %.3f; "
               "measure "
               "again on an idle machine, or for more --seconds\n",
               r->cpu_low_ms, r->cpu_high_ms);
}

static mr_status print_human(const mr_bench_request *q, const mr_bench_result *r, unsigned world, mr_error *err)
{
    const mr_loader_options *o = &q->bench.loader;
    char words[256];
    mr_table *t = mr_table_new(4);
    if (!t)
        return mr_fail_memory(err, "printing");
    printf("%s%s %s, %s%s: %u thread%s", mr_sgr(stdout, MR_BOLD), q->dir, o->split,
           mr_bench_stage_words[q->bench.stage], mr_sgr(stdout, MR_PLAIN), o->threads, o->threads == 1 ? "" : "s");
    if (world > 1)
        printf(" in each of %u ranks", world);
    if (q->bench.stage != MR_BENCH_READ)
        printf(", %u pixels, %s", o->transform.size, augment_word(&o->transform));
    printf("\n");
    mr_table_row(t, "", ">CPU ms per image", ">images per second", ">encoded per second");
    row(t, "millrace", &r->product, (double)r->mean_bytes);
    row(t, limits[q->bench.stage], &r->limit, (double)r->mean_bytes);
    row(t, "memcpy", &r->copy, (double)r->mean_bytes);
    MR_TRY(mr_table_print(t, stdout, err));
    printf("  %.2f times the CPU of the %s, %.2f times its rate\n", r->cpu_ratio, limits[q->bench.stage],
           r->rate_ratio);
    if (r->resized_ratio > 0)
        printf("  %.2f times the CPU of the %s and the same resize\n", r->resized_ratio, limits[q->bench.stage]);
    warn_of_spread(r);
    if (r->on_device.device_us > 0)
        MR_TRY(print_device(q, &r->on_device, err));
    else
        print_steps(r);
    printf("  first batch of %u after %.1f ms; the same work takes %.1f ms when warm\n", r->batch, r->first_batch_ms,
           first_batch_limit(q, r));
    if (r->on_device.device_us > 0)
        return MR_OK;
    bottleneck(q, r, world, words, sizeof words);
    printf("  %s\n", words);
    return MR_OK;
}

mr_status mr_bench_print(const mr_bench_request *q, const mr_bench_result *r, unsigned world, mr_error *err)
{
    return (q->json ? print_json : print_human)(q, r, world, err);
}
