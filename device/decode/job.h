/* job.h - private to this module: the kernels' description of a batch, for the host's compiler.
 * Invariant: it is the very text that the kernels are compiled with, and its layout is that of millrace.h. */
#ifndef MR_DECODE_JOB_H
#define MR_DECODE_JOB_H

#include <stddef.h>

#include "base/error.h"
#include "device/kernels/jpeg_job.h"

#define MR_SAME(mine, theirs, member)                                                                                  \
    _Static_assert(offsetof(mine, member) == offsetof(theirs, member) &&                                               \
                       sizeof((mine *)0)->member == sizeof((theirs *)0)->member,                                       \
                   #member)
#define MR_SAME_IMAGE(member) MR_SAME(mr_jpeg_image, mr_coded_image, member)
#define MR_SAME_PART(member)  MR_SAME(mr_jpeg_part, mr_coded_part, member)
#define MR_SAME_CODES(member) MR_SAME(mr_jpeg_lut, mr_coded_codes, member)

_Static_assert(sizeof(mr_jpeg_image) == sizeof(mr_coded_image) && sizeof(mr_jpeg_image) % 8 == 0, "image");
_Static_assert(sizeof(mr_jpeg_part) == sizeof(mr_coded_part) && sizeof(mr_jpeg_part) % 8 == 0, "part");
_Static_assert(sizeof(mr_jpeg_lut) == sizeof(mr_coded_codes), "codes");

MR_SAME_IMAGE(bytes);
MR_SAME_IMAGE(bytes_len);
MR_SAME_IMAGE(coef);
MR_SAME_IMAGE(plane);
MR_SAME_IMAGE(rgb);
MR_SAME_IMAGE(lines);
MR_SAME_IMAGE(across);
MR_SAME_IMAGE(down);
MR_SAME_IMAGE(across_start);
MR_SAME_IMAGE(down_start);
MR_SAME_IMAGE(width);
MR_SAME_IMAGE(height);
MR_SAME_IMAGE(wide);
MR_SAME_IMAGE(components);
MR_SAME_IMAGE(h);
MR_SAME_IMAGE(v);
MR_SAME_IMAGE(blocks);
MR_SAME_IMAGE(component);
MR_SAME_IMAGE(table);
MR_SAME_IMAGE(quant);
MR_SAME_IMAGE(stride);
MR_SAME_IMAGE(left);
MR_SAME_IMAGE(top);
MR_SAME_IMAGE(crop_width);
MR_SAME_IMAGE(crop_height);
MR_SAME_IMAGE(mcu_left);
MR_SAME_IMAGE(mcu_right);
MR_SAME_IMAGE(mcu_top);
MR_SAME_IMAGE(mcu_bottom);
MR_SAME_IMAGE(restart);
MR_SAME_IMAGE(swapped);
MR_SAME_IMAGE(from_right);
MR_SAME_IMAGE(from_bottom);
MR_SAME_IMAGE(seen_width);
MR_SAME_IMAGE(seen_height);
MR_SAME_IMAGE(across_taps);
MR_SAME_IMAGE(down_taps);
MR_SAME_IMAGE(slot);
MR_SAME_PART(at);
MR_SAME_PART(end);
MR_SAME_PART(image);
MR_SAME_PART(x);
MR_SAME_PART(y);
MR_SAME_PART(mcus);
MR_SAME_PART(dc);
MR_SAME_PART(dc_end);
MR_SAME_PART(marker);
MR_SAME_CODES(first);
MR_SAME_CODES(limit);
MR_SAME_CODES(offset);
MR_SAME_CODES(values);

#endif
