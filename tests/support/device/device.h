/* device.h - one test of an operation, run on every device, with every set of loops and several threads.
 * Invariant: a trial is a pure function of its chance; what it takes from the device is digested, and the digests of
 * all thread counts must be equal.  Numbers are kept in double, rounded to what the device gets.
 *
 *      static void add(support_trial *t) { double *a = support_draw(t, n, -1, 1); ... }
 *      support_on_devices(add); */
#ifndef MR_SUPPORT_DEVICE_H
#define MR_SUPPORT_DEVICE_H

#include "device/device.h"
#include "tests/support/support.h"

typedef struct support_trial {
    mr_device *d;
    const mr_device_iface *iface;
    mr_random r;
    uint64_t digest;
    const char *loops; /* for messages */
    unsigned threads, round;
    size_t slopes;         /* elements whose slopes are looked at; 64, an op may want fewer in its round */
    void **host, **device; /* all freed when the trial ends */
    size_t hosts, devices, host_capacity, device_capacity;
} support_trial;

/* Runs `op` on the CPU, each set of loops x 1, 2, 3 threads x a few rounds of other chance, and on `isolated`; or on
 * the device MILLRACE_TEST_DEVICE alone, twice (the tests NAME@opencl). */
void support_on_devices(void (*op)(support_trial *t));

size_t support_size_of(support_trial *t, size_t most);   /* 1 .. most, often small or odd */
void *support_zeroed(support_trial *t, size_t bytes);    /* host, zeroed */
double *support_doubles(support_trial *t, size_t count); /* zeros */
double *support_draw(support_trial *t, size_t count, double low, double high);
void *support_give(support_trial *t, const double *x, size_t count); /* as float32 on the device */
void *support_give_bytes(support_trial *t, const void *bytes, size_t size);
void *support_blank(support_trial *t, size_t count); /* floats that are NaN */
double *support_take(support_trial *t, const void *x, size_t count);
void support_take_bytes(support_trial *t, void *to, const void *from, size_t size);

/* Off in odd rounds, and then without keys. */
mr_dropout support_dropout(support_trial *t, size_t samples);
/* What dropout multiplies each of [rows, width] by, as the device's `drop` has it: 0 or 1 / (1 - rate). */
double *support_mask(support_trial *t, const mr_dropout *d, size_t rows, size_t width, size_t sample_rows);

/* Fails if an element is off by more than tolerance * the largest |want| (at least 0.25: what cancels out has an error
 * of what it came from), or is NaN. */
void support_near(const support_trial *t, const char *what, const double *got, const double *want, size_t count,
                  double tolerance);
/* The same for a gradient against differences of `loss` around x[count], at t->slopes of them if there are more. */
void support_slopes(support_trial *t, const char *what, const double *gradient, double *x, size_t count,
                    double (*loss)(void *ctx), void *ctx, double tolerance);

#endif
