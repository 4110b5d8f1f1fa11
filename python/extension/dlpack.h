/* dlpack.h - the structures of DLPack that the module hands out, with and without a version.
 * Invariant: the layout is that of DLPack 1.0 (dmlc.github.io/dlpack, "C API"); nothing here is millrace's own. */
#ifndef MR_PYTHON_DLPACK_H
#define MR_PYTHON_DLPACK_H

#include <stdint.h>

enum { DL_CPU = 1 };                                           /* DLDeviceType */
enum { DL_INT = 0, DL_UINT = 1, DL_FLOAT = 2, DL_BFLOAT = 4 }; /* DLDataTypeCode */

typedef struct dl_tensor {
    void *data;
    struct {
        int32_t type, id;
    } device;
    int32_t dimensions;
    struct {
        uint8_t code, bits;
        uint16_t lanes;
    } type;
    int64_t *shape, *strides; /* strides in items */
    uint64_t offset;          /* bytes */
} dl_tensor;

typedef struct dl_managed {
    dl_tensor tensor;
    void *context;
    void (*deleter)(struct dl_managed *self);
} dl_managed;

typedef struct dl_managed_versioned {
    struct {
        uint32_t major, minor;
    } version;
    void *context;
    void (*deleter)(struct dl_managed_versioned *self);
    uint64_t flags; /* 0: writable, not a copy */
    dl_tensor tensor;
} dl_managed_versioned;

#endif
