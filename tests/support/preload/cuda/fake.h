/* fake.h - a CUDA device without hardware, for tests: libcuda, libnvrtc, libcublasLt and libnccl in one library.  The
 * text of the kernels is built by a compiler of C++ as the CUDA that it is, and runs lane by lane (language.hpp).
 * Invariant: what a program may not rely on, it does not get: a stream runs only when it is waited for, so that memory
 * that is changed too early spoils a result, and so does an event that another stream should have waited for; lanes run
 * in changing orders; variables of a group begin as no numbers; calls without a context, with invalid pointers,
 * or with less aligned operands than was promised, fail, and so do calls that a capture does not allow.  What is
 * written beside memory of the device, and a lane that does not come to a barrier, ends the program.
 *
 *      MILLRACE_FAKE_DEVICES      how many there are, 1
 *      MILLRACE_FAKE_MEMORY       bytes of each, 1 GiB
 *      MILLRACE_FAKE_LAUNCHES     how many succeed before the device is lost, all
 *      MILLRACE_FAKE_CAPABILITY   of compute, 90; NVRTC knows 80, 90 and 100
 *      MILLRACE_FAKE_DRIVER       its version, 13010; an older one than 13000 takes no kernels
 *      MILLRACE_FAKE_NO_LT        cuBLASLt cannot be used
 *      MILLRACE_FAKE_DECLINES     cuBLASLt has no way to compute any product
 *      MILLRACE_FAKE_NCCL         its version, 22809
 *      MILLRACE_FAKE_SUMS         how many sums over processes succeed before a remote one is gone, all
 *      MILLRACE_FAKE_KILL         how many until the process is killed, all
 *      MILLRACE_FAKE_FAULT        "PLACE|OLD|NEW": in the text of the kernels the first OLD after PLACE is NEW; wants a
 *                                 cache of its own, as the program knows the text without it
 *      MILLRACE_FAKE_RANK         the rank under mpirun that settings are for, except the number of devices
 *      MILLRACE_FAKE_COUNTS       a file that gets a line when the device is closed: "CALLS calls, GRAPHS graphs": that
 *                                 queued or captured something, and of them those that launched a graph */
#ifndef MR_FAKE_CUDA_H
#define MR_FAKE_CUDA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { /* CUresult */
       FAKE_INVALID = 1,
       FAKE_NO_MEMORY = 2,
       FAKE_NO_DEVICE = 100,
       FAKE_NO_IMAGE = 200,
       FAKE_NO_CONTEXT = 201,
       FAKE_NO_HANDLE = 400,
       FAKE_NOT_FOUND = 500,
       FAKE_NOT_READY = 600,
       FAKE_LOST = 719,
       FAKE_CAPTURES = 900,
       FAKE_TOO_MUCH = 701,
};

typedef struct fake_work {            /* of a stream */
    bool (*run)(struct fake_work *w); /* false: it has to wait for something else, and runs again later */
    uint64_t to, from;                /* of the device */
    void *host;
    size_t bytes;
    uint8_t value;
    void *data; /* of `run`, freed after it */
    size_t data_bytes;
    bool kernel; /* counted by MILLRACE_FAKE_LAUNCHES, each time it is queued */
} fake_work;

#define FAKE_IMAGE "FAKECUDA"

typedef struct fake_image { /* before the bytes of a shared library */
    char magic[8];
    uint64_t made_with, bytes;
} fake_image;

/* Whether the calling thread has a context. */
bool fake_has_context(void);
uint64_t fake_setting(const char *name, uint64_t standard);
/* Queues; FAKE_LOST after the device was lost, FAKE_NO_CONTEXT without a context. */
int fake_queue(void *stream, fake_work work);
/* All streams. */
int fake_run_all(void);
/* Whether a stream captures, so that little else is allowed. */
bool fake_captures(void);
bool fake_is_lost(void);
/* Into MILLRACE_FAKE_COUNTS. */
void fake_tell(void);
/* Whether [at, at + bytes) is memory of the device. */
bool fake_has(uint64_t at, size_t bytes);
/* Ends the program if something was written beside memory of the device; `after` is the last that ran. */
void fake_check_memory(const char *after);
/* What modules are made with: of an older one nothing is loaded. */
uint64_t fake_made_with(void);

#endif
