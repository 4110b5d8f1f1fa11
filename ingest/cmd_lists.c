/* cmd_lists.c - structured option values of ingest and sample; see cmd_lists.h. */
#include "ingest/cmd_lists.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cli/cli.h"
#include "base/scope.h"
#include "base/text.h"
#include "shards/manifest/manifest.h"
#include "ingest/sample/sample.h"

mr_status mr_split_map_take(const char *option, char *text, mr_split_map *maps, size_t capacity, size_t *count,
                            mr_error *err)
{
    char *rest;
    for (char *pair = strtok_r(text, ",", &rest); pair; pair = strtok_r(NULL, ",", &rest)) {
        char *equal = strchr(pair, '=');
        if (!equal || equal == pair)
            return mr_fail(err, MR_MISUSE, "--%s %s: use FROM=TO, for example --%s %s", option, pair, option,
                           strcmp(option, "split-list") != 0 ? "test=val" : "lists/test.txt=test");
        if (*count == capacity)
            return mr_fail(err, MR_MISUSE, "--%s %s: more than %zu splits", option, pair, capacity);
        *equal = '\0';
        for (size_t i = 0; i < *count; i++)
            if (strcmp(maps[i].from, pair) == 0)
                return mr_fail(err, MR_MISUSE, "--%s: '%s' is given twice, to become '%s' and '%s'", option, pair,
                               maps[i].to, equal + 1);
        if (equal[1] && !mr_split_name_ok(equal + 1))
            return mr_fail(err, MR_MISUSE, "--%s: '%s' is not a valid split name; use letters, digits, - and _", option,
                           equal + 1);
        maps[(*count)++] = (mr_split_map){pair, equal + 1};
    }
    return MR_OK;
}

static mr_status take_share(const char *pair, mr_ingest_options *o, mr_error *err)
{
    const char *equal = strchr(pair, '=');
    char *end = NULL;
    double share = equal ? strtod(equal + 1, &end) : 0;
    mr_split_share *s = &o->shares[o->share_count];
    if (!equal || end == equal + 1 || *end || !(share > 0 && share <= 1))
        return mr_fail(err, MR_MISUSE, "--split %s: use NAME=SHARE, for example --split train=0.8,val=0.1,test=0.1",
                       pair);
    if (o->share_count == MR_SHARES_MAX)
        return mr_fail(err, MR_MISUSE, "--split %s: more than %d splits", pair, MR_SHARES_MAX);
    if ((size_t)(equal - pair) >= sizeof s->name)
        return mr_fail(err, MR_MISUSE, "--split %s: the name is longer than %zu bytes", pair, sizeof s->name - 1);
    memcpy(s->name, pair, (size_t)(equal - pair));
    s->name[equal - pair] = '\0';
    s->share = share;
    if (!mr_split_name_ok(s->name))
        return mr_fail(err, MR_MISUSE, "--split: '%s' is not a valid split name; use letters, digits, - and _",
                       s->name);
    for (size_t i = 0; i < o->share_count; i++)
        if (strcmp(o->shares[i].name, s->name) == 0)
            return mr_fail(err, MR_MISUSE, "--split: '%s' is given twice", s->name);
    o->share_count++;
    return MR_OK;
}

mr_status mr_split_shares_take(const char *text, mr_ingest_options *o, mr_error *err)
{
    MR_AUTO(mr_scope_free) char *copy = strdup(text);
    char *rest;
    double sum = 0;
    if (!copy)
        return mr_fail_memory(err, "reading the command line");
    for (char *pair = strtok_r(copy, ",", &rest); pair; pair = strtok_r(NULL, ",", &rest))
        MR_TRY(take_share(pair, o, err));
    for (size_t i = 0; i < o->share_count; i++)
        sum += o->shares[i].share;
    if (sum < 1 - 1e-6 || sum > 1 + 1e-6)
        return mr_fail(err, MR_MISUSE, "--split %s: the shares add up to %g, not to 1", text, sum);
    return MR_OK;
}

mr_status mr_max_rejects_take(const char *text, uint64_t *count, double *percent, mr_error *err)
{
    char *end;
    size_t len = strlen(text);
    if (len > 1 && text[len - 1] == '%') {
        *percent = strtod(text, &end);
        if (end == text + len - 1 && *percent >= 0 && *percent <= 100)
            return MR_OK;
    } else if (mr_text_parse_u64(text, count)) {
        *percent = -1;
        return MR_OK;
    }
    return mr_fail(err, MR_MISUSE, "--max-rejects %s: use a number of images or a percentage, for example 10 or 0.5%%",
                   text);
}

mr_status mr_sides_take(const char *text, uint32_t *min, uint32_t *max, mr_error *err)
{
    static const mr_option side = {
        "size", 0, MR_ARG_COUNT, .size = sizeof(uint32_t), .low = MR_SKETCH_MIN_SIDE, .high = MR_SKETCH_MAX_SIDE};
    const char *colon = strchr(text, ':');
    char first[16];
    uint32_t low, high;
    snprintf(first, sizeof first, "%.*s", colon ? (int)(colon - text) : -1, text);
    MR_TRY(mr_option_take(&side, &low, first, err));
    MR_TRY(mr_option_take(&side, &high, colon ? colon + 1 : first, err));
    if (high < low)
        return mr_fail(err, MR_MISUSE, "--size %s: the smaller side comes first", text);
    *min = low;
    *max = high;
    return MR_OK;
}
