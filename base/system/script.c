/* script.c - finds a script next to the program (in a build tree), otherwise where it was installed. */
#include "base/system/script.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/environment.h"

static mr_status find(const char *name, const char *variable, const char *what, char **out, mr_error *err)
{
    static const char *const places[] = {"", "/" MILLRACE_LIBEXEC};
    char self[PATH_MAX], path[2 * PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    if (n <= 0)
        return mr_fail(err, MR_SYSTEM, "cannot find the installation of millrace; set the path of %s in %s", what,
                       variable);
    self[n] = '\0';
    *strrchr(self, '/') = '\0';
    for (size_t i = 0; i < MR_COUNT(places); i++) {
        snprintf(path, sizeof path, "%s%s/%s", self, places[i], name);
        if (access(path, R_OK) != 0)
            continue;
        *out = strdup(path);
        return *out ? MR_OK : mr_fail_memory(err, name);
    }
    return mr_fail(err, MR_SYSTEM, "%s: %s is missing: reinstall millrace, or set the path of one in %s", path, what,
                   variable);
}

static bool is_python(const char *program)
{
    size_t len = strlen(program);
    return len > 3 && strcmp(program + len - 3, ".py") == 0;
}

mr_status mr_script_find(const char *name, const char *variable, const char *what, mr_script *out, mr_error *err)
{
    const char *python = mr_env(MR_SCRIPT_PYTHON), *program = mr_env(variable);
    *out = (mr_script){.argc = 0};
    if (!program) {
        mr_status status = find(name, variable, what, &out->owned, err);
        if (status != MR_OK)
            return status;
        program = out->owned;
    }
    if (is_python(program))
        out->argv[out->argc++] = python ? python : "python3";
    out->argv[out->argc++] = program;
    return MR_OK;
}

void mr_script_free(mr_script *s)
{
    free(s->owned);
    *s = (mr_script){.argc = 0};
}
