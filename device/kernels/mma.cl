/* mma.cl - what 32 lanes compute together, with MR_MMA: products of small tiles of bf16 with float32 sums, by the tensor
 * cores of CUDA devices of 8.0 and later, and sums of lanes.
 * Invariant: a fragment is laid out as in the PTX ISA ("Matrix Fragments for mma.m16n8k16", .bf16 and .f32); where
 * there is no such instruction, all lanes of the group come here together, and values pass through `board`.
 *
 *      g = lane / 4, t = lane % 4, a word is two numbers, the first one below
 *      a    [16 rows][16]       words: row g, from 2t | row g + 8, from 2t | row g, from 2t + 8 | row g + 8, from 2t + 8
 *      b    [16][8 columns]     words: column g, from row 2t | column g, from row 2t + 8
 *      c    [16 rows][8]        floats: row g, 2t | row g, 2t + 1 | row g + 8, 2t | row g + 8, 2t + 1
 */
#ifdef MR_MMA
#define MR_WARP 32
#define MR_FRAGMENTS 6 /* words of a and b */

#if defined(__CUDACC__)
#define MR_BOARD(lanes) 1

/* c += a b. */
MR_FN void mr_mma(MR_NEAR u32 *board, f32 *c, const u32 *a, u32 b0, u32 b1)
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/* x of lane ^ away. */
MR_FN f32 mr_of_lane(MR_NEAR u32 *board, f32 x, u32 away)
{
    return __shfl_xor_sync(0xffffffffU, x, away);
}
#else
#define MR_BOARD(lanes) ((lanes)*MR_FRAGMENTS)

MR_FN f32 mr_half(u32 word, u32 which)
{
    return mr_widen((u16)(word >> 16 * which));
}

MR_FN void mr_mma(MR_NEAR u32 *board, f32 *c, const u32 *a, u32 b0, u32 b1)
{
    u32 lane = MR_LANE() % MR_WARP, g = lane / 4, t = lane % 4;
    MR_NEAR u32 *warp = board + (MR_LANE() - lane) * MR_FRAGMENTS;
    for (u32 i = 0; i < 4; i++)
        warp[lane * MR_FRAGMENTS + i] = a[i];
    warp[lane * MR_FRAGMENTS + 4] = b0;
    warp[lane * MR_FRAGMENTS + 5] = b1;
    MR_BARRIER();
    for (u32 i = 0; i < 4; i++) {
        u32 row = g + i / 2 * 8, column = 2 * t + i % 2;
        for (u32 k = 0; k < 16; k++) {
            u32 a_word = warp[(row % 8 * 4 + k % 8 / 2) * MR_FRAGMENTS + row / 8 + k / 8 * 2];
            u32 b_word = warp[(column * 4 + k % 8 / 2) * MR_FRAGMENTS + 4 + k / 8];
            c[i] = MR_MAD(mr_half(a_word, k % 2), mr_half(b_word, k % 2), c[i]);
        }
    }
    MR_BARRIER();
}

MR_FN f32 mr_of_lane(MR_NEAR u32 *board, f32 x, u32 away)
{
    board[MR_LANE()] = MR_BITS(x);
    MR_BARRIER();
    u32 bits = board[MR_LANE() ^ away];
    MR_BARRIER();
    return MR_OF_BITS(bits);
}
#endif

/* Over the four lanes that have a row of c. */
MR_FN f32 mr_row_top(MR_NEAR u32 *board, f32 x)
{
    for (u32 away = 1; away <= 2; away *= 2) {
        f32 other = mr_of_lane(board, x, away);
        x = other > x ? other : x;
    }
    return x;
}

MR_FN f32 mr_row_sum(MR_NEAR u32 *board, f32 x)
{
    for (u32 away = 1; away <= 2; away *= 2)
        x += mr_of_lane(board, x, away);
    return x;
}
#endif
