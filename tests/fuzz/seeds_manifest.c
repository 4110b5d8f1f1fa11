/* seeds_manifest.c - a dataset's manifest as one of MR_FORMAT_TABLE, with the table.
 * Invariant: manifest, NUL, table: what fuzz_manifest.c takes apart. */
#include <stdlib.h>

#include "shards/manifest/manifest.h"
#include "tests/fuzz/seeds.h"
#include "tests/support/support.h"

void seed_manifest_table(const char *dir, const char *name)
{
    char *table = support_path("%s-table", name);
    mr_manifest *m = NULL;
    mr_buf both = {0};
    mr_error err;
    if (mr_manifest_open(dir, &m, NULL, &err) != MR_OK)
        fail_msg("%s", err.text);
    m->format = MR_FORMAT_TABLE;
    assert_int_equal(mr_manifest_write(m, &both, &err), MR_OK);
    mr_buf_add(&both, "", 1);
    assert_int_equal(mr_manifest_write_table(m, &both, &err), MR_OK);
    seed("manifest", table, both.data, both.len);
    mr_buf_free(&both);
    mr_manifest_free(m);
    free(table);
}
