/* rows.cl - operations on rows: layer norm, unit vectors, cross entropy; a group of MR_WIDTH lanes per row.
 * Invariant: a lane works on the same elements of the row in every pass, so that a row may be overwritten: for norms
 * MR_EIGHT from MR_EIGHT i, MR_EIGHT (i + MR_WIDTH) ..., otherwise i, i + MR_WIDTH ... */
#define MR_FOR_EIGHTS(i, lane, width) for (u32 i = (lane)*MR_EIGHT; i < (width); i += MR_WIDTH * MR_EIGHT)

MR_KERNEL(mr_norm, MR_WIDTH)
(MR_SPOT MR_TENSOR(const mr_real, x), MR_TENSOR(const mr_real, residual), MR_TENSOR(mr_real, total), MR_TENSOR(mr_real, y),
 MR_TENSOR(const f32, gain), MR_TENSOR(const f32, bias), MR_TENSOR(f32, mean), MR_TENSOR(f32, rstd), u32 width,
 u32 sample_rows, f32 eps, u32 has_residual, u32 has_total, u32 has_y, u32 whole, MR_DROPOUT)
{
    MR_SHARED f32 part[MR_WIDTH];
    u32 row = MR_GROUP_ID(), lane = MR_LANE(), sample = sample_rows ? row / sample_rows : 0;
    u32 first = (row - sample * sample_rows) * width;
    u64 at = (u64)row * width;
    f32 sum = 0, squares = 0, t[MR_EIGHT], more[MR_EIGHT], scale_of[MR_EIGHT];
    MR_START(x);
    MR_START(residual);
    MR_START(total);
    MR_START(y);
    MR_START(gain);
    MR_START(bias);
    MR_START(mean);
    MR_START(rstd);
    mr_mask mask = MR_MASK_OF(sample);
    MR_FOR_EIGHTS (i, lane, width) {
        mr_get_eight(t, x + at + i, width - i, whole);
        if (has_total) { /* its norm is that of the stored sum: a model that recomputes it gets the same bits */
            MR_UNROLL
            for (u32 k = 0; k < MR_EIGHT; k++) {
                t[k] *= mr_kept(mask, first + i + k);
                more[k] = 0;
            }
            if (has_residual)
                mr_get_eight(more, residual + at + i, width - i, whole);
            MR_UNROLL
            for (u32 k = 0; k < MR_EIGHT; k++)
                t[k] = MR_GET(MR_PUT(t[k] + more[k]));
            mr_put_eight(total + at + i, t, width - i, whole);
        }
        MR_UNROLL
        for (u32 k = 0; k < MR_EIGHT; k++)
            sum += t[k];
    }
    if (!has_y)
        return;
    if (has_total)
        x = total;
    f32 middle = mr_group_sum(part, sum) / (f32)width;
    MR_FOR_EIGHTS (i, lane, width) {
        mr_get_eight(t, x + at + i, width - i, whole);
        MR_UNROLL
        for (u32 k = 0; k < MR_EIGHT; k++)
            squares += i + k < width ? (t[k] - middle) * (t[k] - middle) : 0.0F;
    }
    f32 inverse = 1 / sqrt(mr_group_sum(part, squares) / (f32)width + eps);
    MR_FOR_EIGHTS (i, lane, width) {
        mr_get_eight(t, x + at + i, width - i, whole);
        mr_get_floats(scale_of, gain + i, width - i, whole);
        mr_get_floats(more, bias + i, width - i, whole);
        MR_UNROLL
        for (u32 k = 0; k < MR_EIGHT; k++)
            t[k] = (t[k] - middle) * inverse * scale_of[k] + more[k];
        mr_put_eight(y + at + i, t, width - i, whole);
    }
    if (lane == 0) {
        mean[row] = middle;
        rstd[row] = inverse;
    }
}

/* With g = d_y gain and h = (total - mean) rstd:  d_total = rstd (g - mean(g) - h mean(g h)). */
MR_KERNEL(mr_norm_back, MR_WIDTH)
(MR_SPOT MR_TENSOR(const mr_real, d_y), MR_TENSOR(const mr_real, total), MR_TENSOR(const f32, gain),
 MR_TENSOR(const f32, mean), MR_TENSOR(const f32, rstd), MR_TENSOR(const mr_real, d_residual),
 MR_TENSOR(mr_real, d_total), u32 width, u32 has_residual, u32 whole)
{
    MR_SHARED f32 part[MR_WIDTH];
    u32 row = MR_GROUP_ID(), lane = MR_LANE();
    u64 at = (u64)row * width;
    f32 sum = 0, product = 0, d[MR_EIGHT], h[MR_EIGHT], g[MR_EIGHT];
    MR_START(d_y);
    MR_START(total);
    MR_START(gain);
    MR_START(mean);
    MR_START(rstd);
    MR_START(d_residual);
    MR_START(d_total);
    f32 middle = mean[row], inverse = rstd[row];
    MR_FOR_EIGHTS (i, lane, width) {
        mr_get_eight(d, d_y + at + i, width - i, whole);
        mr_get_eight(h, total + at + i, width - i, whole);
        mr_get_floats(g, gain + i, width - i, whole);
        MR_UNROLL
        for (u32 k = 0; k < MR_EIGHT; k++) { /* past the end g is 0 */
            sum += d[k] * g[k];
            product += d[k] * g[k] * ((h[k] - middle) * inverse);
        }
    }
    sum = mr_group_sum(part, sum) / (f32)width;
    product = mr_group_sum(part, product) / (f32)width;
    MR_FOR_EIGHTS (i, lane, width) {
        mr_get_eight(d, d_y + at + i, width - i, whole);
        mr_get_eight(h, total + at + i, width - i, whole);
        mr_get_floats(g, gain + i, width - i, whole);
        MR_UNROLL
        for (u32 k = 0; k < MR_EIGHT; k++)
            d[k] = inverse * (d[k] * g[k] - sum - (h[k] - middle) * inverse * product);
        if (has_residual) {
            mr_get_eight(h, d_residual + at + i, width - i, whole);
            MR_UNROLL
            for (u32 k = 0; k < MR_EIGHT; k++)
                d[k] += h[k];
        }
        mr_put_eight(d_total + at + i, d, width - i, whole);
    }
}

/* ---- sums over rows: parts of `per_part` rows each, then their sum ----------------------------------------------- */

/* Part MR_ROW() of the sums of x; with `norm`, of x h (d_gain) and then of x (d_bias).  Eight lanes of a group read its
 * MR_WIDTH columns, eight each; the next eight the next row. */
MR_KERNEL(mr_sum_part, MR_WIDTH)
(MR_SPOT MR_TENSOR(const mr_real, x), MR_TENSOR(const mr_real, total), MR_TENSOR(const f32, mean),
 MR_TENSOR(const f32, rstd), MR_TENSOR(f32, parts), u32 rows, u32 width, u32 per_part, u32 norm, u32 whole)
{
    MR_SHARED f32 sums[MR_EIGHT * MR_WIDTH];
    MR_SHARED f32 products[MR_EIGHT * MR_WIDTH];
    u32 lane = MR_LANE(), first = MR_COLUMN() - lane, column = first + lane % MR_EIGHT * MR_EIGHT, part = MR_ROW();
    u32 last = (part + 1) * per_part < rows ? (part + 1) * per_part : rows;
    f32 one[MR_EIGHT], h[MR_EIGHT], sum[MR_EIGHT], product[MR_EIGHT], all = 0, all_products = 0;
    MR_START(x);
    MR_START(total);
    MR_START(mean);
    MR_START(rstd);
    MR_START(parts);
    MR_UNROLL
    for (u32 k = 0; k < MR_EIGHT; k++)
        sum[k] = product[k] = 0;
    for (u32 row = part * per_part + lane / MR_EIGHT; row < last && column < width; row += MR_WIDTH / MR_EIGHT) {
        u64 at = (u64)row * width + column;
        mr_get_eight(one, x + at, width - column, whole);
        MR_UNROLL
        for (u32 k = 0; k < MR_EIGHT; k++)
            sum[k] += one[k];
        if (norm) {
            f32 middle = mean[row], inverse = rstd[row];
            mr_get_eight(h, total + at, width - column, whole);
            MR_UNROLL
            for (u32 k = 0; k < MR_EIGHT; k++)
                product[k] += one[k] * ((h[k] - middle) * inverse);
        }
    }
    MR_UNROLL
    for (u32 k = 0; k < MR_EIGHT; k++) { /* [row][column] of the group */
        sums[lane * MR_EIGHT + k] = sum[k];
        products[lane * MR_EIGHT + k] = product[k];
    }
    MR_BARRIER();
    for (u32 i = 0; i < MR_EIGHT; i++) {
        all += sums[i * MR_WIDTH + lane];
        all_products += products[i * MR_WIDTH + lane];
    }
    column = first + lane;
    if (column >= width)
        return;
    if (norm) {
        parts[(u64)(2 * part) * width + column] = all_products;
        parts[(u64)(2 * part + 1) * width + column] = all;
    } else {
        parts[(u64)part * width + column] = all;
    }
}

/* sums[column] += each part's; `stride` elements from part to part. */
MR_KERNEL(mr_sum_fold, MR_WIDTH)
(MR_SPOT MR_TENSOR(const f32, parts), MR_TENSOR(f32, sums), u32 count, u32 stride, u32 width)
{
    u32 column = MR_ITEM();
    f32 sum = 0;
    MR_START(parts);
    MR_START(sums);
    if (column >= width)
        return;
    for (u32 i = 0; i < count; i++)
        sum += parts[(u64)i * stride + column];
    sums[column] += sum;
}

/* ---- unit vectors --------------------------------------------------------------------------------------------- */

MR_FN f32 mr_group_max(MR_NEAR f32 *part, f32 x)
{
    u32 lane = MR_LANE();
    part[lane] = x;
    MR_BARRIER();
    for (u32 apart = MR_WIDTH / 2; apart; apart >>= 1) {
        if (lane < apart)
            part[lane] = part[lane] > part[lane + apart] ? part[lane] : part[lane + apart];
        MR_BARRIER();
    }
    f32 most = part[0];
    MR_BARRIER();
    return most;
}

/* Squares are of x / 2^e, where 2^e is near the largest: those of large or tiny numbers do not fit float32. */
MR_KERNEL(mr_unit, MR_WIDTH)
(MR_SPOT MR_TENSOR(const f32, x), MR_TENSOR(f32, y), MR_TENSOR(f32, lengths), u32 width, f32 eps)
{
    MR_SHARED f32 part[MR_WIDTH];
    u32 row = MR_GROUP_ID(), lane = MR_LANE();
    u64 at = (u64)row * width;
    f32 most = 0, squares = 0;
    MR_START(x);
    MR_START(y);
    MR_START(lengths);
    for (u32 i = lane; i < width; i += MR_WIDTH)
        most = fmax(most, fabs(x[at + i]));
    most = mr_group_max(part, most);
    f32 up = most > 1e9F ? 5.421010862427522e-20F : most < 1e-9F ? 1.8446744073709552e19F : 1.0F; /* 2^-64, 2^64 */
    f32 down = most > 1e9F ? 1.8446744073709552e19F : most < 1e-9F ? 5.421010862427522e-20F : 1.0F;
    for (u32 i = lane; i < width; i += MR_WIDTH)
        squares += (x[at + i] * up) * (x[at + i] * up);
    f32 length = sqrt(mr_group_sum(part, squares)) * down;
    length = length < eps ? eps : length;
    for (u32 i = lane; i < width; i += MR_WIDTH)
        y[at + i] = x[at + i] / length;
    if (lane == 0)
        lengths[row] = length;
}

MR_KERNEL(mr_unit_back, MR_WIDTH)
(MR_SPOT MR_TENSOR(const f32, y), MR_TENSOR(const f32, lengths), MR_TENSOR(const f32, d_y), MR_TENSOR(mr_real, d_x),
 u32 width,
 f32 eps)
{
    MR_SHARED f32 part[MR_WIDTH];
    u32 row = MR_GROUP_ID(), lane = MR_LANE();
    u64 at = (u64)row * width;
    f32 along = 0;
    MR_START(y);
    MR_START(lengths);
    MR_START(d_y);
    MR_START(d_x);
    f32 length = lengths[row];
    for (u32 i = lane; i < width; i += MR_WIDTH)
        along += y[at + i] * d_y[at + i];
    along = mr_group_sum(part, along);
    along = length <= eps ? 0.0F : along;
    for (u32 i = lane; i < width; i += MR_WIDTH)
        d_x[at + i] = MR_PUT((d_y[at + i] - y[at + i] * along) / length);
}
