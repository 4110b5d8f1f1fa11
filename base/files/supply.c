/* supply.c - the suppliers of this process.
 * Invariant: an entry never changes and is never removed once others can see it, so it is used without the lock. */
#include "base/files/supply.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/scope.h"

typedef struct supplier {
    struct supplier *next;
    char *place, *folder;
    dev_t device;
    ino_t inode;
    mr_supply_open *open;
    void *from;
} supplier;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static supplier *suppliers; /* the newest first */

static const supplier *first(void)
{
    pthread_mutex_lock(&lock);
    const supplier *s = suppliers;
    pthread_mutex_unlock(&lock);
    return s;
}

mr_status mr_supply_add(const char *place, const char *folder, mr_supply_open *open_file, void *from, mr_error *err)
{
    struct stat st;
    if (stat(folder, &st) != 0)
        return mr_fail_errno(err, errno, "%s", folder);
    supplier *s = mr_alloc(1, sizeof *s);
    if (!s)
        return mr_fail_memory(err, place);
    *s = (supplier){.place = strdup(place),
                    .folder = strdup(folder),
                    .device = st.st_dev,
                    .inode = st.st_ino,
                    .open = open_file,
                    .from = from};
    if (!s->place || !s->folder) {
        free(s->place);
        free(s->folder);
        free(s);
        return mr_fail_memory(err, place);
    }
    pthread_mutex_lock(&lock);
    s->next = suppliers;
    suppliers = s;
    pthread_mutex_unlock(&lock);
    return MR_OK;
}

static const supplier *of_folder(int dirfd)
{
    struct stat st;
    const supplier *s = first();
    if (!s || dirfd < 0 || fstat(dirfd, &st) != 0)
        return NULL;
    while (s && (s->device != st.st_dev || s->inode != st.st_ino))
        s = s->next;
    return s;
}

mr_status mr_supply_file(int dirfd, const char *name, int *fd, mr_error *err)
{
    const supplier *s = of_folder(dirfd);
    return s ? s->open(s->from, name, fd, err) : MR_END;
}

void *mr_supply_from(int dirfd, mr_supply_open *open_file)
{
    const supplier *s = of_folder(dirfd);
    return s && s->open == open_file ? s->from : NULL;
}

const char *mr_supply_folder(const char *path)
{
    for (const supplier *s = first(); s; s = s->next)
        if (strcmp(s->place, path) == 0)
            return s->folder;
    return path;
}

int mr_supply_open_folder(const char *path)
{
    return open(mr_supply_folder(path), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}
