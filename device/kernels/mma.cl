/* mma.cl - what a warp of 32 lanes computes together, with MR_MMA: products of small tiles of bf16 with float32 sums on
 * the tensor cores of CUDA devices of 8.0 and later, fragments of tiles, and copies to a tile that run ahead.
 * Invariant: a fragment is laid out as in the PTX ISA ("Matrix Fragments for mma.m16n8k16", .bf16 and .f32), and all
 * lanes of a warp reach a product or a fragment together.
 *
 *      g = lane / 4, t = lane % 4, a word is two numbers, the first one below
 *      a    [16 rows][16]       words: row g, from 2t | row g + 8, from 2t | row g, from 2t + 8 | row g + 8, from 2t + 8
 *      b    [16][8 columns]     words: column g, from row 2t | column g, from row 2t + 8
 *      c    [16 rows][8]        floats: row g, 2t | row g, 2t + 1 | row g + 8, 2t | row g + 8, 2t + 1
 */
#ifdef MR_MMA
#define MR_WARP 32

/* c += a b. */
MR_FN void mr_mma(f32 *c, const u32 *a, const u32 *b)
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

/* ---- fragments of tiles ------------------------------------------------------------------------------------------ */

MR_FN u32 mr_near_address(MR_NEAR const u32 *x)
{
    return (u32)__cvta_generic_to_shared(x);
}

/* Four squares of 8 rows of 8 numbers: lane i says where row i % 8 of square i / 8 is, at a multiple of 16 bytes, and
 * gets word t of row g of each square. */
MR_FN void mr_get_squares(u32 *words, MR_NEAR const u32 *row)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
                 : "r"(mr_near_address(row)));
}

/* The same for the squares transposed: numbers 2t and 2t + 1 of column g. */
MR_FN void mr_get_turned(u32 *words, MR_NEAR const u32 *row)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
                 : "r"(mr_near_address(row)));
}

/* ---- copies that run ahead --------------------------------------------------------------------------------------- */

/* 16 bytes to the group's memory, of which `bytes` are read and the others become 0; both addresses are multiples of
 * 16.  Copies belong to the batch that their lane ends next. */
MR_FN void mr_copy_ahead(MR_NEAR u32 *to, MR_GLOBAL const u16 *from, u32 bytes)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                 :
                 : "r"(mr_near_address(to)), "l"(from), "r"(bytes)
                 : "memory");
}

#define MR_END_BATCH() asm volatile("cp.async.commit_group;" : : : "memory")
/* All lanes have their copies, but for those of each one's last `later` batches. */
#define MR_AWAIT(later)                                                                                                \
    asm volatile("cp.async.wait_group " #later ";" : : : "memory");                                                    \
    MR_BARRIER()

/* ---- rows of c --------------------------------------------------------------------------------------------------- */

/* Over the four lanes that have a row of c. */
MR_FN f32 mr_row_top(f32 x)
{
    for (u32 away = 1; away <= 2; away *= 2)
        x = fmax(x, mr_of_lane(x, away));
    return x;
}

MR_FN f32 mr_row_sum(f32 x)
{
    for (u32 away = 1; away <= 2; away *= 2)
        x += mr_of_lane(x, away);
    return x;
}
#endif
