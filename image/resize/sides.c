/* sides.c - a job as its two sides, each of which is resized alone.
 * Invariant: a side without a span holds all of its input. */
#include "image/resize/kernels.h"

static mr_resize_span held_of(mr_resize_span span, uint32_t in)
{
    return span.from || span.count ? span : (mr_resize_span){0, in};
}

mr_resize_side mr_resize_across(const mr_resize_job *j)
{
    return (mr_resize_side){.in = j->in_width,
                            .out = j->out_width,
                            .first = j->crop_left,
                            .count = j->crop_width,
                            .held = held_of(j->columns, j->in_width),
                            .bicubic = j->bicubic,
                            .mirrored = j->flip};
}

mr_resize_side mr_resize_down(const mr_resize_job *j)
{
    return (mr_resize_side){.in = j->in_height,
                            .out = j->out_height,
                            .first = j->crop_top,
                            .count = j->crop_height,
                            .held = held_of(j->rows, j->in_height),
                            .bicubic = j->bicubic};
}
