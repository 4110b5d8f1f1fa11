/* fuzz_journal.c - a log that exists when a run begins, or is resumed.
 * Promises: a log only grows, by a newline if the last line has none; a resumed run cuts at most the unfinished last
 * line. */
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/fuzz/fuzz.h"
#include "train/journal/parts.h"

/* Opens the log, and leaves what it then holds in `out`. */
static void open_log(int file, bool resume, mr_buf *out)
{
    char path[32];
    int fd = -1;
    struct stat st;
    mr_error err;
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    FUZZ_MUST(mr_log_open(path, resume, &fd, &err) == MR_OK && fstat(fd, &st) == 0);
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
    int file = fuzz_file(data, size);
    size_t whole = size;
    while (whole && data[whole - 1] != '\n')
        whole--;
    open_log(file, false, &log);
    FUZZ_MUST(log.len == size + (whole < size));
    FUZZ_MUST(size == 0 || memcmp(log.data, data, size) == 0);
    close(file);
    file = fuzz_file(data, size);
    open_log(file, true, &log);
    FUZZ_MUST(log.len == whole || log.len == size + 1);
    FUZZ_MUST(log.len == 0 || memcmp(log.data, data, log.len < size ? log.len : size) == 0);
    open_log(file, true, &again);
    FUZZ_MUST(again.len == log.len && (again.len == 0 || memcmp(again.data, log.data, again.len) == 0));
    close(file);
    mr_buf_free(&log);
    mr_buf_free(&again);
    return 0;
}
