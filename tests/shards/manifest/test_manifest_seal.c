/* test_manifest_seal.c - the hash at the end of a manifest.
 * Invariant tested: no changed, missing or added byte passes the check. */
#include <stdlib.h>
#include <string.h>

#include "shards/manifest/manifest.h"
#include "tests/support/support.h"

static mr_buf sealed(void)
{
    mr_buf out = {0};
    mr_buf_add_text(&out, "before{\n \"a\": 1\n}\n");
    assert_int_equal(mr_manifest_seal(&out, strlen("before"), NULL), MR_OK);
    return out;
}

static void expect_broken(const uint8_t *bytes, size_t len, const char *words)
{
    mr_error err;
    uint8_t *copy = malloc(len ? len : 1); /* exactly its length, for the sanitizer */
    assert_non_null(copy);
    memcpy(copy, bytes, len);
    assert_int_equal(mr_manifest_check_seal(copy, len, "manifest.json", &err), MR_BAD_DATA);
    assert_non_null(strstr(err.text, words));
    free(copy);
}

static void a_seal_holds(void **state)
{
    (void)state;
    mr_buf out = sealed();
    const size_t start = strlen("before");
    assert_memory_equal(out.data, "before{\n \"a\": 1,\n \"seal\": \"", 27);
    assert_int_equal(mr_manifest_check_seal(out.data + start, out.len - start, "manifest.json", NULL), MR_OK);
    mr_buf_free(&out);
}

static void any_change_breaks_it(void **state)
{
    (void)state;
    mr_buf out = sealed();
    uint8_t *bytes = out.data + strlen("before");
    size_t len = out.len - strlen("before");
    for (size_t i = 0; i < len; i++) {
        bytes[i] ^= 1;
        expect_broken(bytes, len, "seal");
        bytes[i] ^= 1;
        expect_broken(bytes, i, "does not end with its seal");
        expect_broken(bytes + 1 + i, len - 1 - i, "seal");
    }
    mr_buf_free(&out);
}

static void only_a_document_is_sealed(void **state)
{
    (void)state;
    mr_buf out = {0};
    assert_int_not_equal(mr_manifest_seal(&out, 0, NULL), MR_OK);
    mr_buf_add_text(&out, "{}");
    assert_int_not_equal(mr_manifest_seal(&out, 0, NULL), MR_OK);
    mr_buf_free(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_seal_holds),
        cmocka_unit_test(any_change_breaks_it),
        cmocka_unit_test(only_a_document_is_sealed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
