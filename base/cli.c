/* cli.c - command lines: argp for their meaning; what argp would say in its own words is said here.
 *
 *   argv --> every option known, with its value or without? --> argp hands options and arguments to the command
 *                  |                          |
 *                --help                "unknown option --spilt; did you mean --split?"
 */
#include "base/cli.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/hash.h"
#include "base/launch.h"
#include "base/term.h"
#include "base/text.h"

enum { MAX_OPTIONS = 128, COLUMNS = 79 };

enum { KEY_HELP = '?', KEY_USAGE = -3 };

static const struct argp_option help_options[] = {
    {"help", KEY_HELP, NULL, 0, "give this help list", -1},
    {"usage", KEY_USAGE, NULL, 0, "give a short usage message", 0},
    {0},
};

typedef struct known {
    const char *name, *value; /* value: NULL if it takes none */
    int key;
    bool optional; /* its value */
} known;

typedef struct line {
    const struct argp *argp;
    const char *program; /* "millrace COMMAND" */
    known options[MAX_OPTIONS];
    size_t count;
} line;

static void misuse(const char *program, const char *format, va_list args) MR_PRINTF(2, 0);
static void misuse(const char *program, const char *format, va_list args)
{
    fprintf(stderr, "%s%s:%s ", mr_sgr(stderr, MR_RED), program, mr_sgr(stderr, MR_PLAIN));
    vfprintf(stderr, format, args);
    fprintf(stderr, "\nTry '%s --help'.\n", program);
}

_Noreturn void mr_cli_misuse(struct argp_state *state, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    misuse(state->name, format, args);
    va_end(args);
    exit(2);
}

static _Noreturn void wrong(const line *l, const char *format, ...) MR_PRINTF(2, 3);
static _Noreturn void wrong(const line *l, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    misuse(l->program, format, args);
    va_end(args);
    exit(2);
}

/* The call that failed has said why. */
static _Noreturn void fail(const mr_error *err)
{
    mr_term_error(err);
    exit(mr_exit_code(err->status));
}

/* ---- help -------------------------------------------------------------------------------------------------------- */

/* Blanks at the ends of lines are argp's own. */
static void print_trimmed(const char *text)
{
    for (size_t len; *text; text += len + (text[len] == '\n')) {
        len = strcspn(text, "\n");
        size_t shown = len;
        while (shown && text[shown - 1] == ' ')
            shown--;
        printf("%.*s\n", (int)shown, text);
    }
}

/* One paragraph, a word at a time. */
static void print_wrapped(const char *text, size_t len)
{
    size_t column = 0;
    while (len) {
        size_t blanks = strspn(text, " "), word = strcspn(text + blanks, " \n");
        if (column && column + blanks + word > COLUMNS) {
            printf("\n");
            blanks = column = 0;
        }
        printf("%*s%.*s", (int)blanks, "", (int)word, text + strspn(text, " "));
        column += blanks + word;
        word += strspn(text, " ");
        text += word;
        len -= word;
    }
    printf("\n");
}

/* Lines that begin with a blank are examples: they stay whole, so that they can be pasted. */
static void print_epilogue(const char *text)
{
    for (size_t len; *text; text += len + (text[len] == '\n')) {
        len = strcspn(text, "\n");
        if (*text == ' ')
            printf("%.*s\n", (int)len, text);
        else
            print_wrapped(text, len);
    }
}

static void help(const line *l, unsigned flags)
{
    const char *epilogue = strchr(l->argp->doc, '\v');
    const struct argp options = {.options = l->argp->options};
    const struct argp_child children[] = {{.argp = &options}, {0}};
    char *doc = strndup(l->argp->doc, epilogue ? (size_t)(epilogue - l->argp->doc) : SIZE_MAX), *text = NULL;
    const struct argp all = {.options = help_options, .args_doc = l->argp->args_doc, .doc = doc, .children = children};
    char program[64];
    size_t len;
    mr_error err;
    FILE *stream = open_memstream(&text, &len);
    snprintf(program, sizeof program, "%s", l->program);
    if (stream)
        argp_help(&all, stream, flags, program);
    if (!doc || !stream || fclose(stream) != 0) {
        mr_fail_memory(&err, "writing help");
        fail(&err);
    }
    print_trimmed(text);
    if (epilogue && (flags & ARGP_HELP_LONG)) {
        printf("\n");
        print_epilogue(epilogue + 1);
    }
    free(text);
    free(doc);
    exit(0);
}

/* ---- options ----------------------------------------------------------------------------------------------------- */

static void list_options(line *l, const struct argp_option *from)
{
    const struct argp_option *meant = from;
    for (const struct argp_option *o = from; o && (o->name || o->key || o->doc) && l->count < MAX_OPTIONS; o++) {
        if (!(o->flags & OPTION_ALIAS))
            meant = o;
        if (o->name)
            l->options[l->count++] =
                (known){o->name, meant->arg, o->flags & OPTION_ALIAS ? 0 : o->key, meant->flags & OPTION_ARG_OPTIONAL};
    }
}

static _Noreturn void unknown_long(const line *l, const char *name, const known *one, const known *other)
{
    const char *words[MAX_OPTIONS + 1] = {NULL};
    if (other)
        wrong(l, "--%s could be --%s or --%s", name, one->name, other->name);
    for (size_t i = 0; i < l->count; i++)
        words[i] = l->options[i].name;
    const char *near = mr_text_nearest(name, words);
    wrong(l, "unknown option --%s%s%s%s", name, near ? "; did you mean --" : "", near ? near : "", near ? "?" : "");
}

/* By its name, or by a beginning that only its name has, as argp does. */
static const known *find_long(const line *l, const char *arg)
{
    const known *found = NULL, *other = NULL;
    char name[64];
    size_t len = strcspn(arg, "=");
    snprintf(name, sizeof name, "%.*s", len < sizeof name ? (int)len : (int)sizeof name - 1, arg);
    for (size_t i = 0; i < l->count; i++) {
        const known *o = &l->options[i];
        if (strcmp(o->name, name) == 0)
            return o;
        if (strncmp(o->name, arg, len) != 0)
            continue;
        other = found;
        found = o;
    }
    if (!found || other)
        unknown_long(l, name, other, other ? found : NULL);
    return found;
}

static const known *find_short(const line *l, const char *arg, char letter)
{
    for (size_t i = 0; i < l->count; i++)
        if (l->options[i].key == letter)
            return &l->options[i];
    wrong(l, "unknown option %s", arg);
}

/* Of the command and its options, in any order: what all ranks of a run have to be given alike. */
static uint64_t told;

bool mr_cli_is_own(const char *name)
{
    static const char *const own[] = {"json", "quiet", "jobs", "threads", "device", "prefetch", "decoder", "log"};
    for (size_t i = 0; i < MR_COUNT(own); i++)
        if (strcmp(name, own[i]) == 0)
            return true;
    return false;
}

bool mr_cli_is_place(const char *value)
{
    return strncmp(value, "FILE", 4) == 0 || strncmp(value, "DIR", 3) == 0;
}

static void remember(const known *o, const char *value)
{
    if (mr_cli_is_own(o->name) || (o->value && mr_cli_is_place(o->value)))
        return;
    value = value ? value : "";
    told += mr_hash64_seeded(value, strlen(value), mr_hash64(o->name, strlen(o->name)));
}

static void answer(const line *l, const known *o)
{
    if (o->key == KEY_HELP)
        help(l, ARGP_HELP_STD_HELP);
    if (o->key == KEY_USAGE)
        help(l, ARGP_HELP_USAGE);
}

/* These return how many words behind the option are its value: 0 or 1. */
static int check_long(const line *l, const char *arg, const char *next)
{
    const known *o = find_long(l, arg + 2);
    bool given = strchr(arg, '=') != NULL;
    if (given && !o->value)
        wrong(l, "--%s takes no value", o->name);
    if (!given && o->value && !o->optional && !next)
        wrong(l, "--%s needs a value: --%s %s", o->name, o->name, o->value);
    answer(l, o);
    remember(o, given ? strchr(arg, '=') + 1 : o->value && !o->optional ? next : NULL);
    return o->value && !o->optional && !given;
}

static int check_short(const line *l, const char *arg, const char *next)
{
    for (const char *at = arg + 1; *at; at++) {
        const known *o = find_short(l, arg, *at);
        answer(l, o);
        if (!o->value) {
            remember(o, NULL);
            continue;
        }
        if (!at[1] && !o->optional && !next)
            wrong(l, "-%c needs a value: -%c %s", *at, *at, o->value);
        remember(o, at[1] ? at + 1 : o->optional ? NULL : next);
        return !at[1] && !o->optional;
    }
    return 0;
}

void mr_cli_parse(const struct argp *argp, int argc, char **argv, void *input)
{
    char name[64];
    mr_error err;
    line l = {.argp = argp, .program = name};
    snprintf(name, sizeof name, "millrace %s", argv[0]);
    told = mr_hash64(name, strlen(name));
    list_options(&l, argp->options);
    list_options(&l, help_options);
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
        if (strncmp(argv[i], "--", 2) == 0)
            i += check_long(&l, argv[i], argv[i + 1]);
        else if (argv[i][0] == '-' && argv[i][1])
            i += check_short(&l, argv[i], argv[i + 1]);
    }
    if (mr_launch_check(argv[0], &err) != MR_OK)
        fail(&err);
    argp_err_exit_status = 2;
    /* argp gives its argv[0] to the parsers as the program's name. */
    char *first = argv[0];
    argv[0] = name;
    error_t failed = argp_parse(argp, argc, argv, 0, NULL, input);
    argv[0] = first;
    if (failed) { /* misuse has ended the program by now: this is the system's failure */
        mr_fail_errno(&err, failed, "reading the command line");
        fail(&err);
    }
}

mr_status mr_cli_ranks(mr_ranks **ranks, mr_error *err)
{
    unsigned other;
    mr_status status = mr_ranks_begin(ranks, err);
    if (status == MR_OK)
        status = mr_ranks_compare(*ranks, &told, sizeof told, &other, NULL, err);
    if (status == MR_OK && other)
        status = mr_fail(err, MR_MISUSE,
                         "mpirun: rank %u was given another command, or other options, than rank 0; give "
                         "all of them the same",
                         other);
    return status;
}

_Noreturn void mr_cli_no_such(struct argp_state *state, const char *option, const char *word, const char *what,
                              const char *const *words)
{
    const char *near = mr_text_nearest(word, words);
    mr_buf all = {0};
    for (size_t i = 0; words[i]; i++)
        mr_buf_printf(&all, "%s%s", i == 0 ? "" : words[i + 1] ? ", " : " and ", words[i]);
    mr_cli_misuse(state, "%s %s: there is no such %s%s%s%s There are %s", option, word, what,
                  near ? "; did you mean " : ".", near ? near : "", near ? "?" : "", mr_buf_text(&all));
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
