/* url.c - a URL taken apart, and where its files are.
 * Invariant: a path is encoded strictly: servers that check signatures compute them over the strict form. */
#include "shards/remote/url.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/hash.h"
#include "base/scope.h"

#define UNRESERVED "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~"

static const char *const schemes[] = {
#define X(name) #name "://",
    MR_REMOTE_SCHEMES(X)
#undef X
};

mr_scheme mr_url_scheme(const char *text)
{
    for (size_t i = 0; i < MR_COUNT(schemes); i++)
        if (strncasecmp(text, schemes[i], strlen(schemes[i])) == 0)
            return (mr_scheme)i;
    return MR_SCHEME_NONE;
}

void mr_url_free(mr_url *url)
{
    free(url->shown);
    free(url->base);
    mr_credentials_free(&url->credentials);
    *url = (mr_url){.scheme = MR_SCHEME_NONE};
}

void mr_url_encode(mr_buf *out, const char *text, size_t len, const char *kept)
{
    for (size_t i = 0; i < len; i++)
        if (text[i] && (strchr(UNRESERVED, text[i]) || strchr(kept, text[i])))
            mr_buf_add(out, &text[i], 1);
        else
            mr_buf_printf(out, "%%%02X", (unsigned char)text[i]);
}

/* An http URL is already encoded as the user wrote it, except for bytes outside of ASCII. */
static void add_written(mr_buf *out, const char *text, size_t len)
{
    mr_url_encode(out, text, len, "%!$&'()*+,;=:@/");
}

static void add_path(mr_buf *out, const char *text, size_t len)
{
    mr_url_encode(out, text, len, "/");
    if (len && text[len - 1] != '/')
        mr_buf_add_text(out, "/");
}

typedef struct parts { /* of the text */
    const char *host, *path;
    size_t host_len, path_len; /* the path without slashes at its start */
    bool query;
} parts;

static mr_status take_fragment(const char *fragment, mr_url *url, mr_error *err)
{
    static const char key[] = "#sha256=";
    if (!*fragment)
        return MR_OK;
    url->pinned =
        strncmp(fragment, key, strlen(key)) == 0 && mr_unhex(fragment + strlen(key), url->digest, sizeof url->digest);
    return url->pinned
               ? MR_OK
               : mr_fail(err, MR_MISUSE,
                         "%s: what follows # must be sha256= and the 64 hexadecimal digits that `millrace inspect` "
                         "prints as the digest",
                         url->shown);
}

static parts split(const char *text, const char *end, bool has_query)
{
    parts p = {.host = strstr(text, "://") + 3};
    p.host_len = strcspn(p.host, "/?#");
    p.path = p.host + p.host_len;
    p.path += strspn(p.path, "/");
    const char *query = has_query ? memchr(p.path, '?', (size_t)(end - p.path)) : NULL;
    p.path_len = (size_t)((query ? query : end) - p.path);
    p.query = query != NULL;
    return p;
}

static mr_status amazon(const parts *p, const mr_url *url, mr_buf *base, mr_error *err)
{
    const mr_credentials *r = &url->credentials;
    const char *endpoint = r->endpoint;
    bool dots = memchr(p->host, '.', p->host_len) != NULL; /* a name that certificates of Amazon do not cover */
    if (!p->host_len)
        return mr_fail(err, MR_MISUSE, "%s: names no bucket", url->shown);
    if (!endpoint && !dots) {
        mr_buf_printf(base, "https://%.*s.s3.%s.amazonaws.com/", (int)p->host_len, p->host, r->region);
    } else {
        if (endpoint)
            mr_buf_printf(base, "%.*s/", (int)(strlen(endpoint) - (endpoint[strlen(endpoint) - 1] == '/')), endpoint);
        else
            mr_buf_printf(base, "https://s3.%s.amazonaws.com/", r->region);
        add_path(base, p->host, p->host_len);
    }
    add_path(base, p->path, p->path_len);
    return MR_OK;
}

/* hf://datasets/OWNER/NAME[@REVISION]/PATH */
static mr_status hub(const parts *p, const mr_url *url, mr_buf *base, mr_error *err)
{
    const char *end = p->path + p->path_len, *owner = p->path;
    const char *slash = memchr(owner, '/', p->path_len);
    const char *name = slash ? slash + 1 : end;
    const char *rest = memchr(name, '/', (size_t)(end - name));
    rest = rest ? rest : end;
    const char *at = memchr(name, '@', (size_t)(rest - name));
    if (p->host_len != strlen("datasets") || memcmp(p->host, "datasets", p->host_len) != 0 || name == end ||
        name == rest)
        return mr_fail(err, MR_MISUSE, "%s: is not hf://datasets/OWNER/NAME[@REVISION]/PATH", url->shown);
    mr_buf_printf(base, "%s/datasets/", url->credentials.endpoint);
    add_path(base, owner, (size_t)(slash - owner));
    add_path(base, name, (size_t)((at ? at : rest) - name));
    mr_buf_add_text(base, "resolve/");
    if (at)
        mr_url_encode(base, at + 1, (size_t)(rest - at - 1), "");
    else
        mr_buf_add_text(base, "main");
    mr_buf_add_text(base, "/");
    if (rest < end)
        add_path(base, rest + 1, (size_t)(end - rest - 1));
    return MR_OK;
}

static mr_status plain(const parts *p, const mr_url *url, mr_buf *base, mr_error *err)
{
    if (!p->host_len)
        return mr_fail(err, MR_MISUSE, "%s: names no host", url->shown);
    if (memchr(p->host, '@', p->host_len))
        return mr_fail(err, MR_MISUSE,
                       "%s: a password in a URL ends up in logs; use s3:// or hf://, which have credentials",
                       url->shown);
    if (p->query)
        return mr_fail(err, MR_MISUSE,
                       "%s: a query in a URL is for one file, and may be a secret that ends up in logs; use s3:// or "
                       "hf://, which have credentials",
                       url->shown);
    mr_buf_printf(base, "%s%.*s/", schemes[url->scheme], (int)p->host_len, p->host);
    add_written(base, p->path, p->path_len);
    if (p->path_len && p->path[p->path_len - 1] != '/')
        mr_buf_add_text(base, "/");
    return MR_OK;
}

static mr_status place(const parts *p, mr_url *url, mr_buf *base, mr_error *err)
{
    switch (url->scheme) {
    case MR_SCHEME_s3:
        return amazon(p, url, base, err);
    case MR_SCHEME_gs:
        mr_buf_printf(base, "%s/", url->credentials.endpoint);
        add_path(base, p->host, p->host_len);
        add_path(base, p->path, p->path_len);
        return MR_OK;
    case MR_SCHEME_hf:
        return hub(p, url, base, err);
    default:
        return plain(p, url, base, err);
    }
}

static mr_status show(const parts *p, mr_url *url, mr_error *err)
{
    const char *at = memchr(p->host, '@', p->host_len);
    size_t hidden = at ? (size_t)(at + 1 - p->host) : 0;
    MR_AUTO(mr_buf_free) mr_buf shown = {0};
    mr_buf_add_text(&shown, schemes[url->scheme]);
    mr_buf_add(&shown, p->host + hidden, p->host_len - hidden);
    if (p->path_len)
        mr_buf_add_text(&shown, "/");
    mr_buf_add(&shown, p->path, p->path_len);
    url->shown = strdup(mr_buf_text(&shown));
    return url->shown ? MR_OK : mr_fail_memory(err, "a URL");
}

mr_status mr_url_parse(const char *text, mr_url *out, mr_error *err)
{
    mr_url url = {.scheme = mr_url_scheme(text)};
    MR_AUTO(mr_buf_free) mr_buf base = {0};
    const char *end = text + strcspn(text, "#");
    bool web = url.scheme == MR_SCHEME_http || url.scheme == MR_SCHEME_https;
    parts p = split(text, end, web);
    mr_status status = show(&p, &url, err);
    if (status == MR_OK)
        status = take_fragment(end, &url, err);
    if (status == MR_OK)
        status = mr_credentials_find(url.scheme, &url.credentials, err);
    if (status == MR_OK)
        status = place(&p, &url, &base, err);
    if (status == MR_OK) {
        url.base = strdup(mr_buf_text(&base));
        if (!url.base)
            status = mr_fail_memory(err, "a URL");
    }
    if (status == MR_OK)
        *out = url;
    else
        mr_url_free(&url);
    return status;
}
