/* test_remote.c - a dataset on a server is the same one, or a sentence says what came instead.
 * Covers remote/remote.c, dataset/dataset_copies.c, remote/fetch.c, remote/http.c, remote/lane.c, remote/curl.c,
 * base/files/supply.c. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/hash.h"
#include "shards/dataset/parts.h"
#include "shards/remote/parts.h"
#include "tests/support/remote/server.h"
#include "tests/support/support.h"

static support_server server;
static char *root; /* of all; the server's folder is root/www */

static int set_up(void **state)
{
    root = support_tmpdir();
    char *data = support_path("%s/www/data", root), *www = support_path("%s/www", root);
    support_server_dataset(root, data);
    setenv("MILLRACE_PATIENCE", "1", 1);
    if (!support_server_start(www, &server))
        server.port = 0;
    free(data);
    free(www);
    (void)state;
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    support_server_stop(&server);
    support_tmpdir_remove(root);
    return 0;
}

/* A cache of its own for each test, so that all is fetched. */
static int begin(void **state)
{
    static unsigned n;
    char *cache = support_path("%s/cache%u", root, n++);
    setenv("XDG_CACHE_HOME", cache, 1);
    free(cache);
    (void)state;
    if (server.port) {
        support_server_heal(&server);
        free(support_server_log(&server));
    }
    return 0;
}

#define NEEDS_SERVER                                                                                                   \
    if (!server.port)                                                                                                  \
    skip()

static char *url(const char *rest)
{
    return support_path("http://127.0.0.1:%u/%s", server.port, rest);
}

static char *output(int status, const char *command, const char *dataset)
{
    bool replay = strcmp(command, "replay") == 0;
    support_result r = replay ? support_millrace("replay", dataset, "--global-batch", "10", (char *)NULL)
                              : support_millrace(command, dataset, (char *)NULL);
    support_assert_status(&r, status);
    char *text = strdup(status ? r.err : r.out);
    support_result_free(&r);
    return text;
}

static void replay_is_that_of_the_local_one(void **state)
{
    NEEDS_SERVER;
    char *remote = url("data"), *local = support_path("%s/www/data", root);
    char *a = output(0, "replay", local), *b = output(0, "replay", remote), *c = output(0, "replay", remote);
    assert_string_equal(a, b);
    assert_string_equal(a, c);
    free(a);
    free(b);
    free(c);
    free(remote);
    free(local);
    (void)state;
}

static void verify_reads_every_shard(void **state)
{
    NEEDS_SERVER;
    char *remote = url("data");
    char *said = output(0, "verify", remote), *log = support_server_log(&server);
    assert_non_null(strstr(said, ": intact\n"));
    assert_non_null(strstr(said, " seek indexes\n"));
    assert_int_equal(support_occurrences(log, ".idx "), support_occurrences(log, ".seek "));
    assert_true(support_occurrences(log, ".mdb ") >= support_occurrences(log, ".idx "));
    free(said);
    free(log);
    free(remote);
    (void)state;
}

static void inspect_reads_no_shard(void **state)
{
    NEEDS_SERVER;
    char *remote = url("data");
    char *said = output(0, "inspect", remote), *log = support_server_log(&server);
    char *local = support_path("%s/www/data", root), *there = output(0, "inspect", local);
    assert_string_equal(strchr(strstr(said, "//"), '\n'), strchr(there, '\n'));
    assert_int_equal(support_occurrences(log, ".mdb "), 0);
    assert_int_equal(support_occurrences(log, ".idx "), 0);
    assert_int_equal(support_occurrences(log, ".seek bytes=0-63 "), support_occurrences(log, ".seek "));
    free(local);
    free(there);
    free(said);
    free(log);
    free(remote);
    (void)state;
}

/* A sample costs its index and its two records; the first of a loader do not wait for their shard. */
static void single_records_come_by_range(void **state)
{
    NEEDS_SERVER;
    char *remote = url("data");
    support_expect(0, "show", remote, "train", "3", (char *)NULL);
    char *log = support_server_log(&server);
    assert_int_equal(support_occurrences(log, "206 "), 2);
    assert_int_equal(support_occurrences(log, "\n"), 3);
    free(log);
    begin(NULL);
    support_server_fault(&server, "stall", ".mdb", 1); /* of the copy, or of a record */
    char *local = support_path("%s/www/data", root), *a = output(0, "replay", local), *b = output(0, "replay", remote);
    assert_string_equal(a, b);
    log = support_server_log(&server);
    assert_true(support_occurrences(log, "206 ") > 2);
    free(a);
    free(b);
    free(log);
    free(local);
    free(remote);
    (void)state;
}

static void a_run_says_what_it_will_move(void **state)
{
    NEEDS_SERVER;
    char *remote = url("data"), *kept = support_path("%s/kept", root),
         *said = support_path(" read from it are fetched once");
    support_result r = support_millrace("replay", remote, "--global-batch", "10", "--local", kept, (char *)NULL);
    support_assert_status(&r, 0);
    assert_non_null(strstr(r.err, said));
    assert_non_null(strstr(r.err, kept));
    support_result_free(&r);
    r = support_millrace("replay", remote, "--global-batch", "10", "--local-size", "1000", (char *)NULL);
    support_assert_status(&r, 0);
    assert_non_null(strstr(r.err, "millrace/shards keeps 1.00 kB; the other "));
    support_result_free(&r);
    free(said);
    free(kept);
    free(remote);
    (void)state;
}

static void digest_can_be_pinned(void **state)
{
    NEEDS_SERVER;
    char hex[65], *local = support_path("%s/www/data/manifest.json", root);
    size_t len;
    uint8_t digest[32], *bytes = support_read(local, &len);
    mr_sha256(bytes, len, digest);
    mr_hex(digest, 32, hex);
    char *good = support_path("http://127.0.0.1:%u/data#sha256=%s", server.port, hex);
    hex[5] = hex[5] == '0' ? '1' : '0';
    char *bad = support_path("http://127.0.0.1:%u/data#sha256=%s", server.port, hex);
    free(output(0, "inspect", good));
    char *said = output(1, "inspect", bad);
    assert_non_null(strstr(said, "not the expected dataset: its digest is "));
    free(said);
    free(good);
    free(bad);
    free(bytes);
    free(local);
    (void)state;
}

/* What replay of a dataset ends with while the server is like this: its output is right, or `said` is in its
 * message. */
typedef struct fault {
    const char *kind, *match;
    unsigned count;
    int status;
    const char *said;
} fault;

static const fault fault_table[] = {
    {"cut", ".mdb", 1, 0, NULL},
    {"reset", ".mdb", 1, 0, NULL},
    {"cut", "", 0, 0, NULL},
    {"stall", ".mdb", 1, 0, NULL},
    {"flip", ".mdb", 1, 0, NULL},
    {"flip", ".idx", 1, 0, NULL},
    {"flip", ".seek", 1, 0, NULL},
    {"short", ".mdb", 1, 0, NULL},
    {"503", "", 2, 0, NULL},
    {"429", ".mdb", 1, 0, NULL},
    {"as200", "", 0, 0, NULL},
    {"bare200", "", 0, 0, NULL},
    {"whole", "", 0, 0, NULL},
    {"slow", ".mdb", 0, 0, NULL},
    {"404", ".seek", 0, 0, NULL},
    {"flip", ".mdb", 0, 1, ": its image differs from what was ingested; `millrace verify` shows the extent"},
    {"flip", ".idx", 0, 1, ".idx: does not match the digest in the manifest"},
    {"flip", "manifest.json", 0, 1, "/data: manifest.json: "},
    {"503", "", 0, 3, "no data received for 1 s (answers 503)"},
    {"silent", "manifest.json", 0, 3, "/data/manifest.json: no data received for 1 s ("},
    {"page", ".mdb", 0, 3, ".mdb: answers with a web page instead of the file"},
    {"403", ".mdb", 0, 3, ".mdb: answers 403 AccessDenied, and no credentials were found; "},
    {"expired", ".mdb", 0, 3, ".mdb: answers 400 ExpiredToken"},
    {"404", "manifest.json", 0, 2, "/data: is not a dataset: there is no manifest.json"},
    {"404", ".mdb", 0, 1, ".mdb: answers 404 NoSuchKey: there is no such file"},
    {"404", ".idx", 0, 1, ".idx"},
};

static void faults_end_in_right_bytes_or_a_sentence(void **state)
{
    NEEDS_SERVER;
    char *local = support_path("%s/www/data", root), *remote = url("data"), *good = output(0, "replay", local);
    for (size_t i = 0; i < sizeof fault_table / sizeof *fault_table; i++) {
        const fault *f = &fault_table[i];
        begin(NULL);
        support_server_fault(&server, f->kind, f->match, f->count);
        char *found = output(f->status, "replay", remote);
        if (f->said ? !strstr(found, f->said) : strcmp(found, good) != 0)
            fail_msg("%s of \"%s\": %s", f->kind, f->match, found);
        free(found);
    }
    free(local);
    free(remote);
    free(good);
    (void)state;
}

/* Several jobs that begin at once with one empty cache: each gets the same, and none waits for ever. */
static void jobs_share_a_cache(void **state)
{
    NEEDS_SERVER;
    char *local = support_path("%s/www/data", root), *remote = url("data"), *good = output(0, "replay", local);
    for (unsigned round = 0; round < 3; round++) {
        begin(NULL);
        char *jobs = support_path("pids=; for i in 1 2 3 4; do %s replay '%s' --global-batch 10 >'%s/job.'$i & "
                                  "pids=\"$pids $!\"; done; for pid in $pids; do wait $pid || exit 1; done",
                                  support_millrace_path(), remote, root);
        assert_int_equal(system(jobs), 0);
        for (unsigned i = 1; i <= 4; i++) {
            char *path = support_path("%s/job.%u", root, i), *found = (char *)support_read(path, NULL);
            assert_string_equal(found, good);
            free(found);
            free(path);
        }
        free(jobs);
    }
    free(local);
    free(remote);
    free(good);
    (void)state;
}

typedef struct fetching {
    mr_remote *remote;
    const mr_shard *shard;
    int to;
    mr_status status;
    atomic_bool over;
} fetching;

static void *fetch_one(void *ctx)
{
    fetching *f = ctx;
    f->status = mr_remote_fetch(f->remote, f->shard, f->to, NULL, NULL);
    atomic_store(&f->over, true);
    return NULL;
}

/* Records of a shard that is being fetched are not requested once more. */
static void records_come_with_their_shard(void **state)
{
    NEEDS_SERVER;
    char *there = url("data"), *kept = support_path("%s/coming", root);
    mr_error err;
    mr_dataset *ds;
    pthread_t thread;
    uint8_t record[3000];
    size_t len;
    assert_int_equal(mr_dataset_open(there, &ds, &err), MR_OK);
    const mr_shard *shard = &mr_dataset_manifest(ds)->splits[0].shards[0];
    char *file = support_path("%s/www/data/%s.mdb", root, shard->name);
    uint8_t *bytes = support_read(file, &len);
    fetching f = {.remote = ds->remote, .shard = shard};
    f.to = open(kept, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    assert_false(mr_remote_read_coming(f.remote, shard, 100, record, sizeof record, NULL));
    support_server_fault(&server, "slow", ".mdb", 1);
    assert_int_equal(pthread_create(&thread, NULL, fetch_one, &f), 0);
    bool read = false;
    while (!read && !atomic_load(&f.over))
        read = mr_remote_read_coming(f.remote, shard, 100, record, sizeof record, NULL);
    pthread_join(thread, NULL);
    assert_int_equal(f.status, MR_OK);
    assert_true(read);
    assert_memory_equal(record, bytes + 100, sizeof record);
    assert_false(mr_remote_read_coming(f.remote, shard, 100, record, sizeof record, NULL));
    close(f.to);
    mr_dataset_free(ds);
    free(bytes);
    char *all[] = {there, kept, file};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]);
    (void)state;
}

static void nobody_listens(void **state)
{
    NEEDS_SERVER;
    support_server gone;
    char *www = support_path("%s/www", root);
    assert_true(support_server_start(www, &gone));
    char *dead = support_path("http://127.0.0.1:%u/data", gone.port);
    support_server_stop(&gone);
    char *said = output(3, "inspect", dead);
    assert_non_null(strstr(said, "/data/manifest.json: no data received for 1 s ("));
    free(said);
    free(dead);
    free(www);
    (void)state;
}

static void writing_commands_refuse_urls(void **state)
{
    char *said = output(2, "seek", "https://user:secret@example.com/data");
    assert_null(strstr(said, "secret"));
    free(said);
    said = output(2, "reindex", "https://example.com/data");
    assert_non_null(strstr(said, "https://example.com/data: is remote and read-only"));
    free(said);
    (void)state;
}

#define TEST(name) cmocka_unit_test_setup(name, begin)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(replay_is_that_of_the_local_one),
        TEST(verify_reads_every_shard),
        TEST(inspect_reads_no_shard),
        TEST(single_records_come_by_range),
        TEST(a_run_says_what_it_will_move),
        TEST(digest_can_be_pinned),
        TEST(faults_end_in_right_bytes_or_a_sentence),
        TEST(jobs_share_a_cache),
        TEST(records_come_with_their_shard),
        TEST(nobody_listens),
        TEST(writing_commands_refuse_urls),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
