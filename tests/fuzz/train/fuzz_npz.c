/* fuzz_npz.c - a stranger's .npz file, and the header of a .npy file alone.
 * Promises: what is met has a plain name, once, and a count that is its shape's; what is taken can be written again and
 * read back the same; a header that is read says the same once we have written it. */
#include <stdio.h>
#include <unistd.h>

#include "train/files/npz.h"
#include "train/files/npz_header.h"
#include "tests/fuzz/fuzz.h"

enum { MAX_TAKEN = 1 << 20 };

static void check_array(const mr_npz_array *a, size_t size)
{
    uint64_t count, bytes;
    char path[MR_NPZ_NAME + 2];
    size_t len = strnlen(a->name, sizeof a->name);
    FUZZ_MUST(len > 0 && len < sizeof a->name);
    snprintf(path, sizeof path, "/%s/", a->name);
    FUZZ_MUST(!strstr(path, "//") && !strstr(path, "/./") && !strstr(path, "/../"));
    for (size_t i = 0; i < len; i++)
        FUZZ_MUST(a->name[i] >= 0x20 && a->name[i] <= 0x7E);
    FUZZ_MUST(a->dims <= MR_NPZ_DIMS && (unsigned)a->type <= MR_NPZ_U8);
    FUZZ_MUST(mr_npz_count(a->type, a->dims, a->shape, &count, &bytes));
    FUZZ_MUST(count == a->count && bytes == mr_npz_bytes(a) && bytes / 1032 <= size);
}

static void check_again(const mr_npz_array *a, const void *elements)
{
    mr_npz_writer *w;
    mr_npz_reader *r;
    const mr_npz_array *b;
    mr_error err;
    int fd = fuzz_file("", 0);
    size_t bytes = mr_npz_bytes(a);
    void *have = malloc(bytes + 1);
    FUZZ_MUST(have && mr_npz_create(fd, "again", &w, &err) == MR_OK);
    FUZZ_MUST(mr_npz_add(w, a, elements, &err) == MR_OK && mr_npz_finish(w, NULL, &err) == MR_OK);
    FUZZ_MUST(mr_npz_open_fd(fd, "again", &r, &err) == MR_OK && mr_npz_next(r, &b, &err) == MR_OK);
    FUZZ_MUST(strcmp(a->name, b->name) == 0 && a->type == b->type && a->dims == b->dims);
    FUZZ_MUST(memcmp(a->shape, b->shape, a->dims * sizeof *a->shape) == 0);
    FUZZ_MUST(mr_npz_take(r, have, bytes, &err) == MR_OK && memcmp(have, elements, bytes) == 0);
    FUZZ_MUST(mr_npz_next(r, &b, &err) == MR_END);
    mr_npz_reader_free(r);
    free(have);
    close(fd);
}

static void check_file(const uint8_t *data, size_t size)
{
    mr_npz_reader *r = NULL;
    const mr_npz_array *a;
    mr_error err;
    int fd = fuzz_file(data, size);
    mr_status status = mr_npz_open_fd(fd, "in.npz", &r, &err);
    while (status == MR_OK && (status = mr_npz_next(r, &a, &err)) == MR_OK) {
        check_array(a, size);
        size_t bytes = mr_npz_bytes(a);
        if (bytes > MAX_TAKEN)
            continue;
        mr_npz_array met = *a;
        void *elements = malloc(bytes + 1);
        FUZZ_MUST(elements != NULL);
        if ((status = mr_npz_take(r, elements, bytes, &err)) == MR_OK)
            check_again(&met, elements);
        free(elements);
    }
    if (status != MR_END) {
        FUZZ_MUST(status == MR_BAD_DATA);
        fuzz_refused(status, &err);
    }
    mr_npz_reader_free(r);
    close(fd);
}

static void check_header(const uint8_t *data, size_t size)
{
    mr_npz_array a = {0}, b = {0};
    uint8_t head[MR_NPY_HEADER];
    size_t more, len;
    const char *why = NULL;
    if (!mr_npy_parse((const char *)data, size, &a, &why)) {
        FUZZ_MUST(why && *why);
        return;
    }
    size_t all = mr_npy_header(&a, head);
    FUZZ_MUST(all <= sizeof head && mr_npy_prefix(head, 10, &more, &len, &why) && more == 0 && len == all - 10);
    FUZZ_MUST(mr_npy_parse((const char *)head + 10, len, &b, &why));
    FUZZ_MUST(a.type == b.type && a.dims == b.dims && a.count == b.count);
    FUZZ_MUST(memcmp(a.shape, b.shape, a.dims * sizeof *a.shape) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    check_header(data, size);
    check_file(data, size);
    return 0;
}
