/* test_push.c - a dataset stored on a server and fetched again is the same one, whatever breaks on the way.
 * Covers remote/push.c, remote/multipart.c, cmd_push.c, cmd_pull.c. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shards/remote/push.h"
#include "tests/support/remote/server.h"
#include "tests/support/support.h"

static support_server server;
static char *root, *data;
static const char *remote = "s3://bucket/my data";

static int set_up(void **state)
{
    root = support_tmpdir();
    char *www = support_path("%s/www", root), *keep = support_path("%s/www/keep", root),
         *cache = support_path("%s/cache", root);
    data = support_path("%s/data", root);
    support_write_text(keep, "");
    support_server_dataset(root, data);
    setenv("MILLRACE_PATIENCE", "1", 1);
    setenv("XDG_CACHE_HOME", cache, 1);
    if (!support_server_start(www, &server))
        server.port = 0;
    else {
        char *endpoint = support_path("http://127.0.0.1:%u", server.port);
        setenv("AWS_ENDPOINT_URL", endpoint, 1);
        free(endpoint);
    }
    setenv("AWS_ACCESS_KEY_ID", "AKIA", 1);
    setenv("AWS_SECRET_ACCESS_KEY", "hush", 1);
    unsetenv("AWS_SESSION_TOKEN");
    free(www);
    free(keep);
    free(cache);
    (void)state;
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    support_server_stop(&server);
    free(data);
    support_tmpdir_remove(root);
    return 0;
}

#define NEEDS_SERVER                                                                                                   \
    if (!server.port)                                                                                                  \
    skip()

/* What the command printed on the stream of its success or failure. */
static char *run(int status, const char *command, const char *a, const char *b)
{
    support_result r = support_millrace(command, a, b, (char *)NULL);
    support_assert_status(&r, status);
    char *text = strdup(status ? r.err : r.out);
    support_result_free(&r);
    return text;
}

static void expect(int status, const char *command, const char *a, const char *b, const char *said)
{
    char *text = run(status, command, a, b);
    if (!strstr(text, said) || strstr(text, "hush"))
        fail_msg("%s", text);
    free(text);
}

static void pushed_and_pulled_it_is_the_same(void **state)
{
    (void)state;
    NEEDS_SERVER;
    char *back = support_path("%s/back", root), *a = support_path("%s/data/manifest.json", root),
         *b = support_path("%s/back/manifest.json", root), *left = support_path("%s/back.pulled", root);
    support_server_tell(&server, "sign?key=AKIA&secret=hush");
    support_server_fault(&server, "cut", ".mdb", 1);
    support_server_fault(&server, "503", ".idx", 2);
    expect(0, "push", data, remote, "0 already there\n");
    char *log = support_server_log(&server);
    char *last = strstr(log, "/manifest.json - yes");
    assert_non_null(last);
    assert_null(strstr(strrchr(log, '\n'), ".mdb"));
    free(log);
    expect(0, "push", data, remote, "s3://bucket/my data: 0 files uploaded, ");
    support_server_fault(&server, "reset", ".mdb", 1);
    expect(0, "pull", remote, back, "each as the manifest says\n  digest ");
    support_assert_same_file(a, b);
    support_expect(0, "verify", back, (char *)NULL);
    assert_false(support_exists(left));
    expect(2, "pull", remote, back, "/back: exists already; remove it or name another folder");
    free(back);
    free(a);
    free(b);
    free(left);
}

static void a_pull_goes_on_where_one_ended(void **state)
{
    (void)state;
    NEEDS_SERVER;
    char *back = support_path("%s/again", root);
    support_server_heal(&server);
    expect(0, "push", data, remote, "read it as s3://bucket/my data#sha256=");
    support_server_fault(&server, "403", "val-00000.mdb", 0);
    expect(3, "pull", remote, back, "/val-00000.mdb: answers 403 AccessDenied to the credentials from the variable");
    assert_false(support_exists(back));
    support_server_heal(&server);
    free(support_server_log(&server));
    expect(0, "pull", remote, back, "each as the manifest says");
    char *log = support_server_log(&server);
    assert_int_equal(support_occurrences(log, "/train-00000.mdb "), 0);
    assert_true(support_occurrences(log, "/val-00000.mdb ") > 0);
    support_expect(0, "verify", back, (char *)NULL);
    free(log);
    free(back);
}

static void what_is_damaged_is_not_stored(void **state)
{
    (void)state;
    NEEDS_SERVER;
    char *hurt = support_path("%s/hurt", root), *command = support_path("cp -r '%s' '%s'", data, hurt),
         *shard = support_path("%s/hurt/train-00000.mdb", root), *there = support_path("%s/www/bucket/hurt", root);
    size_t len;
    assert_int_equal(system(command), 0);
    uint8_t *bytes = support_read(shard, &len);
    bytes[len / 2] ^= 1;
    support_write(shard, bytes, len);
    support_server_heal(&server);
    expect(1, "push", hurt, "s3://bucket/hurt", "train-00000.mdb: differs from what was ingested");
    char *manifest = support_path("%s/manifest.json", there);
    assert_false(support_exists(manifest));
    free(manifest);
    free(bytes);
    free(hurt);
    free(command);
    free(shard);
    free(there);
}

/* ---- large files in parts of 16 MiB ------------------------------------------------------------------------------ */

enum { BIG = (50 << 20) + 12345, BIG_PARTS = 4 };

/* A server that checks signatures, and a new file. */
static void begin_big(void)
{
    support_server_heal(&server);
    support_server_tell(&server, "sign?key=AKIA&secret=hush");
    char *path = support_path("%s/big", root);
    mr_random r = support_random();
    uint8_t *bytes = malloc(BIG);
    mr_random_bytes(&r, bytes, BIG);
    support_write(path, bytes, BIG);
    free(bytes);
    free(path);
}

static mr_status push_big(bool *stored, mr_error *err)
{
    mr_push *p;
    int dirfd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(mr_push_open(remote, &p, err), MR_OK);
    mr_status status = mr_push_file(p, dirfd, "big", NULL, stored, err);
    mr_push_close(p);
    close(dirfd);
    return status;
}

static void assert_big_is_there(void)
{
    char *a = support_path("%s/big", root), *b = support_path("%s/www/bucket/my data/big", root),
         *kept = support_path("find '%s/cache/millrace/uploads' -type f | grep -q .", root);
    support_assert_same_file(a, b);
    assert_int_not_equal(system(kept), 0); /* no upload is unfinished */
    assert_int_equal(unlink(b), 0);
    free(a);
    free(b);
    free(kept);
}

static unsigned parts_in(const char *log)
{
    return support_occurrences(log, "?partNumber=");
}

static void large_files_go_in_parts(void **state)
{
    (void)state;
    NEEDS_SERVER;
    mr_error err;
    bool stored;
    begin_big();
    support_server_fault(&server, "cut", "partNumber=2", 1);
    support_server_fault(&server, "flip", "partNumber=3", 1);
    support_server_fault(&server, "503", "?uploads", 1);
    support_server_fault(&server, "error200", "?uploadId", 1);
    free(support_server_log(&server));
    setenv("MILLRACE_PATIENCE", "60", 1);
    assert_int_equal(push_big(&stored, &err), MR_OK);
    setenv("MILLRACE_PATIENCE", "1", 1);
    assert_true(stored);
    char *log = support_server_log(&server);
    assert_int_equal(parts_in(log), BIG_PARTS + 1); /* what was flipped came twice; what was cut has no answer */
    free(log);
    assert_int_equal(push_big(&stored, &err), MR_OK);
    assert_false(stored);
    assert_big_is_there();
}

static void an_upload_goes_on_with_the_parts_that_are_there(void **state)
{
    (void)state;
    NEEDS_SERVER;
    mr_error err;
    bool stored;
    begin_big();
    support_server_fault(&server, "503", "partNumber=3", 0);
    assert_int_equal(push_big(&stored, &err), MR_SYSTEM);
    assert_non_null(strstr(err.text, "s3://bucket/my data/big: no data received for 1 s (answers 503)"));
    support_server_heal(&server);
    support_server_tell(&server, "sign?key=AKIA&secret=hush");
    free(support_server_log(&server));
    assert_int_equal(push_big(&stored, &err), MR_OK);
    char *log = support_server_log(&server);
    assert_int_equal(parts_in(log), 1);
    assert_non_null(strstr(log, "?partNumber=3&"));
    assert_non_null(strstr(log, "?part-number-marker=2&")); /* the list has two pages */
    free(log);
    assert_big_is_there();
    support_server_fault(&server, "503", "partNumber=1", 0);
    assert_int_equal(push_big(&stored, &err), MR_SYSTEM);
    support_server_heal(&server);
    support_server_tell(&server, "forget");
    assert_int_equal(push_big(&stored, &err), MR_OK);
    assert_big_is_there();
}

static void places_that_cannot_be(void **state)
{
    (void)state;
    expect(2, "push", data, "hf://datasets/me/dogs", "the hub accepts files through git");
    expect(2, "push", data, "folder", "folder: is not a URL");
    expect(2, "pull", data, "folder", "is not a URL; cp -r copies");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pushed_and_pulled_it_is_the_same),
        cmocka_unit_test(a_pull_goes_on_where_one_ended),
        cmocka_unit_test(what_is_damaged_is_not_stored),
        cmocka_unit_test(large_files_go_in_parts),
        cmocka_unit_test(an_upload_goes_on_with_the_parts_that_are_there),
        cmocka_unit_test(places_that_cannot_be),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
