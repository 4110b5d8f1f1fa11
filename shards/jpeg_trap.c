/* jpeg_trap.c - libjpeg's failures as a status; see jpeg_trap.h.
 * Invariant: a callback that jumps has set `status` to a failure and filled `err`. */
#include "jpeg_trap.h"

#include <jerror.h>

static void on_error(j_common_ptr cinfo)
{
    mr_jpeg_trap *trap = (mr_jpeg_trap *)cinfo->err;
    char words[JMSG_LENGTH_MAX];
    cinfo->err->format_message(cinfo, words);
    if (cinfo->err->msg_code == JERR_OUT_OF_MEMORY)
        trap->status = mr_fail_memory(trap->err, "decoding a JPEG");
    else
        trap->status = mr_fail(trap->err, MR_BAD_SAMPLE, "JPEG cannot be decoded: %s", words);
    longjmp(trap->out, 1);
}

/* Level -1 is a warning: the data is corrupt and libjpeg would go on with gray. */
static void on_message(j_common_ptr cinfo, int level)
{
    if (level < 0)
        on_error(cinfo);
}

static void on_progress(j_common_ptr cinfo)
{
    mr_jpeg_trap *trap = (mr_jpeg_trap *)cinfo->err;
    j_decompress_ptr c = (j_decompress_ptr)cinfo;
    uint32_t allowed = mr_image_scans_allowed(&trap->limits, (uint64_t)c->image_width * c->image_height);
    if (c->input_scan_number <= 0 || (unsigned)c->input_scan_number <= allowed)
        return;
    trap->status = mr_fail(trap->err, MR_BAD_SAMPLE, "JPEG has more than %u scans, the limit for its size", allowed);
    longjmp(trap->out, 1);
}

void mr_jpeg_trap_set(mr_jpeg_trap *trap, struct jpeg_decompress_struct *cinfo, const mr_image_limits *limits,
                      mr_error *err)
{
    trap->limits = *limits;
    trap->status = MR_OK;
    trap->err = err;
    cinfo->err = jpeg_std_error(&trap->errors);
    trap->errors.error_exit = on_error;
    trap->errors.emit_message = on_message;
    trap->progress = (struct jpeg_progress_mgr){.progress_monitor = on_progress};
}

void mr_jpeg_trap_create(mr_jpeg_trap *trap, struct jpeg_decompress_struct *cinfo)
{
    jpeg_create_decompress(cinfo);
    /* No limit, whatever $JPEGMEM says: a picture that was let in by its pixels and components gets what it takes. */
    cinfo->mem->max_memory_to_use = 0;
    cinfo->progress = &trap->progress;
}
