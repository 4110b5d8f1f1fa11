/* resize.c - see support/resize.h. */
#include "tests/support/images/resize.h"

#include <stdlib.h>
#include <string.h>

enum { GUARD = 64, UNTOUCHED = 0xa5 };

support_resizers support_resizers_new(void)
{
    support_resizers all = {.count = 0};
    for (size_t i = 0; mr_resize_kernels_all[i]; i++) {
        if (!mr_processor_has(mr_resize_kernels_all[i]->needs))
            continue;
        assert_true(all.count < SUPPORT_MOST_SETS);
        mr_resizer *z = mr_resizer_new();
        assert_non_null(z);
        mr_resizer_use(z, mr_resize_kernels_all[i]);
        all.set[all.count] = mr_resize_kernels_all[i];
        all.of[all.count++] = z;
    }
    return all;
}

void support_resizers_free(support_resizers *all)
{
    for (size_t i = 0; i < all->count; i++)
        mr_resizer_free(all->of[i]);
    all->count = 0;
}

void *support_guarded(size_t len)
{
    uint8_t *p = malloc(len + GUARD);
    assert_non_null(p);
    return memset(p, UNTOUCHED, len + GUARD);
}

void support_check_guard(const void *p, size_t len)
{
    const uint8_t *behind = (const uint8_t *)p + len;
    for (size_t i = 0; i < GUARD; i++)
        assert_int_equal(behind[i], UNTOUCHED);
}
