/* test_json_stream.c - JSON as a stream of tokens.
 * Covers json/json_keys.c.
 * Invariant tested: tokens do not depend on how the text is cut into chunks, and what is not JSON is placed exactly. */
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/scope.h"
#include "base/json/json_stream.h"
#include "tests/support/support.h"

typedef struct collected {
    mr_buf tokens; /* "0{ 1k:a 1n:1 0}" */
    mr_json_stream *stream;
    const char *stop; /* at a token of this text */
    mr_error *err;
} collected;

static mr_status collect(void *ctx, const mr_json_token *t)
{
    static const char marks[] = {'0', 'b', 'n', 's', 'k', '{', '}', '[', ']'};
    collected *c = ctx;
    if (c->stop && t->len == strlen(c->stop) && !memcmp(t->text, c->stop, t->len))
        return mr_fail(c->err, MR_BAD_DATA, "stopped at byte %u", (unsigned)mr_json_stream_at(c->stream));
    mr_buf_printf(&c->tokens, "%s%u%c%.*s", c->tokens.len ? " " : "", t->depth, marks[t->kind], (int)t->len, t->text);
    return MR_OK;
}

/* The tokens of `text`, read in two chunks, or '!' and the fault. */
static char *tokens_of(const char *text, size_t cut, unsigned levels, const char *stop)
{
    size_t len = strlen(text);
    mr_error err;
    mr_json_fault fault;
    collected c = {.stop = stop, .err = &err};
    const mr_json_rules rules = {.handler = collect, .ctx = &c, .levels = levels, .depth_max = 4};
    assert_int_equal(mr_json_stream_open(&rules, "testing", &c.stream, &err), MR_OK);
    mr_status status = mr_json_stream_feed(c.stream, text, cut, 0, &err);
    if (status == MR_OK && cut < len)
        status = mr_json_stream_feed(c.stream, text + cut, len - cut, cut, &err);
    if (status == MR_OK)
        status = mr_json_stream_end(c.stream, &err);
    if (status != MR_OK) {
        assert_int_equal(status, MR_BAD_DATA);
        mr_buf_clear(&c.tokens);
        if (mr_json_stream_fault(c.stream, text, len, 0, true, &fault))
            mr_buf_printf(&c.tokens, "!%u %s", (unsigned)fault.at, fault.why);
        else
            mr_buf_printf(&c.tokens, "!%s", err.text);
    }
    mr_json_stream_close(&c.stream);
    assert_null(c.stream);
    char *result = strdup(mr_buf_text(&c.tokens));
    mr_buf_free(&c.tokens);
    return result;
}

static void expect(const char *text, unsigned levels, const char *stop, const char *wanted)
{
    for (size_t cut = 1; cut <= strlen(text); cut++) {
        if (((unsigned char)text[cut] & 0xC0) == 0x80) /* chunks are whole characters */
            continue;
        char *got = tokens_of(text, cut, levels, stop);
        if (strcmp(got, wanted) != 0)
            fail_msg("%s, cut at %zu: %s", text, cut, got);
        free(got);
    }
}

static void tokens(void **state)
{
    (void)state;
    static const char text[] =
        "{\"a\": [1, -2.5e3, {\"b\": null}], \"\\u00e4\" : \"\xC3\xB6\\n\", \"c\": [true, false]}";
    expect(text, 4, NULL, "0{ 1ka 1[ 2n1 2n-2.5e3 2{ 3kb 30 2} 1] 1k\xC3\xA4 1s\xC3\xB6\n 1kc 1[ 2btrue 2bfalse 1] 0}");
    expect(text, 1, NULL, "0{ 1ka 1[ 1] 1k\xC3\xA4 1s\xC3\xB6\n 1kc 1[ 1] 0}");
    expect(" [[[[]]]] \n", 0, NULL, "0[ 0]");
    expect("17 ", 0, NULL, "0n17");
}

static void faults(void **state)
{
    (void)state;
    static const struct {
        const char *text, *wanted;
    } trials[] = {
        {"[[[[[]]]]]", "!4 nested more than 4 deep"},
        {"[1, NaN]", "!4 not JSON: JSON has no NaN: write null or a number (Python's json.dump writes it unless "
                     "allow_nan=False)"},
        {"{\"a\":1,\"b\":{\"a\":1},\"\\u0061\":2}", "!26 duplicate key \"a\" in an object: remove one of them"},
        {"[{\"x\":{}},{\"x\":1,\"y\":[{\"k\":1,\"k\":1}]}]", "!31 duplicate key \"k\" in an object"},
        {"[1] x", "!4 not JSON: parse error: trailing garbage"},
        {"[1] \"x", "!4 not JSON: other text follows after its end"},
        {"[1]\f", "!3 not JSON: it holds a form feed or vertical tab"},
        {"[\"a\xC0\x80\"]", "!3 not JSON: it is not UTF-8"},
        {"[1", "!1 not JSON: parse error: premature EOF"},
        {"", "!0 not JSON: parse error: premature EOF"},
    };
    for (size_t i = 0; i < MR_COUNT(trials); i++) {
        char *got = tokens_of(trials[i].text, strlen(trials[i].text), 4, NULL);
        if (strncmp(got, trials[i].wanted, strlen(trials[i].wanted)) != 0)
            fail_msg("%s: %s", trials[i].text, got);
        free(got);
    }
    expect("[1, \"no\", 2]", 4, "no", "!stopped at byte 8");
}

/* In an object of many keys, too, and only in the object itself. */
static void many_keys(void **state)
{
    (void)state;
    for (unsigned twice = 0; twice < 2; twice++) {
        MR_AUTO(mr_buf_free) mr_buf text = {0};
        size_t second = 0;
        mr_buf_add_text(&text, "{");
        for (unsigned i = 0; i < 1000; i++) {
            mr_buf_printf(&text, "\"k%u\":{\"k1\":0},", i);
            if (i == 700 && twice) {
                mr_buf_add_text(&text, "\"k2\":0,\n\"k1\":0,");
                second = text.len - 12; /* the quote after the first of them */
            }
        }
        mr_buf_add_text(&text, "\"z\":0}");
        char *got = tokens_of(mr_buf_text(&text), text.len, 0, NULL), wanted[100];
        snprintf(wanted, sizeof wanted, "!%zu duplicate key in an object: remove one of them", second);
        assert_string_equal(got, twice ? wanted : "0{ 0}");
        free(got);
    }
}

/* A string that never ends is kept by the parser: it must not take more than its limit. */
static mr_status feed_string(size_t len, mr_json_fault *fault)
{
    enum { CHUNK = 1 << 20 };
    static char chunk[CHUNK];
    mr_error err;
    collected c = {.err = &err};
    const mr_json_rules rules = {.handler = collect, .ctx = &c, .depth_max = 4};
    mr_status status = mr_json_stream_open(&rules, "testing", &c.stream, &err);
    memset(chunk, 'a', sizeof chunk);
    if (status == MR_OK)
        status = mr_json_stream_feed(c.stream, "\"", 1, 0, &err);
    for (size_t at = 1; status == MR_OK && at < len; at += CHUNK)
        status = mr_json_stream_feed(c.stream, chunk, CHUNK, at, &err);
    if (status == MR_BAD_DATA)
        assert_true(mr_json_stream_fault(c.stream, chunk, 0, 0, false, fault));
    mr_json_stream_close(&c.stream);
    return status;
}

static void long_strings(void **state)
{
    (void)state;
    mr_json_fault fault;
    assert_int_equal(feed_string((size_t)70 << 20, &fault), MR_BAD_DATA);
    assert_string_equal(fault.why, "64 MiB without a value");
}

/* Out of memory inside the parser: a failure, and nothing is lost. */
static void no_memory(void **state)
{
    (void)state;
    if (support_sanitized())
        skip();
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        mr_json_fault fault;
        const struct rlimit limit = {(rlim_t)48 << 20, (rlim_t)48 << 20};
        setrlimit(RLIMIT_AS, &limit);
        _exit(feed_string((size_t)60 << 20, &fault) == MR_SYSTEM ? 0 : 1);
    }
    int ended = 0;
    assert_int_equal(waitpid(child, &ended, 0), child);
    assert_true(WIFEXITED(ended) && WEXITSTATUS(ended) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tokens),       cmocka_unit_test(faults),    cmocka_unit_test(many_keys),
        cmocka_unit_test(long_strings), cmocka_unit_test(no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
