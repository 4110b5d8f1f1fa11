/* compiler.c - libnvrtc of the fake device: the text that NVRTC gets is built by the compiler of C++; see fake.h.
 * Invariant: what a text becomes depends on it, its options and language.hpp alone, which the image names.
 *
 *      text --g++ -E, macros of language.hpp--> text --asm to calls, list of kernels--> text --g++, language.hpp-->
 * image */
#include <ctype.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/files/file.h"
#include "base/scope.h"
#include "fake.h"

enum { FILE_MAX = 64 << 20 }; /* bytes */

typedef struct program {
    char *text, options[200];
    bool ptx;
    mr_buf log, image;
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

/* The text with the fault that MILLRACE_FAKE_FAULT plants, "PLACE|OLD|NEW": the first OLD after PLACE becomes NEW. */
static char *plant(const char *text)
{
    const char *fault = getenv("MILLRACE_FAKE_FAULT");
    char *copy = fault ? strdup(fault) : NULL, *rest = copy;
    const char *place = strsep(&rest, "|"), *old = strsep(&rest, "|"), *at = place ? strstr(text, place) : NULL;
    MR_AUTO(mr_buf_free) mr_buf out = {0};
    at = at && old ? strstr(at, old) : NULL;
    mr_buf_add(&out, text, at ? (size_t)(at - text) : strlen(text));
    if (at) {
        mr_buf_add_text(&out, rest);
        mr_buf_add_text(&out, at + strlen(old));
    }
    free(copy);
    return strdup(mr_buf_text(&out));
}

int nvrtcCreateProgram(program **out, const char *text, const char *name, int headers, const char *const *h,
                       const char *const *n);
int nvrtcCreateProgram(program **out, const char *text, const char *name, int headers, const char *const *h,
                       const char *const *n)
{
    (void)name, (void)h, (void)n;
    *out = headers ? NULL : calloc(1, sizeof **out);
    if (*out)
        (*out)->text = plant(text);
    return *out && (*out)->text ? 0 : 1;
}

int nvrtcDestroyProgram(program **p);
int nvrtcDestroyProgram(program **p)
{
    mr_buf_free(&(*p)->log);
    mr_buf_free(&(*p)->image);
    free((*p)->text);
    free(*p);
    *p = NULL;
    return 0;
}

/* ---- from CUDA to C++ -------------------------------------------------------------------------------------------- */

/* `asm`, from after its bracket to the one that closes it: constraints go, colons become commas, and what is clobbered
 * goes.  Where it ends. */
static const char *add_call(mr_buf *out, const char *at)
{
    int depth = 1, colons = 0;
    bool quoted = false, waits = false; /* waits: a comma, for what it separates */
    for (; *at; at++) {
        if (*at == '"') {
            const char *end = strchr(at + 1, '"');
            if (end && end[1] == '(') { /* "+f"(x) */
                at = end;
                continue;
            }
            quoted = !quoted;
        }
        depth += quoted ? 0 : (*at == '(') - (*at == ')');
        if (*at == ':' && !quoted) {
            colons++;
            waits = true;
        } else if (depth == 0) {
            mr_buf_add(out, at, 1);
            return at + 1;
        } else if (colons < 3) {
            if (waits && !isspace((unsigned char)*at))
                mr_buf_add_text(out, ",");
            waits = waits && isspace((unsigned char)*at);
            mr_buf_add(out, at, 1);
        }
    }
    return at;
}

/* The preprocessed text, see language.hpp. */
static void translate(mr_buf *out, const char *text)
{
    static const char call[] = "emulated_asm ", kernel[] = "emulated_bound(";
    MR_AUTO(mr_buf_free) mr_buf kernels = {0};
    while (*text) {
        if (strncmp(text, call, strlen(call)) == 0) {
            char *end;
            long line = strtol(text + strlen(call), &end, 10);
            mr_buf_printf(out, "emulated(%ld, ", line);
            text = add_call(out, strchr(end, '(') + 1);
        } else if (strncmp(text, kernel, strlen(kernel)) == 0) {
            int lanes = 0, at = 0;
            char name[64] = "";
            if (sscanf(text + strlen(kernel), "%d) void %63[a-z0-9_]%n", &lanes, name, &at) == 2)
                mr_buf_printf(&kernels, "EMULATED_KERNEL(%s, %d)\n", name, lanes);
            mr_buf_printf(out, "void %s", name);
            text += strlen(kernel) + (size_t)at;
        } else {
            mr_buf_add(out, text++, 1);
        }
    }
    mr_buf_printf(out, "\nEMULATED_KERNELS_BEGIN\n%sEMULATED_KERNELS_END\n", mr_buf_text(&kernels));
}

/* ---- building ---------------------------------------------------------------------------------------------------- */

static bool write_file(const char *dir, const char *name, const void *bytes, size_t size)
{
    char path[100];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *f = fopen(path, "w");
    bool wrote = f && fwrite(bytes, 1, size, f) == size;
    return f && fclose(f) == 0 && wrote;
}

static bool read_file(const char *dir, const char *name, mr_buf *out)
{
    char path[100];
    mr_error err;
    snprintf(path, sizeof path, "%s/%s", dir, name);
    return mr_file_read_all(AT_FDCWD, path, FILE_MAX, out, &err) == MR_OK;
}

/* A sanitizer preloaded for Python is not the compiler's. */
static bool run(const char *dir, const char *arguments)
{
    MR_AUTO(mr_buf_free) mr_buf command = {0};
    mr_buf_printf(&command, "cd %s && env -u LD_PRELOAD -u LD_LIBRARY_PATH LC_ALL=C %s 2>>log", dir, arguments);
    return system(mr_buf_text(&command)) == 0; /* NOLINT: a test's */
}

#define BUILD FAKE_COMPILER " " FAKE_FLAGS " -shared text.cc -o text.so -lm"

static bool build(program *p, const char *dir)
{
    MR_AUTO(mr_buf_free) mr_buf text = {0}, made = {0}, command = {0};
    mr_buf_printf(&command,
                  "%s -x c++ -E -P -DEMULATED_MACROS -imacros '" FAKE_SOURCE "/language.hpp' %s text.cu >text.i",
                  FAKE_COMPILER, p->options);
    if (!write_file(dir, "text.cu", p->text, strlen(p->text)) || !run(dir, mr_buf_text(&command)) ||
        !read_file(dir, "text.i", &text))
        return false;
    mr_buf_printf(&made, "#include \"" FAKE_SOURCE "/language.hpp\"\n");
    translate(&made, mr_buf_text(&text));
    return write_file(dir, "text.cc", made.data, made.len) &&
           run(dir, getenv("MILLRACE_FAKE_FAULT") ? BUILD " -O0" : BUILD) && /* is used once */
           read_file(dir, "text.so", &p->image);
}

/* The image: FAKE_IMAGE, what it was made with, its bytes. */
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
    char dir[] = "/tmp/millrace-fake-cuda-XXXXXX", command[100];
    if (!has_arch || !mkdtemp(dir))
        return has_arch ? 1 : 5;
    fake_image head = {FAKE_IMAGE, fake_made_with(), 0};
    mr_buf_add(&p->image, &head, sizeof head);
    bool built = build(p, dir);
    head.bytes = p->image.len - sizeof head;
    if (built)
        memcpy(p->image.data, &head, sizeof head);
    read_file(dir, "log", &p->log);
    snprintf(command, sizeof command, "rm -rf %s", dir);
    return system(command) == 0 && built ? 0 : 6; /* NOLINT: a test's; NVRTC_ERROR_COMPILATION */
}

int nvrtcGetProgramLogSize(const program *p, size_t *out);
int nvrtcGetProgramLogSize(const program *p, size_t *out)
{
    *out = p->log.len + 1;
    return 0;
}

int nvrtcGetProgramLog(program *p, char *out);
int nvrtcGetProgramLog(program *p, char *out)
{
    memcpy(out, mr_buf_text(&p->log), p->log.len + 1);
    return 0;
}

int nvrtcGetCUBINSize(const program *p, size_t *out);
int nvrtcGetCUBINSize(const program *p, size_t *out)
{
    *out = p->ptx ? 0 : p->image.len;
    return 0;
}

int nvrtcGetPTXSize(const program *p, size_t *out);
int nvrtcGetPTXSize(const program *p, size_t *out)
{
    *out = p->image.len;
    return 0;
}

int nvrtcGetPTX(const program *p, char *out);
int nvrtcGetPTX(const program *p, char *out)
{
    memcpy(out, p->image.data, p->image.len);
    return 0;
}

int nvrtcGetCUBIN(const program *p, char *out);
int nvrtcGetCUBIN(const program *p, char *out)
{
    return nvrtcGetPTX(p, out);
}
