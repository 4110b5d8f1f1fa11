/* test_mover.c - the thread that moves gradients, at its end.
 * Invariant tested: a thread that is asked to end does so, whatever else has rung the bell on which it sleeps. */
#include <stdatomic.h>

#include "base/random.h"
#include "tests/support/support.h"
#include "train/exchange/parts.h"

/* Others ring the bell as well, so that the thread is often awake when it is asked to end: one that then slept through
 * the last ring would be waited for without end. */
static void it_ends_after_other_rings(void **state)
{
    mr_window_head head = {.bell = 0};
    mr_exchange x = {.w = {.head = &head, .locals = 2}};
    mr_random r = support_random();
    (void)state;
    for (int i = 0; i < 20000; i++) {
        mr_error err;
        atomic_store(&x.mover.ends, false);
        assert_int_equal(mr_exchange_mover_start(&x, &err), MR_OK);
        for (uint64_t rings = mr_random_below(&r, 8); rings; rings--)
            mr_window_ring(&x.w);
        mr_exchange_mover_end(&x);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(it_ends_after_other_rings)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
