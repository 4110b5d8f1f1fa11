/* test_record.c - images and metas read by their rows.
 * Invariant tested: bytes are returned only if they match the row's hash. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shards/format/index.h"
#include "shards/format/record.h"
#include "tests/support/shards/shard.h"

static void records_match_their_rows(void **state)
{
    const char *dir = *state;
    mr_shard shard = draw_shard(dir, "train-00000", 4, 100, 20);
    int dirfd = open(dir, O_RDONLY | O_DIRECTORY), mdb = -1;
    mr_row *rows = NULL;
    mr_error err;
    assert_int_equal(mr_index_open_file(dirfd, &shard, "mdb", &mdb, NULL), MR_OK);
    assert_int_equal(mr_index_read(dirfd, &shard, &rows, NULL), MR_OK);
    for (uint64_t i = 0; i < shard.samples; i++) {
        drawn d = draw_sample(4, 100, 100 + i);
        uint8_t *image = malloc(rows[i].image_len), *meta = malloc(rows[i].meta_len);
        assert_int_equal(mr_record_read(mdb, &shard, 100 + i, mr_row_image(&rows[i]), image, NULL), MR_OK);
        assert_int_equal(mr_record_read(mdb, &shard, 100 + i, mr_row_meta(&rows[i]), meta, NULL), MR_OK);
        assert_int_equal(rows[i].meta_len, strlen(d.meta));
        assert_memory_equal(meta, d.meta, rows[i].meta_len);
        if (!d.shares)
            assert_memory_equal(image, d.image.bytes, rows[i].image_len);
        rows[i].image_hash ^= 1;
        rows[i].meta_offset = shard.mdb.bytes - 1;
        assert_int_equal(mr_record_read(mdb, &shard, 100 + i, mr_row_image(&rows[i]), image, &err), MR_BAD_SAMPLE);
        char *words = support_path("train-00000.mdb: sample %llu: its image differs", (unsigned long long)(100 + i));
        assert_non_null(strstr(err.text, words));
        assert_int_equal(mr_record_read(mdb, &shard, 100 + i, mr_row_meta(&rows[i]), meta, &err), MR_BAD_DATA);
        assert_non_null(strstr(err.text, "train-00000.mdb: ends at byte"));
        free(words);
        free(image);
        free(meta);
        drawn_free(&d);
    }
    free(rows);
    close(mdb);
    close(dirfd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {IN_TMPDIR(records_match_their_rows)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
