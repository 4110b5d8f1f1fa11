/* jpeg_idct.cl - from coefficients to samples: libjpeg-turbo's ISLOW, as its SIMD code computes it.
 * Invariant: the samples equal those of image/jpeg/plain.c to the bit.
 * Source: Loeffler, Ligtenberg and Moschytz, "Practical fast 1-D DCT algorithms with 11 multiplications", 1989;
 * constants times 2^13 as in image/jpeg/plain.c. */
#define F_0_298 2446
#define F_0_390 3196
#define F_0_541 4433
#define F_0_765 6270
#define F_0_899 7373
#define F_1_175 9633
#define F_1_501 12299
#define F_1_847 15137
#define F_1_961 16069
#define F_2_053 16819
#define F_2_562 20995
#define F_3_072 25172

MR_FN i32 mr_clamp(i32 v, i32 low, i32 high)
{
    return v < low ? low : v > high ? high : v;
}

/* Eight numbers of 16 bits; results are rounded, shifted and saturated to 16 bits. */
MR_FN void mr_idct_pass(const i32 *x, u32 shift, i32 *y)
{
    i32 low = (i16)(x[0] + x[4]) * 8192, high = (i16)(x[0] - x[4]) * 8192;
    i32 e2 = x[2] * F_0_541 + x[6] * (F_0_541 - F_1_847), e3 = x[2] * (F_0_541 + F_0_765) + x[6] * F_0_541;
    i32 z3 = (i16)(x[7] + x[3]), z4 = (i16)(x[5] + x[1]);
    u32 a = (u32)(z3 * (F_1_175 - F_1_961) + z4 * F_1_175), b = (u32)(z3 * F_1_175 + z4 * (F_1_175 - F_0_390));
    u32 even[4], odd[4], rounding = 1U << (shift - 1);
    even[0] = (u32)low + (u32)e3;
    even[1] = (u32)high + (u32)e2;
    even[2] = (u32)high - (u32)e2;
    even[3] = (u32)low - (u32)e3;
    odd[0] = (u32)(x[7] * -F_0_899 + x[1] * (F_1_501 - F_0_899)) + b;
    odd[1] = (u32)(x[5] * -F_2_562 + x[3] * (F_3_072 - F_2_562)) + a;
    odd[2] = (u32)(x[5] * (F_2_053 - F_2_562) + x[3] * -F_2_562) + b;
    odd[3] = (u32)(x[7] * (F_0_298 - F_0_899) + x[1] * -F_0_899) + a;
    for (u32 i = 0; i < 4; i++) {
        y[i] = mr_clamp((i32)(even[i] + odd[i] + rounding) >> shift, -32768, 32767);
        y[7 - i] = mr_clamp((i32)(even[i] - odd[i] + rounding) >> shift, -32768, 32767);
    }
}

/* Group: eight blocks of an image, eight lanes each.  Row: image. */
MR_KERNEL(mr_jpeg_idct, 64)
(MR_SPOT MR_TENSOR(const u8, images), MR_TENSOR(const i16, quants), MR_TENSOR(const i16, coef),
 MR_TENSOR(u8, samples))
{
    MR_SHARED i32 w[8][8][9]; /* 9: fewer bank conflicts */
    MR_SHARED u32 any[8][8];  /* of a row: whether a coefficient is not zero */
    MR_START(quants);
    MR_START(coef);
    MR_START(samples);
    MR_GLOBAL const mr_jpeg_image *im = MR_ARRAY(mr_jpeg_image, images, MR_IMAGE());
    u32 across = im->mcu_right - im->mcu_left, group = MR_GROUP_ID();
    u32 count = across * (im->mcu_bottom - im->mcu_top) * im->blocks;
    if (group * 8 >= count)
        return;
    MR_FOR_LANES(lane, 64)
    {
        u32 block = lane >> 3, i = lane & 7, id = group * 8 + block;
        if (id < count) {
            MR_GLOBAL const i16 *in = coef + (im->coef + id) * 64 + i * 8;
            MR_GLOBAL const i16 *q = quants + im->quant[im->component[id % im->blocks]] * 64 + i * 8;
            u32 seen = 0;
            for (u32 j = 0; j < 8; j++) {
                seen |= in[j] != 0;
                w[block][i][j] = (i16)((i32)in[j] * q[j]);
            }
            any[block][i] = seen;
        }
    }
    MR_BARRIER();
    MR_FOR_LANES(lane, 64)
    {
        u32 block = lane >> 3, i = lane & 7, below = 0;
        i32 x[8], y[8];
        if (group * 8 + block < count) {
            for (u32 j = 0; j < 8; j++) {
                x[j] = w[block][j][i];
                y[j] = (i16)(w[block][0][i] * 4); /* of a block with one row: wraps, does not saturate */
                below |= j ? any[block][j] : 0;
            }
            if (below)
                mr_idct_pass(x, 11, y);
            for (u32 j = 0; j < 8; j++)
                w[block][j][i] = y[j];
        }
    }
    MR_BARRIER();
    MR_FOR_LANES(lane, 64)
    {
        u32 block = lane >> 3, i = lane & 7, id = group * 8 + block;
        i32 x[8], y[8];
        if (id < count) {
            u32 mcu = id / im->blocks, b = id % im->blocks, c = im->component[b];
            u32 h = c ? 1 : im->h, v = c ? 1 : im->v, in_mcu = c ? 0 : b;
            u32 column = mcu % across * h + in_mcu % h, row = mcu / across * v + in_mcu / h;
            MR_GLOBAL u8 *out = samples + im->plane[c] + (u64)(row * 8 + i) * im->stride[c] + column * 8;
            for (u32 j = 0; j < 8; j++)
                x[j] = w[block][i][j];
            mr_idct_pass(x, 18, y);
            for (u32 j = 0; j < 8; j++)
                out[j] = (u8)(mr_clamp(y[j], -128, 127) + 128);
        }
    }
}
