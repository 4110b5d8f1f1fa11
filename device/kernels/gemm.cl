/* gemm.cl - products of matrices: a group of 256 lanes computes a tile of 64 x 64, each lane 4 x 4 of it.
 * Invariant: element (i, l) of an operand is at i * row + l * column, so one text serves all transposes; a sum runs
 * over l in order.
 *
 *      operands  float32 or bf16, of each its own flag; their offsets are in units of 2 bytes
 *      lane      x = lane % 16: columns x, x + 16, x + 32, x + 48 of the tile;  y = lane / 16: rows, likewise
 *      a_tile    [16 of l][64 rows + 1],   b_tile    [16 of l][64 columns + 1]
 */
#define MR_TILE 64
#define MR_DEEP 16
#define MR_PITCH (MR_TILE + 1)
#define MR_GEMM_A_BF16 1 /* types */
#define MR_GEMM_B_BF16 2
#define MR_GEMM_C_BF16 4

MR_FN f32 mr_either(MR_GLOBAL const u16 *x, u64 i, u32 is_bf16)
{
    return is_bf16 ? mr_widen(x[i]) : ((MR_GLOBAL const f32 *)x)[i];
}

/* Fills [MR_DEEP][MR_TILE] from element `at` on, with 0 beyond `lines` and `depth`.  Neighbouring lanes read neighbours in
 * memory, whichever of the two strides is 1. */
MR_FN void mr_load_tile(MR_NEAR f32 *tile, MR_GLOBAL const u16 *x, u64 at, u32 is_bf16, u64 line, u64 deep, u32 lines,
                        u32 depth)
{
    for (u32 i = MR_LANE(); i < MR_TILE * MR_DEEP; i += 256) {
        u32 r = deep == 1 ? i / MR_DEEP : i % MR_TILE, l = deep == 1 ? i % MR_DEEP : i / MR_TILE;
        tile[l * MR_PITCH + r] = r < lines && l < depth ? mr_either(x, at + r * line + l * deep, is_bf16) : 0.0F;
    }
}

MR_KERNEL(mr_gemm, 256)
(MR_SPOT MR_TENSOR(const u16, a), MR_TENSOR(const u16, b), MR_TENSOR(u16, c), MR_TENSOR(const f32, bias), u32 m,
 u32 n, u32 k,
 u64 a_row, u64 a_column, u64 b_row, u64 b_column, u64 c_row, u32 accumulate, u32 has_bias,
 u32 types)
{
    MR_SHARED f32 a_tile[MR_DEEP * MR_PITCH];
    MR_SHARED f32 b_tile[MR_DEEP * MR_PITCH];
    u32 across = (n + MR_TILE - 1) / MR_TILE, x = MR_LANE() % 16, y = MR_LANE() / 16;
    u32 row = MR_GROUP_ID() / across * MR_TILE, column = MR_GROUP_ID() % across * MR_TILE;
    f32 sum[16];
    MR_START(a);
    MR_START(b);
    MR_START(c);
    MR_START(bias);
    for (u32 i = 0; i < 16; i++)
        sum[i] = 0;
    for (u32 l = 0; l < k; l += MR_DEEP) {
        mr_load_tile(a_tile, a, row * a_row + l * a_column, types & MR_GEMM_A_BF16, a_row, a_column, m - row, k - l);
        mr_load_tile(b_tile, b, l * b_row + column * b_column, types & MR_GEMM_B_BF16, b_column, b_row, n - column,
                     k - l);
        MR_BARRIER();
        for (u32 t = 0; t < MR_DEEP; t++) {
            f32 p[4], q[4];
            for (u32 i = 0; i < 4; i++) {
                p[i] = a_tile[t * MR_PITCH + y + 16 * i];
                q[i] = b_tile[t * MR_PITCH + x + 16 * i];
            }
            for (u32 i = 0; i < 16; i++)
                sum[i] = MR_MAD(p[i / 4], q[i % 4], sum[i]);
        }
        MR_BARRIER();
    }
    for (u32 i = 0; i < 16; i++) {
        u32 r = row + y + 16 * (i / 4), s = column + x + 16 * (i % 4);
        if (r < m && s < n) {
            u64 at = r * c_row + s;
            f32 all = sum[i] + (has_bias ? bias[s] : 0.0F);
            all = accumulate ? mr_either(c, at, types & MR_GEMM_C_BF16) + all : all;
            if (types & MR_GEMM_C_BF16)
                c[at] = mr_narrow(all);
            else
                ((MR_GLOBAL f32 *)c)[at] = all;
        }
    }
}

/* A float32 matrix as bf16, each with its own stride. */
MR_KERNEL(mr_to_bf16, MR_WIDTH)
(MR_SPOT MR_TENSOR(const f32, from), MR_TENSOR(u16, to), u32 width, u64 from_stride, u64 to_stride)
{
    u32 column = MR_COLUMN(), row = MR_ROW();
    MR_START(from);
    MR_START(to);
    if (column < width)
        to[row * to_stride + column] = mr_narrow(from[row * from_stride + column]);
}
