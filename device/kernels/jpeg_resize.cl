/* jpeg_resize.cl - antialiased resizing across, then down, as image/resize/plain.c, and normalising to float32.
 * Invariant: the bytes before normalising equal pixels/resize to the bit; a flip is in the order of the weights.
 *
 * Weights are 22-bit fractions: output o is the sum of weights[taps * o + t] * input[start[o] + t]. */
MR_FN u32 mr_settled(u32 sum)
{
    return (u32)mr_clamp((i32)(sum + (1U << 21)) >> 22, 0, 255);
}

/* Item: pixel of the region resized across only.  Row: image. */
MR_KERNEL(mr_jpeg_across, 64)
(MR_SPOT MR_TENSOR(const u8, images), MR_TENSOR(const i32, weights), MR_TENSOR(const u32, starts),
 MR_TENSOR(const u8, rgb), MR_TENSOR(u8, lines), u32 size)
{
    MR_START(weights);
    MR_START(starts);
    MR_START(rgb);
    MR_START(lines);
    MR_GLOBAL const mr_jpeg_image *im = MR_ARRAY(mr_jpeg_image, images, MR_IMAGE());
    u32 i = MR_ITEM(), o = i % size, row = i / size;
    if (row >= im->seen_height)
        return;
    u32 start = starts[im->across_start + o], sum[3] = {0, 0, 0};
    MR_GLOBAL const i32 *k = weights + im->across + (u64)o * im->across_taps;
    MR_GLOBAL const u8 *p = rgb + im->rgb + ((u64)row * im->seen_width + start) * 3;
    MR_GLOBAL u8 *out = lines + im->lines + ((u64)row * size + o) * 3;
    for (u32 t = 0; t < im->across_taps && start + t < im->seen_width; t++, p += 3)
        for (u32 c = 0; c < 3; c++)
            sum[c] += (u32)(k[t] * p[c]);
    for (u32 c = 0; c < 3; c++)
        out[c] = (u8)mr_settled(sum[c]);
}

/* Item: pixel of the result.  Row: image.  out: of the batch.  norm: the float of each byte of each channel. */
MR_KERNEL(mr_jpeg_down, 64)
(MR_SPOT MR_TENSOR(const u8, images), MR_TENSOR(const i32, weights), MR_TENSOR(const u32, starts),
 MR_TENSOR(const u8, lines), MR_TENSOR(const f32, norm), MR_TENSOR(f32, out), u32 size)
{
    MR_START(weights);
    MR_START(starts);
    MR_START(lines);
    MR_START(norm);
    MR_START(out);
    MR_GLOBAL const mr_jpeg_image *im = MR_ARRAY(mr_jpeg_image, images, MR_IMAGE());
    u32 i = MR_ITEM(), x = i % size, y = i / size;
    if (y >= size)
        return;
    u32 start = starts[im->down_start + y], sum[3] = {0, 0, 0};
    MR_GLOBAL const i32 *k = weights + im->down + (u64)y * im->down_taps;
    MR_GLOBAL const u8 *p = lines + im->lines + ((u64)start * size + x) * 3;
    for (u32 t = 0; t < im->down_taps && start + t < im->seen_height; t++, p += (u64)size * 3)
        for (u32 c = 0; c < 3; c++)
            sum[c] += (u32)(k[t] * p[c]);
    for (u32 c = 0; c < 3; c++)
        out[(((u64)im->slot * 3 + c) * size + y) * size + x] = norm[c * 256 + mr_settled(sum[c])];
}
