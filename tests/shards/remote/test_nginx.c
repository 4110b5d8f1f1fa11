/* test_nginx.c - a real web server: ranges, TLS whose certificates are checked, redirects, and http after https.
 * Covers remote/lane.c. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/support/hang.h"
#include "tests/support/remote/server.h"
#include "tests/support/support.h"

static char *root;
static unsigned port;
static pid_t nginx;

static void write_configuration(const char *www)
{
    char *path = support_path("%s/nginx.conf", root),
         *text = support_path("pid %s/nginx.pid; error_log %s/nginx.log; daemon off; master_process off;\n"
                              "events {}\n"
                              "http { access_log off; root %s; ssl_certificate %s/cert.pem;\n"
                              " ssl_certificate_key %s/key.pem; client_body_temp_path %s/body;\n"
                              " proxy_temp_path %s/p; fastcgi_temp_path %s/f; uwsgi_temp_path %s/u; scgi_temp_path "
                              "%s/s;\n"
                              " server { listen 127.0.0.1:%u ssl;\n"
                              "  rewrite ^/moved/(.*)$ /data/$1 redirect;\n"
                              "  rewrite ^/plain/(.*)$ http://127.0.0.1:1/data/$1 redirect; } }\n",
                              root, root, www, root, root, root, root, root, root, root, port);
    support_write_text(path, text);
    free(path);
    free(text);
}

static bool start(const char *www)
{
    char *certificate = support_path("openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -addext "
                                     "subjectAltName=IP:127.0.0.1 -keyout '%s/key.pem' -out '%s/cert.pem'",
                                     root, root),
         *configuration = support_path("%s/nginx.conf", root);
    bool good = support_server_ports(www, &port, 1) && support_server_runs(root, "nginx -v") &&
                support_server_runs(root, certificate);
    if (good) {
        write_configuration(www);
        nginx = fork();
        if (nginx == 0) {
            execlp("nginx", "nginx", "-c", configuration, (char *)NULL);
            _exit(127);
        }
        char *probe = support_path("curl -sk https://127.0.0.1:%u/data/manifest.json", port);
        for (time_t since = time(NULL);
             (good = !support_server_runs(root, probe)) && time(NULL) - since < HANG_SECONDS;)
            nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
        good = !good;
        free(probe);
    }
    free(certificate);
    free(configuration);
    return good;
}

static int set_up(void **state)
{
    root = support_tmpdir();
    char *www = support_path("%s/www", root), *data = support_path("%s/www/data", root);
    support_server_dataset(root, data);
    setenv("MILLRACE_PATIENCE", "2", 1);
    unsetenv("CURL_CA_BUNDLE");
    unsetenv("AWS_CA_BUNDLE");
    unsetenv("SSL_CERT_FILE");
    if (!start(www)) {
        port = 0;
        support_cannot("nginx", "nginx, openssl or curl is not installed");
    }
    free(www);
    free(data);
    (void)state;
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    if (nginx > 0) {
        kill(nginx, SIGKILL);
        waitpid(nginx, NULL, 0);
    }
    support_tmpdir_remove(root);
    return 0;
}

static char *replay(int status, const char *dataset, const char *cache)
{
    char *folder = support_path("%s/%s", root, cache);
    setenv("XDG_CACHE_HOME", folder, 1);
    free(folder);
    support_result r = support_millrace("replay", dataset, "--global-batch", "10", (char *)NULL);
    support_assert_status(&r, status);
    char *text = strdup(status ? r.err : r.out);
    support_result_free(&r);
    return text;
}

static void it_is_the_local_one(void **state)
{
    (void)state;
    if (!port)
        skip();
    char *bundle = support_path("%s/cert.pem", root), *local = support_path("%s/www/data", root), *good, *found;
    setenv("CURL_CA_BUNDLE", bundle, 1);
    good = replay(0, local, "none");
    static const char *const ways[] = {"data", "moved"};
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        char *remote = support_path("https://127.0.0.1:%u/%s", port, ways[i]);
        found = replay(0, remote, ways[i]);
        assert_string_equal(found, good);
        free(found);
        free(remote);
    }
    free(good);
    free(local);
    free(bundle);
    unsetenv("CURL_CA_BUNDLE");
}

static void strangers_are_refused(void **state)
{
    (void)state;
    if (!port)
        skip();
    char *remote = support_path("https://127.0.0.1:%u/data", port), *said = replay(3, remote, "stranger");
    assert_non_null(strstr(said, "/data/manifest.json: SSL certificate problem"));
    free(said);
    free(remote);
}

/* What was asked for by https does not come by http. */
static void no_redirect_leaves_tls(void **state)
{
    (void)state;
    if (!port)
        skip();
    char *bundle = support_path("%s/cert.pem", root), *remote = support_path("https://127.0.0.1:%u/plain", port);
    setenv("CURL_CA_BUNDLE", bundle, 1);
    char *said = replay(3, remote, "plain");
    if (!strstr(said, "/plain/manifest.json: Protocol \"http\" "))
        fail_msg("%s", said);
    free(said);
    free(remote);
    free(bundle);
    unsetenv("CURL_CA_BUNDLE");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_is_the_local_one),
        cmocka_unit_test(strangers_are_refused),
        cmocka_unit_test(no_redirect_leaves_tls),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
