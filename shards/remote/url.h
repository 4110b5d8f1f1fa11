/* url.h - private to this module: where a dataset's URL leads, and with which credentials.
 * Invariant: `shown` is all that messages repeat: no password, query or key is in it. */
#ifndef MR_URL_H
#define MR_URL_H

#include "base/buf.h"

#define MR_REMOTE_SCHEMES(X) X(http) X(https) X(s3) X(gs) X(hf)

typedef enum mr_scheme {
#define X(name) MR_SCHEME_##name,
    MR_REMOTE_SCHEMES(X)
#undef X
        MR_SCHEME_NONE
} mr_scheme;

typedef struct mr_credentials {
    char *key, *secret, *token; /* for S3; key NULL: requests are not signed */
    char *bearer;               /* for the hub; NULL: none */
    char *region, *endpoint;    /* for S3; endpoint NULL: Amazon's */
    char from[160];             /* where they were found, for messages */
} mr_credentials;

typedef struct mr_url {
    mr_scheme scheme;
    char *shown; /* "s3://bucket/dogs" */
    char *base;  /* "https://bucket.s3.eu-central-1.amazonaws.com/dogs/": names of files are appended */
    bool pinned; /* "#sha256=..." was given */
    uint8_t digest[32];
    mr_credentials credentials;
} mr_url;

mr_scheme mr_url_scheme(const char *text);
/* MR_MISUSE: it is not a URL that can be read; MR_SYSTEM: credentials cannot be read. */
mr_status mr_url_parse(const char *text, mr_url *out, mr_error *err);
void mr_url_free(mr_url *url);

/* Credentials as the tools of each service find them: in variables, then in files.  It is fine to have none. */
mr_status mr_credentials_find(mr_scheme scheme, mr_credentials *out, mr_error *err);
void mr_credentials_free(mr_credentials *credentials);

/* Appends `text` with everything percent-encoded that is not unreserved (RFC 3986, 2.3) or in `kept`. */
void mr_url_encode(mr_buf *out, const char *text, size_t len, const char *kept);

#endif
