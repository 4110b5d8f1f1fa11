/* http.c - requests that are tried until they succeed, are refused, or no data has arrived for long enough.
 * Invariant: a failure says what was requested, what arrived instead, and what to do. */
#include "shards/remote/http.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/environment.h"
#include "base/hash.h"
#include "base/scope.h"
#include "base/text.h"
#include "shards/remote/lane.h"

enum { PATIENCE = 60, PATIENCE_MAX = 86400, FIRST_MS = 100, MOST_MS = 20000, STEP_MS = 20 };

typedef struct place {
    struct place *before;
    mr_url url;
} place;

struct mr_http {
    const mr_curl *curl;
    place *places;     /* with the credentials in use, after those that have expired: requests read them */
    unsigned patience; /* seconds without a byte */
    pthread_mutex_t lock;
    mr_lane *idle;
    pid_t owner; /* process that owns the connections: a child of fork() must not write to them */
};

const mr_url *mr_http_url(const mr_http *h)
{
    mr_http *own = (mr_http *)(uintptr_t)h;
    pthread_mutex_lock(&own->lock);
    const mr_url *url = &h->places->url;
    pthread_mutex_unlock(&own->lock);
    return url;
}

static bool differ(const char *a, const char *b)
{
    return (a && b) ? strcmp(a, b) != 0 : a != b;
}

/* The credentials `used` were refused: whether a tool has renewed them in a file since. */
static bool renew(mr_http *h, const mr_url *used)
{
    MR_AUTO(mr_scope_free) place *p = mr_alloc(1, sizeof *p);
    bool renewed = false;
    if (!p)
        return false;
    pthread_mutex_lock(&h->lock);
    mr_credentials *r = &p->url.credentials;
    if (&h->places->url != used) {
        renewed = true; /* by another thread */
    } else if (mr_credentials_find(used->scheme, r, NULL) == MR_OK &&
               (differ(r->key, used->credentials.key) || differ(r->secret, used->credentials.secret) ||
                differ(r->token, used->credentials.token) || differ(r->bearer, used->credentials.bearer))) {
        p->url.scheme = used->scheme;
        p->url.shown = strdup(used->shown);
        p->url.base = strdup(used->base);
        renewed = p->url.shown && p->url.base;
    }
    if (renewed && p->url.base) {
        p->before = h->places;
        h->places = p;
        p = NULL;
    } else {
        mr_url_free(&p->url);
    }
    pthread_mutex_unlock(&h->lock);
    return renewed;
}

static unsigned patience(void)
{
    uint64_t seconds;
    const char *text = mr_env("MILLRACE_PATIENCE");
    return text && mr_text_parse_u64(text, &seconds) && seconds && seconds <= PATIENCE_MAX ? (unsigned)seconds
                                                                                           : PATIENCE;
}

mr_status mr_http_open(mr_url *url, mr_http **out, mr_error *err)
{
    mr_http *h = mr_alloc(1, sizeof *h);
    place *first = mr_alloc(1, sizeof *first);
    if (!h || !first) {
        mr_url_free(url);
        free(h);
        free(first);
        return mr_fail_memory(err, "a URL");
    }
    first->url = *url;
    *h = (mr_http){.places = first, .patience = patience(), .owner = getpid()};
    *url = (mr_url){.scheme = MR_SCHEME_NONE};
    pthread_mutex_init(&h->lock, NULL);
    mr_error why;
    mr_status status = mr_curl_open(&h->curl, &why);
    if (status == MR_OK) {
        *out = h;
        return MR_OK;
    }
    mr_fail(err, status, "%s: %s", first->url.shown, why.text);
    mr_http_close(h);
    return status;
}

/* ---- connections ------------------------------------------------------------------------------------------------- */

static void end_lane(const mr_http *h, mr_lane *lane)
{
    if (lane->easy)
        h->curl->easy_cleanup(lane->easy);
    if (lane->multi)
        h->curl->multi_cleanup(lane->multi);
    free(lane);
}

void mr_http_close(mr_http *h)
{
    if (!h)
        return;
    for (mr_lane *lane; (lane = h->idle);) {
        h->idle = lane->next;
        end_lane(h, lane);
    }
    pthread_mutex_destroy(&h->lock);
    for (place *p; (p = h->places);) {
        h->places = p->before;
        mr_url_free(&p->url);
        free(p);
    }
    free(h);
}

static mr_lane *take_lane(mr_http *h)
{
    pthread_mutex_lock(&h->lock);
    if (h->owner != getpid()) {
        h->idle = NULL;
        h->owner = getpid();
    }
    mr_lane *lane = h->idle;
    if (lane)
        h->idle = lane->next;
    pthread_mutex_unlock(&h->lock);
    if (lane || !(lane = mr_alloc(1, sizeof *lane)))
        return lane;
    lane->easy = h->curl->easy_init();
    lane->multi = h->curl->multi_init();
    if (lane->easy && lane->multi)
        return lane;
    end_lane(h, lane);
    return NULL;
}

static void give_lane(mr_http *h, mr_lane *lane)
{
    pthread_mutex_lock(&h->lock);
    lane->next = h->idle;
    h->idle = lane;
    pthread_mutex_unlock(&h->lock);
}

/* ---- what an attempt came to ------------------------------------------------------------------------------------- */

/* S3's word for what is wrong: <Code>NoSuchKey</Code>; "" if there is none. */
static const char *code_of(mr_reply *r, char out[64])
{
    const char *at = strstr(r->page, "<Code>");
    size_t len = at ? strspn(at + 6, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789") : 0;
    *out = '\0';
    if (len)
        snprintf(out, 64, " %.*s", len < 60 ? (int)len : 60, at + 6);
    return out;
}

static mr_status fail_refused(const mr_url *url, const char *file, mr_reply *r, mr_error *err)
{
    char code[64];
    const mr_credentials *credentials = &url->credentials;
    static const char *const hints[] = {
        [MR_SCHEME_http] = "use s3:// or hf://, which have credentials",
        [MR_SCHEME_https] = "use s3:// or hf://, which have credentials",
        [MR_SCHEME_s3] = "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE",
        [MR_SCHEME_gs] = "set GS_ACCESS_KEY_ID and GS_SECRET_ACCESS_KEY",
        [MR_SCHEME_hf] = "set HF_TOKEN",
    };
    code_of(r, code);
    errno = EACCES;
    if (*credentials->from && strstr(code, "Expired"))
        mr_fail(err, MR_SYSTEM, "%s: answers %d%s: the credentials from %s have expired; renew them", file, r->status,
                code, credentials->from);
    else if (*credentials->from)
        mr_fail(err, MR_SYSTEM, "%s: answers %d%s to the credentials from %s; check them and what they permit", file,
                r->status, code, credentials->from);
    else
        mr_fail(err, MR_SYSTEM, "%s: answers %d%s, and no credentials were found; %s", file, r->status, code,
                hints[url->scheme]);
    errno = EACCES;
    return MR_SYSTEM;
}

/* What was sent has another SHA-256 there: a bit flipped on the way. */
static bool came_damaged(mr_reply *r)
{
    char code[64];
    return r->get->put && (strstr(code_of(r, code), "XAmzContentSHA256Mismatch") || strstr(code, "BadDigest"));
}

typedef enum verdict { DONE, AGAIN, FINAL } verdict;

/* AGAIN: `why` says what happened, in case no attempt succeeds. FINAL: *status and err are the result. */
static verdict judge(const mr_url *url, const char *file, const mr_lane *lane, mr_reply *r, mr_status *status,
                     mr_error *why, mr_error *err)
{
    const mr_get *get = r->get;
    char code[64];
    *status = MR_SYSTEM;
    bool sends = get->put || get->head;
    bool good = r->status == 200 || r->status == 206 || (sends && r->status > 200 && r->status < 300);
    if (r->sunk != MR_OK) {
        *status = r->sunk;
        return FINAL;
    }
    if (good && sends && r->code == 0)
        return DONE;
    if (good && get->bytes && r->got == get->bytes)
        return DONE;
    if (good && r->changed)
        mr_fail(err, MR_SYSTEM, "%s: was replaced while it was read; run the command again", file);
    else if (good && r->html && !sends)
        mr_fail(err, MR_SYSTEM,
                "%s: answers with a web page instead of the file; is there a login page or a proxy in between?", file);
    else if (good && r->code == MR_CURLE_WRITE_ERROR)
        mr_fail(err, MR_SYSTEM,
                "%s: the server answers a range request with other bytes; it cannot be read from this server", file);
    else if (good && r->code == 0 && !get->bytes)
        return DONE;
    else if (r->status == 404 || r->status == 410)
        *status = mr_fail(err, MR_END, "%s: answers %d%s: there is no such file", file, r->status, code_of(r, code));
    else if (r->status == 416)
        mr_fail(err, MR_SYSTEM, "%s: ends before byte %llu; it is not the file that the manifest lists", file,
                (unsigned long long)(get->from + get->bytes));
    else if (r->status == 401 || r->status == 403 || strstr(code_of(r, code), "Expired"))
        *status = fail_refused(url, file, r, err);
    else if (r->code == MR_CURLE_PEER_FAILED_VERIFICATION || r->code == MR_CURLE_SSL_CACERT_BADFILE ||
             r->code == MR_CURLE_UNSUPPORTED_PROTOCOL || r->code == MR_CURLE_URL_MALFORMAT ||
             r->code == MR_CURLE_TOO_MANY_REDIRECTS)
        mr_fail(err, MR_SYSTEM, "%s: %s", file, lane->why);
    else if (r->status >= 300 && r->status < 500 && r->status != 408 && r->status != 429 && !came_damaged(r))
        mr_fail(err, MR_SYSTEM, "%s: answers %d%s; check the URL%s", file, r->status, code_of(r, code),
                url->credentials.key ? ", the region (AWS_REGION) and the endpoint (AWS_ENDPOINT_URL)" : "");
    else {
        if (r->status >= 400)
            mr_fail(why, MR_SYSTEM, "answers %d%s", r->status, code_of(r, code));
        else if (r->code)
            mr_fail(why, MR_SYSTEM, "%s", lane->why);
        else
            mr_fail(why, MR_SYSTEM, "%llu bytes were received", (unsigned long long)r->got);
        return AGAIN;
    }
    errno = *status == MR_SYSTEM && errno == EACCES ? EACCES : EREMOTEIO;
    return FINAL;
}

/* ---- trying ------------------------------------------------------------------------------------------------------ */

/* Between attempts: a random part of 0.1 s doubled each time (so that hosts which failed together do not return
 * together), or what the server asks for. */
static void wait_before(unsigned attempt, const mr_reply *r, double until)
{
    struct timespec t, step = {.tv_nsec = STEP_MS * 1000000L};
    clock_gettime(CLOCK_MONOTONIC, &t);
    uint64_t most = (uint64_t)FIRST_MS << (attempt < 8 ? attempt : 8);
    uint64_t draw = mr_hash64(&t, sizeof t) % 1000;
    double seconds = (double)(most < MOST_MS ? most : MOST_MS) * (double)draw / 1e6;
    if (r->retry_after > seconds)
        seconds = r->retry_after;
    double end = mr_lane_now() + seconds;
    while (mr_lane_now() < end && mr_lane_now() < until && !(r->get->stop && atomic_load(r->get->stop)))
        nanosleep(&step, NULL);
}

mr_status mr_http_get(mr_http *h, const mr_get *get, mr_error *err)
{
    mr_reply r = {.get = get, .sunk = MR_OK};
    mr_error why = {.status = MR_OK};
    char file[400];
    const mr_url *url = mr_http_url(h);
    bool renewed = false;
    double last = mr_lane_now();
    mr_status status = MR_OK;
    verdict v = AGAIN;
    snprintf(file, sizeof file, "%.250s%s%.120s", url->shown,
             *get->name && url->shown[strlen(url->shown) - 1] != '/' ? "/" : "", get->name);
    mr_lane *lane = take_lane(h);
    if (!lane)
        return mr_fail_memory(err, file);
    for (unsigned attempt = 0; v == AGAIN; attempt++) {
        uint64_t before = r.got;
        url = mr_http_url(h);
        errno = 0;
        status = mr_lane_get(h->curl, lane, url, h->patience, &r, err);
        if (status != MR_OK)
            break;
        v = judge(url, file, lane, &r, &status, &why, err);
        if (v == FINAL && errno == EACCES && !renewed) {
            renewed = renew(h, url);
            errno = EACCES;
            v = renewed ? AGAIN : FINAL;
            if (renewed)
                continue;
        }
        if (r.got > before) {
            last = mr_lane_now();
            attempt = 0;
        }
        if (v == AGAIN && mr_lane_now() - last >= h->patience) {
            status = mr_fail(err, MR_SYSTEM,
                             "%s: no data received for %u s (%s); check the network, then run the command again", file,
                             h->patience, why.text);
            errno = ETIMEDOUT;
            break;
        }
        if (v == AGAIN)
            wait_before(attempt, &r, last + h->patience);
    }
    if (v == DONE && get->etag)
        memcpy(get->etag, r.etag, MR_ETAG_MAX);
    int errnum = errno;
    give_lane(h, lane);
    errno = errnum;
    return v == DONE ? MR_OK : status;
}

/* ---- small files ------------------------------------------------------------------------------------------------- */

typedef struct page {
    mr_buf *out;
    uint64_t most;
    const char *name;
} page;

static mr_status add(void *to, const uint8_t *bytes, size_t n, mr_error *err)
{
    page *p = to;
    if (n > p->most || p->out->len > p->most - n) {
        errno = EFBIG;
        return mr_fail(err, MR_SYSTEM, "%s: has more than %llu bytes, which is the limit", p->name,
                       (unsigned long long)p->most);
    }
    mr_buf_add(p->out, bytes, n);
    return mr_buf_status(p->out, err, p->name);
}

mr_status mr_http_read(mr_http *h, const char *name, const char *query, uint64_t most, mr_buf *out, mr_error *err)
{
    page p = {.out = out, .most = most, .name = name};
    const mr_get get = {.name = name, .query = query, .sink = add, .to = &p};
    return mr_http_get(h, &get, err);
}

/* ---- storing ----------------------------------------------------------------------------------------------------- */

mr_status mr_http_put(mr_http *h, const char *name, const mr_put *put, mr_error *err)
{
    const mr_get get = {.name = name, .put = put};
    return mr_http_get(h, &get, err);
}

mr_status mr_http_head(mr_http *h, const char *name, mr_there *out, mr_error *err)
{
    const mr_get get = {.name = name, .head = out};
    *out = (mr_there){.bytes = 0};
    return mr_http_get(h, &get, err);
}
