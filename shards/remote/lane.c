/* lane.c - one attempt at a request: its head, and its body as far as it was requested.
 * Invariant: a body is judged by Content-Range and length, not by 206 alone: some servers answer a range with 200. */
#include "shards/remote/lane.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/environment.h"
#include "base/files/file.h"
#include "base/scope.h"

enum { ANSWER_MAX = 1 << 20, POLL_MS = 50, CONNECT_MS = 10000, STALL = 20 /* seconds */, BUFFER = 512 << 10 };

/* ---- what comes back --------------------------------------------------------------------------------------------- */

static bool header(const char *line, size_t len, const char *name, char *value, size_t capacity)
{
    size_t n = strlen(name);
    if (len <= n || strncasecmp(line, name, n) != 0)
        return false;
    line += n;
    len -= n;
    while (len && *line == ' ')
        line++, len--;
    while (len && (line[len - 1] == '\r' || line[len - 1] == '\n' || line[len - 1] == ' '))
        len--;
    len = len < capacity ? len : capacity - 1;
    memcpy(value, line, len);
    value[len] = '\0';
    return true;
}

/* The number at *at, which moves past it; 0: there is none. */
static uint64_t number(const char **at)
{
    char *end;
    uint64_t n = strtoull(*at, &end, 10);
    *at = end;
    return n;
}

/* "bytes 0-99/1000"; if there is no such range, there is a star in place of 0-99. */
static void take_range(mr_reply *r, const char *value)
{
    const char *at = value + strcspn(value, "0123456789"), *slash = strchr(value, '/');
    r->ranged = strncmp(value, "bytes ", 6) == 0 && slash && at < slash;
    r->range_from = r->ranged ? number(&at) : 0;
    if (r->ranged && r->get->size && slash[1] >= '0' && slash[1] <= '9') {
        at = slash + 1;
        *r->get->size = number(&at);
    }
}

static size_t take_head(char *line, size_t size, size_t count, void *to)
{
    mr_reply *r = to;
    size_t len = size * count;
    char value[MR_ETAG_MAX];
    const char *at = value;
    r->heard = true;
    if (header(line, len, "HTTP/", value, sizeof value)) { /* each redirect has one as well */
        at += strcspn(value, " ");
        r->status = (int)number(&at);
        r->ranged = r->html = false;
        r->length = UINT64_MAX;
        r->retry_after = 0;
    } else if (header(line, len, "Content-Range:", value, sizeof value)) {
        take_range(r, value);
    } else if (header(line, len, "Content-Length:", value, sizeof value)) {
        r->length = number(&at);
        if (r->get->head)
            r->get->head->bytes = r->length;
    } else if (r->get->head && header(line, len, "x-amz-meta-sha256:", r->get->head->sha256, 65)) {
        return len;
    } else if (header(line, len, "Content-Type:", value, sizeof value)) {
        r->html = strncasecmp(value, "text/html", 9) == 0;
    } else if (header(line, len, "Retry-After:", value, sizeof value)) {
        r->retry_after = (unsigned)number(&at); /* a date, which depends on clocks, counts as 0 */
    } else if (header(line, len, "ETag:", value, sizeof value) && (r->status == 200 || r->status == 206)) {
        r->changed = *r->etag && strcmp(r->etag, value) != 0;
        memcpy(r->etag, value, sizeof value);
    }
    return len;
}

/* False: it is not what was asked for. */
static bool begin_body(mr_reply *r)
{
    const mr_get *get = r->get;
    uint64_t wanted = get->from + r->got, rest = get->bytes ? get->bytes - r->got : UINT64_MAX;
    r->begun = true;
    if (r->html || r->changed)
        return false;
    if (r->ranged)
        r->at = r->range_from;
    else if (r->status == 200 && r->length == rest && r->length != get->whole && wanted)
        r->at = wanted;
    else
        r->at = 0;
    if (!get->bytes && get->size && r->status == 200 && r->at == 0 && r->length != UINT64_MAX)
        *get->size = r->length;
    return r->at <= wanted && (r->status == 200 || r->ranged);
}

static size_t take_body(char *bytes, size_t size, size_t count, void *to)
{
    mr_reply *r = to;
    const mr_get *get = r->get;
    size_t len = size * count, n = len;
    r->heard = true;
    if (get->answer && r->status == 200) {
        if (get->answer->len + len > ANSWER_MAX)
            return 0;
        mr_buf_add(get->answer, bytes, len);
        return get->answer->failed ? 0 : len;
    }
    if (get->put || (r->status != 200 && r->status != 206)) {
        n = len < sizeof r->page - 1 - r->page_len ? len : sizeof r->page - 1 - r->page_len;
        memcpy(r->page + r->page_len, bytes, n);
        r->page_len += n;
        return len;
    }
    if (!r->begun && !begin_body(r))
        return 0;
    uint64_t wanted = get->from + r->got, skip = wanted - r->at;
    r->at += n;
    if (skip >= n)
        return len;
    bytes += skip;
    n -= (size_t)skip;
    if (get->bytes && n > get->bytes - r->got)
        n = (size_t)(get->bytes - r->got);
    if (n) {
        r->sunk = get->sink(get->to, (const uint8_t *)bytes, n, r->err);
        r->got += r->sunk == MR_OK ? n : 0;
    }
    bool over = get->bytes && r->got == get->bytes && r->at > get->from + get->bytes;
    return r->sunk == MR_OK && !over ? len : 0; /* over: the rest of the file is not wanted */
}

/* More of the file that is stored. */
static size_t give_body(char *bytes, size_t size, size_t count, void *from)
{
    mr_reply *r = from;
    const mr_put *put = r->get->put;
    uint64_t rest = put->bytes - r->sent;
    size_t len = size * count < rest ? size * count : (size_t)rest;
    r->heard = true;
    if (len && put->text)
        memcpy(bytes, put->text + r->sent, len);
    else if (len && mr_file_pread(put->fd, bytes, len, put->from + r->sent, r->get->name, r->err) != MR_OK) {
        r->sunk = MR_SYSTEM;
        return MR_CURL_READFUNC_ABORT;
    }
    r->sent += len;
    return len;
}

/* ---- what is sent ------------------------------------------------------------------------------------------------ */

static mr_status add_header(const mr_curl *c, mr_curl_list **list, const char *name, const char *value, mr_error *err)
{
    MR_AUTO(mr_buf_free) mr_buf line = {0};
    mr_buf_printf(&line, "%s: %s", name, value);
    mr_curl_list *longer = line.failed ? NULL : c->slist_append(*list, mr_buf_text(&line));
    if (line.data)
        explicit_bzero(line.data, line.len);
    if (!longer)
        return mr_fail_memory(err, "a request");
    *list = longer;
    return MR_OK;
}

/* `body`: SHA-256 of what is sent, NULL: not stated. */
static mr_status authorize(const mr_curl *c, void *easy, const mr_url *url, const char *body, mr_curl_list **headers,
                           mr_error *err)
{
    const mr_credentials *r = &url->credentials;
    char signature[128];
    if (r->bearer) {
        MR_AUTO(mr_buf_free) mr_buf value = {0};
        mr_buf_printf(&value, "Bearer %s", r->bearer);
        return add_header(c, headers, "Authorization", mr_buf_text(&value), err);
    }
    if (!r->key)
        return MR_OK;
    snprintf(signature, sizeof signature, "aws:amz:%.60s:s3", r->region);
    c->easy_setopt(easy, MR_CURLOPT_USERNAME, r->key);
    c->easy_setopt(easy, MR_CURLOPT_PASSWORD, r->secret);
    c->easy_setopt(easy, MR_CURLOPT_AWS_SIGV4, signature);
    if (r->token)
        MR_TRY(add_header(c, headers, "x-amz-security-token", r->token, err));
    return add_header(c, headers, "x-amz-content-sha256", body ? body : "UNSIGNED-PAYLOAD", err);
}

/* A file of certificates that replaces the system's, by the names that curl, Amazon's tools and OpenSSL have. */
static const char *certificates(void)
{
    static const char *const names[] = {"AWS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE"};
    for (size_t i = 0; i < MR_COUNT(names); i++) {
        if (mr_env(names[i]))
            return mr_env(names[i]);
    }
    return NULL;
}

static void set_limits(const mr_curl *c, void *easy, const mr_url *url, unsigned stall)
{
    bool tls = strncmp(url->base, "https", 5) == 0;
    c->easy_setopt(easy, MR_CURLOPT_NOSIGNAL, 1L);
    c->easy_setopt(easy, MR_CURLOPT_HTTP_VERSION, (long)MR_CURL_HTTP_1_1);
    c->easy_setopt(easy, MR_CURLOPT_BUFFERSIZE, (long)BUFFER);
    c->easy_setopt(easy, MR_CURLOPT_USERAGENT, "millrace/" MILLRACE_VERSION);
    c->easy_setopt(easy, MR_CURLOPT_CONNECTTIMEOUT_MS, stall * 1000 < CONNECT_MS ? stall * 1000L : (long)CONNECT_MS);
    c->easy_setopt(easy, MR_CURLOPT_FOLLOWLOCATION, url->credentials.key ? 0L : 1L); /* a signature is for one host */
    c->easy_setopt(easy, MR_CURLOPT_MAXREDIRS, 5L);
    c->easy_setopt(easy, MR_CURLOPT_PROTOCOLS_STR, tls ? "https" : "http");
    c->easy_setopt(easy, MR_CURLOPT_REDIR_PROTOCOLS_STR, tls ? "https" : "http,https");
    if (certificates())
        c->easy_setopt(easy, MR_CURLOPT_CAINFO, certificates());
}

static mr_status prepare_put(const mr_curl *c, void *easy, mr_reply *reply, mr_curl_list **headers, mr_error *err)
{
    const mr_put *put = reply->get->put;
    reply->sent = 0;
    c->easy_setopt(easy, MR_CURLOPT_UPLOAD, 1L);
    c->easy_setopt(easy, MR_CURLOPT_INFILESIZE_LARGE, (int64_t)put->bytes);
    c->easy_setopt(easy, MR_CURLOPT_READFUNCTION, give_body);
    c->easy_setopt(easy, MR_CURLOPT_READDATA, reply);
    if (reply->get->method)
        c->easy_setopt(easy, MR_CURLOPT_CUSTOMREQUEST, reply->get->method);
    if (reply->get->answer)
        mr_buf_clear(reply->get->answer);
    MR_TRY(add_header(c, headers, "Content-Type", "application/octet-stream", err));
    c->easy_setopt(easy, MR_CURLOPT_EXPECT_100_TIMEOUT_MS, 50L); /* some servers never answer "100 Continue" */
    return put->sha256 ? add_header(c, headers, "x-amz-meta-sha256", put->sha256, err) : MR_OK;
}

static mr_status prepare(const mr_curl *c, mr_lane *lane, const mr_url *url, mr_reply *reply, mr_curl_list **headers,
                         mr_error *err)
{
    const mr_get *get = reply->get;
    uint64_t from = get->from + reply->got;
    char range[64];
    MR_AUTO(mr_buf_free) mr_buf address = {0};
    mr_buf_add_text(&address, url->base);
    mr_url_encode(&address, get->name, strlen(get->name), "/");
    if (get->query)
        mr_buf_printf(&address, "?%s", get->query);
    MR_TRY(mr_buf_status(&address, err, "a request"));
    c->easy_setopt(lane->easy, MR_CURLOPT_URL, mr_buf_text(&address));
    if (get->bytes && (from || get->bytes != get->whole)) {
        snprintf(range, sizeof range, "%" PRIu64 "-%" PRIu64, from, get->from + get->bytes - 1);
        c->easy_setopt(lane->easy, MR_CURLOPT_RANGE, range);
    } else if (from) {
        snprintf(range, sizeof range, "%" PRIu64 "-", from);
        c->easy_setopt(lane->easy, MR_CURLOPT_RANGE, range);
    }
    MR_TRY(authorize(c, lane->easy, url, get->put ? get->put->body : NULL, headers, err));
    if (get->head)
        c->easy_setopt(lane->easy, MR_CURLOPT_NOBODY, 1L);
    if (get->put)
        MR_TRY(prepare_put(c, lane->easy, reply, headers, err));
    if (*headers)
        c->easy_setopt(lane->easy, MR_CURLOPT_HTTPHEADER, *headers);
    return MR_OK;
}

/* ---- the attempt ------------------------------------------------------------------------------------------------- */

static bool stopped(const mr_get *get)
{
    return get->stop && atomic_load(get->stop);
}

double mr_lane_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* By a handle of its own that waits in short steps: easy_perform() would notice `stop` after a second, and a stall only
 * in its mean over several. */
static int perform(const mr_curl *c, mr_lane *lane, mr_reply *reply, unsigned stall)
{
    int running = 1, code = MR_CURLE_WRITE_ERROR, left;
    double last = mr_lane_now();
    while (running && !stopped(reply->get)) {
        reply->heard = false;
        if (c->multi_perform(lane->multi, &running) != 0)
            break;
        if (reply->heard)
            last = mr_lane_now();
        if (running && mr_lane_now() - last > stall) {
            snprintf(lane->why, sizeof lane->why, "the connection stalled for %u s", stall);
            return MR_CURLE_TIMEDOUT;
        }
        if (running)
            c->multi_poll(lane->multi, NULL, 0, POLL_MS, NULL);
    }
    for (mr_curl_message *m; (m = c->multi_info_read(lane->multi, &left));)
        if (m->what == MR_CURLMSG_DONE)
            code = m->data.result;
    return code;
}

mr_status mr_lane_get(const mr_curl *c, mr_lane *lane, const mr_url *url, unsigned patience, mr_reply *reply,
                      mr_error *err)
{
    mr_curl_list *headers = NULL;
    unsigned stall = patience > 3 * STALL ? STALL : patience / 3 + 1;
    c->easy_reset(lane->easy);
    *lane->why = '\0';
    reply->err = err;
    reply->status = reply->code = 0;
    reply->begun = false;
    reply->page_len = 0;
    set_limits(c, lane->easy, url, stall);
    c->easy_setopt(lane->easy, MR_CURLOPT_ERRORBUFFER, lane->why);
    c->easy_setopt(lane->easy, MR_CURLOPT_HEADERFUNCTION, take_head);
    c->easy_setopt(lane->easy, MR_CURLOPT_HEADERDATA, reply);
    c->easy_setopt(lane->easy, MR_CURLOPT_WRITEFUNCTION, take_body);
    c->easy_setopt(lane->easy, MR_CURLOPT_WRITEDATA, reply);
    mr_status status = prepare(c, lane, url, reply, &headers, err);
    if (status == MR_OK) {
        c->multi_add_handle(lane->multi, lane->easy);
        reply->code = perform(c, lane, reply, stall);
        c->multi_remove_handle(lane->multi, lane->easy);
        if (reply->code && !*lane->why)
            snprintf(lane->why, sizeof lane->why, "%s", c->easy_strerror(reply->code));
    }
    c->easy_setopt(lane->easy, MR_CURLOPT_HTTPHEADER, NULL);
    c->slist_free_all(headers);
    reply->page[reply->page_len] = '\0';
    if (status == MR_OK && stopped(reply->get)) {
        errno = ECANCELED;
        status = mr_fail(err, MR_SYSTEM, "%s%s: reading it was stopped", url->shown, reply->get->name);
        errno = ECANCELED;
    }
    return status;
}
