/* reader.c - the program that reads Parquet: how it is called.
 * Invariant: nothing about Parquet is known here: the program gets a file and the requested columns. */
#include "ingest/layout/hub/hub.h"

#include "base/system/script.h"

/* Python with pyarrow 26 and a batch of rows has 460 MB of address space on a machine of 2 CPUs; the reader keeps the
 * number of CPUs out of it.  As much again is for rows as Python's objects. */
static const uint64_t READER_MEMORY = (uint64_t)1 << 30;

mr_status mr_hub_reader(const mr_layout_options *o, mr_layout_files *out, mr_error *err)
{
    const char *const columns[][2] = {
        {"--image-column", o->image_column}, {"--label-column", o->label_column}, {"--text-column", o->text_column}};
    mr_script script;
    size_t n = 0;
    mr_status status = mr_script_find("parquet_rows.py", MR_HUB_READER, "the Parquet reader", &script, err);
    if (status != MR_OK)
        return status;
    out->owned[0] = script.owned;
    out->memory = script.argc > 1 ? READER_MEMORY : 0; /* what another program needs is not known */
    while (n < script.argc) {
        out->argv[n] = script.argv[n];
        n++;
    }
    for (size_t i = 0; i < MR_COUNT(columns); i++) {
        if (!columns[i][1])
            continue;
        out->argv[n++] = columns[i][0];
        out->argv[n++] = columns[i][1];
    }
    out->argv[n] = NULL;
    return MR_OK;
}
