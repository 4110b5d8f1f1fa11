/* tiles.cl - tiles of rows of bf16 in the memory of a group of 128 lanes, with MR_MMA: copied there and multiplied;
 * each lane masks and stores its part of a product.
 * Invariant: all lanes of a group call a function together; elements of a tile that are outside the matrix are 0.
 *
 *      group        64 rows ("few"), 16 per warp, beside 64 others ("many")
 *      tiles        [64 rows][64 columns + 8] of bf16, in words of two columns
 *      lane         g = lane / 4 % 8, t = lane % 4: rows MR_OWN and MR_OWN + 8 of the group, of a tile's 64 columns 16:
 *                   2t, 2t + 1, 2t + 8, 2t + 9, ...; its number i of row h is at MR_AT(h, i), column MR_COLUMN_OF(i)
 */
#ifdef MR_MMA
#define MR_SIDE 64
#define MR_WORDS (MR_SIDE / 2 + 4) /* of a tile's row: eight rows at a column are in different banks */
#define MR_NUMBERS 32 /* of a lane, of 64 x 64 of the group's */
#define MR_AT(h, i) ((i) / 2 * 4 + 2 * (h) + (i) % 2)
#define MR_COLUMN_OF(i) ((i) / 2 * 8 + 2 * (MR_LANE() % 4) + (i) % 2)
#define MR_OWN (MR_LANE() / MR_WARP * 16 + MR_LANE() % MR_WARP / 4)
#define MR_TILE(name) MR_SHARED_WORDS u32 name[MR_SIDE * MR_WORDS]
#define MR_ONE_BY_ONE _Pragma("unroll 1") /* before a loop that is rarely run */

typedef struct mr_rows_of { /* of a head */
    MR_GLOBAL const u16 *x;
    u64 stride;
    u32 aligned; /* they begin at multiples of 16 bytes */
} mr_rows_of;

MR_FN mr_rows_of mr_matrix(u32 plain, MR_GLOBAL const u16 *x, u64 stride)
{
    mr_rows_of m = {x, stride, plain || ((u64)x | stride * 2) % 16 == 0};
    return m;
}

/* ---- tiles ------------------------------------------------------------------------------------------------------- */

/* Eight numbers as four words, 0 beyond `count`. */
MR_FN void mr_gather(u32 *words, MR_GLOBAL const u16 *x, u32 count)
{
    MR_UNROLL
    for (u32 i = 0; i < 4; i++) {
        u32 low = 2 * i < count ? x[2 * i] : 0, high = 2 * i + 1 < count ? x[2 * i + 1] : 0;
        words[i] = low | high << 16;
    }
}

/* Begins to copy `rows` rows from `row` on, and `columns` columns from `column` on, or as many as fit in the tile. */
MR_FN void mr_fetch(MR_NEAR u32 *tile, mr_rows_of m, u32 row, u32 rows, u32 column, u32 columns)
{
    const u32 apart = MR_ATTENTION_LANES / 8;
    u32 own = MR_LANE() / 8, c = MR_LANE() % 8 * 8, words[4];
    u32 there = c >= columns ? 0 : columns - c < 8 ? columns - c : 8;
    MR_GLOBAL const u16 *from = m.x + row * m.stride + column;
    tile += own * MR_WORDS + c / 2;
    if (m.aligned) {
        MR_UNROLL
        for (u32 r = 0; r < MR_SIDE; r += apart) {
            u32 count = own + r < rows ? there : 0;
            mr_copy_ahead(tile + r * MR_WORDS, count ? from + (own + r) * m.stride + c : from, 2 * count);
        }
        return;
    }
    MR_ONE_BY_ONE
    for (u32 r = 0; r < MR_SIDE; r += apart) {
        u32 count = own + r < rows ? there : 0;
        mr_gather(words, from + (own + r) * m.stride + c, count);
        MR_PUT_WORDS(tile + r * MR_WORDS, words);
    }
}

/* Begins to copy the tile after that of `rows` rows from `row` on, if there is one, unless heads are wide; ends a batch. */
MR_FN void mr_fetch_next(MR_NEAR u32 *tile, mr_rows_of m, u32 row, u32 rows, u32 width)
{
    if (width <= MR_SIDE && rows > MR_SIDE)
        mr_fetch(tile, m, row + MR_SIDE, rows - MR_SIDE, 0, width);
    MR_END_BATCH();
}

/* A tile that nothing was copied to ahead. */
MR_FN void mr_fetch_now(MR_NEAR u32 *tile, mr_rows_of m, u32 row, u32 rows, u32 column, u32 columns)
{
    MR_BARRIER();
    mr_fetch(tile, m, row, rows, column, columns);
    MR_END_BATCH();
    MR_AWAIT(0);
}

/* s += few . many, of a tile of each. */
MR_FN void mr_multiply(MR_NEAR const u32 *few_tile, MR_NEAR const u32 *many_tile, f32 *s)
{
    u32 lane = MR_LANE() % MR_WARP, a[4], b[4];
    few_tile += (MR_LANE() / MR_WARP * 16 + lane % 16) * MR_WORDS + lane / 16 * 4;
    many_tile += (lane / 16 * 8 + lane % 8) * MR_WORDS + lane / 8 % 2 * 4;
    MR_UNROLL
    for (u32 k = 0; k < MR_SIDE / 16; k++) {
        mr_get_squares(a, few_tile + k * 8);
        MR_UNROLL
        for (u32 n = 0; n < MR_SIDE / 16; n++) {
            mr_get_squares(b, many_tile + n * 16 * MR_WORDS + k * 8);
            mr_mma(s + 8 * n, a, b);
            mr_mma(s + 8 * n + 4, a, b + 2);
        }
    }
}

/* s = few . many: `fews` rows of the group's, and `manys` rows of many from `first` on. */
MR_FN void mr_scores(MR_NEAR u32 *few_tile, mr_rows_of few, u32 fews, MR_NEAR u32 *many_tile, mr_rows_of many, u32 first,
                     u32 manys, u32 width, f32 *s)
{
    MR_UNROLL
    for (u32 i = 0; i < MR_NUMBERS; i++)
        s[i] = 0;
    for (u32 at = 0; at < width; at += MR_SIDE) {
        if (width > MR_SIDE) {
            mr_fetch_now(few_tile, few, 0, fews, at, width - at);
            mr_fetch_now(many_tile, many, first, manys, at, width - at);
        }
        mr_multiply(few_tile, many_tile, s);
    }
}

/* sum += weights . many, of the 64 columns from `column` on.  What a lane has of c is what it needs of a. */
MR_FN void mr_mix(MR_NEAR u32 *tile, const f32 *weights, mr_rows_of many, u32 first, u32 manys, u32 column, u32 width,
                  f32 *sum)
{
    u32 lane = MR_LANE() % MR_WARP, a[4], b[4];
    if (width > MR_SIDE)
        mr_fetch_now(tile, many, first, manys, column, width - column);
    tile += lane % 16 * MR_WORDS + lane / 16 * 4;
    MR_UNROLL
    for (u32 k = 0; k < MR_SIDE / 16; k++) {
        MR_UNROLL
        for (u32 i = 0; i < 4; i++)
            a[i] = mr_narrow_two(weights[8 * k + 2 * i], weights[8 * k + 2 * i + 1]);
        MR_UNROLL
        for (u32 n = 0; n < MR_SIDE / 16; n++) {
            mr_get_turned(b, tile + k * 16 * MR_WORDS + n * 8);
            mr_mma(sum + 8 * n, a, b);
            mr_mma(sum + 8 * n + 4, a, b + 2);
        }
    }
}

/* A group's rows of `sum`, times `factor`, to `columns` columns at `to`; 0 to rows that are not `there`. */
MR_FN void mr_store(MR_GLOBAL u16 *to, u64 stride, u32 rows, u32 columns, const f32 *sum, f32 factor, u32 there)
{
    u32 in_words = ((u64)to | stride * 2 | columns * 2) % 4 == 0;
    MR_UNROLL
    for (u32 i = 0; i < MR_NUMBERS; i += 2) {
        u32 h = i / (MR_NUMBERS / 2), k = i % (MR_NUMBERS / 2), r = MR_OWN + 8 * h, column = MR_COLUMN_OF(k);
        MR_GLOBAL u16 *at = to + r * stride + column;
        u32 both = there >> h & 1U ? mr_narrow_two(sum[MR_AT(h, k)] * factor, sum[MR_AT(h, k + 1)] * factor) : 0;
        if (r >= rows || column >= columns)
            continue;
        if (in_words) {
            *(MR_GLOBAL u32 *)at = both;
            continue;
        }
        at[0] = (u16)both;
        if (column + 1 < columns)
            at[1] = (u16)(both >> 16);
    }
}

/* ---- masks ------------------------------------------------------------------------------------------------------- */

/* Sets x[] to `none` in columns that are not there, and in those whose keys are not seen. */
MR_FN void mr_cut(f32 *x, MR_GLOBAL const u8 *seen, u32 has_mask, u32 manys, f32 none)
{
    MR_UNROLL
    for (u32 i = 0; i < MR_NUMBERS / 2; i++) {
        u32 column = MR_COLUMN_OF(i);
        if (column >= manys || (has_mask && !seen[column]))
            x[MR_AT(0, i)] = x[MR_AT(1, i)] = none;
    }
}

/* Which numbers dropout keeps, a bit for each; that of column c of row h is element e + down * 8 h + along * c. */
MR_FN u32 mr_kept_bits(mr_mask mask, u32 e, u32 down, u32 along)
{
    u32 kept = 0;
    MR_UNROLL
    for (u32 i = 0; i < MR_NUMBERS; i++) {
        u32 h = i / (MR_NUMBERS / 2), k = i % (MR_NUMBERS / 2);
        kept |= (mr_kept(mask, e + down * 8 * h + along * MR_COLUMN_OF(k)) > 0 ? 1U : 0U) << MR_AT(h, k);
    }
    return kept;
}

MR_FN void mr_keep(f32 *x, u32 kept, f32 scale)
{
    MR_UNROLL
    for (u32 i = 0; i < MR_NUMBERS; i++)
        x[i] = kept >> i & 1U ? x[i] * scale : 0.0F;
}
#endif
