/* loss.cl - cross entropy of one label and of several, a group per row.
 * Invariant: a NaN among the logits stays one in the loss, so that a run notices it; logits that are excluded are
 * never read into a sum. */

#define MR_LOSS_WEIGHTS 1 /* flags: which arguments are there */
#define MR_LOSS_COLUMNS 2
#define MR_LOSS_GROUPS  4
#define MR_LOSS_BACK    8
#define MR_LOSS_BEST    16
#define MR_LOSS_ADD     32 /* to the losses in it */

typedef struct mr_columns { /* which columns of a row count */
    MR_GLOBAL const f32 *columns;
    MR_GLOBAL const i32 *groups;
    u32 has_columns, has_groups, label, known;
} mr_columns;

MR_FN u32 mr_included(const mr_columns *c, u32 i)
{
    if (c->has_columns && c->columns[i] == 0)
        return 0;
    return !c->has_groups || !c->known || i == c->label || c->groups[i] != c->groups[c->label];
}

/* The largest of the row and the first column that has it, for every lane. */
MR_FN u32 mr_group_best(MR_NEAR f32 *tops, MR_NEAR u32 *places, f32 *top, u32 place)
{
    u32 lane = MR_LANE();
    tops[lane] = *top;
    places[lane] = place;
    MR_BARRIER();
    for (u32 apart = MR_WIDTH / 2; apart; apart >>= 1) {
        if (lane < apart) {
            f32 other = tops[lane + apart];
            if (other > tops[lane] || (other == tops[lane] && places[lane + apart] < places[lane])) {
                tops[lane] = other;
                places[lane] = places[lane + apart];
            }
        }
        MR_BARRIER();
    }
    *top = tops[0];
    place = places[0];
    MR_BARRIER();
    return place;
}

MR_KERNEL(mr_cross_entropy, MR_WIDTH)
(MR_SPOT MR_TENSOR(const f32, logits), MR_TENSOR(const i32, labels), MR_TENSOR(const f32, weights), MR_TENSOR(f32,
 losses),
 MR_TENSOR(mr_real, d_logits), MR_TENSOR(i32, best), MR_TENSOR(const f32, columns), MR_TENSOR(const i32, groups),
 u32 classes, f32 share, f32 smoothing, u32 flags)
{
    MR_SHARED f32 part[MR_WIDTH];
    MR_SHARED u32 places[MR_WIDTH];
    u32 row = MR_GROUP_ID(), lane = MR_LANE(), place = 0xffffffffU;
    f32 top = -MR_INFINITY, sum = 0;
    mr_columns c;
    MR_START(logits);
    MR_START(labels);
    MR_START(weights);
    MR_START(losses);
    MR_START(d_logits);
    MR_START(best);
    MR_START(columns);
    MR_START(groups);
    logits += (u64)row * classes;
    d_logits += (u64)row * classes;
    c.columns = columns;
    c.groups = groups;
    c.has_columns = flags & MR_LOSS_COLUMNS;
    c.has_groups = flags & MR_LOSS_GROUPS;
    c.known = labels[row] >= 0 && (u32)labels[row] < classes;
    c.label = c.known ? (u32)labels[row] : 0;
    f32 weight = !c.known ? 0.0F : flags & MR_LOSS_WEIGHTS ? weights[row] * share : share, of_label = logits[c.label];
    for (u32 i = lane; i < classes; i += MR_WIDTH)
        if (mr_included(&c, i) && (logits[i] > top || place == 0xffffffffU)) {
            place = i;
            top = logits[i] > top ? logits[i] : top;
        }
    place = mr_group_best(part, places, &top, place);
    for (u32 i = lane; i < classes; i += MR_WIDTH)
        if (mr_included(&c, i))
            sum += exp(logits[i] - top);
    sum = mr_group_sum(part, sum);
    if (smoothing > 0) { /* of all logits, relative to the largest, so that large ones keep their digits */
        f32 apart = 0;
        for (u32 i = lane; i < classes; i += MR_WIDTH)
            apart += logits[i] - top;
        of_label = (1 - smoothing) * (of_label - top) + smoothing * (mr_group_sum(part, apart) / (f32)classes) + top;
    }
    if (flags & MR_LOSS_BACK)
        for (u32 i = lane; i < classes; i += MR_WIDTH) {
            f32 one = (i == c.label ? 1.0F - smoothing : 0.0F) + smoothing / (f32)classes;
            u32 counts = weight != 0 && mr_included(&c, i);
            d_logits[i] = MR_PUT(counts ? weight * (exp(logits[i] - top) / sum - one) : 0.0F);
        }
    if (lane == 0) {
        f32 loss = weight == 0 ? 0.0F : mr_included(&c, c.label) ? weight * (log(sum) + (top - of_label)) : MR_INFINITY;
        losses[row] = flags & MR_LOSS_ADD ? losses[row] + loss : loss;
        if (flags & MR_LOSS_BEST)
            best[row] = place == 0xffffffffU ? 0 : (i32)place;
    }
}

/* Several labels; `positive` takes the place of the columns above. */
MR_KERNEL(mr_sigmoid_loss, MR_WIDTH)
(MR_SPOT MR_TENSOR(const f32, logits), MR_TENSOR(const f32, targets), MR_TENSOR(const f32, positive),
 MR_TENSOR(const f32, weights), MR_TENSOR(f32, losses), MR_TENSOR(mr_real, d_logits), MR_TENSOR(i32, best), u32 classes,
 u32 flags)
{
    MR_SHARED f32 part[MR_WIDTH];
    MR_SHARED u32 places[MR_WIDTH];
    u32 row = MR_GROUP_ID(), lane = MR_LANE(), place = 0xffffffffU;
    f32 top = -MR_INFINITY, sum = 0;
    MR_START(logits);
    MR_START(targets);
    MR_START(positive);
    MR_START(weights);
    MR_START(losses);
    MR_START(d_logits);
    MR_START(best);
    logits += (u64)row * classes;
    targets += (u64)row * classes;
    d_logits += (u64)row * classes;
    f32 weight = (flags & MR_LOSS_WEIGHTS ? weights[row] : 1.0F) / (f32)classes;
    for (u32 i = lane; i < classes; i += MR_WIDTH) {
        f32 x = logits[i], t = targets[i], scale = 1 + ((flags & MR_LOSS_COLUMNS ? positive[i] : 1.0F) - 1) * t;
        f32 tiny = exp(-fabs(x)), below = (x < 0 ? 1.0F : tiny) / (1 + tiny);
        sum += (1 - t) * x + scale * (log1p(tiny) + (x < 0 ? -x : 0.0F));
        if (flags & MR_LOSS_BACK)
            d_logits[i] = MR_PUT(weight != 0 ? weight * (1 - t - scale * below) : 0.0F);
        if (x > top || place == 0xffffffffU) {
            place = i;
            top = x > top ? x : top;
        }
    }
    sum = mr_group_sum(part, sum);
    place = mr_group_best(part, places, &top, place);
    if (lane == 0) {
        losses[row] = weight != 0 ? weight * sum : 0.0F;
        if (flags & MR_LOSS_BEST)
            best[row] = place == 0xffffffffU ? 0 : (i32)place;
    }
}
