/* head.c - a head's columns, moved to where classes of the same names are.
 * Invariant: if several classes share a name, the first one counts, on both sides. */
#include "train/setup/head.h"

#include "base/scope.h"
#include "train/setup/known_classes.h"

enum { NAMED_MOST = 10 }; /* new classes in the line */

static void copy_column(const mr_param *from, const float *a, size_t i, const mr_param *to, float *b, size_t k)
{
    size_t width = from->shape[from->dims - 1], own = to->shape[to->dims - 1];
    for (size_t row = 0; row < from->count / width; row++)
        b[to->offset + row * own + k] = a[from->offset + row * width + i];
}

static void say(size_t taken, const mr_manifest *m, const char *path, const char *others, size_t count, mr_buf *said)
{
    mr_buf_printf(said, "%zu of the %zu classes continue from the head of %s, which knows their names", taken,
                  m->class_count, path);
    if (count)
        mr_buf_printf(said, "; new: %s%s", others, count > NAMED_MOST ? ", ..." : "");
    mr_buf_add_text(said, "\n");
}

mr_status mr_head_take(const mr_checkpoint *from, const char *path, const mr_manifest *m, const mr_params *params,
                       float *values, mr_buf *said, mr_error *err)
{
    static const char *const parts[] = {"head/kernel", "head/bias"};
    MR_AUTO(mr_known_classes_release) mr_known_classes known = {0};
    MR_AUTO(mr_buf_free) mr_buf others = {0};
    size_t taken = 0, count = 0;
    MR_TRY(mr_known_classes_list(from, path, &known, err));
    for (size_t k = 0; k < m->class_count; k++) {
        const char *name = m->classes[k].name;
        const mr_known_class *old = mr_known_classes_find(&known, name);
        if (!old) {
            if (count++ < NAMED_MOST)
                mr_buf_printf(&others, "%s%s", others.len ? ", " : "", name);
            continue;
        }
        taken++;
        for (size_t p = 0; p < MR_COUNT(parts); p++) {
            const mr_param *a = mr_params_find(&from->params, parts[p]), *b = mr_params_find(params, parts[p]);
            if (a && b)
                copy_column(a, from->values, (size_t)old->class, b, values, k);
        }
    }
    if (!taken)
        return mr_fail(err, MR_MISUSE,
                       "--pretrained %s: its head has none of the dataset's classes; name its weights.npz, without "
                       "--pretrained-classes, to start from the rest of it",
                       path);
    say(taken, m, path, mr_buf_text(&others), count, said);
    MR_TRY(mr_buf_status(&others, err, "loading a head"));
    return mr_buf_status(said, err, "loading a head");
}
