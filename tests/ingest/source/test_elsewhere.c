/* test_elsewhere.c - an archive behind a URL becomes the dataset that the same file makes here, or a sentence says why.
 * Covers source/elsewhere.c, remote/download.c. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/hash.h"
#include "shards/remote/download.h"
#include "tests/support/remote/server.h"
#include "tests/support/support.h"

static support_server server;
static char *root; /* of all; the server's folder is root/www */

/* A source in every form in which it may be behind a URL. */
static void make_archives(void)
{
    char *command =
        support_path("cd '%s' && mkdir www classes && "
                     "tar -czf www/a.tgz source && tar -cf www/plain.tar source && tar -cJf www/a.tar.xz source && "
                     "for split in train val; do mkdir classes/$split; for class in source/*/$split/*; do "
                     "tar -C $class -cf classes/$split/$(basename $class).tar .; done; done && tar -C classes -cf "
                     "www/classes.tar . && "
                     "python3 -c 'import shutil; shutil.make_archive(\"www/a\", \"zip\", \".\", \"source\")'",
                     root);
    assert_int_equal(system(command), 0);
    free(command);
}

static int set_up(void **state)
{
    root = support_tmpdir();
    char *data = support_path("%s/data", root), *shards = support_path("%s/www/shards", root),
         *www = support_path("%s/www", root);
    support_server_dataset(root, data);
    make_archives();
    support_expect(0, "export", data, shards, "--to", "webdataset", "--shard-size", "64KiB", "--quiet", (char *)NULL);
    setenv("MILLRACE_PATIENCE", "2", 1);
    if (!support_server_start(www, &server))
        server.port = 0;
    free(data);
    free(shards);
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

static int begin(void **state)
{
    (void)state;
    if (server.port)
        support_server_heal(&server);
    return 0;
}

#define NEEDS_SERVER                                                                                                   \
    if (!server.port)                                                                                                  \
    skip()

static char *url(const char *rest)
{
    return support_path("http://127.0.0.1:%u/%s", server.port, rest);
}

static char *pinned(const char *name, bool right)
{
    char *file = support_path("%s/www/%s", root, name), *plain = url(name), hex[65];
    size_t len;
    uint8_t digest[32], *bytes = support_read(file, &len);
    mr_sha256(bytes, len, digest);
    mr_hex(digest, 32, hex);
    hex[0] = right ? hex[0] : hex[0] == '0' ? '1' : '0';
    char *text = support_path("%s#sha256=%s", plain, hex);
    free(bytes);
    free(file);
    free(plain);
    return text;
}

/* ---- the same dataset -------------------------------------------------------------------------------------------- */

/* The manifest that ingest makes from the sources, with 64 KiB per shard. */
static char *manifest_of(const char *first, const char *second)
{
    static unsigned n;
    size_t len;
    char *out = support_path("%s/out%u", root, n++), *made = support_path("%s/manifest.json", out),
         *left = support_path("%s.download", out);
    if (second)
        support_expect(0, "ingest", first, second, out, "--shard-size", "64KiB", "--quiet", (char *)NULL);
    else
        support_expect(0, "ingest", first, out, "--shard-size", "64KiB", "--quiet", (char *)NULL);
    assert_false(support_exists(left));
    char *text = (char *)support_read(made, &len);
    free(out);
    free(made);
    free(left);
    return text;
}

static void urls_are_ingested_as_files(void **state)
{
    static const struct {
        const char *name, *second, *fault;
    } cases[] = {{"a.tgz", NULL, "slow"},
                 {"a.tgz", NULL, "cut"},
                 {"plain.tar", NULL, "slow"},
                 {"plain.tar", NULL, "cut"},
                 {"a.tar.xz", NULL, "reset"},
                 {"a.zip", NULL, "cut"},
                 {"a.tgz", NULL, "chunked"},
                 {"a.zip", NULL, "chunked"},
                 {"classes.tar", NULL, "slow"},
                 {"shards/train-000000.tar", NULL, "slow"},
                 {"shards/train-000000.tar", "shards/val-000000.tar", "503"}};
    NEEDS_SERVER;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *second = cases[i].second;
        char *here = support_path("%s/www/%s", root, cases[i].name), *there = url(cases[i].name),
             *next_here = second ? support_path("%s/www/%s", root, second) : NULL,
             *next_there = second ? url(second) : NULL;
        char *expected = manifest_of(here, next_here);
        support_server_fault(&server, cases[i].fault, ".", 2);
        char *found = manifest_of(there, next_there);
        assert_string_equal(found, expected);
        support_server_heal(&server);
        char *all[] = {here, there, next_here, next_there, expected, found};
        for (size_t k = 0; k < sizeof all / sizeof *all; k++)
            free(all[k]);
    }
    (void)state;
}

static void reports_name_the_url(void **state)
{
    NEEDS_SERVER;
    char *good = pinned("a.tgz", true), *out = support_path("%s/named", root);
    support_result r = support_millrace("ingest", good, out, "--json", (char *)NULL);
    support_assert_status(&r, 0);
    assert_non_null(strstr(r.out, good));
    support_result_free(&r);
    free(good);
    free(out);
    (void)state;
}

/* ---- what is wrong ----------------------------------------------------------------------------------------------- */

static void expect_failure(const char *source, int status, const char *said)
{
    char *out = support_path("%s/other", root), *left = support_path("%s.download", out);
    support_result r = support_millrace("ingest", source, out, (char *)NULL);
    support_assert_status(&r, status);
    if (!strstr(r.err, said))
        fail_msg("%s: %s", source, r.err);
    assert_false(support_exists(out));
    assert_false(support_exists(left));
    support_result_free(&r);
    free(out);
    free(left);
}

enum { PLAIN, RIGHT, WRONG }; /* what #sha256= says */

static void wrong_files_are_refused(void **state)
{
    static const struct {
        const char *name;
        int pin;
        const char *fault;
        int status;
        const char *said;
    } cases[] = {
        {"a.tgz", WRONG, NULL, 1, "/a.tgz: not the expected file: its SHA-256 is "},
        {"www/", PLAIN, NULL, 2, "/www/: names no file"},
        {"a.tgz", PLAIN, "404", 2, "/a.tgz: answers 404 NoSuchKey: there is no such file\n"},
        {"a.tgz", PLAIN, "page", 3, "/a.tgz: answers with a web page instead of the file"},
        /* Damage is another file, if the URL says which one it should be; gzip's checksum finds it in any case. */
        {"a.tgz", RIGHT, "flip", 1, "/a.tgz: not the expected file: its SHA-256 is "},
        {"a.tgz", PLAIN, "flip", 1, "a.tgz: "},
        {"plain.tar", RIGHT, "flip", 1, "/plain.tar: not the expected file: its SHA-256 is "},
    };
    NEEDS_SERVER;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *source = cases[i].pin == PLAIN ? url(cases[i].name) : pinned(cases[i].name, cases[i].pin == RIGHT);
        if (cases[i].fault)
            support_server_fault(&server, cases[i].fault, cases[i].name, 0);
        expect_failure(source, cases[i].status, cases[i].said);
        support_server_heal(&server);
        free(source);
    }
    (void)state;
}

/* It is the network's fault, not the archive's. */
static void what_stops_coming_is_named(void **state)
{
    NEEDS_SERVER;
    char *source = url("a.tgz");
    support_server_fault(&server, "cut", "a.tgz", 1);
    support_server_fault(&server, "503", "a.tgz", 0);
    expect_failure(source, 3, "/a.tgz: no data received for 2 s (answers 503");
    free(source);
    (void)state;
}

/* ---- while it comes ---------------------------------------------------------------------------------------------- */

/* plain.tar, downloaded to a folder of its own from a server with a fault. */
typedef struct download {
    mr_download *d;
    uint8_t *expected;
    size_t len;
} download;

static download begin_download(const char *fault)
{
    char *source = url("plain.tar"), *folder = support_path("%s/%s", root, fault),
         *file = support_path("%s/www/plain.tar", root), *command = support_path("mkdir '%s'", folder);
    download x;
    mr_error err;
    x.expected = support_read(file, &x.len);
    assert_int_equal(system(command), 0);
    support_server_fault(&server, fault, "plain.tar", 0);
    assert_int_equal(mr_download_begin(source, folder, &x.d, &err), MR_OK);
    char *all[] = {source, folder, file, command};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]);
    return x;
}

/* The first `come` bytes are there, and the whole is `status`. */
static void end_download(download *x, size_t come, mr_status status)
{
    mr_error err;
    size_t n;
    uint8_t *bytes = support_read(mr_download_path(x->d), &n);
    assert_int_equal(n, x->len);
    assert_memory_equal(bytes, x->expected, come);
    assert_int_equal(mr_download_end(x->d, status, &err), status);
    free(x->expected);
    free(bytes);
}

static void what_has_come_can_be_read(void **state)
{
    NEEDS_SERVER;
    download x = begin_download("stall");
    assert_int_equal(mr_download_size(x.d), x.len);
    assert_true(mr_download_wait(x.d, x.len / 2));
    /* The rest does not come; a failed reader does not wait for it. */
    end_download(&x, x.len / 2, MR_MISUSE);
    (void)state;
}

/* The size of a file whose length the server does not state is known at its end. */
static void length_can_be_unknown(void **state)
{
    NEEDS_SERVER;
    download x = begin_download("chunked");
    assert_true(mr_download_wait(x.d, x.len));
    assert_true(mr_download_wait(x.d, x.len + 1));
    assert_int_equal(mr_download_size(x.d), x.len);
    end_download(&x, x.len, MR_OK);
    (void)state;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(length_can_be_unknown, begin),
        cmocka_unit_test_setup(urls_are_ingested_as_files, begin),
        cmocka_unit_test_setup(reports_name_the_url, begin),
        cmocka_unit_test_setup(wrong_files_are_refused, begin),
        cmocka_unit_test_setup(what_stops_coming_is_named, begin),
        cmocka_unit_test_setup(what_has_come_can_be_read, begin),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
