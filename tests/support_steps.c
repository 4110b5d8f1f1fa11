/* support_steps.c - the checkpoints of a run that was interrupted, against those of one that was not. */
#include "support_steps.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "checkpoint.h"

/* `dir` is a checkpoint's folder, perhaps under the name that it has while it is replaced. */
static bool same_step(const char *dir, const char *whole, uint64_t update, char why[STEPS_WHY])
{
    char *theirs = support_path("%s/step-%08llu", whole, (unsigned long long)update);
    bool same = support_exists(theirs) && support_tree_hash(dir) == support_tree_hash(theirs);
    if (!same)
        snprintf(why, STEPS_WHY, "%s is not what a run without interruption writes", dir);
    free(theirs);
    return same;
}

static bool all_same(const char *output, const char *whole, char why[STEPS_WHY])
{
    DIR *dir = opendir(output);
    bool same = true;
    for (struct dirent *e; dir && same && (e = readdir(dir));) {
        if (strncmp(e->d_name, "step-", 5) != 0)
            continue;
        char *step = support_path("%s/%s", output, e->d_name);
        same = same_step(step, whole, strtoull(e->d_name + 5, NULL, 10), why);
        free(step);
    }
    if (dir)
        closedir(dir);
    return same;
}

bool steps_good(const char *output, const char *whole, uint64_t *newest, char why[STEPS_WHY])
{
    mr_checkpoint c = {0};
    mr_error err = {0};
    char *found = NULL;
    mr_status status = support_exists(output) ? mr_checkpoint_read(output, false, true, &c, &found, &err) : MR_MISUSE;
    bool good = status == MR_OK || status == MR_MISUSE;
    snprintf(why, STEPS_WHY, "%s", good ? "" : err.text);
    *newest = status == MR_OK ? c.update : 0;
    if (status == MR_OK)
        good = same_step(found, whole, c.update, why);
    good = good && all_same(output, whole, why);
    mr_checkpoint_release(&c);
    free(found);
    return good;
}

uint64_t steps_promised(const char *log)
{
    static const char mark[] = "{\"step\": ";
    size_t len = 0;
    uint64_t last = 0;
    char *text = support_exists(log) ? (char *)support_read(log, &len) : NULL;
    for (char *at = text; at && (at = memmem(at, len - (size_t)(at - text), mark, sizeof mark - 1));) {
        at += sizeof mark - 1;
        uint64_t update = strtoull(at, NULL, 10);
        last = update > last ? update : last;
    }
    free(text);
    return last ? last - 1 : 0;
}
