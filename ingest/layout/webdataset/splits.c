/* splits.c - which split the folder of a shard's samples is in, by its name.
 * Invariant: a name that --split-map or the dataset.json of an export knows counts as it is, before any word in it. */
#include <string.h>

#include "ingest/layout/folder_names.h"
#include "ingest/layout/webdataset/webdataset.h"

/* The part of one folder's name that names a split: in "train-000012.tar" and "imagenet-train-000012.tar" it is
 * "train".  `several`: it names more than one. */
static bool split_part(const mr_webdataset_facts *facts, const mr_layout_options *o, const char **name, size_t *len,
                       bool *several)
{
    if (mr_webdataset_facts_split(facts, *name, *len))
        return true;
    size_t shard = mr_webdataset_shard(*name, *len);
    size_t whole = shard ? shard : *len;
    if (shard && mr_webdataset_facts_split(facts, *name, shard)) {
        *len = shard;
        return true;
    }
    if (mr_split_map_find(o, *name, whole) || mr_split_word(*name, whole)) {
        *len = whole;
        return true;
    }
    mr_split_token token = mr_split_token_of(*name, shard);
    if (token.several) {
        *several = true;
        return false;
    }
    if (token.split) {
        *name += token.at;
        *len = token.len;
    }
    return token.split != NULL;
}

bool mr_webdataset_split(const mr_webdataset_facts *facts, const mr_layout_options *o, const char *dir, size_t dir_len,
                         const char **name, size_t *len, bool *several)
{
    *several = false;
    for (size_t at = 0, end; at < dir_len; at = end + 1) {
        const char *slash = memchr(dir + at, '/', dir_len - at);
        end = slash ? (size_t)(slash - dir) : dir_len;
        *name = dir;
        *len = end; /* a path that --split-map names */
        if (mr_split_map_find(o, *name, *len))
            return true;
        *name = dir + at;
        *len = end - at;
        if (split_part(facts, o, name, len, several))
            return true;
    }
    *name = "train";
    *len = 5;
    return false;
}
