/* test_manifest_table.c - datasets whose shards are listed in a table (ingest --manifest 2), by every command.
 * Invariant tested: nothing but the manifest differs from the same dataset with a list; what is wrong with the table is
 * found by whatever reads the dataset, and named. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "tests/support/support.h"

static char *dir;

static void run(int status, const char *line)
{
    char *command = support_path("cd '%s' && \"$M\" %s", dir, line);
    support_result r = support_run((const char *const[]){"/bin/sh", "-c", command, NULL}, NULL);
    support_assert_status(&r, status);
    support_result_free(&r);
    free(command);
}

/* What a shell prints; the caller frees it. */
static char *said(int status, const char *line)
{
    char *command = support_path("cd '%s' && %s", dir, line);
    support_result r = support_run((const char *const[]){"/bin/sh", "-c", command, NULL}, NULL);
    support_assert_status(&r, status);
    char *both = support_path("%s%s", r.out, r.err);
    support_result_free(&r);
    free(command);
    return both;
}

static void expect(int status, const char *line, const char *words)
{
    char *text = said(status, line);
    if (!strstr(text, words))
        fail_msg("%s: \"%s\" is not in: %s", line, words, text);
    free(text);
}

static void same(const char *a, const char *b)
{
    char *x = said(0, a), *y = said(0, b);
    assert_string_equal(x, y);
    free(x);
    free(y);
}

static int set_up(void **state)
{
    (void)state;
    dir = support_tmpdir();
    setenv("M", support_millrace_path(), 1);
    run(0, "sample src --layout imagenette --images 60 --quiet");
    run(0, "ingest src list --shard-size 64KiB --quiet");
    run(0, "ingest src table --shard-size 64KiB --manifest 2 --quiet");
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    support_tmpdir_remove(dir);
    return 0;
}

static void test_only_the_manifest_differs(void **state)
{
    (void)state;
    expect(1, "diff -rq list table", "manifest.json differ");
    expect(1, "diff -rq list table | wc -l; exit 1", "2\n"); /* and the table */
    same("cd list && cat *.mdb *.idx *.seek | cksum", "cd table && cat *.mdb *.idx *.seek | cksum");
}

static void test_every_command_reads_it(void **state)
{
    (void)state;
    static const char *const commands[] = {
        "\"$M\" show $DS train 17 --json",
        "\"$M\" plan $DS --global-batch 8 --batches 1:3 --json",
        "\"$M\" replay $DS --split train --global-batch 8 --batches 0:4",
        "\"$M\" export $DS out-$DS --quiet && cd out-$DS && find . -type f | sort | xargs cat | cksum",
        "\"$M\" inspect $DS --classes --json | grep -v '\"digest\"\\|\"format\"'",
    };
    for (size_t i = 0; i < MR_COUNT(commands); i++) {
        char *list = support_path("DS=list; %s", commands[i]), *table = support_path("DS=table; %s", commands[i]);
        same(list, table);
        free(list);
        free(table);
    }
    expect(0, "\"$M\" inspect table", "format 2");
    expect(0, "\"$M\" inspect table --json", "\"format\": 2");
    expect(0, "\"$M\" verify table --deep", "table: intact");
}

/* One rank of the host reads the table; what differs from its files is noticed. */
static void test_ranks_open_it_together(void **state)
{
    (void)state;
    char *alone = said(0, "\"$M\" replay table --split train --global-batch 12 --batches 0:3");
    char *table = support_path("%s/table", dir), *list = support_path("%s/list", dir);
    const char *together[] = {support_millrace_path(), "replay", table,       "--split", "train",
                              "--global-batch",        "12",     "--batches", "0:3",     NULL};
    support_result r = support_mpirun(3, together);
    support_assert_status(&r, 0);
    assert_string_equal(r.out, alone);
    support_result_free(&r);
    /* Rank 0 reads the list, the others the table. */
    char *apart = support_path("exec \"$0\" replay \"$([ \"$OMPI_COMM_WORLD_RANK\" = 0 ] && echo '%s' || echo '%s')\" "
                               "--split train --global-batch 12 --batches 0:3",
                               list, table);
    const char *differing[] = {"/bin/sh", "-c", apart, support_millrace_path(), NULL};
    r = support_mpirun(3, differing);
    support_assert_status(&r, 1);
    char *both = support_path("%s%s", r.out, r.err);
    if (!strstr(both, "mpirun: rank 1 reads the dataset"))
        fail_msg("%s", both);
    support_result_free(&r);
    free(both);
    free(apart);
    free(list);
    free(table);
    free(alone);
}

static void test_indexes_are_rebuilt(void **state)
{
    (void)state;
    run(0, "ingest src again --shard-size 64KiB --manifest 2 --quiet");
    expect(0, "rm again/train-00001.idx again/train-00000.seek && \"$M\" reindex again && \"$M\" seek again --quiet",
           "");
    same("cat table/* | cksum", "cat again/* | cksum");
    run(0, "ingest src again --shard-size 64KiB --force --quiet"); /* as a list: the table goes */
    expect(1, "test -e again/manifest.shards", "");
    same("cat list/* | cksum", "cat again/* | cksum");
}

/* A run that ended between the table and the manifest. */
static void test_a_left_over_table_is_no_obstacle(void **state)
{
    (void)state;
    expect(0,
           "mkdir new.partial && cp table/*-* table/manifest.shards new.partial && touch "
           "new.partial/manifest.shards.tmp && \"$M\" ingest src new --shard-size 64KiB --quiet",
           "");
    same("cat list/* | cksum", "cat new/* | cksum");
}

static void test_damage_is_named(void **state)
{
    (void)state;
    static const char *const readers[] = {"verify hurt",      "inspect hurt", "plan hurt --global-batch 8",
                                          "reindex hurt",     "seek hurt",    "show hurt train 0",
                                          "export hurt never"};
    static const char *const hurts[][2] = {
        {"rm hurt/manifest.shards", "manifest.shards: is missing"},
        {"truncate -s -1 hurt/manifest.shards", "bytes instead of"},
        {"printf X | dd of=hurt/manifest.shards bs=1 seek=300 conv=notrunc 2>/dev/null",
         "manifest.shards: does not match the manifest"},
    };
    for (size_t i = 0; i < MR_COUNT(hurts); i++) {
        free(said(0, "rm -rf hurt && cp -r table hurt"));
        free(said(0, hurts[i][0]));
        for (size_t k = 0; k < MR_COUNT(readers); k++) {
            char *line = support_path("\"$M\" %s", readers[k]);
            expect(1, line, hurts[i][1]);
            free(line);
        }
    }
    free(said(0, "rm -rf hurt && cp -r list hurt && cp table/manifest.shards hurt"));
    expect(0, "\"$M\" verify hurt", "manifest.shards: is not part of the dataset");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_only_the_manifest_differs), cmocka_unit_test(test_every_command_reads_it),
        cmocka_unit_test(test_indexes_are_rebuilt),       cmocka_unit_test(test_a_left_over_table_is_no_obstacle),
        cmocka_unit_test(test_damage_is_named),           cmocka_unit_test(test_ranks_open_it_together),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
