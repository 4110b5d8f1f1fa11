/* memory.c - memory of this process, and what is left for it.
 * Invariant: where a control group limits the process, its limit counts, as in a container or a Slurm job. */
#include "train/journal/memory.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/scope.h"

enum { TEXT = 4096 };

static bool read_text(const char *path, char text[TEXT])
{
    MR_AUTO(mr_scope_close) int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, text, TEXT - 1) : -1;
    text[n > 0 ? n : 0] = '\0';
    return n > 0;
}

/* "KEY   123 kB" */
static uint64_t kilobytes(const char *text, const char *key)
{
    const char *at = strstr(text, key);
    return at ? strtoull(at + strlen(key), NULL, 10) * 1024 : 0;
}

/* A file of one number in the group's folder; "max" and what is not there: UINT64_MAX. */
static uint64_t group_number(const char *group, const char *file)
{
    char text[TEXT];
    MR_AUTO(mr_buf_free) mr_buf path = {0};
    mr_buf_printf(&path, "/sys/fs/cgroup%s/%s", group, file);
    bool is = !path.failed && read_text(mr_buf_text(&path), text) && text[0] >= '0' && text[0] <= '9';
    return is ? strtoull(text, NULL, 10) : UINT64_MAX;
}

/* The limits of this group and those around it, version 2 ("0::/a/b"). */
static uint64_t left_by_groups(void)
{
    char text[TEXT];
    uint64_t least = UINT64_MAX;
    if (!read_text("/proc/self/cgroup", text) || strncmp(text, "0::", 3) != 0)
        return least;
    char *group = text + 3, *slash;
    group[strcspn(group, "\n")] = '\0';
    do {
        uint64_t limit = group_number(group, "memory.max"), used = group_number(group, "memory.current");
        if (limit != UINT64_MAX && used != UINT64_MAX) {
            uint64_t left = limit > used ? limit - used : 0;
            least = left < least ? left : least;
        }
        slash = strrchr(group, '/');
        if (slash)
            *slash = '\0';
    } while (slash);
    return least;
}

mr_memory_use mr_memory_in_use(void)
{
    mr_memory_use use = {0};
    char text[TEXT];
    if (read_text("/proc/self/status", text)) {
        use.now = kilobytes(text, "\nVmRSS:");
        use.max = kilobytes(text, "\nVmHWM:");
    }
    if (read_text("/proc/meminfo", text))
        use.available = kilobytes(text, "\nMemAvailable:");
    uint64_t left = left_by_groups();
    if (left < use.available)
        use.available = left;
    return use;
}
