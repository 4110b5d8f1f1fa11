/* curl.h - private to this module: the part of libcurl that is used, loaded when a URL is given.
 * Invariant: nothing is linked and no header of libcurl is needed to build; numbers are those of curl.h 7.85 (which
 * never change: https://curl.se/libcurl/abi.html). */
#ifndef MR_CURL_H
#define MR_CURL_H

#include "base/error.h"

enum { /* CURLoption: 0 + n takes a long, 10000 a pointer, 20000 a function, 30000 an int64_t */
       MR_CURLOPT_NOBODY = 44,
       MR_CURLOPT_UPLOAD = 46,
       MR_CURLOPT_FOLLOWLOCATION = 52,
       MR_CURLOPT_MAXREDIRS = 68,
       MR_CURLOPT_HTTP_VERSION = 84,
       MR_CURLOPT_BUFFERSIZE = 98,
       MR_CURLOPT_NOSIGNAL = 99,
       MR_CURLOPT_CONNECTTIMEOUT_MS = 156,
       MR_CURLOPT_EXPECT_100_TIMEOUT_MS = 227,
       MR_CURLOPT_WRITEDATA = 10001,
       MR_CURLOPT_URL = 10002,
       MR_CURLOPT_RANGE = 10007,
       MR_CURLOPT_READDATA = 10009,
       MR_CURLOPT_ERRORBUFFER = 10010,
       MR_CURLOPT_USERAGENT = 10018,
       MR_CURLOPT_HTTPHEADER = 10023,
       MR_CURLOPT_HEADERDATA = 10029,
       MR_CURLOPT_CUSTOMREQUEST = 10036,
       MR_CURLOPT_CAINFO = 10065,
       MR_CURLOPT_USERNAME = 10173,
       MR_CURLOPT_PASSWORD = 10174,
       MR_CURLOPT_AWS_SIGV4 = 10305,
       MR_CURLOPT_PROTOCOLS_STR = 10318,
       MR_CURLOPT_REDIR_PROTOCOLS_STR = 10319,
       MR_CURLOPT_WRITEFUNCTION = 20011,
       MR_CURLOPT_READFUNCTION = 20012,
       MR_CURLOPT_HEADERFUNCTION = 20079,
       MR_CURLOPT_INFILESIZE_LARGE = 30115,
};
enum {
    MR_CURL_GLOBAL_DEFAULT = 3,
    MR_CURL_HTTP_1_1 = 2,
    MR_CURL_ERROR_SIZE = 256,
    MR_CURLMSG_DONE = 1,
    MR_CURL_READFUNC_ABORT = 0x10000000
};
enum { /* CURLcode */
       MR_CURLE_UNSUPPORTED_PROTOCOL = 1,
       MR_CURLE_URL_MALFORMAT = 3,
       MR_CURLE_WRITE_ERROR = 23,
       MR_CURLE_TIMEDOUT = 28,
       MR_CURLE_TOO_MANY_REDIRECTS = 47,
       MR_CURLE_PEER_FAILED_VERIFICATION = 60,
       MR_CURLE_SSL_CACERT_BADFILE = 77,
};

typedef struct mr_curl_list mr_curl_list; /* curl_slist */
typedef struct mr_curl_message {          /* CURLMsg */
    int what;
    void *easy;
    union {
        void *other;
        int result;
    } data;
} mr_curl_message;

/* X(returns, name, arguments): curl_NAME() */
#define MR_CURL_FUNCTIONS(X)                                                                                           \
    X(int, global_init, (long))                                                                                        \
    X(void *, easy_init, (void))                                                                                       \
    X(void, easy_cleanup, (void *))                                                                                    \
    X(void, easy_reset, (void *))                                                                                      \
    X(int, easy_setopt, (void *, int, ...))                                                                            \
    X(int, easy_getinfo, (void *, int, ...))                                                                           \
    X(const char *, easy_strerror, (int))                                                                              \
    X(void *, multi_init, (void))                                                                                      \
    X(int, multi_cleanup, (void *))                                                                                    \
    X(int, multi_add_handle, (void *, void *))                                                                         \
    X(int, multi_remove_handle, (void *, void *))                                                                      \
    X(int, multi_perform, (void *, int *))                                                                             \
    X(int, multi_poll, (void *, void *, unsigned, int, int *))                                                         \
    X(mr_curl_message *, multi_info_read, (void *, int *))                                                             \
    X(mr_curl_list *, slist_append, (mr_curl_list *, const char *))                                                    \
    X(void, slist_free_all, (mr_curl_list *))

typedef struct mr_curl {
#define X(returns, name, arguments) returns(*name) arguments;
    MR_CURL_FUNCTIONS(X)
#undef X
} mr_curl;

/* The library, the same for all; loaded by the first call. */
mr_status mr_curl_open(const mr_curl **out, mr_error *err);

#endif
