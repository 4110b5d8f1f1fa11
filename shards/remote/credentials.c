/* credentials.c - credentials, as the tools of each service find them.
 * Invariant: a key is sent only to the service that it is for, and no key is in a message: `from` says where it was. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/environment.h"
#include "base/files/file.h"
#include "base/scope.h"
#include "shards/remote/remote.h"
#include "shards/remote/url.h"

enum { FILE_MAX = 1 << 20 };

static atomic_bool no_dump;

void mr_remote_leave_no_dump(void)
{
    atomic_store(&no_dump, true);
}

/* A secret is not left behind in memory that is given back. */
static void forget(char *secret)
{
    if (secret)
        explicit_bzero(secret, strlen(secret));
    free(secret);
}

void mr_credentials_free(mr_credentials *r)
{
    forget(r->key);
    forget(r->secret);
    forget(r->token);
    forget(r->bearer);
    free(r->region);
    free(r->endpoint);
    *r = (mr_credentials){.key = NULL};
}

static const char *either(const char *first, const char *second)
{
    return mr_env(first) ? mr_env(first) : mr_env(second);
}

/* Unless it has been found already. */
static void keep(char **field, const char *value)
{
    if (!*field && value)
        *field = strdup(value);
}

/* $NAME, or FILE in the home folder; "" if neither is known. */
static void path_of(const char *name, const char *file, mr_buf *out)
{
    if (mr_env(name))
        mr_buf_add_text(out, mr_env(name));
    else if (mr_env("HOME"))
        mr_buf_printf(out, "%s/%s", mr_env("HOME"), file);
}

/* An absent file is empty. */
static mr_status read_text(mr_buf *path, mr_buf *out, mr_error *err)
{
    errno = 0;
    if (!path->len)
        return MR_OK;
    mr_error why;
    mr_status status = mr_file_read_all(AT_FDCWD, mr_buf_text(path), FILE_MAX, out, &why);
    if (status == MR_SYSTEM && errno == ENOENT)
        return MR_OK;
    return status == MR_OK ? MR_OK : mr_fail(err, MR_SYSTEM, "%s", why.text);
}

/* ---- Amazon's files: [profile] and lines of name = value --------------------------------------------------------- */

static char *trim(char *text)
{
    text += strspn(text, " \t\r");
    size_t len = strlen(text);
    while (len && strchr(" \t\r", text[len - 1]))
        text[--len] = '\0';
    return text;
}

static void take_value(mr_credentials *r, const char *name, const char *value)
{
    const struct {
        const char *name;
        char **field;
    } fields[] = {{"aws_access_key_id", &r->key},
                  {"aws_secret_access_key", &r->secret},
                  {"aws_session_token", &r->token},
                  {"region", &r->region},
                  {"endpoint_url", &r->endpoint}};
    for (size_t i = 0; i < MR_COUNT(fields); i++)
        if (strcmp(name, fields[i].name) == 0)
            keep(fields[i].field, value);
}

static mr_status read_profile(const char *variable_name, const char *file, const char *profile, bool prefixed,
                              mr_credentials *r, mr_error *err)
{
    MR_AUTO(mr_buf_free) mr_buf path = {0};
    MR_AUTO(mr_buf_free) mr_buf text = {0};
    bool inside = false;
    char *rest = NULL;
    bool had = r->key != NULL;
    path_of(variable_name, file, &path);
    MR_TRY(read_text(&path, &text, err));
    if (!text.len)
        return MR_OK;
    (void)mr_buf_text(&text); /* ends it with a NUL */
    for (char *line = strtok_r((char *)text.data, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        char *equals = strchr(line, '='), *end;
        if (line[0] == '[' && (end = strchr(line, ']'))) {
            *end = '\0';
            char *name = trim(line + 1);
            if (prefixed && strncmp(name, "profile ", 8) == 0)
                name = trim(name + 8);
            inside = strcmp(name, profile) == 0;
        } else if (inside && equals && line[0] != ' ' && line[0] != '#') {
            *equals = '\0';
            take_value(r, trim(line), trim(equals + 1));
        }
    }
    explicit_bzero(text.data, text.len);
    if (!had && r->key)
        snprintf(r->from, sizeof r->from, "profile \"%.40s\" of %.100s", profile, mr_buf_text(&path));
    return MR_OK;
}

static mr_status amazon(mr_credentials *r, mr_error *err)
{
    const char *profile = either("AWS_PROFILE", "AWS_DEFAULT_PROFILE");
    if (!profile)
        profile = "default";
    if (mr_env("AWS_ACCESS_KEY_ID") && mr_env("AWS_SECRET_ACCESS_KEY")) {
        keep(&r->key, mr_env("AWS_ACCESS_KEY_ID"));
        keep(&r->secret, mr_env("AWS_SECRET_ACCESS_KEY"));
        keep(&r->token, mr_env("AWS_SESSION_TOKEN"));
        snprintf(r->from, sizeof r->from, "the variable AWS_ACCESS_KEY_ID");
    }
    bool ours = r->key != NULL;
    keep(&r->region, either("AWS_REGION", "AWS_DEFAULT_REGION"));
    keep(&r->endpoint, either("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"));
    char *token = r->token;
    MR_TRY(read_profile("AWS_SHARED_CREDENTIALS_FILE", ".aws/credentials", profile, false, r, err));
    MR_TRY(read_profile("AWS_CONFIG_FILE", ".aws/config", profile, true, r, err));
    if (ours && !token) { /* a token of a profile does not belong to the variables' key */
        forget(r->token);
        r->token = NULL;
    }
    if (!r->secret) {
        forget(r->key);
        r->key = NULL;
    }
    keep(&r->region, "us-east-1");
    return r->region ? MR_OK : mr_fail_memory(err, "credentials");
}

/* Keys for interoperability (HMAC), by the names that GDAL gave them; Google's servers take Amazon's signatures. */
static mr_status google(mr_credentials *r, mr_error *err)
{
    if (mr_env("GS_ACCESS_KEY_ID") && mr_env("GS_SECRET_ACCESS_KEY")) {
        keep(&r->key, mr_env("GS_ACCESS_KEY_ID"));
        keep(&r->secret, mr_env("GS_SECRET_ACCESS_KEY"));
        snprintf(r->from, sizeof r->from, "the variable GS_ACCESS_KEY_ID");
    }
    const char *endpoint = mr_env("STORAGE_EMULATOR_HOST");
    keep(&r->endpoint, endpoint ? endpoint : "https://storage.googleapis.com");
    keep(&r->region, "auto");
    return r->endpoint && r->region ? MR_OK : mr_fail_memory(err, "credentials");
}

static mr_status hub(mr_credentials *r, mr_error *err)
{
    MR_AUTO(mr_buf_free) mr_buf path = {0};
    MR_AUTO(mr_buf_free) mr_buf text = {0};
    const char *endpoint = mr_env("HF_ENDPOINT");
    keep(&r->endpoint, endpoint ? endpoint : "https://huggingface.co");
    if (mr_env("HF_TOKEN")) {
        keep(&r->bearer, mr_env("HF_TOKEN"));
        snprintf(r->from, sizeof r->from, "the variable HF_TOKEN");
    } else {
        if (!mr_env("HF_TOKEN_PATH") && mr_env("HF_HOME"))
            mr_buf_printf(&path, "%s/token", mr_env("HF_HOME"));
        else
            path_of("HF_TOKEN_PATH", ".cache/huggingface/token", &path);
        MR_TRY(read_text(&path, &text, err));
        if (text.len) {
            (void)mr_buf_text(&text);
            text.data[strcspn((char *)text.data, "\r\n")] = '\0';
            keep(&r->bearer, (char *)text.data);
            explicit_bzero(text.data, text.len);
            snprintf(r->from, sizeof r->from, "%.150s", mr_buf_text(&path));
        }
    }
    return r->endpoint ? MR_OK : mr_fail_memory(err, "credentials");
}

static mr_status find(mr_scheme scheme, mr_credentials *out, mr_error *err)
{
    switch (scheme) {
    case MR_SCHEME_s3:
        return amazon(out, err);
    case MR_SCHEME_gs:
        return google(out, err);
    case MR_SCHEME_hf:
        return hub(out, err);
    default:
        return MR_OK;
    }
}

mr_status mr_credentials_find(mr_scheme scheme, mr_credentials *out, mr_error *err)
{
    /* with a limit of 1 byte there is no file, and unlike with 0, Linux does not pipe a dump to a program either */
    struct rlimit limit;
    MR_TRY(find(scheme, out, err));
    if (atomic_load(&no_dump) && (out->key || out->bearer) && getrlimit(RLIMIT_CORE, &limit) == 0 &&
        limit.rlim_cur > 1) {
        limit.rlim_cur = 1;
        (void)setrlimit(RLIMIT_CORE, &limit);
    }
    return MR_OK;
}
