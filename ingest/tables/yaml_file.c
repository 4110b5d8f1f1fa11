/* yaml_file.c - a YAML file of a source.
 * Invariant: a file longer than MR_YAML_MAX is refused before it is read. */
#include "ingest/tables/yaml_file.h"

#include "base/scope.h"
#include "base/text.h"

mr_status mr_yaml_read(const mr_source *s, uint32_t entry, mr_yaml *out, mr_error *err)
{
    MR_AUTO(mr_buf_free) mr_buf bytes = {0}, name = {0};
    const mr_entry *e = mr_source_entry(s, entry);
    mr_text_escape(&name, e->path, e->path_len);
    if (e->size > MR_YAML_MAX)
        return mr_fail(err, MR_BAD_DATA, "%s: longer than 1 MiB, the limit for a YAML file", mr_buf_text(&name));
    MR_TRY(mr_source_read(s, entry, &bytes, err));
    return mr_yaml_parse(mr_buf_text(&bytes), bytes.len, mr_buf_text(&name), out, err);
}
