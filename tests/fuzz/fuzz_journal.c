/* fuzz_journal.c - a log that is there already when a run begins, and when one goes on.
 * Promises: a log only grows, by a line's end if it has none; one that is resumed loses whole lines from its end, if
 * anything, and so it does the next time. */
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/random.h"
#include "fuzz/fuzz.h"
#include "journal/parts.h"

/* Opens the log, and leaves what it then holds in `out`. */
static void open_log(int file, bool resume, uint64_t first, bool judges_first, mr_buf *out)
{
    char path[32];
    int fd = -1;
    struct stat st;
    mr_error err;
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    FUZZ_MUST(mr_log_open(path, &fd, &err) == MR_OK &&
              mr_log_go_on(fd, path, "", resume, first, judges_first, &err) == MR_OK && fstat(fd, &st) == 0);
    close(fd);
    mr_buf_clear(out);
    FUZZ_MUST(mr_buf_reserve(out, (size_t)st.st_size + 1));
    FUZZ_MUST(pread(file, out->data, (size_t)st.st_size, 0) == st.st_size);
    out->len = (size_t)st.st_size;
    FUZZ_MUST(!out->len || out->data[out->len - 1] == '\n');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    mr_buf log = {0}, again = {0};
    mr_random draw;
    mr_random_seed(&draw, mr_hash64(data, size));
    uint64_t first = mr_random_below(&draw, 8);
    bool judges = mr_random_below(&draw, 2);
    int file = fuzz_file(data, size);
    open_log(file, false, first, judges, &log);
    FUZZ_MUST(log.len == size + (size && data[size - 1] != '\n'));
    FUZZ_MUST(size == 0 || memcmp(log.data, data, size) == 0);
    close(file);
    file = fuzz_file(data, size);
    open_log(file, true, first, judges, &log);
    size_t kept = log.len <= size ? log.len : size;
    FUZZ_MUST(log.len <= size + 1 && (kept == 0 || memcmp(log.data, data, kept) == 0));
    open_log(file, true, first, judges, &again);
    FUZZ_MUST(again.len <= log.len && (again.len == 0 || memcmp(again.data, log.data, again.len) == 0));
    close(file);
    mr_buf_free(&log);
    mr_buf_free(&again);
    return 0;
}
