/* device.h - where tensors are and what can be done with them: one interface per device; the CPU's is the reference.
 * Invariant: models, optimizer and trainer use device memory through this interface alone and never ask which device it
 * is. Work may be queued: only `wait` reports that it is done, and whether it succeeded. */
#ifndef MR_DEVICE_H
#define MR_DEVICE_H

#include "device/operations.h"

typedef struct mr_device mr_device;

/* Operations that are always the same, recorded once and replayed, so that the host does not queue each of them again:
 *      begin; operations, without waits, copies or memory; end; replay, replay ...
 * What is replayed reads and writes the memory that it was recorded with, and computes the same bits as if queued. */
typedef struct mr_recording mr_recording;
typedef struct mr_recorder {
    /* Operations are recorded from here on, and not done.  False: this device records nothing, or it has failed. */
    bool (*begin)(mr_device *d);
    mr_recording *(*end)(mr_device *d); /* NULL: the device has failed */
    /* False: memory was freed since, perhaps that of the recording: it must be recorded again. */
    bool (*holds)(const mr_device *d, const mr_recording *r);
    void (*replay)(mr_device *d, const mr_recording *r); /* queued; NULL: nothing */
    void (*free)(mr_device *d, mr_recording *r);         /* NULL is fine */
} mr_recorder;

/* A second queue, whose operations and copies run beside those of the first.  Memory that both use is handed over where
 * they meet. */
typedef struct mr_second_queue {
    void (*enter)(mr_device *d); /* what follows is queued there, and wait() waits for it alone */
    void (*leave)(mr_device *d); /* what follows is queued in the first one again */
    void (*meet)(mr_device *d);  /* what is queued in either from now on waits for what has been queued in the other */
} mr_second_queue;

/* Moments between operations, by the device's own clock. */
typedef struct mr_clock {
    void (*stamp)(mr_device *d, size_t n); /* queued: moment number n, from 0; replaces an earlier one */
    /* Seconds, once the later one has passed; 0: the device has failed. */
    double (*between)(mr_device *d, size_t from, size_t to);
} mr_clock;

/* Sums over the devices of several processes, each with a device of its own, without the host.  They are not
 * operations: they wait for what was queued before them, but what is queued after them does not wait.  Every process
 * asks for the same sums in the same order. */
enum { MR_SUMS_ID = 128 };
typedef struct mr_sums_facts { /* all zero first, as it is compared */
    bool can;
    int version;        /* version of the code that sums, equal in all processes */
    uint8_t device[16]; /* which no other device has, on any host */
    char how[160];      /* "NCCL 2.28.9"; if it cannot: why */
} mr_sums_facts;
typedef struct mr_sums_iface {
    void (*look)(mr_device *d, mr_sums_facts *out);
    /* Creates the rendezvous id, on one process. */
    mr_status (*invite)(mr_device *d, uint8_t id[MR_SUMS_ID], mr_error *err);
    mr_status (*meet)(mr_device *d, const uint8_t id[MR_SUMS_ID], unsigned rank, unsigned world,
                      mr_error *err);                  /* waits for the others */
    void (*add)(mr_device *d, float *x, size_t count); /* x[count] += that of every other process */
    /* Whether all sums are; after a failure, which wait() reports, they are left, and it is true. */
    bool (*done)(mr_device *d);
    void (*leave)(mr_device *d); /* ends sums that wait for a process that does not come; no others follow */
} mr_sums_iface;

typedef struct mr_device_options {
    unsigned threads; /* CPU: 0: the processors this process may use */
    unsigned index;   /* which device of this kind, from 0; "opencl:1" is the same with `index` 1 and `local_rank` 0 */
    unsigned local_rank; /* number of this process on its host: processes take turns at the devices from `index` on */
} mr_device_options;

typedef struct mr_device_iface {
    const char *name; /* "cpu" */
    const char *what;
    unsigned types; /* bit (1 << mr_type) for each supported type of activations */
    mr_status (*open)(const mr_device_options *options, mr_device **out, mr_error *err);
    void (*close)(mr_device *d);
    /* Human-readable, such as "8 threads, AVX-512"; valid as long as the device. */
    const char *(*describe)(const mr_device *d);
    /* How products of activations of `type` are computed: "oneDNN", and the reason if that is not faster.
     * Valid as long as the device. */
    const char *(*products)(const mr_device *d, mr_type type);
    /* Which products that library has declined since the device was opened, so that slower kernels computed them: a
     * sentence, valid until the next call; NULL: none.  NULL itself: the device has no such library. */
    const char *(*declined)(mr_device *d);

    /* Memory of the device, zeroed, 64-byte aligned.  `purpose`: what it is for, as "activations", in the message when
     * there is too little; the text must outlive the memory. */
    mr_status (*alloc)(mr_device *d, size_t bytes, const char *purpose, void **out, mr_error *err);
    void (*free)(mr_device *d, void *memory);                                 /* NULL is fine */
    void (*upload)(mr_device *d, void *to, const void *from, size_t bytes);   /* `from` may be reused when it returns */
    void (*download)(mr_device *d, void *to, const void *from, size_t bytes); /* done when it returns */
    void (*zero)(mr_device *d, void *memory, size_t bytes);
    mr_status (*wait)(mr_device *d, mr_error *err);
    /* True if operations can use host memory directly (the CPU): no uploads needed. */
    bool host_memory;

    /* Before the first step: reserves what attention of this shape needs internally (pointers are not used), and sets
     * how many bytes `saved` must have. */
    mr_status (*plan_attention)(mr_device *d, const mr_attention *a, size_t *saved_bytes, mr_error *err);
    void (*run)(mr_device *d, const mr_op *op); /* queued; any row of MR_OPERATIONS */
    /* Memory of the host that is uploaded without another copy, for any thread; frees before the device is closed.
     * NULL: any memory is as good. */
    const mr_allocator *(*slabs)(mr_device *d);
    const mr_second_queue *second; /* NULL: there is one queue */
    const mr_recorder *recorder;   /* NULL: such devices record nothing */
    const mr_clock *clock;         /* NULL: the host's, around what is waited for */
    const mr_sums_iface *sums;     /* NULL: such devices do not sum */
} mr_device_iface;

struct mr_device { /* first member of every device's own struct */
    const mr_device_iface *iface;
};

/* mr_run_NAME(d, arguments), for each operation. */
#define X(name, arguments, ...)                                                                                        \
    static inline void mr_run_##name(mr_device *d, const arguments *a)                                                 \
    {                                                                                                                  \
        d->iface->run(d, &(mr_op){MR_OP_##name, a});                                                                   \
    }
MR_OPERATIONS(X)
#undef X

/* The sum of squares of x[count], on the host; waits for it. */
static inline double mr_squares_of(mr_device *d, size_t count, const float *x)
{
    double total = 0;
    mr_run_sum_squares(d, &(mr_sum_squares){count, x, &total});
    return total;
}

/* All devices, one word each, as for --device. */
#define MR_DEVICES(X) X(cpu) X(opencl) X(cuda)
#define X(word)       extern const mr_device_iface mr_device_##word;
MR_DEVICES(X)
#undef X

const mr_device_iface *mr_device_iface_at(size_t i); /* in their order; NULL: past the last */

/* A word of --precision; any other one is float32: options check theirs. */
mr_type mr_type_of(const char *word);
/* Before it is opened: whether the device of this word computes activations of `type`.  MR_MISUSE: it does not, or
 * there is no such device; the message names the way out. */
mr_status mr_device_computes(const char *word, mr_type type, mr_error *err);
/* `word`: a device, or one and a number, as in "opencl:1".  MR_MISUSE: no such device (the message suggests one); or
 * the failure of its open(). */
mr_status mr_device_open(const char *word, const mr_device_options *options, mr_device **out, mr_error *err);
void mr_device_close(mr_device *d); /* NULL is fine */

#endif
