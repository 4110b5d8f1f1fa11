/* gemm.cl - matrix products: a group computes a tile of 64 x 64.
 * Invariant: element (i, l) of an operand is at i * row + l * column, so one text serves all transposes; a sum runs
 * over l in order.
 *
 *      operands       float32 or bf16, of each its own flag; their offsets are in units of 2 bytes
 *      256 lanes      each computes 4 x 4 of the tile: x = lane % 16: columns x, x + 16, x + 32, x + 48;  y = lane / 16:
 *                     rows, likewise;  a_tile: [16 of l][64 rows + 1],  b_tile: [16 of l][64 columns + 1]
 *      MR_ONE_LANE    for processors, where lanes would take turns from barrier to barrier: 8 x 16 of the tile at a time,
 *                     in vectors of 16 columns;  a_tile: [32 of l][64 rows],  b_tile: [32 of l][64 columns]
 */
#define MR_TILE 64
#define MR_GEMM_A_BF16 1 /* types */
#define MR_GEMM_B_BF16 2
#define MR_GEMM_C_BF16 4

MR_FN f32 mr_either(MR_GLOBAL const u16 *x, u64 i, u32 is_bf16)
{
    return is_bf16 ? mr_widen(x[i]) : ((MR_GLOBAL const f32 *)x)[i];
}

MR_FN void mr_put_sum(MR_GLOBAL u16 *c, u64 at, u32 types, u32 accumulate, f32 sum)
{
    f32 all = accumulate ? mr_either(c, at, types & MR_GEMM_C_BF16) + sum : sum;
    if (types & MR_GEMM_C_BF16)
        c[at] = mr_narrow(all);
    else
        ((MR_GLOBAL f32 *)c)[at] = all;
}

#define MR_PRODUCT                                                                                                     \
    MR_SPOT MR_TENSOR(const u16, a), MR_TENSOR(const u16, b), MR_TENSOR(u16, c), MR_TENSOR(const f32, bias), u32 m,    \
        u32 n, u32 k, u64 a_row, u64 a_column, u64 b_row, u64 b_column, u64 c_row, u32 accumulate, u32 has_bias,       \
        u32 types

#ifdef MR_ONE_LANE
#define MR_DEEP 32
#define MR_HIGH 8
#define MR_WIDE 16

/* Fills [MR_DEEP][MR_TILE] from element `at` on, along memory, with 0 beyond `lines` and `depth`.  The loops have constant
 * lengths, so that compilers make vectors of them. */
MR_FN void mr_load_tile(f32 *tile, MR_GLOBAL const u16 *x, u64 at, u32 is_bf16, u64 line, u64 deep, u32 lines,
                        u32 depth)
{
    if (deep == 1) {
        for (u32 r = 0; r < MR_TILE; r++)
            for (u32 l = 0; l < MR_DEEP; l++)
                tile[l * MR_TILE + r] = r < lines && l < depth ? mr_either(x, at + r * line + l, is_bf16) : 0.0F;
    } else {
        for (u32 l = 0; l < MR_DEEP; l++)
            for (u32 r = 0; r < MR_TILE; r++)
                tile[l * MR_TILE + r] = r < lines && l < depth ? mr_either(x, at + r * line + l * deep, is_bf16) : 0.0F;
    }
}

/* sum += a b of MR_HIGH rows and MR_WIDE columns of the tile. */
MR_FN void mr_multiply(const f32 *a_tile, const f32 *b_tile, f32 *sum)
{
    mr_wide s[MR_HIGH], q;
    for (u32 r = 0; r < MR_HIGH; r++)
        MR_GET_WIDE(s[r], sum + r * MR_TILE);
    for (u32 l = 0; l < MR_DEEP; l++) {
        MR_GET_WIDE(q, b_tile + l * MR_TILE);
        for (u32 r = 0; r < MR_HIGH; r++)
            s[r] = MR_MAD(a_tile[l * MR_TILE + r], q, s[r]);
    }
    for (u32 r = 0; r < MR_HIGH; r++)
        MR_PUT_WIDE(s[r], sum + r * MR_TILE);
}

MR_KERNEL(mr_gemm, 1)
(MR_PRODUCT)
{
    f32 a_tile[MR_DEEP * MR_TILE], b_tile[MR_DEEP * MR_TILE], sum[MR_TILE * MR_TILE];
    u32 across = (n + MR_TILE - 1) / MR_TILE;
    u32 row = MR_GROUP_ID() / across * MR_TILE, column = MR_GROUP_ID() % across * MR_TILE;
    u32 rows = m - row < MR_TILE ? m - row : MR_TILE, columns = n - column < MR_TILE ? n - column : MR_TILE;
    MR_START(a);
    MR_START(b);
    MR_START(c);
    MR_START(bias);
    for (u32 i = 0; i < MR_TILE * MR_TILE; i++)
        sum[i] = 0;
    for (u32 l = 0; l < k; l += MR_DEEP) {
        mr_load_tile(a_tile, a, row * a_row + l * a_column, types & MR_GEMM_A_BF16, a_row, a_column, rows, k - l);
        mr_load_tile(b_tile, b, l * b_row + column * b_column, types & MR_GEMM_B_BF16, b_column, b_row, columns, k - l);
        for (u32 s = 0; s < columns; s += MR_WIDE)
            for (u32 r = 0; r < rows; r += MR_HIGH)
                mr_multiply(a_tile + r, b_tile + s, sum + r * MR_TILE + s);
    }
    for (u32 r = 0; r < rows; r++)
        for (u32 s = 0; s < columns; s++)
            mr_put_sum(c, (row + r) * c_row + column + s, types, accumulate,
                       sum[r * MR_TILE + s] + (has_bias ? bias[column + s] : 0.0F));
}
#else
#define MR_DEEP 16
#define MR_PITCH (MR_TILE + 1)

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
(MR_PRODUCT)
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
        if (r < m && s < n)
            mr_put_sum(c, r * c_row + s, types, accumulate, sum[i] + (has_bias ? bias[s] : 0.0F));
    }
}
#endif

/* A float32 matrix as bf16, each with its own stride. */
MR_KERNEL(mr_to_bf16, MR_WIDTH)
(MR_SPOT MR_TENSOR(const f32, from), MR_TENSOR(u16, to), u32 width, u64 from_stride, u64 to_stride, u32 aligned)
{
    u32 column = MR_COLUMN() * MR_EIGHT, row = MR_ROW(), left = width - column, whole = aligned && left >= MR_EIGHT;
    f32 v[MR_EIGHT];
    MR_START(from);
    MR_START(to);
    if (column >= width)
        return;
    mr_get_floats(v, from + row * from_stride + column, left, whole);
    mr_put_halves(to + row * to_stride + column, v, left, whole);
}
