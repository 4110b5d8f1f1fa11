/* objects.c - see objects.h. */
#include "tests/support/sources/objects.h"

#include <string.h>

#include "base/scope.h"

void support_assert_objects(const support_plan *p, size_t sample, unsigned width, unsigned height, const char *expected)
{
    MR_AUTO(mr_objects_free) mr_objects o = {0};
    MR_AUTO(mr_buf_free) mr_buf text = {0};
    const mr_stored picture = {width, height, 1};
    mr_error err;
    assert_true(sample < p->plan.sample_count);
    if (p->layout->objects(&p->tree, &p->plan, &p->plan.samples[sample], &picture, &o, &err) != MR_OK)
        fail_msg("%s", err.text);
    assert_false(o.failed);
    mr_objects_write(&o, p->plan.classes, p->plan.class_count, &text);
    assert_string_equal(o.known ? mr_buf_text(&text) + strlen(",\"objects\":") : "-", expected);
}
