/* test_ingest_record.c - the records of finished shards that an interrupted ingest leaves, damaged at every byte.
 * Invariant tested: a shard is taken over by a sound record only; the dataset is that of an ingest that was never
 * interrupted. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "record.h"
#include "support.h"

/* About one picture a shard, so that one run reads many records. */
#define CUT "--shard-size", "4KiB", "--jobs", "2"

static char *dir, *source, *target, *partial, *kept;
static char **records;              /* their names */
static size_t record_count;
static uint64_t expected;

/* A folder in the place of the first seek index ends an ingest when all of its shards are finished. */
static void interrupt_ingest(void)
{
    char *file = support_path("%s/train-00000.seek/in-the-way", partial), *list;
    support_write_text(file, "");
    support_expect(3, "ingest", source, target, CUT, "--quiet", (char *)NULL);
    assert_int_equal(unlink(file), 0);
    *strrchr(file, '/') = '\0';
    assert_int_equal(rmdir(file), 0);
    free(file);
    list = support_list(partial);
    records = calloc(strlen(list), sizeof *records);
    assert_non_null(records);
    for (char *rest = list, *name; (name = strsep(&rest, "\n")) && *name;)
        if (strstr(name, ".done"))
            records[record_count++] = strdup(name);
    free(list);
    assert_true(record_count > 10);
    assert_int_equal(rename(partial, kept), 0);
}

static int set_up(void **state)
{
    (void)state;
    dir = support_tmpdir();
    source = support_path("%s/source", dir);
    target = support_path("%s/out", dir);
    partial = support_path("%s.partial", target);
    kept = support_path("%s/kept", dir);
    support_expect(0, "sample", source, "--layout", "imagenette", "--images", "30", "--size", "32:64", "--quiet",
                   (char *)NULL);
    support_expect(0, "ingest", source, target, CUT, "--quiet", (char *)NULL);
    expected = support_dataset_hash(target);
    support_tmpdir_remove(strdup(target));
    interrupt_ingest();
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    for (size_t i = 0; i < record_count; i++)
        free(records[i]);
    free(records);
    free(source);
    free(target);
    free(partial);
    free(kept);
    support_tmpdir_remove(dir);
    return 0;
}

/* The interrupted ingest as it was. */
static void bring_back(void)
{
    char *list = support_list(kept);
    for (char *rest = list, *name; (name = strsep(&rest, "\n")) && *name;) {
        size_t len;
        char *from = support_path("%s/%s", kept, name), *to = support_path("%s/%s", partial, name);
        uint8_t *bytes = support_read(from, &len);
        support_write(to, bytes, len);
        free(bytes);
        free(from);
        free(to);
    }
    free(list);
}

/* Goes on to a dataset that must be the expected one; how many shards were taken over. */
static unsigned long go_on(void)
{
    support_result r = support_millrace("ingest", source, target, CUT, (char *)NULL);
    support_assert_status(&r, 0);
    const char *said = strstr(r.out, " taken over"), *line = said;
    while (line && line > r.out && line[-1] != '\n')
        line--;
    unsigned long taken = line ? strtoul(line, NULL, 10) : 0;
    support_result_free(&r);
    assert_true(support_dataset_hash(target) == expected);
    support_tmpdir_remove(strdup(target));
    return taken;
}

static void test_whole_records_are_taken_over(void **state)
{
    (void)state;
    bring_back();
    assert_int_equal(go_on(), record_count);
}

/* At each byte of one: a bit changed, or the rest cut off. */
static void test_a_damaged_record_is_none(void **state)
{
    (void)state;
    mr_random random = support_random();
    char *from = support_path("%s/%s", kept, records[0]), *to = support_path("%s/bent.done", dir);
    mr_digest recipe;
    mr_shard shard;
    size_t len;
    uint8_t *bytes = support_read(from, &len);
    assert_true(mr_record_read(AT_FDCWD, from, &recipe, &shard));
    for (size_t at = 0; at < len; at++) {
        support_write(to, bytes, at);
        assert_false(mr_record_read(AT_FDCWD, to, &recipe, &shard));
        uint8_t bit = (uint8_t)(1 << mr_random_below(&random, 8));
        bytes[at] ^= bit;
        support_write(to, bytes, len);
        assert_false(mr_record_read(AT_FDCWD, to, &recipe, &shard));
        bytes[at] ^= bit;
    }
    free(bytes);
    free(from);
    free(to);
}

/* Each record at another byte: every second one is cut there, of the others a bit is changed. */
static void test_shards_of_damaged_records_are_made_anew(void **state)
{
    (void)state;
    mr_random random = support_random();
    bring_back();
    for (size_t i = 0; i < record_count; i++) {
        char *path = support_path("%s/%s", partial, records[i]);
        size_t len;
        uint8_t *bytes = support_read(path, &len);
        size_t at = mr_random_below(&random, len);
        bytes[at] ^= (uint8_t)(1 << mr_random_below(&random, 8));
        support_write(path, bytes, i % 2 ? at : len);
        free(bytes);
        free(path);
    }
    assert_int_equal(go_on(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whole_records_are_taken_over),
        cmocka_unit_test(test_a_damaged_record_is_none),
        cmocka_unit_test(test_shards_of_damaged_records_are_made_anew),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
