/* fuzz_view.c - a stranger's view, with the digest that fits it.
 * Promises: indexes of datasets are in range, no split is named twice, and what is read is written again with the same
 * digest. */
#include <stdlib.h>

#include "shards/view/view.h"
#include "tests/fuzz/fuzz.h"

/* The digest is made to fit, as a stranger could. */
static char *fit(const uint8_t *data, size_t len)
{
    json_t *doc = NULL;
    uint8_t digest[32];
    char hex[65];
    if (mr_json_parse(data, len, "view", &doc, NULL) != MR_OK)
        return NULL;
    char *view = json_dumps(json_object_get(doc, "view"), JSON_COMPACT);
    if (view) {
        mr_sha256(view, strlen(view), digest);
        mr_hex(digest, sizeof digest, hex);
        json_object_set_new(doc, "sha256", json_string(hex));
    }
    char *text = json_dumps(doc, JSON_COMPACT | JSON_ENCODE_ANY);
    free(view);
    json_decref(doc);
    return text;
}

static void check_round_trip(mr_view_file *v)
{
    mr_buf text = {0};
    mr_view_file *again = NULL;
    mr_error err;
    for (size_t i = 0; i < v->split_count; i++) {
        FUZZ_MUST(mr_split_name_ok(v->splits[i].name));
        for (size_t k = 0; k < i; k++)
            FUZZ_MUST(strcmp(v->splits[i].name, v->splits[k].name) != 0);
        for (size_t k = 0; k < v->splits[i].part_count; k++)
            FUZZ_MUST(v->splits[i].parts[k].dataset < v->source_count);
    }
    FUZZ_MUST(mr_view_write(v, &text, &err) == MR_OK);
    FUZZ_MUST(mr_view_parse(text.data, text.len, "again", &again, &err) == MR_OK);
    FUZZ_MUST(memcmp(again->digest, v->digest, sizeof v->digest) == 0);
    mr_view_file_free(again);
    mr_buf_free(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    mr_view_file *v = NULL;
    mr_error err;
    char *fitted = fit(data, len);
    mr_status status =
        fitted ? mr_view_parse(fitted, strlen(fitted), "view", &v, &err) : mr_view_parse(data, len, "view", &v, &err);
    if (status == MR_OK)
        check_round_trip(v);
    else
        fuzz_refused(status, &err);
    FUZZ_MUST((status == MR_OK) == (v != NULL));
    mr_view_file_free(v);
    free(fitted);
    return 0;
}
