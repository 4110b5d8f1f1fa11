/* test_hash.c - XXH3 and SHA-256.
 * Invariant tested: known answers of the algorithms' authors, and the same digest for the same bytes in any pieces. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/hash.h"
#include "tests/support/support.h"

static void test_known_answers(void **state)
{
    (void)state;
    uint8_t h[32];
    char hex[65];
    /* xxHash's own sanity checks: the empty input, seed 0 */
    assert_int_equal(mr_hash64("", 0), 0x2D06800538D394C2);
    mr_hash128("", 0, h);
    mr_hex(h, 16, hex);
    assert_string_equal(hex, "99aa06d3014798d86001c324468d497f");
    /* FIPS 180-4, the example of one block */
    mr_sha256("abc", 3, h);
    mr_hex(h, 32, hex);
    assert_string_equal(hex, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

static void test_pieces_change_nothing(void **state)
{
    (void)state;
    mr_random random = support_random();
    uint8_t bytes[5000], whole128[16], whole256[32];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)mr_random_below(&random, 256);
    mr_hash128(bytes, sizeof bytes, whole128);
    mr_sha256(bytes, sizeof bytes, whole256);
    mr_hash64_stream *stream = mr_hash64_new();
    for (unsigned round = 0; round < 20; round++) {
        mr_error err;
        mr_hasher *hasher;
        mr_digest digest;
        assert_int_equal(mr_hasher_begin(true, &hasher, &err), MR_OK);
        mr_hash64_reset(stream);
        for (size_t at = 0; at < sizeof bytes;) {
            size_t n = mr_random_below(&random, 400);
            n = n < sizeof bytes - at ? n : sizeof bytes - at;
            mr_hasher_add(hasher, bytes + at, n);
            mr_hash64_add(stream, bytes + at, n);
            at += n;
        }
        assert_int_equal(mr_hasher_end(hasher, &digest, &err), MR_OK);
        assert_int_equal(digest.bytes, sizeof bytes);
        assert_memory_equal(digest.xxh3_128, whole128, 16);
        assert_memory_equal(digest.sha256, whole256, 32);
        assert_int_equal(mr_hash64_end(stream), mr_hash64(bytes, sizeof bytes));
    }
    mr_hash64_free(stream);
}

static void test_files(void **state)
{
    char *path = support_path("%s/file", (char *)*state);
    mr_error err;
    mr_digest digest;
    uint8_t expected[16];
    int fd;
    support_write_text(path, "some bytes");
    assert_int_equal(mr_file_open(AT_FDCWD, path, false, &fd, NULL, &err), MR_OK);
    assert_int_equal(mr_file_digest(fd, 4, false, "file", &digest, &err), MR_OK);
    mr_hash128("some", 4, expected);
    assert_memory_equal(digest.xxh3_128, expected, 16);
    assert_int_equal(digest.sha256[0] | digest.sha256[31], 0); /* not requested */
    assert_int_equal(mr_file_digest(fd, 11, true, "file", &digest, &err),
                     MR_BAD_DATA); /* one byte more than there is */
    assert_non_null(strstr(err.text, "file"));
    close(fd);
    free(path);
}

static void test_hex_digits(void **state)
{
    (void)state;
    uint8_t bytes[2];
    assert_true(mr_unhex("00fF", bytes, 2));
    assert_int_equal(bytes[0], 0);
    assert_int_equal(bytes[1], 0xFF);
    static const char *const bad[] = {"", "00", "00f", "00fg", "00ff0", " 0ff", "0x00"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(mr_unhex(bad[i], bytes, 2));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known_answers),
        cmocka_unit_test(test_pieces_change_nothing),
        IN_TMPDIR(test_files),
        cmocka_unit_test(test_hex_digits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
