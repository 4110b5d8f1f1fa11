/* module.c - libcuda.so.1 of the fake device: modules of kernels and their launches; see fake.h.
 * Invariant: a launch finds no numbers in variables of the group, and has written nothing beside memory of the
 * device. */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/hash.h"
#include "base/scope.h"
#include "fake.h"
#include "module.h"

enum { ROWS_MAX = 65535, NO_NUMBER = 0xff };

typedef struct module module;

typedef struct function {
    const emulated_kernel *kernel;
    const module *of;
} function;

struct module {
    void *library;
    emulated_module emulated;
    function *functions; /* of each kernel */
};

uint64_t fake_made_with(void)
{
    MR_AUTO(mr_buf_free) mr_buf all = {0};
    mr_error err;
    mr_buf_add_text(&all, FAKE_FLAGS);
    mr_file_read_all(AT_FDCWD, FAKE_SOURCE "/language.hpp", UINT16_MAX, &all, &err);
    mr_file_read_all(AT_FDCWD, FAKE_SOURCE "/module.h", UINT16_MAX, &all, &err);
    return mr_hash64(all.data, all.len);
}

/* ---- modules ----------------------------------------------------------------------------------------------------- */

/* Each from a name of its own: of one that is loaded nothing is read again. */
static void *open_library(const void *bytes, size_t size)
{
    char path[] = "/tmp/millrace-fake-cuda-XXXXXX";
    int file = mkstemp(path);
    void *library = NULL;
    if (file >= 0 && write(file, bytes, size) == (ssize_t)size)
        library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        fprintf(stderr, "fake CUDA: %s\n", dlerror());
    if (file >= 0) {
        close(file);
        unlink(path);
    }
    return library;
}

int cuModuleLoadData(module **out, const char *image);
int cuModuleLoadData(module **out, const char *image)
{
    static const emulated_lanes lanes = {&lanes_here, lanes_wait, lanes_wait_warp};
    emulated_module (*open)(const emulated_lanes *lanes);
    fake_image head;
    memcpy(&head, image, sizeof head);
    if (!fake_has_context())
        return FAKE_NO_CONTEXT;
    if (fake_setting("MILLRACE_FAKE_DRIVER", 13010) < 13000 || memcmp(head.magic, FAKE_IMAGE, sizeof head.magic) != 0 ||
        head.made_with != fake_made_with())
        return FAKE_NO_IMAGE;
    void *library = open_library(image + sizeof head, head.bytes);
    void *symbol = library ? dlsym(library, "emulated_open") : NULL;
    if (!symbol)
        return FAKE_NO_IMAGE;
    memcpy(&open, &symbol, sizeof open);
    module *m = malloc(sizeof *m);
    *m = (module){library, open(&lanes), NULL};
    m->functions = malloc(m->emulated.count * sizeof *m->functions);
    for (size_t i = 0; i < m->emulated.count; i++)
        m->functions[i] = (function){&m->emulated.kernels[i], m};
    *out = m;
    return 0;
}

int cuModuleUnload(module *m);
int cuModuleUnload(module *m)
{
    if (!fake_has_context())
        return FAKE_NO_CONTEXT;
    int code = fake_run_all();
    dlclose(m->library);
    free(m->functions);
    free(m);
    return code;
}

int cuModuleGetFunction(function **out, module *m, const char *name);
int cuModuleGetFunction(function **out, module *m, const char *name)
{
    if (!fake_has_context())
        return FAKE_NO_CONTEXT;
    for (size_t i = 0; i < m->emulated.count; i++)
        if (strcmp(m->emulated.kernels[i].name, name) == 0) {
            *out = &m->functions[i];
            return 0;
        }
    return FAKE_NOT_FOUND;
}

/* ---- launches ---------------------------------------------------------------------------------------------------- */

typedef struct launch {
    const function *f;
    uint32_t groups, rows, lanes;
    uint64_t values[EMULATED_ARGUMENTS];
} launch;

static void run_lane(const void *ctx)
{
    const launch *l = ctx;
    void *arguments[EMULATED_ARGUMENTS];
    for (uint32_t i = 0; i < l->f->kernel->count; i++)
        arguments[i] = (void *)(uintptr_t)&l->values[i];
    l->f->kernel->call(arguments);
}

static bool run_launch(fake_work *w)
{
    const launch *l = w->data;
    const emulated_module *m = &l->f->of->emulated;
    if (m->shared)
        memset(m->shared, NO_NUMBER, (size_t)(m->shared_end - m->shared));
    lanes_run(run_lane, l, l->lanes, l->groups, l->rows, true);
    fake_check_memory(l->f->kernel->name);
    return true;
}

int cuLaunchKernel(const function *f, unsigned x, unsigned y, unsigned z, unsigned lanes, unsigned lanes_y,
                   unsigned lanes_z, unsigned shared, void *stream, void **arguments, void **extra);
int cuLaunchKernel(const function *f, unsigned x, unsigned y, unsigned z, unsigned lanes, unsigned lanes_y,
                   unsigned lanes_z, unsigned shared, void *stream, void **arguments, void **extra)
{
    const emulated_kernel *k = f->kernel;
    if (!x || !y || x > INT32_MAX || y > ROWS_MAX || z != 1 || !lanes || lanes_y != 1 || lanes_z != 1 || shared ||
        extra)
        return FAKE_INVALID;
    if (lanes > k->lanes)
        return FAKE_TOO_MUCH;
    launch *l = calloc(1, sizeof *l);
    *l = (launch){.f = f, .groups = x, .rows = y, .lanes = lanes};
    for (uint32_t i = 0; i < k->count; i++) {
        memcpy(&l->values[i], arguments[i], k->pointers[i] ? sizeof(void *) : k->sizes[i]);
        if (k->pointers[i] && l->values[i] && (!fake_has(l->values[i], 0) || l->values[i] % k->sizes[i])) {
            free(l);
            return FAKE_INVALID;
        }
    }
    return fake_queue(stream, (fake_work){.run = run_launch, .data = l, .data_bytes = sizeof *l, .kernel = true});
}
