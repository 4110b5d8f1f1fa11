/* compiler.c - libnvrtc of the fake device, and modules and launches of libcuda; see fake.h.
 * Invariant: an "image" is the text and its options, which the OpenCL device builds; groups, rows and images are
 * numbered as CUDA numbers them, whatever the dialect of OpenCL says. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fake.h"

enum { MAGIC = 8, ARGUMENTS_MAX = 40, ROWS_MAX = 65535, LANES_MAX = 1024 };

/* ---- NVRTC ------------------------------------------------------------------------------------------------------ */

typedef struct program {
    char *text, options[200];
    bool ptx;
} program;

int nvrtcVersion(int *major, int *minor);
int nvrtcVersion(int *major, int *minor)
{
    *major = 13;
    *minor = 0;
    return 0;
}

int nvrtcGetNumSupportedArchs(int *out);
int nvrtcGetNumSupportedArchs(int *out)
{
    *out = 3;
    return 0;
}

int nvrtcGetSupportedArchs(int *out);
int nvrtcGetSupportedArchs(int *out)
{
    memcpy(out, (const int[]){80, 90, 100}, 3 * sizeof *out);
    return 0;
}

int nvrtcCreateProgram(program **out, const char *text, const char *name, int headers, const char *const *h,
                       const char *const *n);
int nvrtcCreateProgram(program **out, const char *text, const char *name, int headers, const char *const *h,
                       const char *const *n)
{
    (void)name, (void)h, (void)n;
    *out = headers ? NULL : calloc(1, sizeof **out);
    if (*out)
        (*out)->text = strdup(text);
    return *out && (*out)->text ? 0 : 1;
}

int nvrtcDestroyProgram(program **p);
int nvrtcDestroyProgram(program **p)
{
    free((*p)->text);
    free(*p);
    *p = NULL;
    return 0;
}

int nvrtcCompileProgram(program *p, int count, const char *const *options);
int nvrtcCompileProgram(program *p, int count, const char *const *options)
{
    bool has_arch = false;
    for (int i = 0; i < count; i++) {
        if (strncmp(options[i], "--gpu-architecture=", 19) == 0) {
            has_arch = true;
            p->ptx = strncmp(options[i] + 19, "compute_", 8) == 0;
        } else if (strncmp(options[i], "-D", 2) == 0) {
            snprintf(p->options + strlen(p->options), sizeof p->options - strlen(p->options), " %s", options[i]);
        } else if (strcmp(options[i], "--fmad=false") != 0) {
            return 5; /* NVRTC_ERROR_INVALID_OPTION */
        }
    }
    return has_arch ? 0 : 5;
}

int nvrtcGetProgramLogSize(program *p, size_t *out);
int nvrtcGetProgramLogSize(program *p, size_t *out)
{
    (void)p;
    *out = 1;
    return 0;
}

int nvrtcGetProgramLog(program *p, char *out);
int nvrtcGetProgramLog(program *p, char *out)
{
    (void)p;
    *out = '\0';
    return 0;
}

/* "FAKEcode" or "FAKE-ptx", the options, the text; both with their NUL. */
static size_t image_size(const program *p)
{
    return MAGIC + strlen(p->options) + strlen(p->text) + 2;
}

static int image(const program *p, bool ptx, char *out)
{
    memcpy(out, ptx ? "FAKE-ptx" : "FAKEcode", MAGIC);
    memcpy(out + MAGIC, p->options, strlen(p->options) + 1);
    memcpy(out + MAGIC + strlen(p->options) + 1, p->text, strlen(p->text) + 1);
    return 0;
}

int nvrtcGetCUBINSize(program *p, size_t *out);
int nvrtcGetCUBINSize(program *p, size_t *out)
{
    *out = p->ptx ? 0 : image_size(p);
    return 0;
}

int nvrtcGetCUBIN(program *p, char *out);
int nvrtcGetCUBIN(program *p, char *out)
{
    return image(p, false, out);
}

int nvrtcGetPTXSize(program *p, size_t *out);
int nvrtcGetPTXSize(program *p, size_t *out)
{
    *out = image_size(p);
    return 0;
}

int nvrtcGetPTX(program *p, char *out);
int nvrtcGetPTX(program *p, char *out)
{
    return image(p, true, out);
}

/* ---- modules ---------------------------------------------------------------------------------------------------- */

typedef struct function {
    mr_cl_kernel kernel;
    uint32_t count;
    bool global[ARGUMENTS_MAX];
    uint8_t sizes[ARGUMENTS_MAX]; /* of a value, or of what a pointer points to */
    struct function *next;
} function;

typedef struct module {
    mr_cl_program program;
    bool bf16;
    function *functions;
} module;

static const char grid_of_cuda[] =
    "#undef MR_COLUMN\n#undef MR_ROW\n#undef MR_IMAGE\n"
    "#define MR_COLUMN() ((u32)(get_group_id(1) * get_local_size(0) + get_local_id(0)))\n"
    "#define MR_ROW() ((u32)get_group_id(0))\n"
    "#define MR_IMAGE() ((u32)get_group_id(1))\n";

int cuModuleLoadData(module **out, const char *bytes);
int cuModuleLoadData(module **out, const char *bytes)
{
    static const char base[] = "/* base.cl";
    mr_opencl *d = fake_base();
    if (d && fake_setting("MILLRACE_FAKE_DRIVER", 13010) < 13000)
        return FAKE_NO_IMAGE;
    if (!d || (memcmp(bytes, "FAKEcode", MAGIC) != 0 && memcmp(bytes, "FAKE-ptx", MAGIC) != 0))
        return d ? FAKE_NO_IMAGE : FAKE_NO_CONTEXT;
    const char *options = bytes + MAGIC, *text = options + strlen(options) + 1, *at = strstr(text, base);
    char all[300];
    module *m = calloc(1, sizeof *m);
    if (!m || !at)
        return FAKE_NO_IMAGE;
    const char *parts[] = {text, grid_of_cuda, at};
    const size_t sizes[] = {(size_t)(at - text), strlen(grid_of_cuda), strlen(at)};
    int32_t code = 0;
    snprintf(all, sizeof all, "-cl-std=CL1.2 -cl-kernel-arg-info%s", options);
    m->bf16 = strstr(options, "MR_REAL_BF16");
    m->program = d->api.CreateProgramWithSource(d->context, 3, parts, sizes, &code);
    if (!code)
        code = d->api.BuildProgram(m->program, 1, &d->id, all, NULL, NULL);
    *out = m;
    return code ? FAKE_NO_IMAGE : 0;
}

int cuModuleUnload(module *m);
int cuModuleUnload(module *m)
{
    mr_opencl *d = fake_base();
    while (d && m->functions) {
        function *f = m->functions;
        m->functions = f->next;
        d->api.ReleaseKernel(f->kernel);
        free(f);
    }
    if (d)
        d->api.ReleaseProgram(m->program);
    free(m);
    return d ? 0 : FAKE_NO_CONTEXT;
}

/* Bytes of a type by its name, without "*". */
static uint8_t size_of(const char *type, bool bf16)
{
    static const struct {
        const char *name;
        uint8_t size;
    } types[] = {{"u8", 1},    {"uchar", 1}, {"u16", 2},  {"ushort", 2}, {"i16", 2},
                 {"short", 2}, {"u32", 4},   {"uint", 4}, {"i32", 4},    {"int", 4},
                 {"f32", 4},   {"float", 4}, {"u64", 8},  {"ulong", 8},  {"unsigned long", 8}};
    size_t len = strcspn(type, "*");
    if (strncmp(type, "mr_real", len) == 0)
        return bf16 ? 2 : 4;
    for (size_t i = 0; i < MR_COUNT(types); i++)
        if (strlen(types[i].name) == len && strncmp(types[i].name, type, len) == 0)
            return types[i].size;
    return 0;
}

/* The arguments of a kernel, as the OpenCL compiler saw them (OpenCL 1.2, sections 5.7.3 and 5.7.4). */
static bool learn(const mr_opencl *d, function *f, bool bf16)
{
    enum { NUM_ARGS = 0x1191, ADDRESS = 0x1196, TYPE_NAME = 0x1198, IS_GLOBAL = 0x119B };
    int32_t (*kernel_info)(mr_cl_kernel, uint32_t, size_t, void *, size_t *);
    int32_t (*argument_info)(mr_cl_kernel, uint32_t, uint32_t, size_t, void *, size_t *);
    void *symbols[] = {dlsym(d->api.library, "clGetKernelInfo"), dlsym(d->api.library, "clGetKernelArgInfo")};
    memcpy(&kernel_info, &symbols[0], sizeof kernel_info);
    memcpy(&argument_info, &symbols[1], sizeof argument_info);
    if (kernel_info(f->kernel, NUM_ARGS, sizeof f->count, &f->count, NULL) != 0 || f->count > ARGUMENTS_MAX)
        return false;
    for (uint32_t i = 0; i < f->count; i++) {
        uint32_t space = 0;
        char type[64] = "";
        if (argument_info(f->kernel, i, ADDRESS, sizeof space, &space, NULL) != 0 ||
            argument_info(f->kernel, i, TYPE_NAME, sizeof type, type, NULL) != 0)
            return false;
        f->global[i] = space == IS_GLOBAL;
        f->sizes[i] = size_of(type, bf16);
        if (!f->sizes[i])
            return false;
    }
    return true;
}

int cuModuleGetFunction(function **out, module *m, const char *name);
int cuModuleGetFunction(function **out, module *m, const char *name)
{
    mr_opencl *d = fake_base();
    int32_t code = 0;
    function *f = d ? calloc(1, sizeof *f) : NULL;
    if (!f)
        return FAKE_NO_CONTEXT;
    f->kernel = d->api.CreateKernel(m->program, name, &code);
    if (code) {
        free(f);
        return FAKE_NOT_FOUND;
    }
    f->next = m->functions;
    m->functions = f;
    *out = f;
    return learn(d, f, m->bf16) ? 0 : FAKE_NO_IMAGE;
}

/* ---- launches --------------------------------------------------------------------------------------------------- */

typedef struct launch {
    function *f;
    size_t items[2], lanes[2];
    uint64_t values[ARGUMENTS_MAX];
} launch;

/* A pointer and the offset after it become a buffer of OpenCL, and an offset from its start. */
static bool run_launch(fake_work *w)
{
    launch *l = w->data;
    mr_opencl *d = fake_base();
    int32_t code = d ? 0 : FAKE_NO_CONTEXT;
    for (uint32_t i = 0; i < l->f->count && !code; i++) {
        uint64_t value = l->values[i], memory = 0;
        size_t offset = 0, size = l->f->sizes[i];
        if (l->f->global[i]) {
            if (!d->launcher.card->place(&d->launcher, (void *)(uintptr_t)value, &memory, &offset) || offset % size)
                code = FAKE_INVALID;
            value = memory;
            l->values[i + 1] += offset / size;
            size = sizeof value;
        }
        if (!code)
            code = d->api.SetKernelArg(l->f->kernel, i, size, &value);
    }
    if (!code)
        code = d->api.EnqueueNDRangeKernel(d->queue, l->f->kernel, 2, NULL, l->items, l->lanes, 0, NULL, NULL);
    if (code && d)
        mr_cl_note(d, "fake launch", code);
    return true;
}

int cuLaunchKernel(function *f, unsigned x, unsigned y, unsigned z, unsigned lanes, unsigned lanes_y, unsigned lanes_z,
                   unsigned shared, void *stream, void **arguments, void **extra);
int cuLaunchKernel(function *f, unsigned x, unsigned y, unsigned z, unsigned lanes, unsigned lanes_y, unsigned lanes_z,
                   unsigned shared, void *stream, void **arguments, void **extra)
{
    launch *l = calloc(1, sizeof *l);
    if (!l || !x || !y || x > INT32_MAX || y > ROWS_MAX || z != 1 || !lanes || lanes > LANES_MAX || lanes_y != 1 ||
        lanes_z != 1 || shared || extra) {
        free(l);
        return FAKE_INVALID;
    }
    *l = (launch){.f = f, .items = {(size_t)x * lanes, y}, .lanes = {lanes, 1}};
    for (uint32_t i = 0; i < f->count; i++)
        memcpy(&l->values[i], arguments[i], f->global[i] ? 8 : f->sizes[i]);
    for (uint32_t i = 0; i < f->count; i++)
        if (f->global[i] && !fake_has(l->values[i], 0)) {
            free(l);
            return FAKE_INVALID;
        }
    return fake_queue(stream, (fake_work){.run = run_launch, .data = l, .data_bytes = sizeof *l, .kernel = true});
}
