/* test_events_read.c - TensorBoard files read back by millrace: scalars in order, restarts, cut files, damage. */
#include "train/journal/events.h"
#include "tests/support/support.h"

#include <stdlib.h>
#include <string.h>

typedef struct seen {
    char text[4096];
    size_t len;
} seen;

static mr_status take(void *ctx, uint64_t step, const char *tag, float value, mr_error *err)
{
    seen *s = ctx;
    (void)err;
    s->len += (size_t)snprintf(s->text + s->len, sizeof s->text - s->len, tag ? "%d %s %g\n" : "restart %d\n",
                               (int)step, tag ? tag : "", (double)value);
    return MR_OK;
}

static void write_steps(const char *dir, uint64_t first, uint64_t end, bool restart)
{
    mr_events *e = NULL;
    mr_error err;
    assert_int_equal(mr_events_open(dir, &e, &err), MR_OK);
    if (restart)
        assert_int_equal(mr_events_restart(e, 2, first, &err), MR_OK);
    for (uint64_t i = first; i < end; i++) {
        const mr_scalar scalars[] = {{"train/loss", (float)i / 4}, {"train/lr", 1}};
        assert_int_equal(mr_events_add(e, 1, i, scalars, 2, &err), MR_OK);
    }
    assert_int_equal(mr_events_close(e, &err), MR_OK);
}

static void test_order(void **state)
{
    char *dir = support_path("%s/events", (char *)*state);
    seen s = {.len = 0};
    mr_error err;
    assert_int_equal(mr_events_read(dir, take, &s, &err), MR_END);
    write_steps(dir, 1, 3, false);
    write_steps(dir, 2, 3, true);
    assert_int_equal(mr_events_read(dir, take, &s, &err), MR_OK);
    assert_string_equal(s.text, "1 train/loss 0.25\n1 train/lr 1\n2 train/loss 0.5\n2 train/lr 1\n"
                                "restart 2\n2 train/loss 0.5\n2 train/lr 1\n");
    free(dir);
}

/* Cut anywhere: the records before; changed anywhere: damage, or a file that seems cut. */
static void test_cut_and_damaged(void **state)
{
    char *dir = support_path("%s/events", (char *)*state), *list, *path;
    mr_error err;
    size_t len, ends = 0;
    write_steps(dir, 1, 4, false);
    list = support_list(dir);
    list[strcspn(list, "\n")] = '\0';
    path = support_path("%s/%s", dir, list);
    uint8_t *bytes = support_read(path, &len);
    seen whole = {.len = 0};
    assert_int_equal(mr_events_parse(bytes, len, "e", take, &whole, &err), MR_OK);
    for (size_t cut = 0; cut < len; cut++) {
        seen s = {.len = 0};
        assert_int_equal(mr_events_parse(bytes, cut, "e", take, &s, &err), MR_OK);
        assert_true(s.len < whole.len && memcmp(s.text, whole.text, s.len) == 0);
        ends += s.len == 0;
    }
    assert_true(ends > 20);
    for (size_t at = 0; at < len; at++) {
        seen s = {.len = 0};
        bytes[at] ^= 1 << (at % 8);
        assert_int_equal(mr_events_parse(bytes, len, "e", take, &s, &err), MR_BAD_DATA);
        bytes[at] ^= 1 << (at % 8);
    }
    free(bytes);
    free(list);
    free(path);
    free(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_TMPDIR(test_order),
        IN_TMPDIR(test_cut_and_damaged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
