/* attention_mma.cl - attention of bf16 with MR_MMA: the kernels of attention.cl with products of tiles by tensor cores.
 * Invariant: scores, probabilities and sums are float32; what enters a product is bf16: q, k, v and d_out as they are,
 * probabilities and slopes rounded.  A group goes through the same tiles as a whole.
 *
 *      group        128 lanes; 64 rows ("few"), 16 per 32 lanes, walk over the others ("many") 64 at a time
 *      tiles        [64 rows][64 columns + 8] of bf16, in words of two columns; turned: [64 columns][64 rows + 8]
 *      lane         g = lane / 4 % 8, t = lane % 4: rows `own` and own + 8 of the group, of a tile's 64 columns 16:
 *                   2t, 2t + 1, 2t + 8, 2t + 9, ...; its number i of row h is at MR_AT(h, i), column MR_COLUMN_OF(i)
 *      heads        columns of out, d_q, d_k and d_v are summed 64 at a time, each with all scores again
 */
#ifdef MR_MMA
#define MR_SIDE 64
#define MR_WORDS (MR_SIDE / 2 + 4) /* of a tile's row: lanes g, t read different banks */
#define MR_NUMBERS 32 /* of a lane, of 64 x 64 of the group's */
#define MR_AT(h, i) ((i) / 2 * 4 + 2 * (h) + (i) % 2)
#define MR_COLUMN_OF(i) ((i) / 2 * 8 + 2 * (MR_LANE() % 4) + (i) % 2)
#define MR_TILES                                                                                                       \
    MR_SHARED_WORDS u32 few_tile[MR_SIDE * MR_WORDS];                                                                  \
    MR_SHARED_WORDS u32 many_tile[MR_SIDE * MR_WORDS];                                                                 \
    MR_SHARED u32 board[MR_BOARD(MR_ATTENTION_LANES)]
#define MR_OWN (MR_LANE() / MR_WARP * 16 + MR_LANE() % MR_WARP / 4)

/* Eight numbers as four words, 0 beyond `count`. */
MR_FN void mr_eight(u32 *words, MR_GLOBAL const u16 *x, u32 count, u32 aligned)
{
    if (aligned && count >= 8) {
        MR_GET_WORDS(words, x);
        return;
    }
    MR_UNROLL
    for (u32 i = 0; i < 4; i++) {
        u32 low = 2 * i < count ? x[2 * i] : 0, high = 2 * i + 1 < count ? x[2 * i + 1] : 0;
        words[i] = low | high << 16;
    }
}

MR_FN u32 mr_count_of(u32 r, u32 rows, u32 c, u32 columns)
{
    return r >= rows || c >= columns ? 0 : columns - c < 8 ? columns - c : 8;
}

MR_FN u32 mr_is_aligned(MR_GLOBAL const u16 *x, u64 stride)
{
    return ((u64)x | stride * 2) % 16 == 0;
}

/* A complete tile needs no checks. */
MR_FN void mr_load(MR_NEAR u32 *tile, MR_GLOBAL const u16 *x, u64 stride, u32 rows, u32 columns)
{
    u32 aligned = mr_is_aligned(x, stride), first = MR_LANE() / 8, c = MR_LANE() % 8 * 8, words[4];
    if (aligned && rows >= MR_SIDE && columns >= MR_SIDE) {
        MR_UNROLL
        for (u32 r = first; r < MR_SIDE; r += MR_ATTENTION_LANES / 8) {
            MR_GET_WORDS(words, x + r * stride + c);
            MR_PUT_NEAR(tile + r * MR_WORDS + c / 2, words);
        }
        return;
    }
    for (u32 r = first; r < MR_SIDE; r += MR_ATTENTION_LANES / 8) {
        mr_eight(words, x + r * stride + c, mr_count_of(r, rows, c, columns), aligned);
        MR_PUT_NEAR(tile + r * MR_WORDS + c / 2, words);
    }
}

MR_FN void mr_load_turned(MR_NEAR u32 *tile, MR_GLOBAL const u16 *x, u64 stride, u32 rows, u32 columns)
{
    u32 aligned = mr_is_aligned(x, stride), whole = aligned && rows >= MR_SIDE && columns >= MR_SIDE;
    for (u32 i = MR_LANE(); i < MR_SIDE / 2 * 8; i += MR_ATTENTION_LANES) {
        u32 r = i % (MR_SIDE / 2) * 2, c = i / (MR_SIDE / 2) * 8, upper[4], lower[4];
        if (whole) {
            MR_GET_WORDS(upper, x + r * stride + c);
            MR_GET_WORDS(lower, x + (r + 1) * stride + c);
        } else {
            mr_eight(upper, x + r * stride + c, mr_count_of(r, rows, c, columns), aligned);
            mr_eight(lower, x + (r + 1) * stride + c, mr_count_of(r + 1, rows, c, columns), aligned);
        }
        MR_UNROLL
        for (u32 k = 0; k < 4; k++) {
            tile[(c + 2 * k) * MR_WORDS + r / 2] = (upper[k] & 0xffffU) | lower[k] << 16;
            tile[(c + 2 * k + 1) * MR_WORDS + r / 2] = upper[k] >> 16 | (lower[k] & 0xffff0000U);
        }
    }
}

/* s = few . many, over `width` columns; `fews` and `manys` rows are there.  After the first tile of many, few_tile still
 * has all columns of few, unless they are more than it holds. */
MR_FN void mr_scores(MR_NEAR u32 *few_tile, MR_NEAR u32 *many_tile, MR_NEAR u32 *board, MR_GLOBAL const u16 *few,
                     u64 few_stride, u32 fews, MR_GLOBAL const u16 *many, u64 many_stride, u32 manys, u32 width,
                     u32 first, f32 *s)
{
    u32 lane = MR_LANE() % MR_WARP, g = lane / 4, t = lane % 4;
    MR_UNROLL
    for (u32 i = 0; i < MR_NUMBERS; i++)
        s[i] = 0;
    for (u32 at = 0; at < width; at += MR_SIDE) {
        if (!first || width > MR_SIDE)
            mr_load(few_tile, few + at, few_stride, fews, width - at);
        mr_load(many_tile, many + at, many_stride, manys, width - at);
        MR_BARRIER();
        MR_UNROLL
        for (u32 k = 0; k < MR_SIDE / 16; k++) {
            MR_NEAR const u32 *from = few_tile + MR_OWN * MR_WORDS + k * 8 + t;
            MR_NEAR const u32 *with = many_tile + g * MR_WORDS + k * 8 + t;
            u32 a[4];
            a[0] = from[0];
            a[1] = from[8 * MR_WORDS];
            a[2] = from[4];
            a[3] = from[8 * MR_WORDS + 4];
            MR_UNROLL
            for (u32 n = 0; n < MR_SIDE / 8; n++)
                mr_mma(board, s + 4 * n, a, with[n * 8 * MR_WORDS], with[n * 8 * MR_WORDS + 4]);
        }
        MR_BARRIER();
    }
}

/* sum += weights . many, of `columns` columns; `manys` rows are there.  What a lane has of c is what it needs of a. */
MR_FN void mr_mix(MR_NEAR u32 *tile, MR_NEAR u32 *board, const f32 *weights, MR_GLOBAL const u16 *many, u64 stride,
                  u32 manys, u32 columns, f32 *sum)
{
    u32 lane = MR_LANE() % MR_WARP, g = lane / 4, t = lane % 4;
    mr_load_turned(tile, many, stride, manys, columns);
    MR_BARRIER();
    MR_UNROLL
    for (u32 k = 0; k < MR_SIDE / 16; k++) {
        MR_NEAR const u32 *with = tile + g * MR_WORDS + k * 8 + t;
        u32 a[4];
        MR_UNROLL
        for (u32 i = 0; i < 4; i++)
            a[i] = mr_narrow_two(weights[8 * k + 2 * i], weights[8 * k + 2 * i + 1]);
        MR_UNROLL
        for (u32 n = 0; n < MR_SIDE / 8; n++)
            mr_mma(board, sum + 4 * n, a, with[n * 8 * MR_WORDS], with[n * 8 * MR_WORDS + 4]);
    }
    MR_BARRIER();
}

/* Of the keys `seen` of a tile, those of the lane's columns: a bit for each. */
MR_FN u32 mr_used(MR_GLOBAL const u8 *seen, u32 has_mask, u32 manys)
{
    u32 used = 0;
    MR_UNROLL
    for (u32 i = 0; i < MR_NUMBERS / 2; i++) {
        u32 column = MR_COLUMN_OF(i);
        used |= (column < manys && !(has_mask && !seen[column]) ? 1U : 0U) << i;
    }
    return used;
}

/* Of a lane's numbers, those that dropout keeps: a bit for each; number i of row h is element e[h] + `apart` column. */
MR_FN u32 mr_kept_bits(mr_mask mask, u32 e0, u32 e1, u32 apart)
{
    u32 kept = 0;
    if (!mask.threshold)
        return 0xffffffffU;
    MR_UNROLL
    for (u32 i = 0; i < MR_NUMBERS; i++) {
        u32 h = i / (MR_NUMBERS / 2), k = i % (MR_NUMBERS / 2);
        kept |= (mr_kept(mask, (h ? e1 : e0) + apart * MR_COLUMN_OF(k)) > 0 ? 1U : 0U) << MR_AT(h, k);
    }
    return kept;
}
#define MR_IS_KEPT(kept, h, i) (kept >> MR_AT(h, i) & 1U ? mask.scale : 0.0F)

/* A group's rows of `sum`, times `factor`, to `columns` columns at `to`. */
MR_FN void mr_store(MR_GLOBAL u16 *to, u64 stride, u32 rows, u32 columns, const f32 *sum, f32 factor)
{
    MR_UNROLL
    for (u32 i = 0; i < MR_NUMBERS; i++) {
        u32 h = i / (MR_NUMBERS / 2), k = i % (MR_NUMBERS / 2), r = MR_OWN + 8 * h, column = MR_COLUMN_OF(k);
        if (r < rows && column < columns)
            to[r * stride + column] = mr_narrow(sum[MR_AT(h, k)] * factor);
    }
}

MR_KERNEL(mr_attention_forward, MR_ATTENTION_LANES)
(MR_FORWARD)
{
    MR_TILES;
    MR_AT_QUERIES;
    out += out_at + own_out;
    for (u32 column = 0; column < head_dim; column += MR_SIDE) {
        f32 sum[MR_NUMBERS], p[MR_NUMBERS], most[2], all[2]; /* of a row: largest score so far, sum of exp */
        MR_UNROLL
        for (u32 i = 0; i < MR_NUMBERS; i++)
            sum[i] = 0;
        most[0] = most[1] = -MR_INFINITY;
        all[0] = all[1] = 0;
        for (u32 first = 0; first < keys_per; first += MR_SIDE) {
            u32 manys = keys_per - first < MR_SIDE ? keys_per - first : MR_SIDE;
            u32 used = mr_used(seen + first, has_mask, manys), e = (at.head * queries + at.first + MR_OWN) * keys_per + first;
            u32 kept = mr_kept_bits(mask, e, e + 8 * keys_per, 1);
            mr_scores(few_tile, many_tile, board, q, q_stride, fews, k + first * k_stride, k_stride, manys, head_dim,
                      first, p);
            MR_UNROLL
            for (u32 h = 0; h < 2; h++) {
                f32 top = most[h];
                MR_UNROLL
                for (u32 i = 0; i < MR_NUMBERS / 2; i++) {
                    f32 score = used >> i & 1U ? p[MR_AT(h, i)] * factor : -MR_INFINITY;
                    p[MR_AT(h, i)] = score;
                    top = score > top ? score : top;
                }
                top = mr_row_top(board, top);
                f32 shrink = most[h] == -MR_INFINITY ? 0.0F : exp(most[h] - top);
                most[h] = top;
                all[h] *= shrink;
                MR_UNROLL
                for (u32 i = 0; i < MR_NUMBERS / 2; i++) {
                    f32 share = used >> i & 1U ? exp(p[MR_AT(h, i)] - top) : 0.0F;
                    all[h] += share;
                    p[MR_AT(h, i)] = share * MR_IS_KEPT(kept, h, i);
                    sum[MR_AT(h, i)] *= shrink;
                }
            }
            mr_mix(many_tile, board, p, v + first * v_stride + column, v_stride, manys, head_dim - column, sum);
        }
        MR_UNROLL
        for (u32 h = 0; h < 2; h++) {
            u32 row = MR_OWN + 8 * h;
            all[h] = mr_row_sum(board, all[h]);
            f32 share = all[h] == 0 ? 0.0F : 1 / all[h];
            MR_UNROLL
            for (u32 i = 0; i < MR_NUMBERS / 2; i++)
                sum[MR_AT(h, i)] *= share;
            if (column == 0 && MR_LANE() % 4 == 0 && row < fews)
                saved[2 * row] = all[h] == 0 ? 0.0F : most[h] + log(all[h]);
        }
        mr_store(out + column, out_stride, fews, head_dim - column, sum, 1);
    }
}

MR_KERNEL(mr_attention_back_q, MR_ATTENTION_LANES)
(MR_BACK_Q)
{
    MR_TILES;
    MR_SHARED_WORDS u32 out_tile[MR_SIDE * MR_WORDS];
    MR_AT_QUERIES;
    d_q += d_q_at + own;
    d_out += d_out_at + own_out;
    for (u32 column = 0; column < head_dim; column += MR_SIDE) {
        f32 sum[MR_NUMBERS], s[MR_NUMBERS], d[MR_NUMBERS];
        MR_UNROLL
        for (u32 i = 0; i < MR_NUMBERS; i++)
            sum[i] = 0;
        for (u32 first = 0; first < keys_per; first += MR_SIDE) {
            u32 manys = keys_per - first < MR_SIDE ? keys_per - first : MR_SIDE;
            u32 used = mr_used(seen + first, has_mask, manys), e = (at.head * queries + at.first + MR_OWN) * keys_per + first;
            u32 kept = mr_kept_bits(mask, e, e + 8 * keys_per, 1);
            mr_scores(few_tile, many_tile, board, q, q_stride, fews, k + first * k_stride, k_stride, manys, head_dim,
                      first, s);
            mr_scores(out_tile, many_tile, board, d_out, out_stride, fews, v + first * v_stride, v_stride, manys,
                      head_dim, first, d);
            MR_UNROLL
            for (u32 h = 0; h < 2; h++) {
                u32 row = MR_OWN + 8 * h < fews ? MR_OWN + 8 * h : 0;
                f32 log_sum = saved[2 * row], along = saved[2 * row + 1];
                MR_UNROLL
                for (u32 i = 0; i < MR_NUMBERS / 2; i++) {
                    f32 slope = mr_again(s[MR_AT(h, i)] * factor, log_sum) *
                                (d[MR_AT(h, i)] * MR_IS_KEPT(kept, h, i) - along);
                    s[MR_AT(h, i)] = used >> i & 1U ? slope : 0.0F;
                }
            }
            mr_mix(many_tile, board, s, k + first * k_stride + column, k_stride, manys, head_dim - column, sum);
        }
        mr_store(d_q + column, q_stride, fews, head_dim - column, sum, factor);
    }
}

MR_KERNEL(mr_attention_back_kv, MR_ATTENTION_LANES)
(MR_BACK_KV)
{
    MR_TILES;
    MR_SHARED_WORDS u32 value_tile[MR_SIDE * MR_WORDS];
    u32 there[2]; /* whether a row of the lane counts */
    MR_AT_KEYS;
    MR_UNROLL
    for (u32 h = 0; h < 2; h++)
        there[h] = MR_OWN + 8 * h < fews && !(has_mask && !seen[MR_OWN + 8 * h]);
    for (u32 column = 0; column < head_dim; column += MR_SIDE) {
        f32 sum_k[MR_NUMBERS], sum_v[MR_NUMBERS], s[MR_NUMBERS], d[MR_NUMBERS];
        MR_UNROLL
        for (u32 i = 0; i < MR_NUMBERS; i++)
            sum_k[i] = sum_v[i] = 0;
        for (u32 first = 0; first < queries; first += MR_SIDE) {
            u32 manys = queries - first < MR_SIDE ? queries - first : MR_SIDE;
            u32 e = (at.head * queries + first) * keys_per + at.first + MR_OWN;
            mr_scores(few_tile, many_tile, board, k, k_stride, fews, q + first * q_stride, q_stride, manys, head_dim,
                      first, s);
            mr_scores(value_tile, many_tile, board, v, v_stride, fews, d_out + first * out_stride, out_stride, manys,
                      head_dim, first, d);
            MR_UNROLL
            for (u32 i = 0; i < MR_NUMBERS / 2; i++) {
                u32 asks = MR_COLUMN_OF(i) < manys, query = asks ? first + MR_COLUMN_OF(i) : first;
                f32 log_sum = saved[2 * query], along = saved[2 * query + 1];
                MR_UNROLL
                for (u32 h = 0; h < 2; h++) {
                    f32 scale_of = mr_kept(mask, e + 8 * h + keys_per * MR_COLUMN_OF(i));
                    f32 share = asks && there[h] ? mr_again(s[MR_AT(h, i)] * factor, log_sum) : 0.0F;
                    s[MR_AT(h, i)] = share * scale_of;
                    d[MR_AT(h, i)] = asks && there[h] ? share * (d[MR_AT(h, i)] * scale_of - along) : 0.0F;
                }
            }
            mr_mix(many_tile, board, s, d_out + first * out_stride + column, out_stride, manys, head_dim - column,
                   sum_v);
            mr_mix(many_tile, board, d, q + first * q_stride + column, q_stride, manys, head_dim - column, sum_k);
        }
        mr_store(d_k + column, k_stride, fews, head_dim - column, sum_k, factor);
        mr_store(d_v + column, v_stride, fews, head_dim - column, sum_v, 1);
    }
}
#endif
