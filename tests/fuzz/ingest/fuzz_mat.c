/* fuzz_mat.c - a MAT-file with synsets.
 * Promises: each line that it gives is a synset, a positive id, and words without control characters; every other
 * file is refused with a reason. */
#include "tests/fuzz/fuzz.h"
#include "ingest/layout/ilsvrc/mat.h"
#include "ingest/source/names.h"

static void check_line(const char *line, size_t len)
{
    size_t digits = len > 10 ? strspn(line + 10, "0123456789") : 0;
    FUZZ_MUST(len >= 12 && mr_name_is_synset(line, 9) && line[9] == '\t');
    FUZZ_MUST(digits > 0 && digits <= 10 && line[10] != '0' && line[10 + digits] == '\t');
    for (size_t i = 11 + digits; i < len; i++)
        FUZZ_MUST((unsigned char)line[i] >= ' ');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    mr_buf out = {0};
    mr_error err;
    size_t budget = MR_MAT_UNPACKED_MAX;
    mr_status status = mr_mat_synsets(data, size, &budget, &out, &err);
    const char *at = mr_buf_text(&out), *newline;
    if (status != MR_OK)
        fuzz_refused(status, &err);
    for (; (newline = strchr(at, '\n')); at = newline + 1)
        check_line(at, (size_t)(newline - at));
    FUZZ_MUST(!*at);
    mr_buf_free(&out);
    return 0;
}
