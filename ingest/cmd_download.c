/* cmd_download.c - sources that are URLs, downloaded to DATASET.download/N/NAME.
 * Invariant: what is downloaded is removed when ingest ends; a killed one leaves the folder, and the next replaces it.
 */
#include "ingest/cmd_download.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/files/file.h"
#include "base/files/path.h"
#include "base/scope.h"
#include "shards/remote/remote.h"

static mr_status download(const cmd_download *d, const char *url, size_t i, char **path, mr_error *err)
{
    MR_AUTO(mr_buf_free) mr_buf folder = {0};
    mr_buf_printf(&folder, "%s/%zu", d->folder, i);
    MR_TRY(mr_buf_status(&folder, err, d->folder));
    MR_TRY(mr_dir_make(mr_buf_text(&folder), err));
    return mr_remote_download(url, mr_buf_text(&folder), path, err);
}

/* Of other ranks, for which rank 0 has downloaded it. */
static mr_status name_of(const cmd_download *d, const char *url, size_t i, char **path, mr_error *err)
{
    MR_AUTO(mr_buf_free) mr_buf text = {0};
    size_t end = strcspn(url, "?#"), start = end;
    while (start && url[start - 1] != '/')
        start--;
    mr_buf_printf(&text, "%s/%zu/%.*s", d->folder, i, (int)(end - start), url + start);
    *path = mr_alloc(text.len + 1, 1);
    if (text.failed || !*path)
        return mr_fail_memory(err, d->folder);
    memcpy(*path, text.data, text.len);
    return MR_OK;
}

static mr_status take_all(cmd_download *d, char **sources, size_t count, bool leader, mr_error *err)
{
    d->paths = mr_alloc(count, sizeof *d->paths);
    if (!d->paths)
        return mr_fail_memory(err, d->folder);
    d->count = count;
    for (size_t i = 0; i < count; i++) {
        if (!mr_remote_is_url(sources[i]))
            continue;
        MR_TRY(leader ? download(d, sources[i], i, &d->paths[i], err) : name_of(d, sources[i], i, &d->paths[i], err));
        sources[i] = d->paths[i];
    }
    return MR_OK;
}

mr_status mr_cmd_download_begin(char **sources, size_t count, const char *dataset, mr_ranks *ranks, cmd_download *out,
                                mr_error *err)
{
    MR_AUTO(mr_buf_free) mr_buf folder = {0};
    bool any = false, leader = mr_ranks_rank(ranks) == 0;
    for (size_t i = 0; i < count; i++)
        any |= mr_remote_is_url(sources[i]);
    if (!any)
        return MR_OK;
    mr_buf_printf(&folder, "%.*s.download", (int)mr_path_len(dataset), dataset);
    out->folder = strdup(mr_buf_text(&folder));
    mr_status status = out->folder ? take_all(out, sources, count, leader, err) : mr_fail_memory(err, dataset);
    return mr_ranks_agree(ranks, status, err);
}

void mr_cmd_download_end(cmd_download *d, const mr_ranks *ranks)
{
    if (d->folder && (!ranks || mr_ranks_rank(ranks) == 0))
        (void)mr_dir_remove(AT_FDCWD, d->folder, NULL);
    for (size_t i = 0; i < d->count; i++)
        free(d->paths[i]);
    free(d->paths);
    free(d->folder);
    *d = (cmd_download){.folder = NULL};
}
