/* record.c - the record of a finished shard, written and read; see record.h. */
#include "record.h"

#include "file.h"
#include "hash.h"
#include "json.h"
#include "text.h"

static json_t *digest_json(const mr_digest *d)
{
    char xxh[33], sha[65];
    mr_hex(d->xxh3_128, 16, xxh);
    mr_hex(d->sha256, 32, sha);
    return json_pack("{sIssss}", "bytes", (json_int_t)d->bytes, "xxh3_128", xxh, "sha256", sha);
}

static bool digest_from(const json_t *doc, const char *key, mr_digest *d)
{
    json_int_t bytes;
    const char *xxh, *sha;
    if (json_unpack(json_object_get(doc, key), "{sIssss}", "bytes", &bytes, "xxh3_128", &xxh, "sha256", &sha) != 0)
        return false;
    d->bytes = (uint64_t)bytes;
    return bytes >= 0 && mr_unhex(xxh, d->xxh3_128, 16) && mr_unhex(sha, d->sha256, 32);
}

mr_status mr_record_write(int dir, const char *name, const mr_digest *recipe, const mr_shard *shard, mr_error *err)
{
    mr_buf text = {0};
    json_t *doc = json_pack("{sosIsIsoso}", "recipe", digest_json(recipe), "images", (json_int_t)shard->images,
                            "image_bytes", (json_int_t)shard->image_bytes, "mdb", digest_json(&shard->mdb), "idx",
                            digest_json(&shard->idx));
    mr_status status = mr_json_dump(doc, &text, err);
    if (status == MR_OK)
        status = mr_manifest_seal(&text, 0, err);
    if (status == MR_OK)
        status = mr_file_publish(dir, name, text.data, text.len, err);
    json_decref(doc);
    mr_buf_free(&text);
    return status;
}

bool mr_record_read(int dir, const char *name, mr_digest *recipe, mr_shard *shard)
{
    mr_buf text = {0};
    json_t *doc = NULL;
    json_int_t images, image_bytes;
    bool good = mr_file_read_all(dir, name, 1 << 16, &text, NULL) == MR_OK &&
                mr_manifest_check_seal(text.data, text.len, name, NULL) == MR_OK &&
                mr_json_parse(text.data, text.len, name, &doc, NULL) == MR_OK &&
                json_unpack(doc, "{sIsI}", "images", &images, "image_bytes", &image_bytes) == 0 &&
                digest_from(doc, "recipe", recipe) && digest_from(doc, "mdb", &shard->mdb) &&
                digest_from(doc, "idx", &shard->idx);
    if (good) {
        shard->images = (uint64_t)images;
        shard->image_bytes = (uint64_t)image_bytes;
    }
    json_decref(doc);
    mr_buf_free(&text);
    return good;
}
