/* curl.c - loading libcurl.
 * Invariant: it is loaded and initialized once, under a lock. */
#include "shards/remote/curl.h"

#include <pthread.h>

#include "base/system/library.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static mr_curl loaded;
static bool is_loaded;

static mr_status load(mr_curl *curl, mr_error *err)
{
    const char *why, *missing = NULL;
    void *library = mr_library_load("libcurl.so.4", &why);
    if (!library)
        return mr_fail(err, MR_SYSTEM, "libcurl cannot be loaded (%s); URLs need it: apt-get install libcurl4", why);
#define X(returns, name, arguments)                                                                                    \
    if (!mr_library_find(library, "curl_" #name, &curl->name))                                                         \
        missing = "curl_" #name;
    MR_CURL_FUNCTIONS(X)
#undef X
    if (missing)
        return mr_fail(err, MR_SYSTEM, "libcurl.so.4 lacks %s; version 7.85 or later is needed", missing);
    if (curl->global_init(MR_CURL_GLOBAL_DEFAULT) != 0)
        return mr_fail(err, MR_SYSTEM, "libcurl cannot be initialized");
    return MR_OK;
}

mr_status mr_curl_open(const mr_curl **out, mr_error *err)
{
    pthread_mutex_lock(&lock);
    mr_status status = is_loaded ? MR_OK : load(&loaded, err);
    is_loaded = status == MR_OK;
    pthread_mutex_unlock(&lock);
    *out = &loaded;
    return status;
}
