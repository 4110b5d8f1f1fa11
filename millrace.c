/* millrace.c - the program: one table of commands, and nothing that belongs to one command. */
#include <archive.h>
#include <fcntl.h>
#include <jansson.h>
#include <lmdb.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cli/commands.h"
#include "ingest/commands.h"
#include "base/json/json_memory.h"
#include "loader/commands.h"
#include "train/report/commands.h"
#include "shards/commands.h"
#include "base/cli/term.h"
#include "base/system/processor.h"
#include "base/text.h"
#include "shards/manifest/manifest.h"
#include "shards/remote/remote.h"
#include "train/commands.h"
#include "millrace.h"

static const mr_command *const commands[] = {
    &mr_cmd_ingest,  &mr_cmd_verify,
    &mr_cmd_inspect, &mr_cmd_show,
    &mr_cmd_diff,    &mr_cmd_view,
    &mr_cmd_report,  &mr_cmd_export,
    &mr_cmd_reindex, &mr_cmd_pull,
    &mr_cmd_push,    &mr_cmd_seek,
    &mr_cmd_plan,    &mr_cmd_replay,
    &mr_cmd_bench,   &mr_cmd_train,
    &mr_cmd_saw,     &mr_cmd_eval,
    &mr_cmd_predict, &mr_cmd_weights,
    &mr_cmd_devices, &mr_cmd_tokenizer,
    &mr_cmd_sample,  &mr_cmd_completion,
    &mr_cmd_manual,  NULL,
};

static void usage(FILE *stream)
{
    fprintf(stream, "%smillrace%s turns image datasets into shards that can be trusted, and streams them.\n\n",
            mr_sgr(stream, MR_BOLD), mr_sgr(stream, MR_PLAIN));
    fprintf(stream, "Usage: millrace COMMAND [OPTION...] ...\n\n");
    for (size_t i = 0; commands[i]; i++)
        fprintf(stream, "  %s%-10s%s  %s\n", mr_sgr(stream, MR_CYAN), commands[i]->name, mr_sgr(stream, MR_PLAIN),
                commands[i]->title);
    fprintf(stream, "\n'millrace help COMMAND' explains a command.  To try it all without a download:\n\n"
                    "  millrace sample pictures --layout imagenette\n"
                    "  millrace ingest pictures dataset\n"
                    "  millrace verify dataset\n\n"
                    "Exit codes: 0 done; 1 the data is bad; 2 usage error; 3 system error.\n");
}

static int unknown(const char *word)
{
    const char *words[MR_COUNT(commands)] = {0};
    for (size_t i = 0; commands[i]; i++)
        words[i] = commands[i]->name;
    const char *near = mr_text_nearest(word, words);
    fprintf(stderr, "%smillrace:%s unknown command '%s'", mr_sgr(stderr, MR_RED), mr_sgr(stderr, MR_PLAIN), word);
    if (near)
        fprintf(stderr, "; did you mean 'millrace %s'?", near);
    fprintf(stderr, "\nTry 'millrace --help'.\n");
    return 2;
}

/* Libraries that end the program use exit code 1, as libarchive does when memory runs out; for millrace 1 means bad
 * data. Only main returns 1, and sets `ended` first. */
static bool ended;

static void at_exit(int code, void *unused)
{
    (void)unused;
    mr_error err;
    if (!ended && code == 1) {
        fflush(stdout);
        fprintf(stderr, "millrace: a library called exit()\n");
        _exit(3);
    }
    if (code == 3 || mr_term_flush(&err) == MR_OK)
        return;
    mr_term_error(&err); /* output, even of --help, counts only if it was written */
    _exit(3);
}

static int run(int argc, char **argv)
{
    for (size_t i = 0; commands[i]; i++) {
        if (strcmp(commands[i]->name, argv[0]) != 0)
            continue;
        int code = commands[i]->run(argc, argv);
        ended = true;
        mr_term_flush_stream(stdout); /* at exit a library of C++ would, and lose the reason of a failure */
        return code;
    }
    return unknown(argv[0]);
}

/* A closed standard descriptor would become the next opened file, and get what is printed.  It is replaced by one that
 * can neither be read (0) nor written (1, 2). */
static void fill_descriptors(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0)
            (void)!open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

/* What a report of a fault needs. */
static void print_version(void)
{
    static const struct {
        mr_processor_set set;
        const char *name;
    } sets[] = {{MR_NEON, "neon"},
                {MR_AVX2, "avx2"},
                {MR_AVX512, "avx512"},
                {MR_AVX512_VNNI, "avx512-vnni"},
                {MR_AVX512_BF16, "avx512-bf16"}};
    printf("millrace %s\ndataset format %d\nlibraries: %s, %s, jansson %s\ninstruction sets:", mr_version(), MR_FORMAT,
           archive_version_details(), mdb_version(NULL, NULL, NULL), jansson_version_str());
    bool any = false;
    for (size_t i = 0; i < MR_COUNT(sets); i++)
        if (mr_processor_has(sets[i].set)) {
            printf(" %s", sets[i].name);
            any = true;
        }
    printf(any ? "\n" : " none beyond the processor's base\n");
}

int main(int argc, char **argv)
{
    char help[] = "--help";
    mr_commands = commands;
    fill_descriptors();
    on_exit(at_exit, NULL);
    mr_json_watch();
    mr_remote_leave_no_dump();
    /* A closed pipe is a write error, after which files are cleaned up, not a signal. */
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); /* `ulimit -f`: the same */
    if (argc < 2) {
        usage(stderr);
        return 2;
    }
    if (strcmp(argv[1], "help") == 0 && argc > 2)
        return run(2, (char *[]){argv[2], help, NULL});
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 || strcmp(argv[1], "help") == 0) {
        usage(stdout);
        return 0;
    }
    if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0) {
        print_version();
        return 0;
    }
    mr_error err;
    if (mr_processor_check(&err) != MR_OK) {
        mr_term_error(&err);
        return 2;
    }
    return run(argc - 1, argv + 1);
}
