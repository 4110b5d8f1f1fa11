/* npz.c - all arrays of a .npz file at once, so that tests can ask for them in any order. */
#include "tests/support/training/npz.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct member {
    mr_npz_array array;
    void *elements;
} member;

struct support_npz {
    member *members;
    size_t count, capacity;
};

char *support_parity(const char *sub)
{
    const char *root = getenv("MILLRACE_PARITY");
    char *path = root && *root ? support_path("%s/%s", root, sub)
                               : support_path("%s/../shared/parity/%s", MILLRACE_SOURCE_DIR, sub);
    if (!access(path, R_OK))
        return path;
    free(path);
    return NULL;
}

support_npz *support_npz_open(const char *path)
{
    support_npz *z = calloc(1, sizeof *z);
    const mr_npz_array *array;
    mr_npz_reader *reader;
    mr_error err;
    mr_status status;
    assert_non_null(z);
    if (mr_npz_open(path, &reader, &err))
        fail_msg("%s", err.text);
    while ((status = mr_npz_next(reader, &array, &err)) == MR_OK) {
        assert_true(MR_GROW(z->members, z->count, z->capacity));
        member *m = &z->members[z->count++];
        *m = (member){.array = *array, .elements = mr_alloc(mr_npz_bytes(array), 1)};
        assert_non_null(m->elements);
        if (mr_npz_take(reader, m->elements, mr_npz_bytes(array), &err))
            fail_msg("%s", err.text);
    }
    if (status != MR_END)
        fail_msg("%s", err.text);
    mr_npz_reader_free(reader);
    return z;
}

void support_npz_close(support_npz *z)
{
    for (size_t i = 0; z && i < z->count; i++)
        free(z->members[i].elements);
    if (z)
        free(z->members);
    free(z);
}

const void *support_npz_get(const support_npz *z, const char *name, mr_npz_type type, uint64_t shape[MR_NPZ_DIMS])
{
    for (size_t i = 0; i < z->count; i++) {
        const mr_npz_array *a = &z->members[i].array;
        if (strcmp(a->name, name) != 0)
            continue;
        if (a->type != type)
            fail_msg("%s is not of type %d", name, (int)type);
        for (unsigned k = 0; k < MR_NPZ_DIMS; k++)
            shape[k] = k < a->dims ? a->shape[k] : 1;
        return z->members[i].elements;
    }
    fail_msg("no array %s", name);
    return NULL;
}

const mr_npz_array *support_npz_at(const support_npz *z, size_t i)
{
    return i < z->count ? &z->members[i].array : NULL;
}
