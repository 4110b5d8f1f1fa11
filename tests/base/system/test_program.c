/* test_program.c - the program that opens files crashes, lies, floods, or is not there: the ingest fails with
 * its words, or with ours, and publishes nothing. */
#include <stdlib.h>
#include <string.h>

#include "tests/support/sources/archive.h"
#include "tests/support/sources/hub.h"

#define END ((char *)NULL)

static char *dir, *source, *target, *reader;

static int set_up(void **state)
{
    (void)state;
    dir = support_tmpdir();
    source = support_path("%s/hub", dir);
    target = support_path("%s/dataset", dir);
    reader = support_path("%s/the reader", dir);
    support_hub_rows(source, "train-00000-of-00002.parquet", 3, 2, 4);
    support_hub_rows(source, "train-00001-of-00002.parquet", 3, 2, 14);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    unsetenv("MILLRACE_PARQUET_READER");
    unsetenv("MILLRACE_PYTHON");
    free(source);
    free(target);
    free(reader);
    support_tmpdir_remove(dir);
    return 0;
}

#define expect_failure(status, ...) expect_failure_of(status, (const char *const[]){__VA_ARGS__, NULL})

/* The words, then options. */
static void expect_failure_of(int status, const char *const *words_options)
{
    const char *words = words_options[0], *argv[16] = {"ingest", source, target, "--quiet"};
    for (size_t i = 1; words_options[i]; i++)
        argv[3 + i] = words_options[i];
    char *partial = support_path("%s.partial", target);
    support_result r = support_millrace_under(argv, NULL);
    support_assert_status(&r, status);
    if (!strstr(r.err, words))
        fail_msg("no \"%s\" in: %s", words, r.err);
    assert_false(support_exists(target));
    assert_false(support_exists(partial));
    support_result_free(&r);
    free(partial);
}

static void test_ends(void **state)
{
    static const struct {
        const char *script;
        int status;
        const char *words;
    } cases[] = {
        {"cat; echo 'rows went bad' >&2; exit 1", 1, "train-00000-of-00002.parquet: rows went bad"},
        {"cat; echo 'choose a column' >&2; exit 2", 2, "train-00000-of-00002.parquet: choose a column"},
        {"printf 'Traceback:\\n  line 3\\nOSError: no\\n\\n' >&2; exit 3", 3, "parquet: OSError: no"},
        {"printf -- '%040d\\nNot as root.\\n\\nAt your risk.\\n%040d\\n' 0 0 | tr 0 - >&2; exit 1", 1,
         "parquet: Not as root."},
        {"cat; exit 77", 3, "exited with code 77 and no message"},
        {"cat; kill -9 $$", 3, "was killed by signal 9 (Killed)"},
        {"head -c 700; echo oh >&2; kill -SEGV $$", 3, "was killed by signal 11 (Segmentation fault): oh"},
        {"printf '\\033[31m\\377evil' >&2; exit 1", 1, "\\x1B[31m\\xFFevil"},
        {"exit 0", 1, "train-00000-of-00002.parquet: not a readable archive"},
        {"head -c 700", 1, "cannot be read to its end"},
        {"head -c 70000 /dev/urandom", 1, "not a readable archive"},
        {"echo hello; sleep 0.1; exit 0", 1, "train-00000-of-00002.parquet: not a readable archive"},
        {"cat; exec cat /dev/zero", 1, "keeps writing after the end of its tar stream"},
        {"cat /dev/zero", 1, "train-00000-of-00002.parquet: "},
        {"yes words | head -c 3000000 >&2; echo at last >&2; exit 1", 1, "train-00000-of-00002.parquet: at last"},
        {"head -c 3000000 /dev/zero | tr '\\0' x >&2; exit 1", 1, "train-00000-of-00002.parquet: xxxx"},
        {"sleep 3600 >&2 & cat; exit 1", 1, "exited with code 1 and no message"},
    };
    (void)state;
    for (size_t i = 0; i < MR_COUNT(cases); i++) {
        char *script = support_path("#!/bin/sh\n%s\n", cases[i].script);
        support_hub_reader(reader, script);
        expect_failure(cases[i].status, cases[i].words);
        free(script);
    }
}

/* What one file's reader gave is not published when another's is killed; then the same command works. */
static void test_the_last_file_fails(void **state)
{
    (void)state;
    char *script = support_path("#!/bin/sh\ncat >\"$0.$$\"\ncat \"$0.$$\"\n"
                                "if cmp -s \"$0.$$\" %s/train-00001-of-00002.parquet; then kill -9 $$; fi\n",
                                source);
    support_hub_reader(reader, script);
    expect_failure(3, "train-00001-of-00002.parquet: was killed by signal 9");
    support_hub_reader(reader, "#!/bin/sh\nexec cat\n");
    support_expect(0, "ingest", source, target, "--quiet", (char *)NULL);
    support_expect(0, "verify", target, "--quiet", (char *)NULL);
    free(script);
}

static void test_missing_programs(void **state)
{
    (void)state;
    setenv("MILLRACE_PARQUET_READER", "/nonexistent/reader", 1);
    expect_failure(3, "/nonexistent/reader: cannot be run: No such file or directory");
    setenv("MILLRACE_PARQUET_READER", source, 1);
    expect_failure(3, "cannot be run: Permission denied");
    unsetenv("MILLRACE_PARQUET_READER");
    setenv("MILLRACE_PYTHON", "/nonexistent/python3", 1);
    expect_failure(3, "/nonexistent/python3: cannot be run");
}

/* Streams that are whole tars, and wrong. */
static void test_streams(void **state)
{
#define HEAD                                                                                                           \
    {                                                                                                                  \
        "schema.json", "{\"rows\":2}", 10, NULL, NULL, 0                                                               \
    }
#define ROW(n)                                                                                                         \
    {                                                                                                                  \
        "00000000" n ".json", "{}", 2, NULL, NULL, 0                                                                   \
    }
    static const struct {
        support_entry entries[6];
        const char *words;
    } cases[] = {
        {{HEAD, ROW("0")}, "row 1 of 2 is missing from the reader's output"},
        {{HEAD, ROW("1"), ROW("2")}, "row 0 of 2 is missing from the reader's output"},
        {{HEAD, ROW("0"), {"000000001.json", "[]", 2, NULL, NULL, 0}}, "not a JSON object"},
        {{HEAD, ROW("0"), {"000000001.json", "{} {}", 5, NULL, NULL, 0}}, "not JSON"},
        {{HEAD, ROW("0"), {"000000001.json", " {}", 3, NULL, NULL, 0}}, "row 1 is not a JSON object"},
        {{HEAD, ROW("0"), {"000000001.json", "", 0, NULL, NULL, 0}}, "not JSON"},
        {{HEAD, ROW("0"), {"000000001.json", "{\"a\":\"\xFF\"}", 9, NULL, NULL, 0}}, "000000001.json"},
        {{{"schema.json", "[]", 2, NULL, NULL, 0}, ROW("0")}, "schema.json"},
        {{HEAD, ROW("0"), {"000000001.json", NULL, 0, "schema.json", NULL, 0}}, "row 1 of 2 is missing"},
        {{HEAD, ROW("0"), {"000000001.json", NULL, 0, NULL, "000000000.json", 0}}, "row 1 of 2 is missing"},
        {{HEAD, ROW("0"), {"../000000001.json", "{}", 2, NULL, NULL, 0}}, "row 1 of 2 is missing"},
        {{HEAD, ROW("0"), ROW("1"), {"000000000/../../../x.png", "x", 1, NULL, NULL, 0}}, "holds no image"},
    };
    (void)state;
    char *first = support_path("%s/train-00000-of-00002.parquet", source);
    support_hub_reader(reader, "#!/bin/sh\nexec cat\n");
    for (size_t i = 0; i < MR_COUNT(cases); i++) {
        size_t count = 0;
        while (count < 6 && cases[i].entries[count].path)
            count++;
        support_archive(first, "tar", cases[i].entries, count);
        char *second = support_path("%s/train-00001-of-00002.parquet", source);
        support_archive(second, "tar", cases[i].entries, count);
        free(second);
        expect_failure(1, cases[i].words);
    }
    free(first);
}

/* A file by the name of an entry that a reader writes, beside the folder that it becomes. */
static void test_names_in_the_way(void **state)
{
    (void)state;
    char *beside = support_path("%s/train-00000-of-00002.parquet-x/000000000.json", source);
    support_write_text(beside, "{\"label\": 1, \"forged\": true}");
    support_hub_reader(reader, "#!/bin/sh\nexec cat\n");
    support_expect(0, "ingest", source, target, "--quiet", (char *)NULL);
    support_result r = support_millrace("show", target, "train", "0", "--json", (char *)NULL);
    assert_null(strstr(r.out, "forged"));
    assert_non_null(strstr(r.out, "row 0"));
    support_result_free(&r);
    free(beside);
}

static void test_ranks_fail_together(void **state)
{
    (void)state;
    char *partial = support_path("%s.partial", target);
    support_hub_reader(reader, "#!/bin/sh\ncat >\"$0.$OMPI_COMM_WORLD_RANK\"\ncat \"$0.$OMPI_COMM_WORLD_RANK\"\n"
                               "[ \"$OMPI_COMM_WORLD_RANK\" = 0 ] || { echo 'rank one is ill' >&2; exit 1; }\n");
    support_result r =
        support_mpirun(2, (const char *[]){support_millrace_path(), "ingest", source, target, "--quiet", NULL});
    support_assert_status(&r, 1);
    if (!strstr(r.out, "train-00001-of-00002.parquet: rank one is ill") && !strstr(r.err, "rank one is ill"))
        fail_msg("%s%s", r.out, r.err);
    assert_false(support_exists(target));
    assert_false(support_exists(partial));
    support_result_free(&r);
    free(partial);
}

/* What a few bytes may become is judged by those bytes, not by the program's own words. */
static void test_small_files_stay_small(void **state)
{
    (void)state;
    static const struct {
        size_t megabytes; /* that each of the two becomes: one is too much, or both together */
        const char *jobs;
    } cases[] = {{80, "1"}, {40, "1"}, {40, "2"}};
    char *rows = support_path("%s/rows.tar", dir), *script = support_path("#!/bin/sh\nexec cat '%s'\n", rows);
    support_hub_reader(reader, script);
    for (size_t i = 0; i < MR_COUNT(cases); i++) {
        size_t len = cases[i].megabytes << 20;
        support_entry entry = {.path = "000000000/x.png", .bytes = calloc(len, 1), .len = len};
        support_archive(rows, "tar", &entry, 1);
        expect_failure(1, "to more than 100 times", "--jobs", cases[i].jobs);
        free((void *)(uintptr_t)entry.bytes);
    }
    free(script);
    free(rows);
}

/* Counted over all threads and ranks: two Parquet files, and of each the schema, three rows and three images. */
static void test_one_limit_for_all(void **state)
{
    (void)state;
    support_hub_reader(reader, "#!/bin/sh\nexec cat\n");
    for (unsigned jobs = 1; jobs <= 3; jobs++) {
        char number[] = {(char)('0' + jobs), '\0'};
        expect_failure(1, "the source: more than 15 files; --max-files N", "--jobs", number, "--max-files", "15");
        support_expect(0, "ingest", source, target, "--quiet", "--dry-run", "--jobs", number, "--max-files", "16", END);
    }
    const char *argv[] = {support_millrace_path(), "ingest", source, target, "--quiet", "--max-files", "15", NULL};
    for (int more = 0; more < 2; more++) {
        support_result r = support_mpirun(2, argv);
        support_assert_status(&r, !more);
        assert_int_equal(!strstr(r.out, "more than 15 files") && !strstr(r.err, "more than 15 files"), more);
        support_result_free(&r);
        argv[6] = "16";
    }
}

/* A tar that was cut between two rows is refused, though its program says that all is well; more than a tar is told. */
static void test_ends_of_streams(void **state)
{
    (void)state;
    char *report = support_path("%s/report.json", target);
    support_hub_reader(reader, "#!/bin/sh\nexec head -c 1024\n");
    expect_failure(1, "train-00000-of-00002.parquet: ends without a tar's end mark");
    support_hub_reader(reader, "#!/bin/sh\ncat\necho more\n");
    support_expect(0, "ingest", source, target, "--quiet", END);
    char *text = (char *)support_read(report, NULL);
    assert_non_null(strstr(text, "the bytes after its end mark were not read"));
    free(text);
    free(report);
}

/* The reader that comes with millrace has an address space that the size of its file and --max-ratio allow: however it
 * says that this is not enough, it is one sentence.  A shell script that is taken for Python stands for it. */
static void test_out_of_memory(void **state)
{
    static const char bomb[] =
        "train-00000-of-00002.parquet: needs more than 1.14 GB of memory to be read, 100 times its "
        "size and what its reader needs, like an archive bomb; --max-ratio N raises the limit";
    static const struct {
        const char *script;
        int status;
        const char *words;
    } cases[] = {
        {"exit 4", 1, bomb},
        {"echo 'malloc of size 7 failed' >&2; exit 4", 1, bomb},
        {"echo \"terminate called after throwing an instance of 'std::bad_alloc'\" >&2; kill -ABRT $$", 1, bomb},
        {"printf 'Traceback:\\n  line 3\\nMemoryError\\n' >&2; exit 1", 1, bomb},
        {"echo 'no such column' >&2; exit 2", 2, "parquet: no such column"},
        {"kill -9 $$", 3, "was killed by signal 9 (Killed)"},
    };
    (void)state;
    for (size_t i = 0; i < MR_COUNT(cases); i++) {
        char *script =
            support_path("#!/bin/sh\nwhile [ \"$(ulimit -v)\" = unlimited ]; do :; done\n%s\n", cases[i].script);
        support_hub_reader(reader, script);
        unsetenv("MILLRACE_PARQUET_READER");
        setenv("MILLRACE_PYTHON", reader, 1);
        expect_failure(cases[i].status, cases[i].words, "--jobs", "1");
        free(script);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_ends, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_the_last_file_fails, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_missing_programs, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_streams, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_names_in_the_way, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_ranks_fail_together, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_small_files_stay_small, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_one_limit_for_all, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_ends_of_streams, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_out_of_memory, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
