/* test_train_recompute.c - `train --recompute` through the program: the same weights, and how a run resumes with it.
 * Covers run/trainer_shape.c. */
#include <string.h>

#include "support/train.h"

static int set_up(void **state)
{
    char *dir = support_tmpdir();
    train_make_dataset(dir, 120);
    train_make_pairs(support_path("%s/pairs", dir));
    *state = dir;
    return 0;
}
