/* fuzz_run.c - what a report reads of a stranger's run: evaluation.jsonl and TensorBoard files.
 * Promises: classes are among those that were named; scalars come from records whose CRCs are right, so that their tags
 * end within the record. */
#include "train/evaluate/outcomes.h"
#include "tests/fuzz/fuzz.h"
#include "train/journal/events.h"

static mr_status take(void *ctx, uint64_t step, const char *tag, float value, mr_error *err)
{
    (void)step;
    (void)value;
    (void)err;
    FUZZ_MUST(!tag || strlen(tag) <= 200);
    ++*(size_t *)ctx;
    return MR_OK;
}

static void check_outcomes(const uint8_t *data, size_t size)
{
    static const char *const classes[] = {"a", "b", ""};
    mr_outcomes o = {0};
    mr_error err;
    mr_status status = mr_outcomes_parse((const char *)data, size, "evaluation.jsonl", classes, 3, &o, &err);
    if (status != MR_OK)
        fuzz_refused(status, &err);
    for (size_t i = 0; i < o.count; i++) {
        FUZZ_MUST(o.items[i].label >= 0 && o.items[i].label < 3);
        FUZZ_MUST(o.items[i].predicted >= 0 && o.items[i].predicted < 3);
    }
    for (size_t i = 0; i < o.search_count; i++)
        FUZZ_MUST(o.searches[i].count <= MR_FOUND && o.searches[i].words + o.searches[i].words_len <= o.text.len);
    mr_outcomes_release(&o);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t scalars = 0;
    mr_error err;
    check_outcomes(data, size);
    mr_status status = mr_events_parse(data, size, "events", take, &scalars, &err);
    if (status != MR_OK)
        fuzz_refused(status, &err);
    FUZZ_MUST(scalars <= size);
    return 0;
}
