/* test_pages.c - manual pages and completion scripts of a table with every kind of text in it.
 * Covers base/cli/manual.c, base/cli/completion_bash.c, base/cli/completion_zsh.c, base/cli/completion_fish.c.
 * Invariant tested: texts stay text: no macro, no quote that ends too early. */
#include <string.h>

#include "base/cli/pages.h"
#include "tests/support/support.h"

static const mr_option options[] = {
    {"dots", 'd', MR_ARG_COUNT, .value = "A[:B]", .standard = ".5", .help = ".PP is 'quoted' \\fB; [and] more",
     .group = "What \\ is:"},
    {"word", 0, MR_ARG_WORD, .words = MR_WORDS("one", "two"), .alias = "wort", .help = "'"},
    {"every", 0, MR_ARG_COUNT, .value = "N", .optional = "8", .help = "x"},
    {"secret", 0, MR_ARG_FLAG, .hidden = true, .help = "x"},
    {0},
};
static const mr_option arguments[] = {{.value = "SRC", .kind = MR_ARG_LIST}, {0}};
static const mr_command command = {
    .name = "test",
    .title = "It's a [title]: \\",
    .usage = "SRC...",
    .example = "",
    .summary = ".Sh stays text.  'nor this",
    .notes = "Examples:\n  millrace test .  # 'a' \\\n\nExit status: 0 done; 3 it (1; 2) failed.",
    .options = options,
    .arguments = arguments,
};
static const mr_command *const all[] = {&command, NULL};

static bool has(mr_buf *out, const char *text)
{
    return strstr(mr_buf_text(out), text) != NULL;
}

static void test_manual(void **state)
{
    (void)state;
    mr_buf out = {0};
    mr_manual_page(all, &command, &out);
    assert_true(has(&out, ".TH MILLRACE\\-TEST 1 "));
    assert_true(has(&out, "millrace\\-test \\- it\\(aqs a [title]: \\e\n"));
    assert_true(has(&out, "\n\\&.Sh stays text.\n\\(aqnor this\n"));
    assert_true(has(&out, "\n.SS \"What \\e is\"\n.TP\n\\fB\\-d\\fR, \\fB\\-\\-dots\\fR=\\fIA[:B]\\fR\n"
                          "\\&.PP is \\(aqquoted\\(aq \\efB; [and] more\n(default \\fB\\&.5\\fR)\n"));
    assert_true(has(&out, "\\-\\-every\\fR[=\\fIN\\fR]"));
    assert_true(has(&out, "\n.EX\nmillrace test .  # \\(aqa\\(aq \\e\n.EE\n"));
    assert_true(has(&out, ".TP\n.B \"0\"\ndone\n.TP\n.B \"3\"\nit (1; 2) failed.\n"));
    assert_false(has(&out, "secret"));
    assert_false(has(&out, "wort"));
    mr_buf_clear(&out);
    mr_manual_page(all, NULL, &out);
    assert_true(has(&out, ".BR millrace\\-test (1)\nIt\\(aqs a [title]: \\e\n"));
    mr_buf_free(&out);
}

static void test_completion(void **state)
{
    (void)state;
    mr_buf out = {0};
    mr_completion_bash(all, &out);
    assert_true(has(&out, "words='--dots= --word= --every --help --usage '"));
    assert_true(has(&out, "--word | --wort) words='one two' ;;\n"));
    assert_true(has(&out, "--dots | -d) return ;;\n"));
    mr_buf_clear(&out);
    mr_completion_zsh(all, &out);
    assert_true(has(&out, "'test:It'\\''s a \\[title\\]\\: \\\\'"));
    assert_true(has(&out, "'--dots=[.PP is '\\''quoted'\\'' \\\\fB]:A\\[\\:B\\]: '"));
    assert_true(has(&out, "'--every=-[x]::N: '"));
    assert_false(has(&out, "secret"));
    mr_buf_clear(&out);
    mr_completion_fish(all, &out);
    assert_true(has(&out, "-l dots -s 'd' -x -d '.PP is \\'quoted\\' \\\\fB'\n"));
    assert_true(has(&out, "-l word -x -a 'one two' -d '\\''\n"));
    assert_false(has(&out, "wort"));
    assert_true(has(&out, "-l every -d 'x'\n"));
    mr_buf_free(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_manual),
        cmocka_unit_test(test_completion),
    };
    return cmocka_run_group_tests_name("pages", tests, NULL, NULL);
}
