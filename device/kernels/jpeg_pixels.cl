/* jpeg_pixels.cl - from samples to the region's RGB, turned as it is seen: fancy upsampling and colour.
 * Invariant: the pixels equal libjpeg-turbo's full decode to the bit; outside the image the last sample is repeated.
 */

/* Component c at pixel (x, y) of the image. */
MR_FN i32 mr_jpeg_chroma(MR_GLOBAL const mr_jpeg_image *im, MR_GLOBAL const u8 *samples, u32 c, u32 x, u32 y)
{
    u32 wide = (im->width + im->h - 1) / im->h, high = (im->height + im->v - 1) / im->v;
    u32 cx = x / im->h, cy = y / im->v, nx = cx, ny = cy;
    u32 left = im->mcu_left * 8, top = im->mcu_top * 8; /* of the plane */
    if (im->h == 2)
        nx = x & 1 ? (cx + 1 < wide ? cx + 1 : cx) : (cx ? cx - 1 : 0);
    if (im->v == 2)
        ny = y & 1 ? (cy + 1 < high ? cy + 1 : cy) : (cy ? cy - 1 : 0);
    MR_GLOBAL const u8 *near = samples + im->plane[c] + (u64)(cy - top) * im->stride[c];
    MR_GLOBAL const u8 *far = samples + im->plane[c] + (u64)(ny - top) * im->stride[c];
    cx -= left;
    nx -= left;
    if (im->h == 1 && im->v == 1)
        return near[cx];
    if (im->v == 1)
        return (3 * near[cx] + near[nx] + 1 + (i32)(x & 1)) >> 2;
    if (im->h == 1)
        return (3 * near[cx] + far[cx] + 1 + (i32)(y & 1)) >> 2;
    return (3 * (3 * near[cx] + far[cx]) + 3 * near[nx] + far[nx] + 8 - (i32)(x & 1)) >> 4;
}

/* Item: stored pixel of the region.  Row: image. */
MR_KERNEL(mr_jpeg_pixels, 64)
(MR_SPOT MR_TENSOR(const u8, images), MR_TENSOR(const u8, samples), MR_TENSOR(u8, rgb))
{
    MR_START(samples);
    MR_START(rgb);
    MR_GLOBAL const mr_jpeg_image *im = MR_ARRAY(mr_jpeg_image, images, MR_IMAGE());
    u32 i = MR_ITEM(), x = i % im->crop_width, y = i / im->crop_width;
    if (y >= im->crop_height)
        return;
    u32 a = im->from_right ? im->crop_width - 1 - x : x, b = im->from_bottom ? im->crop_height - 1 - y : y;
    u32 column = im->swapped ? b : a, row = im->swapped ? a : b;
    MR_GLOBAL u8 *out = rgb + im->rgb + ((u64)row * im->seen_width + column) * 3;
    x += im->left;
    y += im->top;
    i32 luma =
        samples[im->plane[0] + (u64)(y - im->mcu_top * 8 * im->v) * im->stride[0] + (x - im->mcu_left * 8 * im->h)];
    if (im->components == 1) {
        out[0] = out[1] = out[2] = (u8)luma;
        return;
    }
    i32 cb = mr_jpeg_chroma(im, samples, 1, x, y) - 128, cr = mr_jpeg_chroma(im, samples, 2, x, y) - 128;
    /* JFIF's matrix times 2^16 */
    out[0] = (u8)mr_clamp(luma + ((91881 * cr + 32768) >> 16), 0, 255);
    out[1] = (u8)mr_clamp(luma + ((-22554 * cb - 46802 * cr + 32768) >> 16), 0, 255);
    out[2] = (u8)mr_clamp(luma + ((116130 * cb + 32768) >> 16), 0, 255);
}
