/* test_services.c - real S3 services that check signatures: seaweedfs, and rclone, which answers a range with 200.
 * Invariant tested: what is pushed is what is pulled, in one piece and in parts, and a wrong secret gets nothing.
 * Each is taken from PATH or from scripts/venv python --all.
 * Covers remote/multipart.c. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "shards/remote/push.h"
#include "tests/support/hang.h"
#include "tests/support/remote/server.h"
#include "tests/support/support.h"

enum { PORTS = 8, BIG = (40 << 20) + 321 };

static char *root, *data;
static pid_t server;
static bool serves;
static const char *remote = "s3://bucket/my data (1)+\303\274";

typedef struct service {
    const char *name, *program, *missing;
    /* The shell's command, which does not return.  The last of the ports is that of S3. */
    char *(*command)(const char *program, const unsigned ports[PORTS]);
} service;

static char *seaweedfs(const char *program, const unsigned p[PORTS])
{
    char *config = support_path("%s/s3.json", root), *folder = support_path("%s/volumes/keep", root);
    support_write_text(config, "{\"identities\":[{\"name\":\"me\",\"credentials\":[{\"accessKey\":\"AKIA\","
                               "\"secretKey\":\"hush\"}],\"actions\":[\"Admin\"]}]}");
    support_write_text(folder, "");
    free(config);
    free(folder);
    return support_path("exec '%s' server -ip=127.0.0.1 -ip.bind=127.0.0.1 -filer -s3 -volume.max=20 "
                        "-master.volumeSizeLimitMB=64 -master.port=%u -master.port.grpc=%u -volume.port=%u "
                        "-volume.port.grpc=%u -filer.port=%u -filer.port.grpc=%u -s3.port.grpc=%u -s3.port=%u "
                        "-dir='%s/volumes' -s3.config='%s/s3.json' >'%s/server.log' 2>&1",
                        program, p[0], p[1], p[2], p[3], p[4], p[5], p[6], p[7], root, root, root);
}

static char *rclone(const char *program, const unsigned p[PORTS])
{
    support_put(root, "buckets/keep", "");
    return support_path("exec '%s' --config='%s/rclone.conf' serve s3 --auth-key=AKIA,hush --addr=127.0.0.1:%u "
                        "'%s/buckets' >'%s/server.log' 2>&1",
                        program, root, p[PORTS - 1], root, root);
}

static const service services[] = {
    {"seaweedfs", "weed", "weed or curl is not installed; scripts/venv python --all installs seaweedfs", seaweedfs},
    {"rclone", "rclone", "rclone or curl is not installed; scripts/venv python --all installs rclone", rclone},
};
static const service *tested;

/* Until it has made the bucket. */
static bool start(const char *program)
{
    unsigned ports[PORTS];
    if (!support_server_ports(root, ports, PORTS))
        return false;
    char *command = tested->command(program, ports);
    server = fork();
    if (server == 0) {
        execl("/bin/sh", "sh", "-c", command, (char *)NULL);
        _exit(127);
    }
    free(command);
    char *endpoint = support_path("http://127.0.0.1:%u", ports[PORTS - 1]);
    char *bucket = support_path("curl -sf -X PUT --aws-sigv4 aws:amz:us-east-1:s3 -u AKIA:hush %s/bucket", endpoint);
    bool made = false;
    for (time_t since = time(NULL); !(made = support_server_runs(root, bucket)) &&
                                    waitpid(server, NULL, WNOHANG) == 0 && time(NULL) - since < HANG_SECONDS;)
        nanosleep(&(struct timespec){.tv_nsec = 200000000}, NULL);
    setenv("AWS_ENDPOINT_URL", endpoint, 1);
    free(endpoint);
    free(bucket);
    return made;
}

static int set_up(void **state)
{
    (void)state;
    root = support_tmpdir();
    data = support_path("%s/data", root);
    char *cache = support_path("%s/cache", root),
         *own = support_path("%s/build/python-venv/bin/%s", MILLRACE_SOURCE_DIR, tested->program);
    const char *program = access(own, X_OK) == 0 ? own : tested->program;
    char *probe = support_path("'%s' version && curl --version", program);
    support_server_dataset(root, data);
    setenv("XDG_CACHE_HOME", cache, 1);
    setenv("AWS_ACCESS_KEY_ID", "AKIA", 1);
    setenv("AWS_SECRET_ACCESS_KEY", "hush", 1);
    unsetenv("AWS_SESSION_TOKEN");
    if (support_server_runs(root, probe))
        serves = start(program);
    else
        support_cannot(tested->name, tested->missing);
    free(cache);
    free(own);
    bool failed = server > 0 && !serves;
    if (failed)
        print_error("%s does not serve: %s/server.log\n", tested->name, root);
    free(probe);
    return failed ? -1 : 0;
}

static int tear_down(void **state)
{
    (void)state;
    if (server > 0) {
        kill(server, SIGKILL);
        waitpid(server, NULL, 0);
    }
    server = 0;
    serves = false;
    free(data);
    support_tmpdir_remove(root);
    return 0;
}

static void pushed_and_pulled_it_is_the_same(void **state)
{
    (void)state;
    if (!serves)
        skip();
    char *back = support_path("%s/back", root);
    support_expect(0, "push", data, remote, "-q", (char *)NULL);
    support_result r = support_millrace("push", data, remote, (char *)NULL);
    support_assert_status(&r, 0);
    assert_non_null(strstr(r.out, ": 0 files uploaded, "));
    support_result_free(&r);
    support_expect(0, "pull", remote, back, "-q", (char *)NULL);
    support_expect(0, "verify", back, "-q", (char *)NULL);
    support_expect(0, "verify", remote, "-q", (char *)NULL);
    support_expect(0, "diff", data, back, (char *)NULL);
    free(back);
}

static void a_wrong_secret_gets_nothing(void **state)
{
    (void)state;
    if (!serves)
        skip();
    setenv("AWS_SECRET_ACCESS_KEY", "other", 1);
    static const char *const commands[] = {"inspect", "push"};
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        support_result r = i ? support_millrace("push", data, "s3://bucket/other", (char *)NULL)
                             : support_millrace("inspect", remote, (char *)NULL);
        support_assert_status(&r, 3);
        assert_non_null(strstr(r.err, ": answers 403"));
        assert_non_null(strstr(r.err, "to the credentials from the variable AWS_ACCESS_KEY_ID"));
        assert_null(strstr(r.err, "other;"));
        support_result_free(&r);
    }
    setenv("AWS_SECRET_ACCESS_KEY", "hush", 1);
}

static void a_large_file_goes_in_parts(void **state)
{
    (void)state;
    if (!serves)
        skip();
    char *big = support_path("%s/big", root), *back = support_path("%s/big.back", root);
    mr_random r = support_random();
    uint8_t *bytes = malloc(BIG);
    mr_push *p;
    mr_error err;
    bool stored;
    mr_random_bytes(&r, bytes, BIG);
    support_write(big, bytes, BIG);
    free(bytes);
    int dirfd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(mr_push_open("s3://bucket/parts", &p, &err), MR_OK);
    if (mr_push_file(p, dirfd, "big", NULL, &stored, &err) != MR_OK)
        fail_msg("%s", err.text);
    assert_true(stored);
    assert_int_equal(mr_push_file(p, dirfd, "big", NULL, &stored, &err), MR_OK);
    assert_false(stored);
    mr_push_close(p);
    close(dirfd);
    char *get = support_path("curl -sf --aws-sigv4 aws:amz:us-east-1:s3 -u AKIA:hush -o '%s' %s/bucket/parts/big", back,
                             getenv("AWS_ENDPOINT_URL"));
    assert_true(support_server_runs(root, get));
    support_assert_same_file(big, back);
    free(get);
    free(big);
    free(back);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pushed_and_pulled_it_is_the_same),
        cmocka_unit_test(a_wrong_secret_gets_nothing),
        cmocka_unit_test(a_large_file_goes_in_parts),
    };
    int failed = 0;
    for (tested = services; tested < services + sizeof services / sizeof *services; tested++)
        failed += cmocka_run_group_tests_name(tested->name, tests, set_up, tear_down);
    return failed;
}
