/* test_devices.c - `millrace devices`.
 * Invariant tested: every device of the table is listed, and each that is called usable trains. */
#include <jansson.h>
#include <string.h>

#include "device/device.h"
#include "tests/support/training/train.h"

static void test_all_are_listed(void **state)
{
    support_result r = support_millrace("devices", "--json", (char *)NULL);
    support_assert_status(&r, 0);
    json_error_t error;
    json_t *doc = json_loads(r.out, 0, &error), *list = json_object_get(doc, "devices");
    size_t count = 0;
    train_make_dataset(*state, 30);
    for (const mr_device_iface *iface; (iface = mr_device_iface_at(count)); count++) {
        const json_t *one = json_array_get(list, count);
        assert_string_equal(json_string_value(json_object_get(one, "name")), iface->name);
        assert_true(json_is_string(json_object_get(one, "here")) != json_is_string(json_object_get(one, "missing")));
        if (json_object_get(one, "here"))
            train_expect(0, *state, 0, "--steps", "1", "--device", iface->name, (char *)NULL);
    }
    assert_int_equal(json_array_size(list), count);
    assert_true(count > 1);
    json_decref(doc);
    support_result_free(&r);
}

static void test_the_table(void **state)
{
    (void)state;
    support_result r = support_millrace("devices", (char *)NULL);
    support_assert_status(&r, 0);
    assert_int_equal(strncmp(r.out, "  device  here", 14), 0);
    assert_non_null(strstr(r.out, "\n  cpu     "));
    for (const char *line = r.out; *line; line += strcspn(line, "\n") + 1)
        assert_true(strcspn(line, "\n") <= 100); /* however much a driver tells of itself */
    support_result_free(&r);
    support_expect(2, "devices", "cpu", (char *)NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_TMPDIR(test_all_are_listed),
        cmocka_unit_test(test_the_table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
