/* rows_state.c - see rows_state.h.
 * Invariant: a name in a message is text, whatever bytes it has in the source. */
#include "base/text.h"
#include "ingest/layout/hub/rows_state.h"

const char *mr_hub_file_name(mr_hub_build *b)
{
    mr_buf_clear(&b->scratch);
    mr_text_escape(&b->scratch, b->file->path.text, b->file->path.len);
    return mr_buf_text(&b->scratch);
}
