/* cli.c - command lines: argp, with the nearest right form for what it does not know. */
#include "cli.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "term.h"
#include "text.h"

enum { MAX_WORDS = 128 };

static size_t option_words(const struct argp *argp, const char **words)
{
    size_t n = 0;
    for (const struct argp_option *o = argp->options; o && (o->name || o->key || o->doc) && n < MAX_WORDS - 3; o++)
        if (o->name)
            words[n++] = o->name;
    words[n++] = "help";
    words[n++] = "usage";
    words[n] = NULL;
    return n;
}

static void leave(const char *command)
{
    fprintf(stderr, "Try 'millrace %s --help'.\n", command);
    exit(2);
}

/* argp takes unambiguous prefixes; so do we.  Everything else unknown is answered here, with a suggestion. */
static void check_long_option(const struct argp *argp, const char *command, const char *arg)
{
    const char *words[MAX_WORDS];
    char name[64];
    size_t len = strcspn(arg, "=");
    if (len >= sizeof name)
        len = sizeof name - 1;
    memcpy(name, arg, len);
    name[len] = '\0';
    size_t count = option_words(argp, words), prefixes = 0;
    for (size_t i = 0; i < count; i++) {
        if (strcmp(words[i], name) == 0)
            return;
        prefixes += strncmp(words[i], name, len) == 0;
    }
    if (prefixes == 1)
        return;
    const char *near = mr_text_nearest(name, words);
    fprintf(stderr, "%smillrace %s:%s unknown option --%s", mr_sgr(stderr, MR_RED), command, mr_sgr(stderr, MR_PLAIN),
            name);
    fprintf(stderr, near ? "; did you mean --%s?\n" : "\n", near);
    leave(command);
}

void mr_cli_parse(const struct argp *argp, int argc, char **argv, void *input)
{
    char name[64];
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (strncmp(argv[i], "--", 2) == 0)
            check_long_option(argp, argv[0], argv[i] + 2);
    argp_err_exit_status = 2;
    /* argp prints its argv[0] as the program's name in usage lines. */
    snprintf(name, sizeof name, "millrace %s", argv[0]);
    char *first = argv[0];
    argv[0] = name;
    error_t failed = argp_parse(argp, argc, argv, 0, NULL, input);
    argv[0] = first;
    if (failed) {                       /* misuse has ended the program by now: this is the system's failure */
        mr_error err;
        mr_fail_errno(&err, failed, "reading the command line");
        mr_term_error(&err);
        exit(mr_exit_code(err.status));
    }
}

_Noreturn void mr_cli_misuse(struct argp_state *state, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fprintf(stderr, "%s%s:%s ", mr_sgr(stderr, MR_RED), state->name, mr_sgr(stderr, MR_PLAIN));
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    fprintf(stderr, "Try '%s --help'.\n", state->name);
    exit(2);
}

void mr_cli_must(struct argp_state *state, mr_status status, const mr_error *err)
{
    if (status != MR_OK)
        mr_cli_misuse(state, "%s", err->text);
}

error_t mr_cli_dataset(int key, char *arg, struct argp_state *state, const char **dir)
{
    switch (key) {
    case ARGP_KEY_ARG:
        if (*dir)
            mr_cli_misuse(state, "one dataset at a time; '%s' is one too many", arg);
        *dir = arg;
        return 0;
    case ARGP_KEY_END:
        if (!*dir)
            mr_cli_misuse(state, "which dataset? Name its directory");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}
