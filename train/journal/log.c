/* log.c - the JSON lines of a run that was killed and goes on.
 * Invariant: a log that is not resumed only grows.  One that is loses its end by one truncation at a line's beginning,
 * which a file system does whole or not at all, so that a log killed in between is the old one or the cut one.
 *
 *      {"step": 1 ...}  {"step": 2 ...}  {"step": 1 ...}  {"step": 2 ...}  {"step": 3 ...}  {"step": 4 .
 *      '-- an earlier run: stays ----'   '-- this run -------------------'  '-- cut if it goes on after update 2,
 *                                                                               and if no other run's line follows it
 */
#include "journal/parts.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/hash.h"

enum { LOOKED_AT = 64 * 1024 }; /* bytes of a file that is there */

typedef struct scan {
    const char *run;
    uint64_t first;    /* of updates, in: those after it are to go */
    bool judges_first; /* and its evaluation */
    uint64_t last;     /* update of the line before */
    bool others;       /* that line is none of ours */
    bool cutting;
    off_t at, cut; /* where the line begins; where to cut if `cutting` */
} scan;

/* The update that a line of this run tells of; false: it is none of ours. */
static bool step_of(const char *run, const char *line, size_t len, uint64_t *step, bool *evaluation)
{
    json_t *doc = json_loadb(line, len, 0, NULL);
    json_t *value = json_object_get(doc, "step");
    const char *said = json_string_value(json_object_get(doc, "run"));
    bool found = json_is_integer(value) && json_integer_value(value) >= 0 && strcmp(said ? said : "", run) == 0;
    if (found)
        *step = (uint64_t)json_integer_value(value);
    *evaluation = json_object_get(doc, "eval_loss") != NULL;
    json_decref(doc);
    return found;
}

/* One line to its end: how long it is and the beginning of it, which is all of a line of ours. */
typedef struct text_line {
    char start[1024];
    size_t kept, len;
    bool whole; /* ends with a line's end */
} text_line;

static bool read_line(FILE *file, text_line *line)
{
    int c = 0;
    line->kept = line->len = 0;
    while (c != '\n' && (c = getc_unlocked(file)) != EOF) {
        line->len++;
        if (line->kept < sizeof line->start)
            line->start[line->kept++] = (char)c;
    }
    line->whole = c == '\n';
    return line->len > 0;
}

/* As each line begins that a run writes. */
static const char begin[] = "{\"step\": ";

/* Without the zeros that a power loss may leave behind, or instead of, what was said. */
static size_t said_of(const char *text, size_t len)
{
    while (len && text[len - 1] == '\0')
        len--;
    return len;
}

static bool begins_alike(const char *text, size_t len) /* as far as it goes */
{
    return memcmp(text, begin, len < strlen(begin) ? len : strlen(begin)) == 0;
}

static void scan_line(scan *s, const text_line *line)
{
    uint64_t step = 0;
    bool evaluation = false, ours = step_of(s->run, line->start, line->kept, &step, &evaluation);
    bool alike = begins_alike(line->start, said_of(line->start, line->kept));
    bool half = alike && !ours && !line->whole && !s->others; /* of whom the line before it is */
    bool late = step > s->first || (s->judges_first && step == s->first && evaluation);
    if (ours && step < s->last)
        s->cutting = false; /* a run begins again here: what was before belongs to an older one */
    if (ours)
        s->last = step;
    s->others = !ours && !half;
    if (s->others)
        s->cutting = false;
    if (!s->cutting && ((ours && late) || half)) {
        s->cutting = true;
        s->cut = s->at;
    }
    s->at += (off_t)line->len;
}

static mr_status cut_end(FILE *file, const char *path, const char *run, uint64_t first, bool judges_first,
                         mr_error *err)
{
    scan s = {.run = run, .first = first, .judges_first = judges_first};
    text_line line;
    struct stat st = {0};
    int why = 0;
    errno = 0;
    do { /* again for what other runs have said meanwhile */
        clearerr(file);
        while (read_line(file, &line))
            scan_line(&s, &line);
        why = ferror(file) ? (errno ? errno : EIO) : fstat(fileno(file), &st) != 0 ? errno : 0;
    } while (!why && s.cutting && st.st_size > s.at);
    if (!why && s.cutting && (ftruncate(fileno(file), s.cut) != 0 || fsync(fileno(file)) != 0))
        why = errno;
    return why ? mr_fail_errno(err, why, "%s: cannot cut off what an earlier run says after update %llu", path,
                               (unsigned long long)first)
               : MR_OK;
}

/* True if the file is empty or ends with a line's end. */
static bool ends_well(FILE *file)
{
    return fseeko(file, -1, SEEK_END) != 0 || fgetc(file) == '\n';
}

/* ---- what is there before a run begins ----------------------------------------------------------------------------
 */

/* Whether the text is lines of JSON, of updates or of others; one object alone is some other file's, if it has no step.
 */
static bool has_lines(const char *text, size_t len)
{
    size_t objects = 0;
    bool step = false;
    for (const char *end = text + len, *next; text < end && !step; text = next) {
        const char *stop = memchr(text, '\n', (size_t)(end - text));
        next = stop ? stop + 1 : end;
        json_t *line = json_loadb(text, (size_t)(next - text), 0, NULL);
        objects += json_is_object(line);
        step = json_object_get(line, "step") != NULL;
        json_decref(line);
    }
    return step || objects > 1;
}

/* Lines of updates or of others, or somebody's notes: no other JSON, which begins with a brace too, and no binary file.
 * Zeros are what a power loss leaves of what was written last, or first. */
static bool could_be_log(const char *text, size_t len)
{
    len = said_of(text, len);
    if (memmem(text, len, begin, strlen(begin)) || begins_alike(text, len))
        return true;
    return !memchr(text, '\0', len) && (*text != '{' || has_lines(text, len));
}

mr_status mr_log_check(const char *path, mr_error *err)
{
    struct stat st;
    char *text = malloc(LOOKED_AT);
    int fd = stat(path, &st) == 0 && S_ISREG(st.st_mode) ? open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK) : -1;
    ssize_t len = text && fd >= 0 ? pread(fd, text, LOOKED_AT, 0) : 0;
    bool log = len <= 0 || could_be_log(text, (size_t)len);
    if (fd >= 0)
        close(fd);
    free(text);
    if (!text)
        return mr_fail_memory(err, path);
    return log ? MR_OK
               : mr_fail(err, MR_MISUSE, "--log %s: exists and is not the log of a run; name another file", path);
}

/* ---- a run's name, and its log ------------------------------------------------------------------------------------
 */

mr_status mr_log_run(const char *events, char run[MR_RUN_NAME], mr_error *err)
{
    *run = '\0';
    enum { TIME_END = 21 }; /* of the first record: its length, that one's CRC, a key, seconds as double */
    char first[NAME_MAX + 1] = "", hex[17];
    long long oldest = 0;
    struct stat st;
    uint8_t known[NAME_MAX + 1 + TIME_END];
    DIR *dir = opendir(events);
    if (!dir)
        return mr_fail_errno(err, errno, "%s: cannot list the directory", events);
    for (struct dirent *e; (e = readdir(dir));) {
        long long second = mr_events_second(e->d_name);
        if (second < 0)
            continue;
        bool older = !*first || second < oldest || (second == oldest && strcmp(e->d_name, first) < 0);
        if (older && fstatat(dirfd(dir), e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode)) {
            snprintf(first, sizeof first, "%s", e->d_name);
            oldest = second;
        }
    }
    int fd = -1;
    mr_error why;
    mr_status status = *first ? mr_file_open(dirfd(dir), first, false, &fd, NULL, &why) : MR_OK;
    closedir(dir);
    if (fd < 0)
        return status == MR_OK ? MR_OK : mr_fail(err, status, "%s/%s", events, why.text);
    size_t len = strlen(first);
    memcpy(known, first, len);
    ssize_t more = pread(fd, known + len, TIME_END, 0); /* one of nothing, of a killed run, has its name */
    close(fd);
    uint64_t hash = mr_hash64(known, len + (more > 0 ? (size_t)more : 0));
    mr_hex((const uint8_t *)&hash, sizeof hash, hex);
    snprintf(run, MR_RUN_NAME, "%.8s", hex);
    return MR_OK;
}

mr_status mr_log_open(const char *path, int *fd, mr_error *err)
{
    struct stat st;
    mr_status status = MR_OK;
    int opened = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0666);
    if (opened < 0 && errno == ENXIO) /* else a FIFO's reader would be waited for, for ever if none comes */
        status = mr_fail(err, MR_MISUSE, "%s: nobody reads from it, so the log cannot be written there", path);
    else if (opened < 0 || fstat(opened, &st) != 0 || fcntl(opened, F_SETFL, O_APPEND) != 0)
        status = mr_fail_errno(err, errno, "%s: cannot write the log", path);
    if (status == MR_OK)
        *fd = opened;
    else if (opened >= 0)
        close(opened);
    return status;
}

mr_status mr_log_go_on(int fd, const char *path, const char *run, bool resume, uint64_t first, bool judges_first,
                       mr_error *err)
{
    struct stat st;
    if (fstat(fd, &st) != 0)
        return mr_fail_errno(err, errno, "%s: cannot read the log", path);
    if (!S_ISREG(st.st_mode) || st.st_size == 0) /* a pipe has no past */
        return MR_OK;
    FILE *file = fopen(path, "r+e");
    if (!file)
        return mr_fail_errno(err, errno, "%s: cannot read the log", path);
    mr_status status = resume ? cut_end(file, path, run, first, judges_first, err) : MR_OK;
    if (status == MR_OK && !ends_well(file) && write(fd, "\n", 1) != 1)
        status = mr_fail_errno(err, errno, "%s: cannot write the log", path);
    fclose(file);
    return status;
}
