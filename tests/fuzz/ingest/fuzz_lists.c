/* fuzz_lists.c - values of options on the command line that are lists, ranges or shares.
 * Promises: what is taken is in its range, and written out it is taken again as the same; what is not is MR_MISUSE. */
#include <stdio.h>

#include "shards/manifest/manifest.h"
#include "tests/fuzz/fuzz.h"
#include "ingest/cmd_lists.h"
#include "loader/cmd_options.h"
#include "ingest/sample/sample.h"

static bool taken(mr_status status, const mr_error *err)
{
    if (status == MR_OK)
        return true;
    FUZZ_MUST(status == MR_MISUSE);
    fuzz_refused(status, err);
    return false;
}

static void check_split_map(char *text)
{
    mr_split_map maps[8], again[8];
    size_t count = 0, other = 0;
    mr_buf out = {0};
    mr_error err;
    if (!taken(mr_split_map_take("split-map", text, maps, MR_COUNT(maps), &count, &err), &err))
        return;
    FUZZ_MUST(count <= MR_COUNT(maps));
    for (size_t i = 0; i < count; i++) {
        FUZZ_MUST(*maps[i].from && (!*maps[i].to || mr_split_name_ok(maps[i].to)));
        mr_buf_printf(&out, "%s=%s,", maps[i].from, maps[i].to);
    }
    mr_buf_text(&out);
    FUZZ_MUST(!count ||
              mr_split_map_take("split-map", (char *)out.data, again, MR_COUNT(again), &other, &err) == MR_OK);
    FUZZ_MUST(other == count);
    for (size_t i = 0; i < count; i++)
        FUZZ_MUST(strcmp(maps[i].from, again[i].from) == 0 && strcmp(maps[i].to, again[i].to) == 0);
    mr_buf_free(&out);
}

static void check_max_rejects(const char *text)
{
    uint64_t count = 0, other = 0;
    double percent = 1, again = 1;
    char out[64];
    mr_error err;
    if (!taken(mr_max_rejects_take(text, &count, &percent, &err), &err))
        return;
    FUZZ_MUST(percent == -1 || (percent >= 0 && percent <= 100));
    if (percent < 0)
        snprintf(out, sizeof out, "%llu", (unsigned long long)count);
    else
        snprintf(out, sizeof out, "%.17g%%", percent);
    FUZZ_MUST(mr_max_rejects_take(out, &other, &again, &err) == MR_OK && again == percent && other == count);
}

static void check_sides(char *text)
{
    uint32_t side[2], again[2];
    char out[32];
    mr_error err;
    if (!taken(mr_sides_take(text, &side[0], &side[1], &err), &err))
        return;
    FUZZ_MUST(MR_SKETCH_MIN_SIDE <= side[0] && side[0] <= side[1] && side[1] <= MR_SKETCH_MAX_SIDE);
    FUZZ_MUST(strspn(text, "0123456789:") == strlen(text));
    snprintf(out, sizeof out, "%u:%u", side[0], side[1]);
    FUZZ_MUST(mr_sides_take(out, &again[0], &again[1], &err) == MR_OK && memcmp(side, again, sizeof side) == 0);
}

static void check_plan(const char *text)
{
    mr_plan_request q = {0}, again = {0};
    char out[64];
    mr_error err;
    if (taken(mr_plan_take_batches(&q, text, &err), &err)) {
        FUZZ_MUST(q.first < q.end && q.batches == text);
        snprintf(out, sizeof out, "%llu:%llu", (unsigned long long)q.first, (unsigned long long)q.end);
        FUZZ_MUST(mr_plan_take_batches(&again, out, &err) == MR_OK && again.first == q.first && again.end == q.end);
    }
    if (taken(mr_plan_take_shuffle(&q, text, &err), &err) && q.shuffle == MR_SHUFFLE_WINDOW) {
        snprintf(out, sizeof out, "window:%llu", (unsigned long long)q.window_bytes);
        FUZZ_MUST(q.window_bytes && mr_plan_take_shuffle(&again, out, &err) == MR_OK);
        FUZZ_MUST(again.shuffle == MR_SHUFFLE_WINDOW && again.window_bytes == q.window_bytes);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = strndup((const char *)data, size);
    FUZZ_MUST(text);
    check_max_rejects(text);
    check_sides(text);
    check_plan(text);
    check_split_map(text); /* the last: it cuts the text up */
    free(text);
    return 0;
}
