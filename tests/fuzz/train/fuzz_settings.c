/* fuzz_settings.c - the value of an option of train, tried as each of them.
 * Promises: what is taken is in its range, and what a checkpoint keeps of all of them is taken over as the same; what
 * is refused is MR_MISUSE. */
#include <math.h>

#include "tests/fuzz/fuzz.h"
#include "train/setup/settings.h"

static void check_range(const mr_settings *s, const mr_option *row)
{
    const void *value = (const char *)s + row->offset;
    if (row->kind == MR_ARG_COUNT)
        FUZZ_MUST(*(const uint64_t *)value <= INT64_MAX);
    if (row->kind == MR_ARG_REAL)
        FUZZ_MUST(isfinite(*(const double *)value) && *(const double *)value >= 0);
    for (size_t i = 0; row->words; i++) {
        FUZZ_MUST(row->words[i]);
        if (strcmp(row->words[i], *(const char *const *)value) == 0)
            break;
    }
}

static void take(mr_settings *s, const mr_option *row, const char *text)
{
    mr_error err;
    mr_status status = mr_settings_take(s, row, text, &err);
    if (status != MR_OK) {
        FUZZ_MUST(status == MR_MISUSE);
        fuzz_refused(status, &err);
        FUZZ_MUST(mr_settings_take(s, row, row->standard, &err) == MR_OK);
    }
    check_range(s, row);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    mr_settings s, again;
    mr_error err;
    char *text = strndup((const char *)data, size);
    FUZZ_MUST(text && mr_settings_begin(&s, &err) == MR_OK && mr_settings_begin(&again, &err) == MR_OK);
    for (size_t i = 0; i < mr_setting_count; i++)
        take(&s, &mr_setting_rows[i], text);
    json_t *kept = mr_settings_json(&s);
    FUZZ_MUST(kept && mr_settings_adopt(&again, kept, &err) == MR_OK);
    json_t *other = mr_settings_json(&again);
    FUZZ_MUST(other && json_equal(kept, other));
    FUZZ_MUST(mr_settings_adopt(&s, kept, &err) == MR_OK); /* all are given, and none says otherwise */
    json_decref(kept);
    json_decref(other);
    mr_settings_release(&s);
    mr_settings_release(&again);
    free(text);
    return 0;
}
