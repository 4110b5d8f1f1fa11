/* jpeg_trap.h - turns libjpeg's failures into a status: an error, a warning that means damage, or too many scans jump
 * out of the decoder; harmless warnings are noted.
 * Invariant: what must survive a jump is a member of the struct that holds the trap, never a local variable.
 *
 *      static void work(struct run *run)                       everything that may jump, and nothing else
 *      {
 *          if (setjmp(run->trap.out))
 *              return;                                         run->trap.status and the error are set
 *          mr_jpeg_trap_create(&run->trap, &run->cinfo);
 *          ...                                             mr_jpeg_trap_start() for jpeg_start_decompress()
 *      }
 *      mr_jpeg_trap_set(&run.trap, &run.cinfo, limits, err);   before
 *      work(&run);
 *      jpeg_destroy_decompress(&run.cinfo);                    after, however it ended; cinfo began zeroed */
#ifndef MR_JPEG_TRAP_H
#define MR_JPEG_TRAP_H

#include <setjmp.h>
#include <stdio.h>

#include <jpeglib.h>

#include "image/codec/image.h"

typedef struct mr_jpeg_trap {
    struct jpeg_error_mgr errors; /* first: libjpeg's callbacks get its address */
    struct jpeg_progress_mgr progress;
    jmp_buf out;
    mr_image_limits limits;
    mr_status status;
    uint32_t oddities; /* harmless warnings so far, a bit 1 << mr_oddity each */
    mr_error *err;
} mr_jpeg_trap;

/* `limits` have their defaults filled in. */
void mr_jpeg_trap_set(mr_jpeg_trap *trap, struct jpeg_decompress_struct *cinfo, const mr_image_limits *limits,
                      mr_error *err);
/* jpeg_create_decompress(), counting scans; may jump.  libjpeg takes up to 2 bytes per pixel (of whole MCUs) and
 * component, so the caller must check the pixels and, unless it asks for RGB or CMYK, the components. */
void mr_jpeg_trap_create(mr_jpeg_trap *trap, struct jpeg_decompress_struct *cinfo);
/* jpeg_start_decompress(); may jump.  Also rejects what libjpeg silently accepts: a component without a scan and, in a
 * file with extraneous bytes, which may have been a table or a scan, a missing Huffman table or coefficient bits. */
void mr_jpeg_trap_start(mr_jpeg_trap *trap, struct jpeg_decompress_struct *cinfo);

#endif
