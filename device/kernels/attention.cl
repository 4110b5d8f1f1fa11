/* attention.cl - attention in tiles: a group holds a few rows and walks over the others, 64 at a time, and no matrix of
 * queries x keys is ever stored (T. Dao, "FlashAttention-2", arXiv 2307.08691).
 * Invariant: kept for the backward pass are two floats per sample, head and query: log sum exp, and the sum of
 * d_out * out; the probabilities are computed again.
 *
 *      forward, d_q:   MR_FEW queries of a group  x  tiles of 64 keys, one per lane
 *      d_k, d_v:       MR_FEW keys of a group     x  tiles of 64 queries, one per lane
 *      sums            lane i has columns i, i + 64, ... of each of the few rows, up to MR_HEAD_MAX
 */
#ifdef MR_MMA /* attention_mma.cl */
#define MR_FEW 64
#define MR_ATTENTION_LANES 128
#else
#define MR_FEW 8
#define MR_ATTENTION_LANES MR_WIDTH
#define MR_CHUNK 32 /* columns of a tile at a time */
#define MR_HEAD_MAX 256
#define MR_SPREAD (MR_HEAD_MAX / MR_WIDTH) /* columns per lane */
#endif

#define MR_SHAPE                                                                                                       \
    u32 heads, u32 head_dim, u32 queries, u32 keys_per, u64 q_stride, u64 k_stride, u64 v_stride, u64 out_stride,      \
        f32 factor, u32 has_mask

/* Arguments of the kernels, here and in attention_mma.cl. */
#define MR_INPUTS                                                                                                      \
    MR_SPOT MR_TENSOR(const mr_real, q), MR_TENSOR(const mr_real, k), MR_TENSOR(const mr_real, v),                     \
        MR_TENSOR(const u8, seen)
#define MR_FORWARD MR_INPUTS, MR_TENSOR(f32, saved), MR_TENSOR(mr_real, out), MR_SHAPE, MR_DROPOUT
#define MR_BACK    MR_INPUTS, MR_TENSOR(const f32, saved), MR_TENSOR(const mr_real, d_out)
#define MR_BACK_Q  MR_BACK, MR_TENSOR(mr_real, d_q), MR_SHAPE, MR_DROPOUT
#define MR_BACK_KV MR_BACK, MR_TENSOR(mr_real, d_k), MR_TENSOR(mr_real, d_v), MR_SHAPE, MR_DROPOUT

typedef struct mr_place { /* of a group */
    u32 sample, head, first; /* the first of its few rows */
} mr_place;

MR_FN mr_place mr_place_of(u32 heads, u32 rows)
{
    mr_place p;
    u32 blocks = (rows + MR_FEW - 1) / MR_FEW, task = MR_GROUP_ID() / blocks;
    p.first = MR_GROUP_ID() % blocks * MR_FEW;
    p.sample = task / heads;
    p.head = task % heads;
    return p;
}

/* Where a group that has a few queries begins, and how many it has; likewise one that has a few keys. */
#define MR_AT_QUERIES                                                                                                  \
    mr_place at = mr_place_of(heads, queries);                                                                         \
    u32 fews = queries - at.first < MR_FEW ? queries - at.first : MR_FEW;                                              \
    mr_mask mask = MR_MASK_OF(at.sample);                                                                              \
    u64 own = ((u64)at.sample * queries + at.first) * q_stride + at.head * head_dim;                                   \
    u64 own_out = ((u64)at.sample * queries + at.first) * out_stride + at.head * head_dim;                             \
    q += q_at + own;                                                                                                   \
    k += k_at + (u64)at.sample * keys_per * k_stride + at.head * head_dim;                                             \
    v += v_at + (u64)at.sample * keys_per * v_stride + at.head * head_dim;                                             \
    seen += seen_at + (u64)at.sample * keys_per;                                                                       \
    saved += saved_at + (((u64)at.sample * heads + at.head) * queries + at.first) * 2
#define MR_AT_KEYS                                                                                                     \
    mr_place at = mr_place_of(heads, keys_per);                                                                        \
    u32 fews = keys_per - at.first < MR_FEW ? keys_per - at.first : MR_FEW;                                            \
    mr_mask mask = MR_MASK_OF(at.sample);                                                                              \
    u64 own_k = ((u64)at.sample * keys_per + at.first) * k_stride + at.head * head_dim;                                \
    u64 own_v = ((u64)at.sample * keys_per + at.first) * v_stride + at.head * head_dim;                                \
    k += k_at + own_k;                                                                                                 \
    v += v_at + own_v;                                                                                                 \
    d_k += d_k_at + own_k;                                                                                             \
    d_v += d_v_at + own_v;                                                                                             \
    q += q_at + (u64)at.sample * queries * q_stride + at.head * head_dim;                                              \
    d_out += d_out_at + (u64)at.sample * queries * out_stride + at.head * head_dim;                                    \
    seen += seen_at + (u64)at.sample * keys_per + at.first;                                                            \
    saved += saved_at + ((u64)at.sample * heads + at.head) * queries * 2

/* Before the backward passes: the sum of d_out * out of each query. */
MR_KERNEL(mr_attention_along, MR_WIDTH)
(MR_SPOT MR_TENSOR(const mr_real, out), MR_TENSOR(const mr_real, d_out), MR_TENSOR(f32, saved), u32 heads, u32 head_dim,
 u32 queries, u64 out_stride, u32 rows, u32 aligned)
{
    u32 task = MR_ITEM(), query = task % queries, head = task / queries % heads, sample = task / queries / heads;
    u64 at = ((u64)sample * queries + query) * out_stride + head * head_dim;
    f32 sum = 0, x[MR_EIGHT], d_x[MR_EIGHT];
    out += out_at + at;
    d_out += d_out_at + at;
    MR_START(saved);
    if (task >= rows)
        return;
    for (u32 i = 0; i < head_dim; i += MR_EIGHT) {
        mr_get_eight(x, out + i, head_dim - i, aligned);
        mr_get_eight(d_x, d_out + i, head_dim - i, aligned);
        MR_UNROLL
        for (u32 j = 0; j < MR_EIGHT; j++)
            sum = MR_MAD(d_x[j], x[j], sum);
    }
    saved[2 * (u64)task + 1] = sum;
}

#ifndef MR_MMA
/* The probability of a score, again. */
MR_FN f32 mr_again(f32 score, f32 log_sum)
{
    return exp(score < log_sum ? score - log_sum : 0.0F);
}

/* s[r] += few[r] . many[lane], over `width` columns; `fews` and `manys` rows are there.
 * tile: f32[64 (MR_CHUNK + 1)], rows: f32[MR_FEW MR_CHUNK]. */
MR_FN void mr_scores(MR_NEAR f32 *tile, MR_NEAR f32 *rows, MR_GLOBAL const mr_real *few, u64 few_stride, u32 fews,
                     MR_GLOBAL const mr_real *many, u64 many_stride, u32 manys, u32 width, f32 *s)
{
    u32 lane = MR_LANE();
    for (u32 at = 0; at < width; at += MR_CHUNK) {
        u32 columns = width - at < MR_CHUNK ? width - at : MR_CHUNK;
        for (u32 i = lane; i < MR_WIDTH * MR_CHUNK; i += MR_WIDTH) {
            u32 r = i / MR_CHUNK, c = i % MR_CHUNK;
            tile[r * (MR_CHUNK + 1) + c] = r < manys && c < columns ? MR_GET(many[r * many_stride + at + c]) : 0.0F;
        }
        for (u32 i = lane; i < MR_FEW * MR_CHUNK; i += MR_WIDTH) {
            u32 r = i / MR_CHUNK, c = i % MR_CHUNK;
            rows[i] = r < fews && c < columns ? MR_GET(few[r * few_stride + at + c]) : 0.0F;
        }
        MR_BARRIER();
        for (u32 c = 0; c < columns; c++) {
            f32 x = tile[lane * (MR_CHUNK + 1) + c];
            for (u32 r = 0; r < MR_FEW; r++)
                s[r] = MR_MAD(rows[r * MR_CHUNK + c], x, s[r]);
        }
        MR_BARRIER();
    }
}

/* sum[r] += over the tile's rows j: weights[r][j] * many[j], each lane its columns; weights: f32[MR_FEW][64]. */
MR_FN void mr_mix(MR_NEAR const f32 *weights, MR_GLOBAL const mr_real *many, u64 stride, u32 manys, u32 width, f32 *sum)
{
    for (u32 c = 0; c < MR_SPREAD; c++) {
        u32 column = c * MR_WIDTH + MR_LANE();
        for (u32 j = 0; j < manys && column < width; j++) {
            f32 x = MR_GET(many[j * stride + column]);
            for (u32 r = 0; r < MR_FEW; r++)
                sum[c * MR_FEW + r] = MR_MAD(weights[r * MR_WIDTH + j], x, sum[c * MR_FEW + r]);
        }
    }
}

MR_KERNEL(mr_attention_forward, MR_ATTENTION_LANES)
(MR_FORWARD)
{
    MR_SHARED f32 tile[MR_WIDTH * (MR_CHUNK + 1)];
    MR_SHARED f32 rows[MR_FEW * MR_CHUNK];
    MR_SHARED f32 p[MR_FEW * MR_WIDTH];
    MR_SHARED f32 most[MR_FEW], shrink[MR_FEW], all[MR_FEW]; /* largest score so far, its change, sum of exp */
    f32 sum[MR_SPREAD * MR_FEW], s[MR_FEW];
    u32 lane = MR_LANE();
    MR_AT_QUERIES;
    out += out_at + own_out;
    for (u32 i = 0; i < MR_SPREAD * MR_FEW; i++)
        sum[i] = 0;
    if (lane < MR_FEW) {
        most[lane] = -MR_INFINITY;
        all[lane] = 0;
    }
    for (u32 first = 0; first < keys_per; first += MR_WIDTH) {
        u32 manys = keys_per - first < MR_WIDTH ? keys_per - first : MR_WIDTH;
        u32 used = lane < manys && !(has_mask && !seen[first + lane < keys_per ? first + lane : first]);
        for (u32 r = 0; r < MR_FEW; r++)
            s[r] = 0;
        mr_scores(tile, rows, q, q_stride, fews, k + first * k_stride, k_stride, manys, head_dim, s);
        for (u32 r = 0; r < MR_FEW; r++)
            p[r * MR_WIDTH + lane] = used ? s[r] * factor : -MR_INFINITY;
        MR_BARRIER();
        if (lane < MR_FEW) {
            f32 top = most[lane];
            for (u32 j = 0; j < MR_WIDTH; j++)
                top = p[lane * MR_WIDTH + j] > top ? p[lane * MR_WIDTH + j] : top;
            shrink[lane] = most[lane] == -MR_INFINITY ? 0.0F : exp(most[lane] - top);
            most[lane] = top;
        }
        MR_BARRIER();
        for (u32 r = 0; r < MR_FEW; r++)
            p[r * MR_WIDTH + lane] = used ? exp(p[r * MR_WIDTH + lane] - most[r]) : 0.0F;
        MR_BARRIER();
        if (lane < MR_FEW) {
            f32 part = 0;
            for (u32 j = 0; j < MR_WIDTH; j++)
                part += p[lane * MR_WIDTH + j];
            all[lane] = all[lane] * shrink[lane] + part;
        }
        MR_BARRIER();
        for (u32 r = 0; r < MR_FEW; r++)
            p[r * MR_WIDTH + lane] *= mr_kept(mask, ((at.head * queries + at.first + r) * keys_per) + first + lane);
        for (u32 i = 0; i < MR_SPREAD * MR_FEW; i++)
            sum[i] *= shrink[i % MR_FEW];
        MR_BARRIER();
        mr_mix(p, v + first * v_stride, v_stride, manys, head_dim, sum);
        MR_BARRIER();
    }
    for (u32 i = 0; i < MR_SPREAD * MR_FEW; i++) {
        u32 r = i % MR_FEW, column = i / MR_FEW * MR_WIDTH + lane;
        if (r < fews && column < head_dim)
            out[r * out_stride + column] = MR_PUT(all[r] == 0 ? 0.0F : sum[i] / all[r]);
    }
    if (lane < fews)
        saved[2 * lane] = all[lane] == 0 ? 0.0F : most[lane] + log(all[lane]);
}

MR_KERNEL(mr_attention_back_q, MR_ATTENTION_LANES)
(MR_BACK_Q)
{
    MR_SHARED f32 tile[MR_WIDTH * (MR_CHUNK + 1)];
    MR_SHARED f32 rows[MR_FEW * MR_CHUNK];
    MR_SHARED f32 p[MR_FEW * MR_WIDTH];
    f32 sum[MR_SPREAD * MR_FEW], s[MR_FEW], d[MR_FEW];
    u32 lane = MR_LANE();
    MR_AT_QUERIES;
    d_q += d_q_at + own;
    d_out += d_out_at + own_out;
    for (u32 i = 0; i < MR_SPREAD * MR_FEW; i++)
        sum[i] = 0;
    for (u32 first = 0; first < keys_per; first += MR_WIDTH) {
        u32 manys = keys_per - first < MR_WIDTH ? keys_per - first : MR_WIDTH;
        u32 used = lane < manys && !(has_mask && !seen[first + lane < keys_per ? first + lane : first]);
        for (u32 r = 0; r < MR_FEW; r++)
            s[r] = d[r] = 0;
        mr_scores(tile, rows, q, q_stride, fews, k + first * k_stride, k_stride, manys, head_dim, s);
        mr_scores(tile, rows, d_out, out_stride, fews, v + first * v_stride, v_stride, manys, head_dim, d);
        for (u32 r = 0; r < MR_FEW; r++) {
            u32 own_row = r < fews ? r : 0;
            f32 kept = mr_kept(mask, (at.head * queries + at.first + r) * keys_per + first + lane);
            f32 slope = mr_again(s[r] * factor, saved[2 * own_row]) * (d[r] * kept - saved[2 * own_row + 1]);
            p[r * MR_WIDTH + lane] = used && r < fews ? slope : 0.0F;
        }
        MR_BARRIER();
        mr_mix(p, k + first * k_stride, k_stride, manys, head_dim, sum);
        MR_BARRIER();
    }
    for (u32 i = 0; i < MR_SPREAD * MR_FEW; i++) {
        u32 r = i % MR_FEW, column = i / MR_FEW * MR_WIDTH + lane;
        if (r < fews && column < head_dim)
            d_q[r * q_stride + column] = MR_PUT(sum[i] * factor);
    }
}

MR_KERNEL(mr_attention_back_kv, MR_ATTENTION_LANES)
(MR_BACK_KV)
{
    MR_SHARED f32 tile[MR_WIDTH * (MR_CHUNK + 1)];
    MR_SHARED f32 rows[MR_FEW * MR_CHUNK];
    MR_SHARED f32 p[MR_FEW * MR_WIDTH];
    MR_SHARED f32 slopes[MR_FEW * MR_WIDTH];
    f32 sum_k[MR_SPREAD * MR_FEW], sum_v[MR_SPREAD * MR_FEW], s[MR_FEW], d[MR_FEW];
    u32 lane = MR_LANE();
    MR_AT_KEYS;
    for (u32 i = 0; i < MR_SPREAD * MR_FEW; i++)
        sum_k[i] = sum_v[i] = 0;
    for (u32 first = 0; first < queries; first += MR_WIDTH) {
        u32 manys = queries - first < MR_WIDTH ? queries - first : MR_WIDTH, own = lane < manys ? first + lane : first;
        for (u32 r = 0; r < MR_FEW; r++)
            s[r] = d[r] = 0;
        mr_scores(tile, rows, k, k_stride, fews, q + first * q_stride, q_stride, manys, head_dim, s);
        mr_scores(tile, rows, v, v_stride, fews, d_out + first * out_stride, out_stride, manys, head_dim, d);
        for (u32 r = 0; r < MR_FEW; r++) {
            u32 used = lane < manys && r < fews && !(has_mask && !seen[r < fews ? r : 0]);
            f32 kept = mr_kept(mask, (at.head * queries + own) * keys_per + at.first + r);
            f32 share = used ? mr_again(s[r] * factor, saved[2 * own]) : 0.0F;
            p[r * MR_WIDTH + lane] = share * kept;
            slopes[r * MR_WIDTH + lane] = used ? share * (d[r] * kept - saved[2 * own + 1]) : 0.0F;
        }
        MR_BARRIER();
        mr_mix(p, d_out + first * out_stride, out_stride, manys, head_dim, sum_v);
        mr_mix(slopes, q + first * q_stride, q_stride, manys, head_dim, sum_k);
        MR_BARRIER();
    }
    for (u32 i = 0; i < MR_SPREAD * MR_FEW; i++) {
        u32 r = i % MR_FEW, column = i / MR_FEW * MR_WIDTH + lane;
        if (r < fews && column < head_dim) {
            d_k[r * k_stride + column] = MR_PUT(sum_k[i] * factor);
            d_v[r * v_stride + column] = MR_PUT(sum_v[i]);
        }
    }
}
#endif
