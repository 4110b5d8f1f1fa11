/* test_augment_list.c - the words of --augment. */
#include <string.h>

#include "base/error.h"
#include "tests/support/support.h"
#include "train/setup/augment_list.h"

static void words_become_ranges(void **state)
{
    (void)state;
    mr_augment a;
    mr_error err;
    assert_int_equal(mr_augment_list("", &a, &err), MR_OK);
    assert_true(a.brightness[1] == 0 && a.grey == 0);
    assert_int_equal(mr_augment_list("brightness=0.4,contrast=1.5,saturation=0,hue=0.1,grey=0.2,erase=1", &a, &err),
                     MR_OK);
    assert_true(a.brightness[0] == 0.6f && a.brightness[1] == 1.4f);
    assert_true(a.contrast[0] == 0 && a.contrast[1] == 2.5f);
    assert_true(a.saturation[0] == 0 && a.saturation[1] == 0);
    assert_true(a.hue[0] == -0.1f && a.hue[1] == 0.1f && a.grey == 0.2f && a.erase == 1);
    assert_true(a.randaugment == 0 && a.magnitude == 9 && a.trivial == 0 && a.blur == 0);
    assert_int_equal(mr_augment_list("randaugment=2,magnitude=0,blur=0.5", &a, &err), MR_OK);
    assert_true(a.randaugment == 2 && a.magnitude == 0 && a.blur == 0.5f && a.sigma[1] == 0);
    assert_int_equal(mr_augment_list("trivial=1", &a, &err), MR_OK);
    assert_true(a.trivial == 1 && a.randaugment == 0);
}

static void what_it_is_not(void **state)
{
    (void)state;
    static const char *const lists[][2] = {
        {"mirror=1", "--augment mirror=1: expected brightness=X"},
        {"randaugment=1.5", "expected a whole number from 0 to 16"},
        {"magnitude=31", "expected a whole number from 0 to 30"},
        {"grey", "--augment grey: expected"},
        {"hue=0.6", "--augment hue=0.6: expected a number from 0 to 0.5"},
        {"grey=nan", "--augment grey=nan: expected a number from 0 to 1"},
        {"grey=", "expected a number"},
        {"grey=0.1x", "expected a number"},
        {"grey=0.1,,", "--augment : expected brightness"},
        {"grey=0.1,grey=0.2", "--augment: grey is given twice"},
    };
    mr_augment a;
    mr_error err;
    for (size_t i = 0; i < MR_COUNT(lists); i++) {
        assert_int_equal(mr_augment_list(lists[i][0], &a, &err), MR_MISUSE);
        if (!strstr(err.text, lists[i][1]))
            fail_msg("%s", err.text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_become_ranges),
        cmocka_unit_test(what_it_is_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
