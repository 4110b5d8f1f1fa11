/* fuzz_yolo.c - a YOLO label file; its first byte chooses the rules.
 * Promises: the numbers of a good line are as many as its kind has and lie within range; every other line says why. */
#include <math.h>

#include "tests/fuzz/fuzz.h"
#include "ingest/layout/yolo/label.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    /* cppcheck-suppress constVariable ; a name is not const in mr_class */
    char names[2][4] = {"cat", "dog"};
    mr_class classes[2] = {{.name = names[0]}, {.name = names[1]}};
    mr_plan plan = {.classes = classes, .class_count = size ? data[0] & 2 : 0};
    const mr_yolo_rules rules = {&plan, size && data[0] & 4 ? 3 : 0, 2 + (size ? data[0] & 1 : 0), size && data[0] & 8,
                                 size && data[0] & 16};
    const char *text = (const char *)data + !!size;
    const size_t len = size ? size - 1 : 0;
    mr_yolo_reader r = {.lines = mr_lines_of(text, len)};
    mr_yolo_line line;
    (void)mr_yolo_is_text(text, len);
    mr_status status;
    while ((status = mr_yolo_next(&r, &rules, &line)) == MR_OK) {
        FUZZ_MUST(line.count >= 4 && line.count == r.count && line.len > 0);
        FUZZ_MUST(line.class < MR_YOLO_CLASSES && (!plan.class_count || line.class < plan.class_count));
        FUZZ_MUST(line.kind != MR_YOLO_BOX || line.count == 4 || rules.any);
        FUZZ_MUST(line.kind != MR_YOLO_POSE || line.count == 4 + 3 * rules.dims);
        FUZZ_MUST(line.kind != MR_YOLO_POLYGON || (line.count >= 6 && line.count % 2 == 0));
        for (size_t i = 0; i < line.count && (i < 4 || !rules.any); i++)
            FUZZ_MUST(isfinite(line.numbers[i]) && fabs(line.numbers[i]) <= (rules.text ? 1e6 : 2));
    }
    FUZZ_MUST(status == MR_END || (status == MR_BAD_DATA && *r.why));
    mr_yolo_reader_free(&r);
    return 0;
}
