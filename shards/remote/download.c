/* download.c - one file behind a URL, as a file of this host.
 * Invariant: the file has its name only when all of it has come. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/scope.h"
#include "shards/remote/http.h"
#include "shards/remote/remote.h"

typedef struct target {
    int fd;
    const char *path;
} target;

static mr_status add(void *to, const uint8_t *bytes, size_t n, mr_error *err)
{
    const target *t = to;
    return mr_file_write(t->fd, bytes, n, t->path, err);
}

static mr_status check(const mr_url *url, const char *path, mr_error *err)
{
    MR_AUTO(mr_scope_close) int fd = -1;
    uint64_t size;
    mr_digest found;
    char hex[65], wanted[65];
    if (!url->pinned)
        return MR_OK;
    MR_TRY(mr_file_open(AT_FDCWD, path, false, &fd, &size, err));
    MR_TRY(mr_file_digest(fd, size, true, path, &found, err));
    if (memcmp(found.sha256, url->digest, sizeof url->digest) == 0)
        return MR_OK;
    mr_hex(found.sha256, sizeof found.sha256, hex);
    mr_hex(url->digest, sizeof url->digest, wanted);
    return mr_fail(err, MR_BAD_DATA, "%s: not the expected file: its SHA-256 is %s, expected %s", url->shown, hex,
                   wanted);
}

static mr_status download(mr_http *h, const char *folder, char **path, mr_error *err)
{
    const mr_url *url = mr_http_url(h);
    const char *name = strrchr(url->shown, '/') + 1;
    MR_AUTO(mr_buf_free) mr_buf text = {0};
    mr_output o;
    if (!*name || mr_is_dots(name))
        return mr_fail(err, MR_MISUSE, "%s: names no file", url->shown);
    mr_buf_printf(&text, "%s/%s", folder, name);
    MR_TRY(mr_buf_status(&text, err, url->shown));
    MR_TRY(mr_output_open(AT_FDCWD, mr_buf_text(&text), &o, err));
    target t = {.fd = o.fd, .path = mr_buf_text(&text)};
    const mr_get get = {.name = "", .sink = add, .to = &t};
    mr_error why;
    mr_status status = mr_http_get(h, &get, &why);
    if (status != MR_OK)
        status = mr_fail(err, status == MR_END ? MR_MISUSE : status, "%s", why.text);
    MR_TRY(mr_output_close(&o, status, err));
    MR_TRY(check(url, mr_buf_text(&text), err));
    *path = strdup(mr_buf_text(&text));
    return *path ? MR_OK : mr_fail_memory(err, folder);
}

static void close_http(mr_http **h)
{
    mr_http_close(*h);
}

mr_status mr_remote_download(const char *text, const char *folder, char **path, mr_error *err)
{
    mr_url url = {.scheme = MR_SCHEME_NONE};
    MR_AUTO(close_http) mr_http *h = NULL;
    MR_TRY(mr_url_parse(text, &url, err));
    url.base[strlen(url.base) - 1] = '\0'; /* a file has no slash at its end */
    MR_TRY(mr_http_open(&url, &h, err));
    return download(h, folder, path, err);
}
