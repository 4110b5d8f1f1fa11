/* cmd_annotations.c - see cmd_annotations.h.
 * Invariant: a name that does not exist on disk stays as it is, since it may be in an archive. */
#include "ingest/cmd_annotations.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/scope.h"

/* What of the file's path is below the folder; NULL: it is elsewhere, or one of them cannot be resolved. */
static char *below(const char *folder, const char *file)
{
    MR_AUTO(mr_scope_free) char *outer = realpath(folder, NULL);
    MR_AUTO(mr_scope_free) char *inner = realpath(file, NULL);
    size_t len = outer ? strlen(outer) : 0;
    if (!outer || !inner)
        return NULL;
    while (len && outer[len - 1] == '/')
        len--;
    return !strncmp(inner, outer, len) && inner[len] == '/' ? strdup(inner + len + 1) : NULL;
}

static mr_status settle_one(const char *file, mr_ingest_options *o, mr_cmd_annotations *out, size_t number,
                            mr_error *err)
{
    struct stat st;
    const char *slash = strrchr(file, '/');
    bool on_disk = stat(file, &st) == 0 && S_ISREG(st.st_mode);
    char *name = NULL;
    for (size_t i = 0; on_disk && i < o->source_count && !name; i++)
        name = below(out->sources[i], file);
    if (on_disk && !name) {
        out->sources[o->source_count++] = (char *)file;
        name = strdup(slash ? slash + 1 : file);
    } else if (!name) {
        while (!strncmp(file, "./", 2))
            file += 2;
        name = strdup(file);
    }
    out->names[number] = name;
    return name ? MR_OK : mr_fail_memory(err, "--annotations");
}

mr_status mr_annotations_settle(char *const *given, size_t count, mr_ingest_options *o, mr_cmd_annotations *out,
                                mr_error *err)
{
    out->names = mr_alloc(count + 1, sizeof *out->names);
    out->sources = mr_alloc(o->source_count + count, sizeof *out->sources);
    if (!out->names || !out->sources)
        return mr_fail_memory(err, "--annotations");
    memcpy(out->sources, o->sources, o->source_count * sizeof *out->sources);
    o->sources = out->sources;
    for (size_t i = 0; i < count; i++)
        MR_TRY(settle_one(given[i], o, out, i, err));
    o->for_layout.annotations = (const char *const *)out->names;
    o->for_layout.annotation_count = count;
    return MR_OK;
}

void mr_annotations_free(mr_cmd_annotations *a)
{
    for (size_t i = 0; a->names && a->names[i]; i++)
        free(a->names[i]);
    free(a->names);
    free(a->sources);
}
