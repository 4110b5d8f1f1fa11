/* cmd_decoding.c - the options --device and --decode-on; see cmd_decoding.h. */
#include "loader/cmd_decoding.h"

#include <string.h>

#include "base/scope.h"

const mr_option mr_cmd_decoding_options[] = {
    {"device", 0, MR_ARG_TEXT, MR_FIELD(mr_decoding, device), .value = "NAME", .standard = "cpu", .own = true,
     .help = "device to decode on; 'millrace devices' lists them"},
    {"decode-on", 0, MR_ARG_WORD, MR_FIELD(mr_decoding, on),
     .words =
         (const char *const[]){
             [MR_DECODE_ON_AUTO] = "auto", [MR_DECODE_ON_HOST] = "host", [MR_DECODE_ON_DEVICE] = "device", NULL},
     .standard = "auto", .own = true,
     .help = "where JPEGs with a seek index are decoded; auto: on the device, unless it is the CPU; the pixels are "
             "identical",
     .rare = true},
    {0},
};

/* Without opening it. */
static bool is_host(const char *word)
{
    size_t len = strcspn(word, ":");
    const mr_device_iface *iface;
    for (size_t i = 0; (iface = mr_device_iface_at(i)); i++)
        if (strlen(iface->name) == len && strncmp(iface->name, word, len) == 0)
            return iface->host_memory;
    return false;
}

mr_status mr_cmd_decoding_check(const mr_decoding *d, mr_delivery deliver, const char *advice, mr_error *err)
{
    bool wanted = d->on == MR_DECODE_ON_DEVICE || (d->on == MR_DECODE_ON_AUTO && !is_host(d->device));
    if (!wanted || deliver == MR_DELIVER_F32_NCHW)
        return MR_OK;
    return mr_fail(err, MR_MISUSE, "%s: devices decode to float32 only; %s",
                   d->on == MR_DECODE_ON_DEVICE ? "--decode-on device" : "--device", advice);
}

mr_status mr_cmd_decoding_open(const mr_decoding *d, mr_delivery deliver, const mr_device_options *options,
                               mr_device **out, mr_error *err)
{
    bool host = d->on == MR_DECODE_ON_HOST || (d->on == MR_DECODE_ON_AUTO && is_host(d->device));
    return host || deliver != MR_DELIVER_F32_NCHW ? MR_OK : mr_device_open(d->device, options, out, err);
}
