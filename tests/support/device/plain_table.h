/* plain_table.h - what a table of kernels in plain C holds.  It knows nothing of device.h, whose types have the names
 * of kernels. */
#ifndef MR_SUPPORT_PLAIN_TABLE_H
#define MR_SUPPORT_PLAIN_TABLE_H

typedef struct plain_kernel {
    const char *word;                 /* of mr_kernel_word(); NULL: the end */
    void (*call)(const void *values); /* of the arguments, 8 bytes each */
    unsigned lanes;
    int has_barriers;
} plain_kernel;

extern const plain_kernel plain_f32[], plain_bf16[], plain_one_lane[];

#endif
