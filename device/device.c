/* device.c - the table of devices.
 * Invariant: a new device is one file and one word in MR_DEVICES. */
#include "device/device.h"

#include <string.h>

#include "base/text.h"

typedef struct entry {
    const char *word;
    const mr_device_card *card;
} entry;

static const entry devices[] = {
#define X(word) {#word, &mr_device_##word},
    MR_DEVICES(X)
#undef X
};

const mr_device_card *mr_device_card_at(size_t i)
{
    return i < MR_COUNT(devices) ? devices[i].card : NULL;
}

mr_status mr_device_open(const char *word, const mr_device_options *options, mr_device **out, mr_error *err)
{
    const char *words[MR_COUNT(devices) + 1] = {0};
    for (size_t i = 0; i < MR_COUNT(devices); i++) {
        if (strcmp(devices[i].word, word) == 0)
            return devices[i].card->open(options, out, err);
        words[i] = devices[i].word;
    }
    const char *near = mr_text_nearest(word, words);
    return mr_fail(err, MR_MISUSE, "--device: unknown device '%s'; try '%s'", word, near ? near : words[0]);
}

void mr_device_close(mr_device *d)
{
    if (d)
        d->card->close(d);
}
