/* http.h - private to this module: bytes of a remote file, requested until they have arrived.
 * Invariant: bytes are delivered in order and once, however often the connection breaks; whether they are the right
 * ones only a digest can say. */
#ifndef MR_HTTP_H
#define MR_HTTP_H

#include <stdatomic.h>

#include "shards/remote/url.h"

typedef struct mr_http mr_http; /* connections to one place; any number of threads use it */

/* Takes over the URL, also on failure. */
mr_status mr_http_open(mr_url *url, mr_http **out, mr_error *err);
void mr_http_close(mr_http *h); /* NULL is fine */
const mr_url *mr_http_url(const mr_http *h);

enum { MR_ETAG_MAX = 160 };

/* `n` more bytes. */
typedef mr_status mr_http_sink(void *to, const uint8_t *bytes, size_t n, mr_error *err);

typedef struct mr_put { /* what is sent: a file, or a part of it, or a text */
    int fd;
    uint64_t from, bytes;
    const char *text;   /* instead of the file */
    const char *sha256; /* as text; stored beside it, so that a later push knows it; NULL: not */
    const char *body;   /* SHA-256 of what is sent, as text, which S3 compares; NULL: it does not */
} mr_put;

typedef struct mr_there { /* a file that is stored */
    uint64_t bytes;
    char sha256[65]; /* that was stored beside it; "": none */
} mr_there;

typedef struct mr_get {
    const char *name;     /* the file's name below the URL; "": the URL itself */
    uint64_t from, bytes; /* bytes 0: all, and `from` is 0 */
    uint64_t whole;       /* size of the whole file; 0: not known */
    mr_http_sink *sink;
    void *to;
    uint64_t *size;          /* size of the whole file, if the server states it, else unchanged; may be NULL */
    const mr_put *put;       /* PUT, instead of all that */
    const char *method;      /* method of a put; NULL: "PUT" */
    const char *query;       /* query of the URL, encoded, its members in order; NULL: none */
    mr_buf *answer;          /* what the answer to a put says; may be NULL */
    char *etag;              /* char[MR_ETAG_MAX]: the answer's ETag; may be NULL */
    mr_there *head;          /* HEAD */
    const atomic_bool *stop; /* ends it within 100 ms, with ECANCELED; may be NULL */
} mr_get;

/* Tries again what may pass: a connection that broke or stalls, 408, 429, 5xx.  MR_END: there is no such file, and err
 * says so; MR_SYSTEM: errno is set, and is not ENOENT. */
mr_status mr_http_get(mr_http *h, const mr_get *get, mr_error *err);

/* A small file as a whole, or what the service says to a query (NULL: none); MR_SYSTEM if it has more than `most`
 * bytes. */
mr_status mr_http_read(mr_http *h, const char *name, const char *query, uint64_t most, mr_buf *out, mr_error *err);

/* Stores a whole file; again from its start if the connection breaks. */
mr_status mr_http_put(mr_http *h, const char *name, const mr_put *put, mr_error *err);
/* The same for a large file in a bucket: in parts, several at once, each tried again by itself.  A later call goes on
 * with the parts that exist. */
mr_status mr_http_put_parts(mr_http *h, const char *name, const mr_put *put, mr_error *err);
/* What is stored there; MR_END: nothing. */
mr_status mr_http_head(mr_http *h, const char *name, mr_there *out, mr_error *err);

#endif
