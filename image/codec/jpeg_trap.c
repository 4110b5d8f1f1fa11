/* jpeg_trap.c - turns libjpeg's failures into a status; see jpeg_trap.h.
 * Invariant: a callback that jumps has set `status` to a failure and filled `err`. */
#include "image/codec/jpeg_trap.h"

#include <jerror.h>

#include "image/codec/jpeg_warnings.h"

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

/* Level -1 is a warning: libjpeg continues, sometimes with invented pixels. */
static void on_message(j_common_ptr cinfo, int level)
{
    mr_jpeg_trap *trap = (mr_jpeg_trap *)cinfo->err;
    mr_oddity oddity;
    if (level >= 0)
        return;
    if (!mr_jpeg_warning_harmless(cinfo->err->msg_code, &oddity))
        on_error(cinfo);
    else
        trap->oddities |= 1u << oddity;
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
    trap->oddities = 0;
    trap->err = err;
    cinfo->err = jpeg_std_error(&trap->errors);
    trap->errors.error_exit = on_error;
    trap->errors.emit_message = on_message;
    trap->progress = (struct jpeg_progress_mgr){.progress_monitor = on_progress};
}

void mr_jpeg_trap_create(mr_jpeg_trap *trap, struct jpeg_decompress_struct *cinfo)
{
    jpeg_create_decompress(cinfo);
    /* No limit, regardless of $JPEGMEM: the checks of pixels and components bound what an image needs. */
    cinfo->mem->max_memory_to_use = 0;
    cinfo->progress = &trap->progress;
}

/* ---- missing parts ----------------------------------------------------------------------------------------------- */

/* A Huffman table that the first scan uses and the file does not define; libjpeg-turbo then uses the standard's. */
static bool lacks_table(const struct jpeg_decompress_struct *c)
{
    for (int i = 0; i < c->comps_in_scan && !c->arith_code && !c->progressive_mode; i++) {
        int dc = c->cur_comp_info[i]->dc_tbl_no, ac = c->cur_comp_info[i]->ac_tbl_no;
        if (dc >= NUM_HUFF_TBLS || ac >= NUM_HUFF_TBLS || !c->dc_huff_tbl_ptrs[dc] || !c->ac_huff_tbl_ptrs[ac])
            return true;
    }
    return false;
}

/* A component without a scan, which would be gray. */
static bool lacks_component(const struct jpeg_decompress_struct *c)
{
    for (int i = 0; i < c->num_components; i++)
        if (!c->comp_info[i].quant_table || (c->coef_bits && c->coef_bits[i][0] < 0))
            return true;
    return false;
}

/* Coefficients of a progressive file whose last bits are in no scan. */
static bool lacks_bits(const struct jpeg_decompress_struct *c)
{
    for (int i = 0; i < c->num_components && c->coef_bits; i++)
        for (int k = 0; k < DCTSIZE2; k++)
            if (c->coef_bits[i][k])
                return true;
    return false;
}

static void fail(mr_jpeg_trap *trap, const char *what)
{
    trap->status = mr_fail(trap->err, MR_BAD_SAMPLE, "JPEG cannot be decoded: %s", what);
    longjmp(trap->out, 1);
}

void mr_jpeg_trap_start(mr_jpeg_trap *trap, struct jpeg_decompress_struct *cinfo)
{
    const uint32_t stray = 1u << MR_ODDITY_STRAY_BYTES;
    if ((trap->oddities & stray) && lacks_table(cinfo))
        fail(trap, "it has extraneous bytes and lacks a Huffman table");
    jpeg_start_decompress(cinfo);
    if (lacks_component(cinfo))
        fail(trap, "a component has no scan");
    if ((trap->oddities & stray) && lacks_bits(cinfo))
        fail(trap, "it has extraneous bytes and lacks a scan");
}
