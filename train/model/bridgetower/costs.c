/* costs.c - what BridgeTower costs: parameters, arithmetic, memory.
 * Invariant: everything is counted from the options alone, except the activations (plan.c). */
#include "train/model/bridgetower/parts.h"

static uint64_t count_parameters(const mr_model_config *c)
{
    uint64_t h = c->hidden, m = c->mlp, grid = c->image / c->patch, embed = c->embed;
    uint64_t norm = 2 * h, square = h * h + h, attention = 4 * square + norm;
    uint64_t feed = 2 * h * m + m + h + norm, block = 2 * norm + 4 * square + 8 * h * h + 5 * h;
    uint64_t text = (uint64_t)c->vocab * h + c->positions * h + h + norm + c->layers * (attention + feed);
    uint64_t vision = h + 3 * h * c->patch * c->patch + (1 + grid * grid) * h + 2 * norm + c->layers * block;
    uint64_t bridge = 2 * square + 2 * h + 2 * norm + 2 * (c->cross_layers - 1) * norm;
    uint64_t cross = 2 * c->cross_layers * (2 * attention + feed);
    return text + vision + bridge + cross + 2 * square + 4 * h * embed + 3 * embed + 1;
}

/* n tokens attend to m tokens: queries and output of n, keys and values of m. */
static double attention_flops(double n, double m, double hidden)
{
    return 4 * (n + m) * hidden * hidden + 4 * n * m * hidden;
}

/* Counted for texts of full length, and as the reference runs it, every token through every layer, so that rates
 * compare with published ones.  A frozen tower has no backward pass, nor has what only leads into it. */
void mr_bt_costs(const mr_model_config *c, size_t batch, bool training, mr_model_costs *out)
{
    uint32_t side = c->image / c->patch;
    double grid = side, n[2] = {c->text, 1 + grid * grid}, h = c->hidden, m = c->mlp;
    double pixels = 2 * grid * grid * 3 * c->patch * c->patch * h, head = 2 * h * c->embed;
    double text = c->layers * (attention_flops(n[0], n[0], h) + 4 * n[0] * h * m);
    double vision = pixels + c->layers * (attention_flops(n[1], n[1], h) + 16 * n[1] * h * h);
    const double bridge[2] = {c->cross_layers * 2 * n[0] * h * h, (c->cross_layers + 1.0) * 2 * n[1] * h * h};
    double cross = 0;
    for (size_t i = 0; i < 2; i++)
        cross +=
            c->cross_layers * (attention_flops(n[i], n[i], h) + attention_flops(n[i], n[1 - i], h) + 4 * n[i] * h * m);
    out->forward_flops = text + vision + bridge[0] + bridge[1] + cross + 4 * h * h + 4 * head;
    out->training_flops = 3 * out->forward_flops;
    out->training_flops -= c->frozen & MR_FROZEN_IMAGES ? 2 * vision + bridge[1] : pixels;
    out->training_flops -= c->frozen & MR_FROZEN_TEXT ? 2 * text + bridge[0] + head : 0;
    out->parameters = count_parameters(c);
    out->activation_bytes = mr_bt_activation_bytes(c, batch, training);
}
