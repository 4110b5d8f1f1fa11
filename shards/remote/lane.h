/* lane.h - private to this module: one connection, and one request on it.
 * Invariant: a lane is used by one thread at a time; no request outlives the call that made it. */
#ifndef MR_LANE_H
#define MR_LANE_H

#include <time.h>

#include "shards/remote/curl.h"
#include "shards/remote/http.h"

typedef struct mr_lane {
    struct mr_lane *next; /* idle */
    void *easy, *multi;
    char why[MR_CURL_ERROR_SIZE];
} mr_lane;

typedef struct mr_reply { /* what the last answer's head says, and what became of its body */
    const mr_get *get;
    uint64_t got;                /* bytes delivered so far, over all attempts */
    int status, code;            /* status of HTTP; code of libcurl */
    bool ranged, html;           /* with Content-Range; Content-Type is text/html */
    bool heard;                  /* something came since it was set to false */
    bool begun;                  /* the body */
    uint64_t at;                 /* where in the file its next byte belongs */
    uint64_t range_from, length; /* length UINT64_MAX: not stated */
    unsigned retry_after;        /* seconds */
    char etag[MR_ETAG_MAX];
    bool changed;   /* the file is not that of the first attempt */
    uint64_t sent;  /* bytes of the body sent in this attempt at a PUT */
    mr_status sunk; /* the sink's status */
    mr_error *err;
    char page[1024]; /* the start of the body of a refusal */
    size_t page_len;
} mr_reply;

double mr_lane_now(void); /* seconds, on a clock that is never set */

/* One attempt; its outcome is in *reply.  MR_SYSTEM: no request was made, or it was stopped (ECANCELED). */
mr_status mr_lane_get(const mr_curl *curl, mr_lane *lane, const mr_url *url, unsigned patience, mr_reply *reply,
                      mr_error *err);

#endif
