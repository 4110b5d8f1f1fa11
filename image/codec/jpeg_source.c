/* jpeg_source.c - feeds libjpeg the bytes of a JPEG piece by piece; see jpeg_source.h.
 * Invariant: a piece is shorter than libjpeg-turbo's faster decoder requires (BUFSIZE in its jdhuff.c). */
#include "image/codec/jpeg_source.h"

#include <jerror.h>

enum { PIECE = 511 };

static void nothing(j_decompress_ptr cinfo)
{
    (void)cinfo;
}

static boolean next_piece(j_decompress_ptr cinfo)
{
    mr_jpeg_source *s = (mr_jpeg_source *)cinfo->src;
    size_t left = s->len - s->given, len = left < PIECE ? left : PIECE;
    if (s->stopped && s->stopped(s->ctx)) {
        mr_jpeg_trap *trap = (mr_jpeg_trap *)cinfo->err;
        trap->status = MR_END;
        longjmp(trap->out, 1);
    }
    if (len == 0)
        ERREXIT(cinfo, JWRN_JPEG_EOF); /* an error, not a warning: there is nothing left to decode */
    s->manager.next_input_byte = s->bytes + s->given;
    s->manager.bytes_in_buffer = len;
    s->given += len;
    return TRUE;
}

static void skip_bytes(j_decompress_ptr cinfo, long count)
{
    struct jpeg_source_mgr *m = cinfo->src;
    size_t n = count > 0 ? (size_t)count : 0;
    while (n > m->bytes_in_buffer) {
        n -= m->bytes_in_buffer;
        next_piece(cinfo);
    }
    m->next_input_byte += n;
    m->bytes_in_buffer -= n;
}

void mr_jpeg_source_set(mr_jpeg_source *s, struct jpeg_decompress_struct *cinfo, const uint8_t *bytes, size_t len)
{
    s->manager = (struct jpeg_source_mgr){
        .init_source = nothing,
        .fill_input_buffer = next_piece,
        .skip_input_data = skip_bytes,
        .resync_to_restart = jpeg_resync_to_restart,
        .term_source = nothing,
    };
    s->bytes = bytes;
    s->len = len;
    s->given = 0;
    cinfo->src = &s->manager;
}
