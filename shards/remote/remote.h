/* remote.h - remote datasets: http(s)://, s3://, gs:// and hf://.
 * Invariant: no byte is handed out that was not compared with the manifest, and the manifest with its own hash (or with
 * the digest in the URL); a shard that is whole on this host is never fetched again.
 *
 *      $XDG_CACHE_HOME/millrace/datasets/SHA256/     manifest.json, and each NAME.idx and NAME.seek once it was needed
 *      $XDG_CACHE_HOME/millrace/shards/SHA256.mdb    shards (shards/local/local.h), or in the folder of --local
 *
 * The first of these folders stands for the dataset (base/files/supply.h): a file in it that is missing is fetched when
 * it is opened.
 *
 * This module, on top of local and seek; its files use those above them:
 *
 *      curl                libcurl, loaded
 *      credentials, url    credentials; a URL taken apart
 *      lane, http          one attempt at a request; a request
 *      fetch               a shard in parts
 *      ahead               records, before they are read
 *      indexes             the small files of many shards
 *      push, multipart     uploads
 *      download            a file that is not of a dataset
 *      remote              the folder that stands for a dataset */
#ifndef MR_REMOTE_H
#define MR_REMOTE_H

#include <stdatomic.h>

#include "shards/manifest/manifest.h"

typedef struct mr_remote mr_remote; /* lives as long as the process */

bool mr_remote_is_url(const char *text);

/* For programs: once credentials are found, no core dump is made of this process, as they would be in it.  A library
 * does not decide that for its caller. */
void mr_remote_leave_no_dump(void);

/* For commands that write to a dataset.  MR_MISUSE: it is a URL. */
mr_status mr_remote_keep_out(const char *path, mr_error *err);

/* Fetches the manifest, and makes the URL a place.  Other paths are left alone.  MR_MISUSE: no dataset there;
 * MR_BAD_DATA: damaged, or not the one that #sha256= names; MR_SYSTEM: errno is set. */
mr_status mr_remote_open(const char *url, mr_error *err);

/* The remote dataset of an open folder; NULL: it is a folder like any other. */
mr_remote *mr_remote_of(int dirfd);

/* Shards are kept in this folder from now on; before the first of them is read.  `dir` NULL: the default. */
mr_status mr_remote_keep(mr_remote *r, const char *dir, uint64_t most_bytes, mr_error *err);

/* That folder, and its limit. */
const char *mr_remote_kept(mr_remote *r, uint64_t *most_bytes);

/* Fetches the shard's .mdb to the start of an open file, and compares its SHA-256.  MR_BAD_DATA: it is another. */
mr_status mr_remote_fetch(mr_remote *r, const mr_shard *shard, int to, const atomic_bool *stop, mr_error *err);

/* The shard's .mdb as it is kept, without fetching anything; false: it is not. */
bool mr_remote_find(mr_remote *r, const mr_shard *shard, int *fd);
/* Whether one more record of the shard is better read by mr_remote_read(), as only few of them have been. */
bool mr_remote_reads_few(mr_remote *r, const mr_shard *shard);

/* Fetches the indexes of these shards that are not there, and with `seeks` their seek indexes, several at once.  What
 * fails is reported when it is opened. */
void mr_remote_fetch_indexes(mr_remote *r, const mr_shard *const *shards, size_t count, bool seeks,
                             const atomic_bool *stop);

typedef struct mr_remote_seek {
    uint64_t bytes; /* bytes of the file; 0: none belongs to the shard */
    unsigned every;
} mr_remote_seek;
/* What the headers of the shards' seek indexes say, by ranges: found[count]. */
mr_status mr_remote_look_seeks(mr_remote *r, const mr_shard *const *shards, size_t count, mr_remote_seek *found,
                               mr_error *err);

/* `len` bytes of the shard's .mdb.  Nothing is compared here: a record has its own hash. */
mr_status mr_remote_read(mr_remote *r, const mr_shard *shard, uint64_t from, void *out, size_t len,
                         const atomic_bool *stop, mr_error *err);

#endif
