/* device.c - the table of devices.
 * Invariant: a new device is one file and one word in MR_DEVICES. */
#include "device/device.h"

#include <stdlib.h>
#include <string.h>

#include "base/scope.h"
#include "base/text.h"

typedef struct entry {
    const char *word;
    const mr_device_iface *iface;
} entry;

static const entry devices[] = {
#define X(word) {#word, &mr_device_##word},
    MR_DEVICES(X)
#undef X
};

const mr_device_iface *mr_device_iface_at(size_t i)
{
    return i < MR_COUNT(devices) ? devices[i].iface : NULL;
}

/* Reads N of "word:N"; the options stay as they are without it. */
static mr_status parse_index(const char *word, size_t len, mr_device_options *options, mr_error *err)
{
    const char *digits = word + len + 1;
    size_t count = word[len] ? strspn(digits, "0123456789") : 0;
    if (!word[len])
        return MR_OK;
    if (count == 0 || count > 4 || digits[count])
        return mr_fail(err, MR_MISUSE, "--device: '%s' is not a number from 0 to 9999 in '%s'", digits, word);
    options->index = (unsigned)strtoul(digits, NULL, 10);
    options->local_rank = 0;
    return MR_OK;
}

/* The device of "word" or "word:N". */
static mr_status find(const char *word, const mr_device_iface **out, mr_error *err)
{
    const char *words[MR_COUNT(devices) + 1] = {0};
    size_t len = strcspn(word, ":");
    for (size_t i = 0; i < MR_COUNT(devices); i++) {
        words[i] = devices[i].word;
        if (strlen(words[i]) == len && strncmp(words[i], word, len) == 0) {
            *out = devices[i].iface;
            return MR_OK;
        }
    }
    if (strncmp(word, "gpu", len) == 0 || strncmp(word, "nvidia", len) == 0)
        return mr_fail(err, MR_MISUSE, "--device: unknown device '%s'; an NVIDIA GPU is cuda, any other is opencl",
                       word);
    const char *near = mr_text_nearest(word, words);
    return mr_fail(err, MR_MISUSE, "--device: unknown device '%s'; try '%s'", word, near ? near : words[0]);
}

mr_type mr_type_of(const char *word)
{
    return strcmp(word, mr_type_word(MR_BF16)) == 0 ? MR_BF16 : MR_F32;
}

mr_status mr_device_computes(const char *word, mr_type type, mr_error *err)
{
    const mr_device_iface *iface = NULL;
    MR_TRY(find(word, &iface, err));
    if (iface->types & 1U << type)
        return MR_OK;
    return mr_fail(err, MR_MISUSE, "--precision %s: --device %s does not support it; use --precision %s",
                   mr_type_word(type), word, mr_type_word(type == MR_BF16 ? MR_F32 : MR_BF16));
}

mr_status mr_device_open(const char *word, const mr_device_options *options, mr_device **out, mr_error *err)
{
    const mr_device_iface *iface = NULL;
    mr_device_options chosen = *options;
    MR_TRY(find(word, &iface, err));
    MR_TRY(parse_index(word, strcspn(word, ":"), &chosen, err));
    return iface->open(&chosen, out, err);
}

void mr_device_close(mr_device *d)
{
    if (d)
        d->iface->close(d);
}
