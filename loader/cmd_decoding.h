/* cmd_decoding.h - the options that choose where JPEGs are decoded, for commands that compare devices with the host.
 * Invariant: what is computed does not depend on them. */
#ifndef MR_LOADER_CMD_DECODING_H
#define MR_LOADER_CMD_DECODING_H

#include "base/cli/cli.h"
#include "device/device.h"

typedef enum mr_decode_on { MR_DECODE_ON_AUTO, MR_DECODE_ON_HOST, MR_DECODE_ON_DEVICE } mr_decode_on;

typedef struct mr_decoding {
    const char *device;
    mr_decode_on on;
} mr_decoding;

extern const mr_option mr_cmd_decoding_options[]; /* of mr_decoding */
/* MR_MISUSE: a device cannot decode what is delivered; `advice` ends the message. */
mr_status mr_cmd_decoding_check(const mr_decoding *d, mr_delivery deliver, const char *advice, mr_error *err);
/* *out: the device that decodes; NULL: the host does. */
mr_status mr_cmd_decoding_open(const mr_decoding *d, mr_delivery deliver, const mr_device_options *options,
                               mr_device **out, mr_error *err);

#endif
