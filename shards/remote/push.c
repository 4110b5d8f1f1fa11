/* push.c - uploads a dataset's files to a URL.
 * Invariant: what is stored is what the manifest says, and the manifest is stored last: a reader that finds one finds
 * all of it. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/files/file.h"
#include "base/scope.h"
#include "shards/remote/http.h"
#include "shards/remote/push.h"

/* A larger file goes to a bucket in parts. */
#define WHOLE_MAX ((uint64_t)32 << 20)

struct mr_push {
    mr_http *http;
};

mr_status mr_push_open(const char *text, mr_push **out, mr_error *err)
{
    mr_url url = {.scheme = MR_SCHEME_NONE};
    mr_push *p = mr_alloc(1, sizeof *p);
    if (!p)
        return mr_fail_memory(err, text);
    mr_status status = mr_url_parse(text, &url, err);
    if (status == MR_OK && url.scheme == MR_SCHEME_hf) {
        status = mr_fail(err, MR_MISUSE, "%s: the hub accepts files through git; upload the folder with: hf upload",
                         url.shown);
        mr_url_free(&url);
    }
    if (status == MR_OK)
        status = mr_http_open(&url, &p->http, err);
    if (status == MR_OK)
        *out = p;
    else
        free(p);
    return status;
}

void mr_push_close(mr_push *p)
{
    if (!p)
        return;
    mr_http_close(p->http);
    free(p);
}

mr_status mr_push_file(mr_push *p, int dirfd, const char *name, const uint8_t *sha256, bool *stored, mr_error *err)
{
    MR_AUTO(mr_scope_close) int fd = -1;
    uint64_t size;
    mr_digest found;
    char hex[65];
    mr_there there;
    *stored = false;
    MR_TRY(mr_file_open(dirfd, name, true, &fd, &size, err));
    MR_TRY(mr_file_digest(fd, size, true, name, &found, err));
    if (sha256 && memcmp(found.sha256, sha256, sizeof found.sha256) != 0)
        return mr_fail(err, MR_BAD_DATA, "%s: differs from what was ingested; `millrace verify` shows the extent",
                       name);
    mr_hex(found.sha256, sizeof found.sha256, hex);
    mr_status status = mr_http_head(p->http, name, &there, err);
    if (status == MR_OK && there.bytes == size && strcmp(there.sha256, hex) == 0)
        return MR_OK;
    if (status != MR_OK && status != MR_END)
        return status;
    mr_scheme scheme = mr_http_url(p->http)->scheme;
    const mr_put put = {.fd = fd, .bytes = size, .sha256 = hex, .body = hex};
    bool parts = size > WHOLE_MAX && (scheme == MR_SCHEME_s3 || scheme == MR_SCHEME_gs);
    status = (parts ? mr_http_put_parts : mr_http_put)(p->http, name, &put, err);
    *stored = status == MR_OK;
    if (status == MR_END && err)
        err->status = MR_MISUSE;
    return status == MR_END ? MR_MISUSE : status;
}
