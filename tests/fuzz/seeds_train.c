/* seeds_train.c - the first inputs of the trainer's fuzz targets: OUT/npz, OUT/checkpoint. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "checkpoint_parts.h"
#include "seeds.h"
#include "support_archive.h"
#include "support_checkpoint.h"

static const char *const headers[] = {
    "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }\n",
    "{'shape': (3L,), 'fortran_order': False, 'descr': '|u1'}",
    "{\"descr\": \"<i8\", 'fortran_order': False, 'shape': ()}",
    "{'descr': '>f4', 'fortran_order': True, 'shape': (2, 3)}",
    "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2, 3)}",
};

/* A .npy of version 2 with its first header, and as many zeros as that asks for. */
static size_t make_npy(uint8_t *npy)
{
    size_t words = strlen(headers[0]);
    memcpy(npy, "\x93NUMPY\2", 8);
    npy[8] = (uint8_t)words;
    memcpy(npy + 12, headers[0], words);
    return 12 + words + 24;
}

static void seed_npz(const char *tmp)
{
    char *path = support_path("%s/a.npz", tmp);
    uint8_t npy[200] = {0}, zeros[64] = {0};
    size_t len = make_npy(npy);
    for (size_t i = 0; i < MR_COUNT(headers); i++) {
        char name[16];
        snprintf(name, sizeof name, "header-%zu", i);
        seed("npz", name, headers[i], strlen(headers[i]));
    }
    const support_entry entries[] = {{.path = "a.npy", .bytes = npy, .len = len},
                                     {.path = "b/c.npy", .bytes = npy, .len = len}};
    support_archive(path, "zip-deflate", entries, 2);
    seed_file("npz", "deflated", path);
    support_archive(path, "zip", entries, 2);
    seed_file("npz", "stored", path);

    static const mr_npz_array arrays[] = {{"cls", MR_NPZ_F32, 3, {1, 1, 8}, 8}, {"y", MR_NPZ_I64, 1, {2}, 2},
                                          {"a/pixels", MR_NPZ_U8, 0, {0}, 1}, {"none", MR_NPZ_F32, 2, {0, 3}, 0}};
    mr_npz_writer *w;
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    assert_int_equal(mr_npz_create(fd, path, &w, NULL), MR_OK);
    for (size_t i = 0; i < MR_COUNT(arrays); i++)
        assert_int_equal(mr_npz_add(w, &arrays[i], zeros, NULL), MR_OK);
    assert_int_equal(mr_npz_finish(w, NULL, NULL), MR_OK);
    close(fd);
    seed_file("npz", "ours", path);
    free(path);
}

static void seed_checkpoint(void)
{
    const mr_digest digests[MR_FILES] = {{.bytes = 1000}, {.bytes = 2000}};
    for (int kind = MR_SGD; kind <= MR_ADAMW; kind++) {
        mr_checkpoint c = make_checkpoint(100, (mr_optimizer_kind)kind);
        mr_buf text = {0};
        c.best_accuracy = kind == MR_SGD ? -1 : 0.5;
        assert_int_equal(mr_state_write(&c, digests, &text, NULL), MR_OK);
        seed("checkpoint", kind == MR_SGD ? "sgd" : "adamw", text.data, text.len);
        mr_buf_free(&text);
        mr_checkpoint_release(&c);
    }
    seed("checkpoint", "name", "step-00000200", 13);
}

void seed_train(const char *tmp)
{
    seed_npz(tmp);
    seed_checkpoint();
}
