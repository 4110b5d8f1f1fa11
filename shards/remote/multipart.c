/* multipart.c - a large file, uploaded to a bucket in parts; resumed where it stopped.
 * Invariant: a part that the service lists is the file's, as the service compared its SHA-256 on arrival.
 * Source: Amazon S3 API Reference: CreateMultipartUpload, UploadPart, ListParts, CompleteMultipartUpload.
 *
 *   POST NAME?uploads= -> id, kept in $XDG_CACHE_HOME/millrace/uploads/ until the file is there
 *   PUT NAME?partNumber=1&uploadId=ID -> ETag      several at once
 *   POST NAME?uploadId=ID with the ETags -> the file */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/hash.h"
#include "base/scope.h"
#include "base/system/pool.h"
#include "shards/remote/http.h"
#include "shards/remote/parts.h"

#define MIB ((uint64_t)1 << 20)

/* Amazon's limits: 10,000 parts of at least 5 MiB. */
enum { CONNECTIONS = 8, PARTS_MAX = 10000, PART_MIB = 16, LIST_MAX = 1 << 20, ID_MAX = 4096, TRIES = 5 };

typedef struct etag {
    char text[MR_ETAG_MAX]; /* "": the part is not there */
} etag;

typedef struct upload {
    mr_http *http;
    const char *name;
    const mr_put *file;
    uint64_t part;
    size_t count;
    etag *etags;
    mr_buf id;    /* as in a query */
    mr_buf place; /* the file that keeps it */
} upload;

static void upload_free(upload *u)
{
    free(u->etags);
    mr_buf_free(&u->id);
    mr_buf_free(&u->place);
}

/* ---- answers in XML ---------------------------------------------------------------------------------------------- */

/* The text of the first element `tag` ("<ETag>") from *at, which moves past it; false: there is none. */
static bool element(const char **at, const char *tag, mr_buf *out)
{
    const char *begin = strstr(*at, tag), *end = begin ? strchr(begin + strlen(tag), '<') : NULL;
    mr_buf_clear(out);
    if (!end)
        return false;
    for (const char *p = begin + strlen(tag); p < end; p++) {
        bool quote = strncmp(p, "&quot;", 6) == 0 || strncmp(p, "&#34;", 5) == 0;
        mr_buf_add(out, quote ? "\"" : p, 1);
        if (quote)
            p = strchr(p, ';');
    }
    *at = end;
    return !out->failed;
}

static uint64_t element_number(const char **at, const char *tag)
{
    MR_AUTO(mr_buf_free) mr_buf text = {0};
    return element(at, tag, &text) ? strtoull(mr_buf_text(&text), NULL, 10) : 0;
}

/* ---- the id ------------------------------------------------------------------------------------------------------ */

/* The name of the file in the cache, made from this file and its place. */
static mr_status find_place(upload *u, mr_error *err)
{
    MR_AUTO(mr_buf_free) mr_buf what = {0};
    uint8_t digest[32];
    char hex[65];
    mr_buf_printf(&what, "%s\n%s\n%s\n%llu", mr_http_url(u->http)->base, u->name, u->file->sha256,
                  (unsigned long long)u->part);
    MR_TRY(mr_buf_status(&what, err, u->name));
    mr_sha256(what.data, what.len, digest);
    mr_hex(digest, sizeof digest, hex);
    MR_TRY(mr_remote_cache_path("uploads", &u->place, err));
    MR_TRY(mr_dir_make(mr_buf_text(&u->place), err));
    mr_buf_printf(&u->place, "/%s", hex);
    return mr_buf_status(&u->place, err, u->name);
}

static mr_status create(upload *u, mr_error *err)
{
    MR_AUTO(mr_buf_free) mr_buf answer = {0};
    MR_AUTO(mr_buf_free) mr_buf id = {0};
    const mr_put nothing = {.fd = -1, .text = "", .sha256 = u->file->sha256};
    const mr_get get = {.name = u->name, .put = &nothing, .method = "POST", .query = "uploads=", .answer = &answer};
    mr_buf_clear(&u->id);
    memset(u->etags, 0, u->count * sizeof *u->etags);
    MR_TRY(mr_http_get(u->http, &get, err));
    const char *at = mr_buf_text(&answer);
    if (!element(&at, "<UploadId>", &id) || !id.len || id.len > ID_MAX) {
        errno = EREMOTEIO;
        return mr_fail(err, MR_SYSTEM, "%s: the service does not start a multipart upload; is it S3?", u->name);
    }
    mr_url_encode(&u->id, mr_buf_text(&id), id.len, "");
    MR_TRY(mr_buf_status(&u->id, err, u->name));
    return mr_file_publish(AT_FDCWD, mr_buf_text(&u->place), u->id.data, u->id.len, err);
}

static uint64_t bytes_of(const upload *u, size_t part)
{
    uint64_t rest = u->file->bytes - part * u->part;
    return rest < u->part ? rest : u->part;
}

/* Notes the parts of a page of the list; *next: where the next page begins, 0: this was the last. */
static void note_parts(upload *u, const char *page, uint64_t *next)
{
    MR_AUTO(mr_buf_free) mr_buf text = {0};
    const char *at = page, *before = page;
    bool more = element(&at, "<IsTruncated>", &text) && strcmp(mr_buf_text(&text), "true") == 0;
    *next = more ? element_number(&before, "<NextPartNumberMarker>") : 0;
    for (at = page; (at = strstr(at, "<Part>"));) {
        const char *number_at = at, *etag_at = at, *size_at = at;
        uint64_t number = element_number(&number_at, "<PartNumber>"), size = element_number(&size_at, "<Size>");
        bool found = element(&etag_at, "<ETag>", &text);
        if (found && number >= 1 && number <= u->count && size == bytes_of(u, (size_t)number - 1) &&
            text.len < MR_ETAG_MAX)
            memcpy(u->etags[number - 1].text, mr_buf_text(&text), text.len + 1);
        at += strlen("<Part>");
    }
}

/* The upload that an earlier call began, if the service still knows it.  MR_END: there is none. */
static mr_status resume(upload *u, mr_error *err)
{
    mr_error why;
    mr_buf_clear(&u->id);
    if (mr_file_read_all(AT_FDCWD, mr_buf_text(&u->place), ID_MAX * 3, &u->id, &why) != MR_OK || !u->id.len)
        return MR_END;
    for (uint64_t next = 0, before = 0;; before = next) {
        MR_AUTO(mr_buf_free) mr_buf page = {0};
        MR_AUTO(mr_buf_free) mr_buf query = {0};
        if (next)
            mr_buf_printf(&query, "part-number-marker=%llu&", (unsigned long long)next);
        mr_buf_printf(&query, "uploadId=%s", mr_buf_text(&u->id));
        MR_TRY(mr_buf_status(&query, err, u->name));
        MR_TRY(mr_http_read(u->http, u->name, mr_buf_text(&query), LIST_MAX, &page, err)); /* MR_END: it is gone */
        note_parts(u, mr_buf_text(&page), &next);
        if (next <= before)
            return MR_OK;
    }
}

/* ---- parts ------------------------------------------------------------------------------------------------------- */

static mr_status put_part(void *ctx, size_t item, unsigned worker, mr_error *err)
{
    upload *u = ctx;
    MR_AUTO(mr_buf_free) mr_buf query = {0};
    mr_digest digest;
    char hex[65];
    mr_put part = {.fd = u->file->fd, .from = item * u->part, .bytes = bytes_of(u, item), .body = hex};
    (void)worker;
    if (*u->etags[item].text)
        return MR_OK;
    MR_TRY(mr_file_digest_part(part.fd, part.from, part.bytes, true, u->name, &digest, err));
    mr_hex(digest.sha256, sizeof digest.sha256, hex);
    mr_buf_printf(&query, "partNumber=%zu&uploadId=%s", item + 1, mr_buf_text(&u->id));
    MR_TRY(mr_buf_status(&query, err, u->name));
    const mr_get get = {.name = u->name, .put = &part, .query = mr_buf_text(&query), .etag = u->etags[item].text};
    MR_TRY(mr_http_get(u->http, &get, err));
    if (*u->etags[item].text)
        return MR_OK;
    errno = EREMOTEIO;
    return mr_fail(err, MR_SYSTEM, "%s: the service returns no ETag for a part; is it S3?", u->name);
}

/* The status of an answer that comes after a while may be 200 all the same: it is in the text. */
static mr_status complete(upload *u, mr_error *err)
{
    MR_AUTO(mr_buf_free) mr_buf text = {0};
    MR_AUTO(mr_buf_free) mr_buf query = {0};
    MR_AUTO(mr_buf_free) mr_buf answer = {0};
    MR_AUTO(mr_buf_free) mr_buf code = {0};
    mr_buf_add_text(&text, "<CompleteMultipartUpload>");
    for (size_t i = 0; i < u->count; i++)
        mr_buf_printf(&text, "<Part><PartNumber>%zu</PartNumber><ETag>%s</ETag></Part>", i + 1, u->etags[i].text);
    mr_buf_add_text(&text, "</CompleteMultipartUpload>");
    mr_buf_printf(&query, "uploadId=%s", mr_buf_text(&u->id));
    MR_TRY(mr_buf_status(&text, err, u->name));
    MR_TRY(mr_buf_status(&query, err, u->name));
    const mr_put put = {.fd = -1, .text = mr_buf_text(&text), .bytes = text.len};
    const mr_get get = {
        .name = u->name, .put = &put, .method = "POST", .query = mr_buf_text(&query), .answer = &answer};
    for (unsigned i = 0; i < TRIES; i++) {
        MR_TRY(mr_http_get(u->http, &get, err));
        const char *at = mr_buf_text(&answer);
        if (strstr(at, "<CompleteMultipartUploadResult"))
            return MR_OK;
        element(&at, "<Code>", &code);
        if (strcmp(mr_buf_text(&code), "InternalError") != 0)
            break;
    }
    errno = EREMOTEIO;
    return mr_fail(err, MR_SYSTEM,
                   "%s: all parts are uploaded, but the service does not combine them (%s); run the command again",
                   u->name, code.len ? mr_buf_text(&code) : "it does not say why");
}

mr_status mr_http_put_parts(mr_http *h, const char *name, const mr_put *put, mr_error *err)
{
    MR_AUTO(upload_free) upload u = {.http = h, .name = name, .file = put, .part = PART_MIB * MIB};
    while (put->bytes / u.part >= PARTS_MAX)
        u.part += MIB;
    u.count = (size_t)((put->bytes + u.part - 1) / u.part);
    u.etags = mr_alloc(u.count, sizeof *u.etags);
    if (!u.etags)
        return mr_fail_memory(err, name);
    MR_TRY(find_place(&u, err));
    mr_status status = resume(&u, err);
    if (status == MR_END)
        status = create(&u, err);
    MR_TRY(status);
    MR_TRY(mr_pool_run(u.count, u.count < CONNECTIONS ? (unsigned)u.count : CONNECTIONS, put_part, &u, err));
    MR_TRY(complete(&u, err));
    unlink(mr_buf_text(&u.place));
    return MR_OK;
}
