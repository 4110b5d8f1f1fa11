/* augment_list.c - words and numbers of --augment.
 * Invariant: a word is given once, and a number is within its range. */
#include "train/setup/augment_list.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/scope.h"

enum { MAGNITUDE = 9 }; /* RandAugment's if none is given, as in torchvision */

typedef enum kind { RANGE, CHANCE, COUNT } kind; /* from and to; a probability; a whole number */

static const struct word {
    const char *name;
    size_t offset;
    kind kind;
    float middle, most;
} words[] = {
    {"brightness", offsetof(mr_augment, brightness), RANGE, 1, 100},
    {"contrast", offsetof(mr_augment, contrast), RANGE, 1, 100},
    {"saturation", offsetof(mr_augment, saturation), RANGE, 1, 100},
    {"hue", offsetof(mr_augment, hue), RANGE, 0, 0.5f},
    {"grey", offsetof(mr_augment, grey), CHANCE, 0, 1},
    {"erase", offsetof(mr_augment, erase), CHANCE, 0, 1},
    {"blur", offsetof(mr_augment, blur), CHANCE, 0, 1},
    {"randaugment", offsetof(mr_augment, randaugment), COUNT, 0, 16},
    {"magnitude", offsetof(mr_augment, magnitude), COUNT, 0, 30},
    {"trivial", offsetof(mr_augment, trivial), COUNT, 0, 1},
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
    const uint32_t count = (uint32_t)x;
    char *to = (char *)out + w->offset;
    if (w->kind == RANGE)
        memcpy(to, range, sizeof range);
    else if (w->kind == CHANCE)
        memcpy(to, &x, sizeof x);
    else
        memcpy(to, &count, sizeof count);
}

/* One item, from `at` to `end`. */
static mr_status take(const char *at, const char *end, unsigned *seen, mr_augment *out, mr_error *err)
{
    const char *sign = memchr(at, '=', (size_t)(end - at));
    char *rest;
    const struct word *w = sign ? find(at, (size_t)(sign - at)) : NULL;
    if (!w)
        return mr_fail(err, MR_MISUSE,
                       "--augment %.*s: expected brightness=X, contrast=X, saturation=X, hue=X, grey=P, erase=P, "
                       "blur=P, randaugment=N, magnitude=N or trivial=1",
                       (int)(end - at), at);
    if (*seen & 1U << (w - words))
        return mr_fail(err, MR_MISUSE, "--augment: %s is given twice", w->name);
    *seen |= 1U << (w - words);
    float x = strtof(sign + 1, &rest);
    bool whole = w->kind != COUNT || x == floorf(x);
    if (rest != end || rest == sign + 1 || !(x >= 0 && x <= w->most) || !whole)
        return mr_fail(err, MR_MISUSE, "--augment %.*s: expected a%s number from 0 to %g", (int)(end - at), at,
                       w->kind == COUNT ? " whole" : "", (double)w->most);
    if (x > 0 || w->kind == COUNT)
        set(w, x, out);
    return MR_OK;
}

mr_status mr_augment_list(const char *list, mr_augment *out, mr_error *err)
{
    unsigned seen = 0;
    *out = (mr_augment){.magnitude = MAGNITUDE};
    for (const char *at = list; *at;) {
        const char *end = at + strcspn(at, ",");
        MR_TRY(take(at, end, &seen, out, err));
        at = *end ? end + 1 : end;
    }
    return MR_OK;
}
