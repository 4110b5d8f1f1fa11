/* test_url.c - where the URLs of each service lead, and with whose credentials: servers that check signatures and
 * tokens. Covers remote/url.c, remote/credentials.c. */
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "millrace.h"
#include "shards/remote/remote.h"
#include "shards/remote/url.h"
#include "tests/support/remote/server.h"
#include "tests/support/support.h"

static support_server server, other;
static char *root;

static const char *const variables[] = {"AWS_ACCESS_KEY_ID",
                                        "AWS_SECRET_ACCESS_KEY",
                                        "AWS_SESSION_TOKEN",
                                        "AWS_PROFILE",
                                        "AWS_DEFAULT_PROFILE",
                                        "AWS_REGION",
                                        "AWS_DEFAULT_REGION",
                                        "AWS_ENDPOINT_URL",
                                        "AWS_ENDPOINT_URL_S3",
                                        "AWS_SHARED_CREDENTIALS_FILE",
                                        "AWS_CONFIG_FILE",
                                        "GS_ACCESS_KEY_ID",
                                        "GS_SECRET_ACCESS_KEY",
                                        "STORAGE_EMULATOR_HOST",
                                        "HF_TOKEN",
                                        "HF_TOKEN_PATH",
                                        "HF_HOME",
                                        "HF_ENDPOINT"};

/* No credentials but those that the test gives. */
static int begin(void **state)
{
    static unsigned n;
    (void)state;
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++)
        unsetenv(variables[i]);
    char *home = support_path("%s/home%u", root, n++);
    setenv("HOME", home, 1);
    unsetenv("XDG_CACHE_HOME");
    free(home);
    if (server.port) {
        support_server_heal(&server);
        support_server_heal(&other);
        free(support_server_log(&server));
        free(support_server_log(&other));
    }
    return 0;
}

static int set_up(void **state)
{
    root = support_tmpdir();
    char *source = support_path("%s/source", root), *www = support_path("%s/www", root),
         *data = support_path("%s/www/bucket/a b+c/data", root),
         *hub = support_path("%s/www/datasets/me/dogs/resolve/v1/data", root), *keep;
    support_expect(0, "sample", source, "--layout", "imagenette", "--images", "20", "--size", "48", "--quiet",
                   (char *)NULL);
    keep = support_path("%s/www/bucket/a b+c/keep", root);
    support_write_text(keep, "");
    free(keep);
    keep = support_path("%s/www/datasets/me/dogs/resolve/v1/keep", root);
    support_write_text(keep, "");
    free(keep);
    support_expect(0, "ingest", source, data, "--quiet", (char *)NULL);
    support_expect(0, "ingest", source, hub, "--quiet", (char *)NULL);
    setenv("MILLRACE_PATIENCE", "1", 1);
    if (!support_server_start(www, &server) || !support_server_start(www, &other))
        server.port = 0;
    free(source);
    free(www);
    free(data);
    free(hub);
    (void)state;
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    support_server_stop(&server);
    support_server_stop(&other);
    support_tmpdir_remove(root);
    return 0;
}

#define NEEDS_SERVER                                                                                                   \
    if (!server.port)                                                                                                  \
    skip()

static void set_endpoint(const char *variable, const support_server *s)
{
    char *text = support_path("http://127.0.0.1:%u", s->port);
    setenv(variable, text, 1);
    free(text);
}

/* What verify of the dataset prints, on either stream. */
static char *verify(int status, const char *dataset)
{
    support_result r = support_millrace("verify", dataset, (char *)NULL);
    support_assert_status(&r, status);
    char *text = strdup(status ? r.err : r.out);
    support_result_free(&r);
    return text;
}

static void expect(int status, const char *dataset, const char *said)
{
    char *text = verify(status, dataset);
    if (!strstr(text, said) || strstr(text, "hush"))
        fail_msg("%s", text);
    free(text);
}

static void s3_is_signed_with_the_variables(void **state)
{
    (void)state;
    NEEDS_SERVER;
    set_endpoint("AWS_ENDPOINT_URL", &server);
    support_server_tell(&server, "sign?key=AKIA&secret=hush/+1&token=hush&region=eu-north-1");
    expect(3, "s3://bucket/a b+c/data", "answers 403 AccessDenied, and no credentials were found; set AWS_ACCESS_KEY");
    setenv("AWS_ACCESS_KEY_ID", "AKIA", 1);
    setenv("AWS_SECRET_ACCESS_KEY", "hush/ 1", 1);
    setenv("AWS_SESSION_TOKEN", "hush", 1);
    setenv("AWS_REGION", "eu-north-1", 1);
    expect(0, "s3://bucket/a b+c/data", "s3://bucket/a b+c/data: intact\n");
    setenv("AWS_SECRET_ACCESS_KEY", "hush/ 2", 1);
    expect(3, "s3://bucket/a b+c/data",
           "answers 403 SignatureDoesNotMatch to the credentials from the variable AWS_ACCESS_KEY_ID; check them");
}

static void s3_is_signed_with_a_profile(void **state)
{
    (void)state;
    NEEDS_SERVER;
    char *credentials = support_path("%s/.aws/credentials", getenv("HOME")),
         *config = support_path("%s/.aws/config", getenv("HOME")),
         *text = support_path("[default]\nregion = us-west-2\n[profile lab]\n  # a comment\nregion=eu-west-1\n"
                              "endpoint_url = http://127.0.0.1:%u/\n",
                              server.port);
    support_write_text(credentials, "[default]\naws_access_key_id = WRONG\naws_secret_access_key = hush\n\n"
                                    "[lab]\naws_access_key_id = LAB\r\naws_secret_access_key=hush2\n");
    support_write_text(config, text);
    support_server_tell(&server, "sign?key=LAB&secret=hush2&region=eu-west-1");
    setenv("AWS_PROFILE", "lab", 1);
    expect(0, "s3://bucket/a b+c/data", ": intact\n");
    support_server_tell(&server, "sign?key=LAB&secret=hush3");
    char *said = support_path("to the credentials from profile \"lab\" of %s; check them", credentials);
    expect(3, "s3://bucket/a b+c/data", said);
    free(said);
    free(credentials);
    free(config);
    free(text);
}

/* A tool renews the file while the dataset is open. */
static void keys_that_expire_are_read_again(void **state)
{
    (void)state;
    NEEDS_SERVER;
    mr_dataset *ds = NULL;
    mr_sample_view view = {0};
    mr_error err;
    char *credentials = support_path("%s/.aws/credentials", getenv("HOME"));
    set_endpoint("AWS_ENDPOINT_URL", &server);
    support_write_text(credentials, "[default]\naws_access_key_id=OLD\naws_secret_access_key=hush\n");
    support_server_tell(&server, "sign?key=OLD&secret=hush");
    assert_int_equal(mr_dataset_open("s3://bucket/a b+c/data", &ds, &err), MR_OK);
    support_server_tell(&server, "sign?key=NEW&secret=hush2");
    if (mr_dataset_read(ds, "train", 0, &view, &err) != MR_SYSTEM)
        fail_msg("%s", err.text);
    assert_non_null(strstr(err.text, "answers 403 InvalidAccessKeyId to the credentials from profile \"default\""));
    support_write_text(credentials, "[default]\naws_access_key_id=NEW\naws_secret_access_key=hush2\n");
    assert_int_equal(mr_dataset_read(ds, "train", 0, &view, &err), MR_OK);
    mr_sample_view_free(&view);
    mr_dataset_free(ds);
    free(credentials);
}

/* The tests use the library, which changes nothing, until they do as the program does. */
static void a_program_with_keys_leaves_no_dump(void **state)
{
    (void)state;
    NEEDS_SERVER;
    mr_error err;
    struct rlimit limit, found;
    assert_int_equal(getrlimit(RLIMIT_CORE, &limit), 0);
    if (limit.rlim_max < 2)
        skip();
    limit.rlim_cur = limit.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_CORE, &limit), 0);
    set_endpoint("AWS_ENDPOINT_URL", &server);
    for (int keys = 0; keys < 3; keys++) {
        mr_dataset *ds = NULL;
        if (keys == 1)
            mr_remote_leave_no_dump();
        if (keys != 1) {
            setenv("AWS_ACCESS_KEY_ID", "AKIA", 1);
            setenv("AWS_SECRET_ACCESS_KEY", "hush", 1);
        } else {
            unsetenv("AWS_ACCESS_KEY_ID");
        }
        assert_int_equal(mr_dataset_open("s3://bucket/a b+c/data", &ds, &err), MR_OK);
        mr_dataset_free(ds);
        assert_int_equal(getrlimit(RLIMIT_CORE, &found), 0);
        assert_true(found.rlim_cur == (keys < 2 ? limit.rlim_cur : 1));
    }
}

static void gs_is_signed_with_its_own_keys(void **state)
{
    (void)state;
    NEEDS_SERVER;
    set_endpoint("STORAGE_EMULATOR_HOST", &server);
    setenv("AWS_ACCESS_KEY_ID", "AKIA", 1); /* is Amazon's business */
    setenv("AWS_SECRET_ACCESS_KEY", "hush", 1);
    expect(0, "gs://bucket/a b+c/data", ": intact\n");
    char *log = support_server_log(&server);
    assert_null(strstr(log, " yes\n"));
    free(log);
    support_server_tell(&server, "sign?key=GOOG&secret=hush4");
    setenv("GS_ACCESS_KEY_ID", "GOOG", 1);
    setenv("GS_SECRET_ACCESS_KEY", "hush4", 1);
    expect(0, "gs://bucket/a b+c/data", ": intact\n");
}

/* The hub sends large files to another host, which must not see the token. */
static void token_of_the_hub_stays_there(void **state)
{
    (void)state;
    NEEDS_SERVER;
    char *order = support_path("redirect?match=.mdb&to=http://localhost:%u/datasets/me/dogs/resolve/v1/data/"
                               "train-00000.mdb",
                               other.port),
         *token = support_path("%s/.cache/huggingface/token", getenv("HOME"));
    set_endpoint("HF_ENDPOINT", &server);
    support_server_tell(&server, "bearer?token=hf_hush");
    expect(3, "hf://datasets/me/dogs@v1/data", "answers 403 Unauthorized, and no credentials were found; set HF_TOKEN");
    support_write_text(token, "hf_hush\n");
    support_server_tell(&server, order);
    support_expect(0, "export", "hf://datasets/me/dogs@v1/data", "out", "--split", "train", "--force", (char *)NULL);
    char *ours = support_server_log(&server), *theirs = support_server_log(&other);
    assert_non_null(strstr(ours, " yes"));
    assert_null(strstr(theirs, " yes"));
    assert_non_null(strstr(theirs, "train-00000.mdb"));
    free(ours);
    free(theirs);
    free(order);
    free(token);
}

static void urls_lead_to_their_services(void **state)
{
    static const struct {
        const char *text, *base, *shown;
    } urls[] = {
        {"https://host:8443/a%20b/d\xC3\xBC#sha256=00", NULL, "what follows # must be sha256="},
        {"https://host:8443/a%20b/d\xC3\xBC", "https://host:8443/a%20b/d%C3%BC/", "https://host:8443/a%20b/d\xC3\xBC"},
        {"https://host/a?sig=hush", NULL, "https://host/a: a query in a URL is for one file"},
        {"https://me:hush@host/a", NULL, "a password in a URL ends up in logs"},
        {"s3://dogs/a=b/", "https://dogs.s3.us-east-1.amazonaws.com/a%3Db/", "s3://dogs/a=b/"},
        {"s3://dogs.of.mine/x", "https://s3.us-east-1.amazonaws.com/dogs.of.mine/x/", "s3://dogs.of.mine/x"},
        {"s3:///x", NULL, "names no bucket"},
        {"gs://dogs/x y", "https://storage.googleapis.com/dogs/x%20y/", "gs://dogs/x y"},
        {"hf://datasets/me/dogs", "https://huggingface.co/datasets/me/dogs/resolve/main/", "hf://datasets/me/dogs"},
        {"hf://datasets/me/dogs@refs/x", "https://huggingface.co/datasets/me/dogs/resolve/refs/x/",
         "hf://datasets/me/dogs@refs/x"},
        {"hf://models/me/dogs", NULL, "is not hf://datasets/OWNER/NAME[@REVISION]/PATH"},
        {"hf://datasets/me", NULL, "is not hf://datasets/OWNER/NAME[@REVISION]/PATH"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof urls / sizeof *urls; i++) {
        mr_url url = {.scheme = MR_SCHEME_NONE};
        mr_error err;
        mr_status status = mr_url_parse(urls[i].text, &url, &err);
        assert_int_equal(status, urls[i].base ? MR_OK : MR_MISUSE);
        if (urls[i].base) {
            assert_string_equal(url.base, urls[i].base);
            assert_string_equal(url.shown, urls[i].shown);
        } else {
            assert_non_null(strstr(err.text, urls[i].shown));
            assert_null(strstr(err.text, "hush"));
        }
        mr_url_free(&url);
    }
}

#define TEST(name) cmocka_unit_test_setup(name, begin)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(urls_lead_to_their_services),        TEST(s3_is_signed_with_the_variables),
        TEST(s3_is_signed_with_a_profile),        TEST(keys_that_expire_are_read_again),
        TEST(gs_is_signed_with_its_own_keys),     TEST(token_of_the_hub_stays_there),
        TEST(a_program_with_keys_leaves_no_dump),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
