/* model_fits.c - whether a device can compute a model, before memory is allocated.
 * Invariant: what this accepts, open() of the model's interface does not refuse for its options. */
#include "train/model/model.h"

#include "base/scope.h"

mr_status mr_model_fits(const mr_model_config *c, const mr_device *d, size_t batch, mr_error *err)
{
    MR_TRY(c->iface->check(c, err));
    if (!batch)
        return mr_fail(err, MR_MISUSE, "--batch 0: give 1 or more");
    if (!(d->iface->types & 1U << c->compute))
        return mr_fail(err, MR_MISUSE, "--device %s does not support %s; choose another --precision", d->iface->name,
                       mr_type_word(c->compute));
    return MR_OK;
}
