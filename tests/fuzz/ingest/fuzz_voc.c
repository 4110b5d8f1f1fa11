/* fuzz_voc.c - an XML file of Pascal VOC.
 * Promises: names and points of objects lie within the arrays, numbers of a box are finite, names are UTF-8. */
#include <math.h>

#include "base/text.h"
#include "tests/fuzz/fuzz.h"
#include "ingest/layout/voc/annotation.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    mr_voc_annotation a = {0};
    mr_error err;
    mr_status status = mr_voc_parse(data, size, &a, &err);
    if (status != MR_OK)
        fuzz_refused(status, &err);
    for (size_t i = 0; status == MR_OK && i < a.count; i++) {
        const mr_voc_object *o = &a.objects[i];
        FUZZ_MUST(o->name_at <= a.names.len && o->name_len <= a.names.len - o->name_at);
        FUZZ_MUST(!o->name_len || mr_utf8_valid((const char *)a.names.data + o->name_at, o->name_len));
        FUZZ_MUST(o->point <= a.point_count && o->points <= a.point_count - o->point);
        for (int k = 0; k < 4; k++)
            FUZZ_MUST(!(o->seen & 1u << k) || isfinite(o->sides[k]));
    }
    mr_voc_annotation_free(&a);
    return 0;
}
