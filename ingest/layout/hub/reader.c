/* reader.c - the program that reads Parquet: where it is, and how it is called.
 * Invariant: nothing about Parquet is known here: the program gets a file and the requested columns. */
#include "hub/hub.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SCRIPT "parquet_rows.py"

/* Next to the program (in a build tree), otherwise where it was installed. */
static mr_status find_script(char **out, mr_error *err)
{
    static const char *const places[] = {"", "/" MILLRACE_LIBEXEC};
    char self[PATH_MAX], path[2 * PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    if (n <= 0)
        return mr_fail(err, MR_SYSTEM,
                       "cannot tell where millrace is installed; name the reader of Parquet files by " MR_HUB_READER);
    self[n] = '\0';
    *strrchr(self, '/') = '\0';
    for (size_t i = 0; i < MR_COUNT(places); i++) {
        snprintf(path, sizeof path, "%s%s/" SCRIPT, self, places[i]);
        if (access(path, R_OK) != 0)
            continue;
        *out = strdup(path);
        return *out ? MR_OK : mr_fail_memory(err, "looking for " SCRIPT);
    }
    return mr_fail(err, MR_SYSTEM,
                   "%s: the reader of Parquet files is missing: reinstall millrace, or name one by " MR_HUB_READER,
                   path);
}

static bool is_python(const char *program)
{
    size_t len = strlen(program);
    return len > 3 && strcmp(program + len - 3, ".py") == 0;
}

mr_status mr_hub_reader(const mr_layout_options *o, mr_layout_files *out, mr_error *err)
{
    const char *python = getenv(MR_HUB_PYTHON), *program = getenv(MR_HUB_READER);
    const char *const columns[][2] = {
        {"--image-column", o->image_column}, {"--label-column", o->label_column}, {"--text-column", o->text_column}};
    size_t n = 0;
    if (!program || !*program) {
        mr_status status = find_script(&out->owned[0], err);
        if (status != MR_OK)
            return status;
        program = out->owned[0];
    }
    if (is_python(program))
        out->argv[n++] = python && *python ? python : "python3";
    out->argv[n++] = program;
    for (size_t i = 0; i < MR_COUNT(columns); i++) {
        if (!columns[i][1])
            continue;
        out->argv[n++] = columns[i][0];
        out->argv[n++] = columns[i][1];
    }
    out->argv[n] = NULL;
    return MR_OK;
}
