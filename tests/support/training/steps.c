/* steps.c - the checkpoints of a run that was interrupted, against those of one that was not. */
#include "tests/support/training/steps.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "train/checkpoint/checkpoint.h"

/* What a checkpoint says about its run, but for the options that only this process had; one whose evaluation is due
 * says nothing of its verdict. */
static json_t *state_of(const char *dir, bool *due)
{
    static const char *const own[] = {"keep"}, *const verdict[] = {"accuracy", "best_accuracy", "best_update"};
    char *path = support_path("%s/state.json", dir);
    json_t *doc = json_load_file(path, 0, NULL), *options = json_object_get(json_object_get(doc, "facts"), "options");
    free(path);
    json_object_del(doc, "seal");
    *due |= json_is_true(json_object_get(doc, "evaluation_due"));
    json_object_del(doc, "evaluation_due");
    for (size_t i = 0; i < MR_COUNT(own); i++)
        json_object_del(options, own[i]);
    for (size_t i = 0; *due && i < MR_COUNT(verdict); i++)
        json_object_del(doc, verdict[i]);
    return doc;
}

static bool same_bytes(const char *a, const char *b)
{
    size_t a_len, b_len;
    if (!support_exists(a) || !support_exists(b))
        return false;
    uint8_t *x = support_read(a, &a_len), *y = support_read(b, &b_len);
    bool same = a_len == b_len && memcmp(x, y, a_len) == 0;
    free(x);
    free(y);
    return same;
}

/* All but state.json; beside a verdict that is still due, one on its way may lie. */
static bool same_files(const char *dir, const char *theirs, bool due)
{
    char *names = support_list(dir), *rest, *other = support_list(theirs);
    size_t count = 0, wanted = 0;
    bool same = true;
    for (const char *at = other; (at = strchr(at, '\n')); at++)
        wanted++;
    for (char *name = strtok_r(names, "\n", &rest); name && same; name = strtok_r(NULL, "\n", &rest)) {
        char *a = support_path("%s/%s", dir, name), *b = support_path("%s/%s", theirs, name);
        bool on_its_way = due && strcmp(name, "state.json.tmp") == 0;
        same = on_its_way || strcmp(name, "state.json") == 0 || same_bytes(a, b);
        count += !on_its_way;
        free(a);
        free(b);
    }
    free(names);
    free(other);
    return same && count == wanted;
}

/* `dir` is a checkpoint's folder, perhaps under the name that it has while it is replaced. */
static bool same_step(const char *dir, const char *whole, uint64_t update, char why[STEPS_WHY])
{
    char *theirs = support_path("%s/step-%08llu", whole, (unsigned long long)update);
    bool due = false, same = false;
    if (support_exists(theirs)) {
        json_t *mine = state_of(dir, &due), *other = state_of(theirs, &due);
        same = json_equal(mine, other) && same_files(dir, theirs, due);
        json_decref(mine);
        json_decref(other);
    }
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
