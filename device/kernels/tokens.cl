/* tokens.cl - operations that arrange a model's rows: patches, tokens, picked rows, rows of a table.
 * Invariant: an element that several rows add to belongs to one lane, which adds them in their order. */

/* Row: patch of a sample, from left to right and down; column: value in it. */
MR_KERNEL(mr_patches, MR_WIDTH)
(MR_SPOT MR_TENSOR(const f32, images), MR_TENSOR(mr_real, rows), u32 side, u32 patch, u32 grid, u32 channel_first)
{
    u32 column = MR_COLUMN(), row = MR_ROW(), pixels = patch * patch, width = 3 * pixels;
    MR_START(images);
    MR_START(rows);
    if (column >= width)
        return;
    u32 c = channel_first ? column / pixels : column % 3, pixel = channel_first ? column % pixels : column / 3;
    u32 sample = row / (grid * grid), y = row / grid % grid * patch + pixel / patch;
    u32 x = row % grid * patch + pixel % patch;
    rows[(u64)row * width + column] = MR_PUT(images[(((u64)sample * 3 + c) * side + y) * side + x]);
}

MR_KERNEL(mr_tokens, MR_WIDTH)
(MR_SPOT MR_TENSOR(const mr_real, x), MR_TENSOR(const f32, first), MR_TENSOR(const f32, position), MR_TENSOR(mr_real, y),
 u32 rows,
 u32 width, MR_DROPOUT)
{
    u32 column = MR_COLUMN(), sample = MR_ROW() / rows, row = MR_ROW() % rows, e = row * width + column;
    MR_START(x);
    MR_START(first);
    MR_START(position);
    MR_START(y);
    if (column >= width)
        return;
    f32 token = row ? MR_GET(x[((u64)sample * (rows - 1) + row - 1) * width + column]) : first[column];
    y[(u64)MR_ROW() * width + column] = MR_PUT((token + position[e]) * mr_kept(MR_MASK_OF(sample), e));
}

MR_KERNEL(mr_tokens_back, MR_WIDTH)
(MR_SPOT MR_TENSOR(const mr_real, d_y), MR_TENSOR(mr_real, d_x), MR_TENSOR(f32, d_first), MR_TENSOR(f32, d_position), u32 batch,
 u32 rows, u32 width, MR_DROPOUT)
{
    u32 column = MR_COLUMN(), row = MR_ROW(), e = row * width + column;
    f32 sum = 0;
    MR_START(d_y);
    MR_START(d_x);
    MR_START(d_first);
    MR_START(d_position);
    if (column >= width)
        return;
    for (u32 sample = 0; sample < batch; sample++) {
        f32 d = MR_GET(d_y[((u64)sample * rows + row) * width + column]) * mr_kept(MR_MASK_OF(sample), e);
        if (row)
            d_x[((u64)sample * (rows - 1) + row - 1) * width + column] = MR_PUT(d);
        sum += d;
    }
    d_position[e] += sum;
    if (row == 0)
        d_first[column] += sum;
}

MR_KERNEL(mr_rows, MR_WIDTH)
(MR_SPOT MR_TENSOR(const mr_real, from), MR_TENSOR(mr_real, to), u32 width, u64 from_stride, u64 to_stride, u32 accumulate)
{
    u32 column = MR_COLUMN(), row = MR_ROW();
    MR_START(from);
    MR_START(to);
    if (column < width) {
        mr_real x = from[row * from_stride + column];
        u64 at = row * to_stride + column;
        to[at] = accumulate ? MR_PUT(MR_GET(to[at]) + MR_GET(x)) : x;
    }
}

/* ---- rows of a table ------------------------------------------------------------------------------------------ */

MR_KERNEL(mr_lookup, MR_WIDTH)
(MR_SPOT MR_TENSOR(const i32, ids), MR_TENSOR(const f32, table), MR_TENSOR(mr_real, y), u32 width, u32 entries,
 u32 has_ids, u32 accumulate)
{
    u32 column = MR_COLUMN(), row = MR_ROW();
    u64 at = (u64)row * width + column;
    MR_START(ids);
    MR_START(table);
    MR_START(y);
    if (column < width) {
        u32 id = has_ids ? (u32)ids[row] : 0;
        f32 x = id < entries ? table[(u64)id * width + column] : 0.0F;
        y[at] = MR_PUT(accumulate ? MR_GET(y[at]) + x : x);
    }
}

/* Row: bucket of entries, by the lowest bits of the id.  A lane reads all ids and adds those of its bucket. */
MR_KERNEL(mr_lookup_back, MR_WIDTH)
(MR_SPOT MR_TENSOR(const i32, ids), MR_TENSOR(const mr_real, d_y), MR_TENSOR(f32, d_table), u32 rows, u32 width,
 u32 entries, u32 buckets, i32 skip)
{
    u32 column = MR_COLUMN(), bucket = MR_ROW();
    MR_START(ids);
    MR_START(d_y);
    MR_START(d_table);
    if (column >= width)
        return;
    for (u32 row = 0; row < rows; row++)
        if (((u32)ids[row] & (buckets - 1)) == bucket && ids[row] != skip && (u32)ids[row] < entries)
            d_table[(u64)ids[row] * width + column] += MR_GET(d_y[(u64)row * width + column]);
}
