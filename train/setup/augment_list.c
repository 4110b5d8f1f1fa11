/* augment_list.c - words and numbers of --augment.
 * Invariant: a word is given once, and a number is within its range. */
#include "train/setup/augment_list.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/scope.h"

static const struct word {
    const char *name;
    size_t offset;
    bool range; /* from and to, otherwise a probability */
    float middle, most;
} words[] = {
    {"brightness", offsetof(mr_augment, brightness), true, 1, 100},
    {"contrast", offsetof(mr_augment, contrast), true, 1, 100},
    {"saturation", offsetof(mr_augment, saturation), true, 1, 100},
    {"hue", offsetof(mr_augment, hue), true, 0, 0.5f},
    {"grey", offsetof(mr_augment, grey), false, 0, 1},
    {"erase", offsetof(mr_augment, erase), false, 0, 1},
};

static const struct word *find(const char *name, size_t len)
{
    for (size_t i = 0; i < MR_COUNT(words); i++)
        if (strlen(words[i].name) == len && strncmp(words[i].name, name, len) == 0)
            return &words[i];
    return NULL;
}

static void set(const struct word *w, float x, mr_augment *out)
{
    const float range[] = {w->middle > 0 ? fmaxf(w->middle - x, 0) : -x, w->middle + x};
    memcpy((char *)out + w->offset, w->range ? range : &x, w->range ? sizeof range : sizeof x);
}

/* One item, from `at` to `end`. */
static mr_status take(const char *at, const char *end, unsigned *seen, mr_augment *out, mr_error *err)
{
    const char *sign = memchr(at, '=', (size_t)(end - at));
    char *rest;
    const struct word *w = sign ? find(at, (size_t)(sign - at)) : NULL;
    if (!w)
        return mr_fail(err, MR_MISUSE,
                       "--augment %.*s: expected brightness=X, contrast=X, saturation=X, hue=X, grey=P or erase=P",
                       (int)(end - at), at);
    if (*seen & 1U << (w - words))
        return mr_fail(err, MR_MISUSE, "--augment: %s is given twice", w->name);
    *seen |= 1U << (w - words);
    float x = strtof(sign + 1, &rest);
    if (rest != end || rest == sign + 1 || !(x >= 0 && x <= w->most))
        return mr_fail(err, MR_MISUSE, "--augment %.*s: expected a number from 0 to %g", (int)(end - at), at,
                       (double)w->most);
    if (x > 0)
        set(w, x, out);
    return MR_OK;
}

mr_status mr_augment_list(const char *list, mr_augment *out, mr_error *err)
{
    unsigned seen = 0;
    *out = (mr_augment){.grey = 0};
    for (const char *at = list; *at;) {
        const char *end = at + strcspn(at, ",");
        MR_TRY(take(at, end, &seen, out, err));
        at = *end ? end + 1 : end;
    }
    return MR_OK;
}
