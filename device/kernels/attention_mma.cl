/* attention_mma.cl - attention of bf16 with MR_MMA, on CUDA devices alone: the kernels of attention.cl with products of
 * tiles by tensor cores, and tiles that are copied while others are computed with.
 * Invariant: scores, probabilities and sums are float32; what enters a product is bf16: q, k, v and d_out as they are,
 * probabilities and slopes rounded.  A group goes through the same tiles as a whole.
 *
 *      group        64 rows walk over the others 64 at a time, see tiles.cl
 *      saved        of a query: the logarithm to base 2 of its sum, and the sum of d_out * out
 *      wide heads   of more than 64 columns: nothing is copied ahead, and columns of out, d_q, d_k and d_v are summed 64
 *                   at a time, each with all scores again
 *      plain        heads of 64 columns at multiples of 16 bytes, no mask, no dropout: kernels of their own, of fewer
 *                   instructions and registers
 */
#ifdef MR_MMA

/* `plain` is a constant, which takes all else out of a kernel. */
#define MR_IF_PLAIN                                                                                                    \
    if (plain) {                                                                                                       \
        head_dim = MR_SIDE;                                                                                            \
        has_mask = 0;                                                                                                  \
        mask.threshold = 0;                                                                                            \
    }
#define MR_INPUT_VALUES q, q_at, k, k_at, v, v_at, seen, seen_at, saved, saved_at
#define MR_SHAPE_VALUES                                                                                                \
    heads, head_dim, queries, keys_per, q_stride, k_stride, v_stride, out_stride, factor, has_mask, keys, keys_at,     \
        threshold, scale, site

MR_FN void mr_forward(u32 plain, MR_FORWARD)
{
    MR_TILE(q_tile);
    MR_TILE(k_tile);
    MR_TILE(v_tile);
    MR_AT_QUERIES;
    MR_IF_PLAIN;
    out += out_at + own_out;
    mr_rows_of queries_of = mr_matrix(plain, q, q_stride), keys_of = mr_matrix(plain, k, k_stride),
               values = mr_matrix(plain, v, v_stride);
    f32 factor2 = factor * MR_LOG2_E;
    u32 wide = head_dim > MR_SIDE;
    for (u32 column = 0; column < head_dim; column += MR_SIDE) {
        f32 sum[MR_NUMBERS], p[MR_NUMBERS], most[2], all[2]; /* of a row: largest score so far, sum of powers */
        MR_UNROLL
        for (u32 i = 0; i < MR_NUMBERS; i++)
            sum[i] = 0;
        most[0] = most[1] = -MR_INFINITY;
        all[0] = all[1] = 0;
        if (!wide) {
            mr_fetch(q_tile, queries_of, 0, fews, 0, head_dim);
            mr_fetch(k_tile, keys_of, 0, keys_per, 0, head_dim);
        }
        MR_END_BATCH();
        for (u32 first = 0; first < keys_per; first += MR_SIDE) {
            u32 manys = keys_per - first, e = (at.head * queries + at.first + MR_OWN) * keys_per + first;
            MR_AWAIT(0); /* k is there, and v is free */
            if (!wide)
                mr_fetch(v_tile, values, first, manys, 0, head_dim);
            MR_END_BATCH();
            mr_scores(q_tile, queries_of, fews, k_tile, keys_of, first, manys, head_dim, p);
            if (has_mask || manys < MR_SIDE)
                mr_cut(p, seen + first, has_mask, manys, -MR_INFINITY);
            MR_UNROLL
            for (u32 h = 0; h < 2; h++) {
                f32 top = most[h];
                MR_UNROLL
                for (u32 i = 0; i < MR_NUMBERS / 2; i++)
                    top = fmax(top, p[MR_AT(h, i)]);
                top = mr_row_top(top);
                f32 base = top == -MR_INFINITY ? 0.0F : top * factor2;
                f32 shrink = mr_power(MR_MAD(most[h], factor2, -base));
                most[h] = top;
                all[h] *= shrink;
                MR_UNROLL
                for (u32 i = 0; i < MR_NUMBERS / 2; i++) {
                    f32 share = mr_power(MR_MAD(p[MR_AT(h, i)], factor2, -base));
                    all[h] += share;
                    p[MR_AT(h, i)] = share;
                    sum[MR_AT(h, i)] *= shrink;
                }
            }
            if (mask.threshold)
                mr_keep(p, mr_kept_bits(mask, e, keys_per, 1), mask.scale);
            MR_AWAIT(0); /* v is there, and k is free */
            mr_fetch_next(k_tile, keys_of, first, manys, head_dim);
            mr_mix(v_tile, p, values, first, manys, column, head_dim, sum);
        }
        MR_UNROLL
        for (u32 h = 0; h < 2; h++) {
            u32 row = MR_OWN + 8 * h;
            all[h] = mr_row_sum(all[h]);
            f32 share = all[h] == 0 ? 0.0F : 1 / all[h];
            MR_UNROLL
            for (u32 i = 0; i < MR_NUMBERS / 2; i++)
                sum[MR_AT(h, i)] *= share;
            if (column == 0 && MR_LANE() % 4 == 0 && row < fews)
                saved[2 * row] = all[h] == 0 ? 0.0F : MR_MAD(most[h], factor2, log(all[h]) * MR_LOG2_E);
        }
        mr_store(out + column, out_stride, fews, head_dim - column, sum, 1, 3);
    }
}

MR_FN void mr_back_q(u32 plain, MR_BACK_Q)
{
    MR_TILE(q_tile);
    MR_TILE(out_tile);
    MR_TILE(k_tile);
    MR_TILE(v_tile);
    MR_AT_QUERIES;
    MR_IF_PLAIN;
    d_q += d_q_at + own;
    mr_rows_of queries_of = mr_matrix(plain, q, q_stride), keys_of = mr_matrix(plain, k, k_stride),
               values = mr_matrix(plain, v, v_stride), slopes = mr_matrix(plain, d_out + d_out_at + own_out, out_stride);
    f32 factor2 = factor * MR_LOG2_E, log_sum[2], along[2];
    u32 wide = head_dim > MR_SIDE;
    MR_UNROLL
    for (u32 h = 0; h < 2; h++) {
        u32 row = MR_OWN + 8 * h < fews ? MR_OWN + 8 * h : 0;
        log_sum[h] = saved[2 * row];
        along[h] = saved[2 * row + 1];
    }
    for (u32 column = 0; column < head_dim; column += MR_SIDE) {
        f32 sum[MR_NUMBERS], s[MR_NUMBERS], d[MR_NUMBERS];
        MR_UNROLL
        for (u32 i = 0; i < MR_NUMBERS; i++)
            sum[i] = 0;
        if (!wide) {
            mr_fetch(q_tile, queries_of, 0, fews, 0, head_dim);
            mr_fetch(out_tile, slopes, 0, fews, 0, head_dim);
            mr_fetch(v_tile, values, 0, keys_per, 0, head_dim);
            MR_END_BATCH();
            mr_fetch(k_tile, keys_of, 0, keys_per, 0, head_dim);
        }
        MR_END_BATCH();
        for (u32 first = 0; first < keys_per; first += MR_SIDE) {
            u32 manys = keys_per - first, e = (at.head * queries + at.first + MR_OWN) * keys_per + first;
            MR_AWAIT(1); /* v is there */
            mr_scores(out_tile, slopes, fews, v_tile, values, first, manys, head_dim, d);
            MR_AWAIT(0); /* k is there, and v is free */
            mr_fetch_next(v_tile, values, first, manys, head_dim);
            mr_scores(q_tile, queries_of, fews, k_tile, keys_of, first, manys, head_dim, s);
            if (mask.threshold)
                mr_keep(d, mr_kept_bits(mask, e, keys_per, 1), mask.scale);
            MR_UNROLL
            for (u32 h = 0; h < 2; h++)
                MR_UNROLL
                for (u32 i = 0; i < MR_NUMBERS / 2; i++)
                    s[MR_AT(h, i)] = mr_power(MR_MAD(s[MR_AT(h, i)], factor2, -log_sum[h])) * (d[MR_AT(h, i)] - along[h]);
            if (has_mask || manys < MR_SIDE)
                mr_cut(s, seen + first, has_mask, manys, 0);
            mr_mix(k_tile, s, keys_of, first, manys, column, head_dim, sum);
            MR_BARRIER(); /* k is free */
            mr_fetch_next(k_tile, keys_of, first, manys, head_dim);
        }
        mr_store(d_q + column, q_stride, fews, head_dim - column, sum, factor, 3);
    }
}

MR_FN void mr_back_kv(u32 plain, MR_BACK_KV)
{
    MR_TILE(k_tile);
    MR_TILE(v_tile);
    MR_TILE(q_tile);
    MR_TILE(out_tile);
    MR_SHARED_WORDS u32 saved_of[2 * MR_SIDE]; /* of a tile's queries, as they are saved */
    MR_AT_KEYS;
    MR_IF_PLAIN;
    mr_rows_of queries_of = mr_matrix(plain, q, q_stride), keys_of = mr_matrix(plain, k, k_stride),
               values = mr_matrix(plain, v, v_stride), slopes = mr_matrix(plain, d_out, out_stride);
    f32 factor2 = factor * MR_LOG2_E;
    u32 wide = head_dim > MR_SIDE, there = 0; /* whether a row of the lane counts */
    MR_UNROLL
    for (u32 h = 0; h < 2; h++)
        there |= (MR_OWN + 8 * h < fews && !(has_mask && !seen[MR_OWN + 8 * h]) ? 1U : 0U) << h;
    for (u32 column = 0; column < head_dim; column += MR_SIDE) {
        f32 sum_k[MR_NUMBERS], sum_v[MR_NUMBERS], s[MR_NUMBERS], d[MR_NUMBERS];
        MR_UNROLL
        for (u32 i = 0; i < MR_NUMBERS; i++)
            sum_k[i] = sum_v[i] = 0;
        if (!wide) {
            mr_fetch(k_tile, keys_of, 0, fews, 0, head_dim);
            mr_fetch(v_tile, values, 0, fews, 0, head_dim);
            mr_fetch(out_tile, slopes, 0, queries, 0, head_dim);
            MR_END_BATCH();
            mr_fetch(q_tile, queries_of, 0, queries, 0, head_dim);
        }
        MR_END_BATCH();
        for (u32 first = 0; first < queries; first += MR_SIDE) {
            u32 manys = queries - first, e = (at.head * queries + first) * keys_per + at.first + MR_OWN, kept = 0;
            saved_of[MR_LANE()] = MR_LANE() < 2 * manys ? MR_BITS(saved[2 * first + MR_LANE()]) : 0;
            MR_AWAIT(1); /* d_out is there */
            mr_scores(v_tile, values, fews, out_tile, slopes, first, manys, head_dim, d);
            MR_AWAIT(0); /* q is there */
            mr_scores(k_tile, keys_of, fews, q_tile, queries_of, first, manys, head_dim, s);
            if (mask.threshold) {
                kept = mr_kept_bits(mask, e, 1, keys_per);
                mr_keep(d, kept, mask.scale);
            }
            MR_UNROLL
            for (u32 i = 0; i < MR_NUMBERS / 2; i += 2) {
                u32 two[4]; /* what is saved of two queries */
                MR_GET_WORDS(two, saved_of + 2 * MR_COLUMN_OF(i));
                MR_UNROLL
                for (u32 j = 0; j < 4; j++) {
                    u32 n = MR_AT(j / 2, i + j % 2);
                    s[n] = mr_power(MR_MAD(s[n], factor2, -MR_OF_BITS(two[j % 2 * 2])));
                    d[n] = s[n] * (d[n] - MR_OF_BITS(two[j % 2 * 2 + 1]));
                }
            }
            if (mask.threshold)
                mr_keep(s, kept, mask.scale);
            if (manys < MR_SIDE) {
                mr_cut(s, seen, 0, manys, 0);
                mr_cut(d, seen, 0, manys, 0);
            }
            mr_mix(out_tile, s, slopes, first, manys, column, head_dim, sum_v);
            MR_BARRIER(); /* d_out is free */
            mr_fetch_next(out_tile, slopes, first, manys, head_dim);
            mr_mix(q_tile, d, queries_of, first, manys, column, head_dim, sum_k);
            MR_BARRIER(); /* q is free */
            mr_fetch_next(q_tile, queries_of, first, manys, head_dim);
        }
        mr_store(d_k + column, k_stride, fews, head_dim - column, sum_k, factor, there);
        mr_store(d_v + column, v_stride, fews, head_dim - column, sum_v, 1, there);
    }
}

MR_KERNEL(mr_attention_forward, MR_ATTENTION_LANES)
(MR_FORWARD)
{
    mr_forward(0, MR_INPUT_VALUES, out, out_at, MR_SHAPE_VALUES);
}

MR_KERNEL(mr_attention_forward_plain, MR_ATTENTION_LANES)
(MR_FORWARD)
{
    mr_forward(1, MR_INPUT_VALUES, out, out_at, MR_SHAPE_VALUES);
}

MR_KERNEL(mr_attention_back_q, MR_ATTENTION_LANES)
(MR_BACK_Q)
{
    mr_back_q(0, MR_INPUT_VALUES, d_out, d_out_at, d_q, d_q_at, MR_SHAPE_VALUES);
}

MR_KERNEL(mr_attention_back_q_plain, MR_ATTENTION_LANES)
(MR_BACK_Q)
{
    mr_back_q(1, MR_INPUT_VALUES, d_out, d_out_at, d_q, d_q_at, MR_SHAPE_VALUES);
}

MR_KERNEL(mr_attention_back_kv, MR_ATTENTION_LANES)
(MR_BACK_KV)
{
    mr_back_kv(0, MR_INPUT_VALUES, d_out, d_out_at, d_k, d_k_at, d_v, d_v_at, MR_SHAPE_VALUES);
}

MR_KERNEL(mr_attention_back_kv_plain, MR_ATTENTION_LANES)
(MR_BACK_KV)
{
    mr_back_kv(1, MR_INPUT_VALUES, d_out, d_out_at, d_k, d_k_at, d_v, d_v_at, MR_SHAPE_VALUES);
}
#endif
