/* elsewhere.c - a SRC that is a URL: listed while it is downloaded to DATASET.download/N/NAME.
 * Invariant: what is listed counts only if all of it came, with the SHA-256 of the URL. */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/cli/term.h"
#include "base/files/file.h"
#include "base/scope.h"
#include "ingest/source/list.h"
#include "shards/remote/download.h"

/* Archives with a directory at their end, and files that are read in any order, are listed when all is there. */
static bool is_read_in_order(const char *path)
{
    size_t stem;
    const char *name = strrchr(path, '/') + 1;
    return mr_archive_name(name, strlen(name), &stem) && strcasecmp(name + stem, ".zip") != 0 &&
           strcasecmp(name + stem, ".7z") != 0;
}

static void wait_for_all(const list *l, mr_download *d)
{
    enum { MEGABYTE = 1000000 };
    uint64_t size = mr_download_size(d);
    mr_progress *progress = mr_progress_begin("downloading, MB:", (size + MEGABYTE - 1) / MEGABYTE,
                                              l->options.quiet ? MR_PROGRESS_QUIET : l->options.progress);
    bool there = true;
    for (uint64_t at = 0, n; there && (size == 0 || at < size); at += n) {
        there = mr_download_wait(d, at + MEGABYTE);
        size = mr_download_size(d);
        n = size && size - at < MEGABYTE ? size - at : MEGABYTE;
        mr_progress_add(progress, 1, n);
    }
    mr_progress_end(progress);
}

mr_status mr_list_url(list *l, const char *url, size_t number, mr_error *err)
{
    MR_AUTO(mr_buf_free) mr_buf folder = {0};
    mr_download *d;
    mr_buf_printf(&folder, "%s/%zu", l->options.downloads, number);
    MR_TRY(mr_buf_status(&folder, err, url));
    MR_TRY(mr_dir_make(mr_buf_text(&folder), err));
    MR_TRY(mr_download_begin(url, mr_buf_text(&folder), &d, err));
    if (mr_download_size(d) && is_read_in_order(mr_download_path(d)))
        l->coming = d;
    else
        wait_for_all(l, d);
    mr_status status = mr_list_file(l, mr_download_path(d), err);
    l->coming = NULL;
    return mr_download_end(d, status, err);
}
