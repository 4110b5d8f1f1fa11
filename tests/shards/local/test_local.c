/* test_local.c - copies of shards on a local disk: whole or absent, shared, evicted, and never a reason to fail.
 * Covers local/store.c, local/copier.c, loader/cmd_local.c. */
#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/hash.h"
#include "shards/dataset/dataset.h"
#include "tests/support/faults.h"
#include "tests/support/hang.h"
#include "tests/support/support.h"

#define HANG_WHILE(condition)                                                                                          \
    for (time_t since_ = time(NULL); (condition);) {                                                                   \
        if (time(NULL) - since_ > HANG_SECONDS)                                                                        \
            fail_msg("waited too long for: not %s", #condition);                                                       \
        nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);                                                       \
    }

static int set_up(void **state)
{
    char *dir = support_tmpdir(), *source = support_path("%s/source", dir), *data = support_path("%s/data", dir);
    support_expect(0, "sample", source, "--layout", "imagenette", "--images", "60", "--size", "48", "--quiet",
                   (char *)NULL);
    support_expect(0, "ingest", source, data, "--shard-size", "16KiB", "--quiet", (char *)NULL);
    free(source);
    free(data);
    *state = dir;
    return 0;
}

typedef struct place {
    char *data, *local;
} place;

static place place_of(void **state, const char *local)
{
    return (place){support_path("%s/data", (const char *)*state), support_path("%s/%s", (const char *)*state, local)};
}

static void place_free(place *p)
{
    free(p->data);
    free(p->local);
}

static mr_dataset *open_data(const place *p)
{
    mr_dataset *ds = NULL;
    mr_error err;
    if (mr_dataset_open(p->data, &ds, &err) != MR_OK)
        fail_msg("%s", err.text);
    return ds;
}

static void stage(mr_dataset *ds, const place *p, uint64_t most, int copies)
{
    mr_error err;
    if (mr_dataset_stage(ds, p->local, most, copies, &err) != MR_OK)
        fail_msg("%s", err.text);
}

static const mr_split *train_of(const mr_dataset *ds)
{
    return mr_manifest_split(mr_dataset_manifest(ds), "train");
}

/* A hash over all batches of an epoch. */
static uint64_t read_epoch(const mr_dataset *ds)
{
    const mr_loader_options o = {.struct_size = sizeof o,
                                 .split = "train",
                                 .global_batch = 7,
                                 .seed = 3,
                                 .tail = MR_TAIL_PARTIAL,
                                 .with_meta = 1};
    mr_loader *l = NULL;
    const mr_batch *b;
    mr_error err;
    uint64_t hash = 0;
    mr_status status;
    if (mr_loader_open(ds, &o, &l, &err) != MR_OK)
        fail_msg("%s", err.text);
    while ((status = mr_loader_next(l, &b, &err)) == MR_OK) {
        hash = hash * 31 + mr_hash64(b->data, b->data_bytes);
        mr_batch_release(l, b);
    }
    if (status != MR_END)
        fail_msg("%s", err.text);
    mr_loader_free(l);
    return hash;
}

/* Files in the folder whose names end like this. */
static size_t count_files(const place *p, const char *suffix)
{
    DIR *d = opendir(p->local);
    size_t n = 0;
    for (struct dirent *e; d && (e = readdir(d));) {
        size_t len = strlen(e->d_name);
        n += len > strlen(suffix) && strcmp(e->d_name + len - strlen(suffix), suffix) == 0;
    }
    if (d)
        closedir(d);
    return n;
}

static char *copy_path(const place *p, const mr_shard *s, const char *suffix)
{
    char hex[65];
    mr_hex(s->mdb.sha256, 32, hex);
    return support_path("%s/%s.%s", p->local, hex, suffix);
}

/* Until every shard of train has a copy, no matter who made it. */
static void await_copies(const mr_dataset *ds)
{
    const mr_split *split = train_of(ds);
    for (size_t i = 0; i < split->shard_count; i++) {
        int fd = -1;
        HANG_WHILE(!mr_dataset_open_copy(ds, &split->shards[i], &fd));
        close(fd);
    }
}

static bool remark_is(const mr_dataset *ds, const char *words)
{
    mr_error remark;
    return mr_dataset_stage_remark(ds, &remark) == MR_OK && strstr(remark.text, words) != NULL;
}

/* The same samples without copies, while they are made, from them, and in the next run from the first batch on. */
static void samples_are_the_same(void **state)
{
    place p = place_of(state, "same");
    mr_dataset *ds = open_data(&p);
    uint64_t plain = read_epoch(ds);
    mr_error err;
    stage(ds, &p, 0, 1);
    assert_int_equal(mr_dataset_stage(ds, p.local, 0, 1, &err), MR_MISUSE);
    assert_true(read_epoch(ds) == plain);
    await_copies(ds);
    assert_true(read_epoch(ds) == plain);
    assert_int_equal(mr_dataset_stage_remark(ds, &err), MR_END);
    mr_dataset_free(ds);
    size_t copies = count_files(&p, ".mdb");
    ds = open_data(&p);
    assert_true(copies == train_of(ds)->shard_count && copies > 3); /* val was not read */
    assert_int_equal(count_files(&p, ".part"), 0);
    stage(ds, &p, 0, 0);
    assert_true(read_epoch(ds) == plain);
    mr_local_counts counts = mr_dataset_copies(ds);
    assert_true(counts.copied == 0 && counts.found >= copies);
    mr_dataset_free(ds);
    place_free(&p);
}

/* Copies whose bytes have changed since, and one that is cut short. */
static void a_damaged_copy_is_replaced_by_the_dataset(void **state)
{
    place p = place_of(state, "damaged");
    mr_dataset *ds = open_data(&p);
    uint64_t plain = read_epoch(ds);
    stage(ds, &p, 0, 1);
    read_epoch(ds);
    await_copies(ds);
    mr_dataset_free(ds);
    ds = open_data(&p);
    const mr_split *split = train_of(ds);
    for (size_t i = 0; i < 2; i++) {
        char *path = copy_path(&p, &split->shards[i], "mdb");
        static const uint8_t zeros[4096];
        int fd = open(path, O_WRONLY);
        assert_true(fd >= 0);
        for (off_t at = 8192; i == 0 && (uint64_t)at < split->shards[i].mdb.bytes; at += 4096)
            assert_int_equal(pwrite(fd, zeros, sizeof zeros, at), sizeof zeros);
        if (i == 1)
            assert_int_equal(ftruncate(fd, 4096), 0);
        close(fd);
        free(path);
    }
    stage(ds, &p, 0, 0);
    assert_true(read_epoch(ds) == plain);
    assert_true(remark_is(ds, ".mdb was damaged; it was removed, and the dataset is read instead"));
    char *path = copy_path(&p, &split->shards[0], "mdb");
    assert_int_equal(access(path, F_OK), -1);
    free(path);
    mr_dataset_free(ds);
    place_free(&p);
}

/* What a copier that was killed left is swept; what another is writing is left alone. */
static void leftovers_are_swept(void **state)
{
    place p = place_of(state, "swept");
    mr_dataset *ds = open_data(&p);
    const mr_split *split = train_of(ds);
    char *dead = support_path("%s/%064d.part", p.local, 1), *alive = copy_path(&p, &split->shards[0], "part");
    char *foreign = support_path("%s/notes.part", p.local);
    support_shell(*state, "mkdir swept; echo kept >swept/notes.part; echo half >\"swept/$(printf %064d 1).part\"");
    int held = open(alive, O_RDWR | O_CREAT | O_CLOEXEC, 0666), fd = -1;
    assert_true(held >= 0 && flock(held, LOCK_EX) == 0);
    stage(ds, &p, 0, 1);
    read_epoch(ds);
    for (size_t i = 1; i < split->shard_count; i++) {
        HANG_WHILE(!mr_dataset_open_copy(ds, &split->shards[i], &fd));
        close(fd);
    }
    assert_int_equal(access(dead, F_OK), -1);
    assert_int_equal(access(foreign, F_OK), 0);
    assert_int_equal(access(alive, F_OK), 0);
    assert_false(mr_dataset_open_copy(ds, &split->shards[0], &fd));
    close(held);
    mr_dataset_free(ds);
    free(dead);
    free(alive);
    free(foreign);
    place_free(&p);
}

/* A limit: old copies that nobody uses go, those in use stay, and what does not fit is read from the dataset. */
static void the_limit_is_kept(void **state)
{
    place p = place_of(state, "limit");
    mr_dataset *ds = open_data(&p);
    const mr_split *split = train_of(ds);
    uint64_t plain = read_epoch(ds), all = 0;
    for (size_t i = 0; i < split->shard_count; i++)
        all += split->shards[i].mdb.bytes;
    stage(ds, &p, 0, 1);
    read_epoch(ds);
    await_copies(ds);
    mr_dataset_free(ds);
    /* Copies of an earlier run, under names of shards that are not in this dataset; one is being read. */
    support_shell(*state, "cd limit; n=0; for f in *.mdb; do n=$((n + 1)); mv $f $(printf %064d $n).mdb; done");
    support_shell(*state, "cd limit; touch -d '2 hours ago' *.mdb; touch -d '3 hours ago' $(printf %064d 1).mdb");
    char *used = support_path("%s/%064d.mdb", p.local, 1);
    int held = open(used, O_RDONLY | O_CLOEXEC);
    assert_true(held >= 0 && flock(held, LOCK_SH) == 0);
    ds = open_data(&p);
    split = train_of(ds);
    stage(ds, &p, all, 1); /* room for all but one, as the one that is used stays */
    assert_true(read_epoch(ds) == plain);
    HANG_WHILE(!remark_is(ds, "not all shards fit into"));
    assert_true(read_epoch(ds) == plain);
    assert_int_equal(access(used, F_OK), 0);
    mr_local_counts counts = mr_dataset_copies(ds);
    if (!counts.copied || counts.copied >= split->shard_count)
        fail_msg("%llu of %zu shards were copied", (unsigned long long)counts.copied, split->shard_count);
    assert_true(count_files(&p, ".mdb") <= split->shard_count);
    close(held);
    mr_dataset_free(ds);
    free(used);
    place_free(&p);
}

/* A limit that has become smaller holds at once, also for a run that copies nothing. */
static void a_smaller_limit_is_kept(void **state)
{
    place p = place_of(state, "smaller");
    mr_dataset *ds = open_data(&p);
    support_shell(*state, "mkdir smaller; for n in 1 2 3; do echo old >smaller/$(printf %064d $n).mdb; done");
    support_shell(*state, "for n in 1 2 3; do touch -d \"$n hours ago\" smaller/$(printf %064d $n).mdb; done");
    stage(ds, &p, 5, 1); /* bytes */
    HANG_WHILE(count_files(&p, ".mdb") > 1);
    assert_int_equal(count_files(&p, ".mdb"), 1);
    mr_dataset_free(ds);
    place_free(&p);
}

static void a_folder_that_cannot_be_used_costs_nothing(void **state)
{
    place p = place_of(state, "data/train-00000.mdb/x"), inside = place_of(state, "data/copies");
    mr_dataset *ds = open_data(&p);
    uint64_t plain = read_epoch(ds);
    mr_error err;
    assert_int_equal(mr_dataset_stage(ds, inside.local, 0, 1, &err), MR_MISUSE);
    free(p.local);
    p.local = support_path("%s/file/copies", (const char *)*state);
    support_shell(*state, "touch file");
    stage(ds, &p, 0, 1);
    assert_true(read_epoch(ds) == plain);
    assert_true(remark_is(ds, "; shards are read from the dataset"));
    mr_dataset_free(ds);
    place_free(&p);
    place_free(&inside);
}

/* A shard of the dataset that is not what was ingested never becomes a copy. */
static void a_damaged_shard_is_not_copied(void **state)
{
    place p = place_of(state, "honest");
    support_shell(*state, "cp -r data rotten; printf x | dd of=rotten/train-00000.mdb bs=1 seek=9000 conv=notrunc");
    free(p.data);
    p.data = support_path("%s/rotten", (const char *)*state);
    mr_dataset *ds = open_data(&p);
    const mr_split *split = train_of(ds);
    int fd = -1;
    stage(ds, &p, 0, 1);
    assert_false(mr_dataset_open_copy(ds, &split->shards[0], &fd));
    HANG_WHILE(!remark_is(ds, "train-00000.mdb: differs from what was ingested"));
    for (size_t i = 1; i < split->shard_count; i++) {
        HANG_WHILE(!mr_dataset_open_copy(ds, &split->shards[i], &fd));
        close(fd);
    }
    assert_false(mr_dataset_open_copy(ds, &split->shards[0], &fd));
    mr_dataset_free(ds);
    place_free(&p);
}

/* By the program: two jobs that fill one folder at once print what one without it does. */
static void jobs_share_a_folder(void **state)
{
    char *command = support_path("M='%s'; $M replay data --global-batch 5 >plain; for i in 1 2; do $M replay data "
                                 "--global-batch 5 --local shared --local-size 1GiB >job-$i & done; wait; cmp plain "
                                 "job-1 && cmp plain job-2 && test -z \"$(find shared -name '*.part')\"",
                                 support_millrace_path());
    support_shell(*state, command);
    free(command);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(samples_are_the_same),          cmocka_unit_test(a_damaged_copy_is_replaced_by_the_dataset),
        cmocka_unit_test(leftovers_are_swept),           cmocka_unit_test(the_limit_is_kept),
        cmocka_unit_test(a_smaller_limit_is_kept),       cmocka_unit_test(a_folder_that_cannot_be_used_costs_nothing),
        cmocka_unit_test(a_damaged_shard_is_not_copied), cmocka_unit_test(jobs_share_a_folder),
    };
    return cmocka_run_group_tests(tests, set_up, support_tmpdir_tear_down);
}
