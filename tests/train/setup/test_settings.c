/* test_settings.c - the options of train in a checkpoint.
 * Invariant tested: a resumed run has the options of the original run, except those that may change and are given. */
#include "train/setup/settings.h"
#include "tests/support/support.h"

#include <string.h>

static const mr_option *row_of(const char *name)
{
    for (size_t i = 0; i < mr_setting_count; i++)
        if (strcmp(mr_setting_rows[i].name, name) == 0)
            return &mr_setting_rows[i];
    fail_msg("no option %s", name);
    return NULL;
}

static void give(mr_settings *s, const char *name, const char *text)
{
    mr_error err;
    if (mr_settings_take(s, row_of(name), text, &err) != MR_OK)
        fail_msg("%s", err.text);
}

static mr_settings begin(void)
{
    mr_settings s;
    mr_error err;
    assert_int_equal(mr_settings_begin(&s, &err), MR_OK);
    return s;
}

/* The options of a run with these values, as a checkpoint keeps them. */
static json_t *kept(void)
{
    mr_settings s = begin();
    give(&s, "lr", "0.1");
    give(&s, "batch", "7");
    give(&s, "flip", NULL);
    give(&s, "pretrained", "w\xff\n.npz"); /* any bytes */
    give(&s, "checkpoint-every", "10m");
    give(&s, "output", "run");
    give(&s, "log", "log.jsonl");
    json_t *options = mr_settings_json(&s);
    assert_non_null(options);
    mr_settings_release(&s);
    return options;
}

static void test_adopt(void **state)
{
    (void)state;
    mr_settings s = begin();
    mr_error err;
    json_t *options = kept(), *again;
    give(&s, "batch", "3");
    give(&s, "lr", "1e-1");
    assert_int_equal(mr_settings_adopt(&s, options, &err), MR_OK);
    assert_int_equal(s.batch, 3);
    assert_true(s.flip && s.lr == 0.1);
    assert_string_equal(s.pretrained, "w\xff\n.npz");
    assert_true(s.checkpoint_every.minutes == 10 && s.checkpoint_every.updates == 0);
    assert_string_equal(s.output, "");
    assert_string_equal(s.log, "");
    json_object_set_new(options, "batch", json_string("3"));
    assert_non_null(again = mr_settings_json(&s));
    assert_true(json_equal(options, again));
    json_decref(again);
    json_decref(options);
    mr_settings_release(&s);
}

static void test_fixed(void **state)
{
    (void)state;
    static const char *const given[][2] = {{"lr", "0.2"}, {"seed", "1"}, {"pretrained", "other.npz"}};
    json_t *options = kept();
    for (size_t i = 0; i < MR_COUNT(given); i++) {
        mr_settings s = begin();
        mr_error err;
        give(&s, given[i][0], given[i][1]);
        assert_int_equal(mr_settings_adopt(&s, options, &err), MR_MISUSE);
        assert_true(strncmp(err.text, "--", 2) == 0 && strncmp(err.text + 2, given[i][0], strlen(given[i][0])) == 0);
        mr_settings_release(&s);
    }
    json_decref(options);
}

/* Options of a checkpoint are not trusted; unknown ones are ignored. */
static void test_hostile(void **state)
{
    (void)state;
    static const char *const bad[][2] = {
        {"batch", "-1"}, {"lr", "nan"}, {"decay", "slow"}, {"checkpoint-every", "0"}, {"config", "\\x"}};
    mr_error err;
    for (size_t i = 0; i < MR_COUNT(bad); i++) {
        mr_settings s = begin();
        json_t *options = json_pack("{s:s, s:s}", "unknown", "1", bad[i][0], bad[i][1]);
        assert_true(mr_settings_adopt(&s, options, &err) < 0);
        json_decref(options);
        mr_settings_release(&s);
    }
    mr_settings s = begin();
    json_t *options = json_pack("{s:s, s:i}", "unknown", "1", "batch", 5);
    assert_int_equal(mr_settings_adopt(&s, options, &err), MR_OK);
    assert_int_equal(s.batch, 32);
    json_decref(options);
    mr_settings_release(&s);
}

static void test_pace(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "0", "m", "0m", "-1", "5s", "1.5", "9223372036854775808", "99999999999999999999999m"};
    mr_pace pace;
    mr_error err;
    assert_int_equal(mr_pace_take(&pace, "500", &err), MR_OK);
    assert_true(pace.updates == 500 && pace.minutes == 0);
    assert_int_equal(mr_pace_take(&pace, "10m", &err), MR_OK);
    assert_true(pace.updates == 0 && pace.minutes == 10);
    for (size_t i = 0; i < MR_COUNT(bad); i++)
        if (mr_pace_take(&pace, bad[i], &err) != MR_MISUSE)
            fail_msg("'%s' was accepted", bad[i]);
}

/* A default for a kind of model does not replace what was given. */
static void test_suit(void **state)
{
    (void)state;
    mr_settings s = begin();
    mr_error err;
    give(&s, "decay", "none");
    assert_int_equal(mr_settings_override_default(&s, "decay", "linear", &err), MR_OK);
    assert_int_equal(mr_settings_override_default(&s, "optimizer", "adamw", &err), MR_OK);
    assert_string_equal(s.decay, "none");
    assert_string_equal(s.optimizer, "adamw");
    assert_false(s.given.optimizer);
    assert_int_equal(mr_settings_override_default(&s, "speed", "1", &err), MR_MISUSE);
    mr_settings_release(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_adopt), cmocka_unit_test(test_fixed), cmocka_unit_test(test_hostile),
        cmocka_unit_test(test_pace),  cmocka_unit_test(test_suit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
