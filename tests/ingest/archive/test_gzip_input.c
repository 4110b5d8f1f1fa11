/* test_gzip_input.c - gzip streams (RFC 1952): every form that gzip reads, and every check that one carries.
 * Invariant tested: what comes out is what went in, or the stream is refused; where its pieces are cut makes no
 * difference. */
#include <stdlib.h>
#include <string.h>

#include <zlib.h>

#include "base/buf.h"
#include "ingest/archive/gzip_input.h"
#include "tests/support/support.h"

typedef struct stream {
    const mr_buf *bytes;
    size_t at, piece; /* how many are handed out at once */
    bool fails;       /* where they end */
} stream;

static ssize_t pull(void *ctx, const void **bytes)
{
    stream *s = ctx;
    size_t left = s->bytes->len - s->at, n = left < s->piece ? left : s->piece;
    if (n == 0 && s->fails)
        return -1;
    *bytes = s->bytes->data + s->at;
    s->at += n;
    return (ssize_t)n;
}

/* A member; `head`: its header's optional fields, NULL: none of them. */
static void add_member(mr_buf *out, const void *bytes, size_t len, gz_header *head)
{
    z_stream z = {0};
    assert_int_equal(deflateInit2(&z, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
    if (head)
        assert_int_equal(deflateSetHeader(&z, head), Z_OK);
    assert_true(mr_buf_reserve(out, len + 1000));
    z.next_in = (z_const Bytef *)bytes;
    z.avail_in = (uInt)len;
    z.next_out = out->data + out->len;
    z.avail_out = (uInt)(out->capacity - out->len);
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    out->len = out->capacity - z.avail_out;
    deflateEnd(&z);
}

static gz_header all_fields(void)
{
    static Bytef extra[] = "ab\2\0cd", name[] = "train.tar", comment[] = "pictures";
    return (gz_header){.time = 1, .os = 3, .extra = extra, .extra_len = 6, .name = name, .comment = comment, .hcrc = 1};
}

/* What comes out, in buffers of that size; NULL: `*why`. */
static char *unpack(const mr_buf *bytes, size_t piece, size_t capacity, bool *garbage, const char **why)
{
    stream s = {.bytes = bytes, .piece = piece};
    gzip_input *g = mr_gzip_begin(pull, &s);
    mr_buf out = {0};
    ssize_t n;
    assert_non_null(g);
    do {
        assert_true(mr_buf_reserve(&out, capacity));
        n = mr_gzip_read(g, out.data + out.len, capacity);
        out.len += n > 0 ? (size_t)n : 0;
    } while (n > 0);
    *why = mr_gzip_why(g);
    *garbage = mr_gzip_has_garbage(g);
    assert_true(n == 0 || *why);
    mr_gzip_end(g);
    mr_buf_text(&out);
    if (n < 0)
        mr_buf_free(&out);
    return (char *)out.data;
}

static const size_t pieces[] = {1, 2, 3, 7, 1000};

static void expect(const mr_buf *bytes, const char *text, bool garbage)
{
    for (size_t i = 0; i < MR_COUNT(pieces); i++)
        for (size_t k = 0; k < MR_COUNT(pieces); k++) {
            bool found_garbage;
            const char *why;
            char *found = unpack(bytes, pieces[i], pieces[k], &found_garbage, &why);
            if (!found)
                fail_msg("%s", why);
            assert_string_equal(found, text);
            assert_int_equal(found_garbage, garbage);
            free(found);
        }
}

static void expect_refused(const mr_buf *bytes, const char *words)
{
    for (size_t i = 0; i < MR_COUNT(pieces); i++) {
        bool garbage;
        const char *why;
        char *found = unpack(bytes, pieces[i], 100, &garbage, &why);
        if (found || !strstr(why, words))
            fail_msg("expected \"%s\", found %s", words, found ? found : why);
        free(found);
    }
}

static void test_members(void **state)
{
    (void)state;
    mr_buf bytes = {0};
    gz_header head = all_fields();
    add_member(&bytes, "", 0, NULL);
    expect(&bytes, "", false);
    add_member(&bytes, "one ", 4, &head);
    expect(&bytes, "one ", false);
    add_member(&bytes, "two ", 4, NULL);
    add_member(&bytes, "", 0, &head);
    add_member(&bytes, "three", 5, NULL);
    expect(&bytes, "one two three", false);
    mr_buf_free(&bytes);
}

/* As gzip does: zeros are padding, anything else is not read, but not without a word. */
static void test_what_follows(void **state)
{
    static const struct tail {
        const char *bytes;
        size_t len;
        bool garbage;
    } tails[] = {
        {"\0", 1, false},      {"\0\0\0\0\0\0\0\0\0", 9, false}, {"x", 1, true},     {"\x1F", 1, true},
        {"\x1F\x8C", 2, true}, {"\x1F\x1F\x8B\x08", 4, true},    {"\0\0x", 3, true}, {"\0\x1F\x8B\x08", 4, true},
    };
    (void)state;
    for (size_t i = 0; i < MR_COUNT(tails); i++) {
        mr_buf bytes = {0};
        add_member(&bytes, "one", 3, NULL);
        mr_buf_add(&bytes, tails[i].bytes, tails[i].len);
        expect(&bytes, "one", tails[i].garbage);
        mr_buf_free(&bytes);
    }
}

static void test_cut_anywhere(void **state)
{
    (void)state;
    mr_buf bytes = {0};
    gz_header head = all_fields();
    add_member(&bytes, "one one one two", 15, &head);
    size_t first = bytes.len;
    add_member(&bytes, "three", 5, &head);
    for (size_t len = 1; len < bytes.len; len++)
        if (len != first && len != first + 1) /* a member, or one and a byte of garbage */
            expect_refused(&(mr_buf){.data = bytes.data, .len = len}, "truncated");
    mr_buf_free(&bytes);
}

/* What the member ends with, and what its header does, if it has that. */
static void test_checks(void **state)
{
    (void)state;
    mr_buf bytes = {0};
    gz_header head = all_fields();
    add_member(&bytes, "one", 3, &head);
    size_t first = bytes.len,
           header = 10 + 2 + head.extra_len + strlen((char *)head.name) + 1 + strlen((char *)head.comment) + 1 + 2;
    add_member(&bytes, "two", 3, NULL);
    const struct place {
        size_t at;
        const char *words;
    } places[] = {
        {5, "header does not match its stored CRC-16"},      {header - 1, "header does not match its stored CRC-16"},
        {20, "header does not match its stored CRC-16"},     {first - 8, "does not match the stored CRC-32"},
        {first - 1, "does not match the stored length"},     {bytes.len - 5, "does not match the stored CRC-32"},
        {bytes.len - 4, "does not match the stored length"},
    };
    for (size_t i = 0; i < MR_COUNT(places); i++) {
        bytes.data[places[i].at] ^= 1;
        expect_refused(&bytes, places[i].words);
        bytes.data[places[i].at] ^= 1;
    }
    expect(&bytes, "onetwo", false);
    mr_buf_free(&bytes);
}

static void test_other_methods(void **state)
{
    (void)state;
    mr_buf bytes = {0};
    add_member(&bytes, "one", 3, NULL);
    bytes.data[2] = 7;
    expect_refused(&bytes, "unknown compression method");
    bytes.data[2] = 8;
    bytes.data[3] = 0x80;
    expect_refused(&bytes, "unknown header flags");
    mr_buf_free(&bytes);
}

/* The reader knows why that failed. */
static void test_a_pull_that_fails(void **state)
{
    (void)state;
    mr_buf bytes = {0};
    char out[10];
    ssize_t n;
    add_member(&bytes, "one", 3, NULL);
    for (size_t len = 0; len <= bytes.len; len++) {
        mr_buf part = {.data = bytes.data, .len = len};
        stream s = {.bytes = &part, .piece = 5, .fails = true};
        gzip_input *g = mr_gzip_begin(pull, &s);
        while ((n = mr_gzip_read(g, out, sizeof out)) > 0)
            ;
        assert_int_equal(n, -1);
        assert_null(mr_gzip_why(g));
        mr_gzip_end(g);
    }
    mr_gzip_end(NULL);
    mr_buf_free(&bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_members), cmocka_unit_test(test_what_follows),  cmocka_unit_test(test_cut_anywhere),
        cmocka_unit_test(test_checks),  cmocka_unit_test(test_other_methods), cmocka_unit_test(test_a_pull_that_fails),
    };
    return cmocka_run_group_tests_name("gzip_input", tests, NULL, NULL);
}
