/* completion_bash.c - completion for bash, without helpers of other packages.
 * Invariant: after "--name=" and "--name " the same is offered; bash counts '=' as a word of its own. */
#include <string.h>

#include "base/cli/pages.h"

typedef struct lists {
    mr_buf options; /* "--jobs= --quiet " */
    mr_buf values;  /* branches of a case on the word before */
} lists;

static void add_pattern(mr_buf *out, const mr_option *row)
{
    mr_buf_printf(out, "        --%s", row->name);
    if (row->alias)
        mr_buf_printf(out, " | --%s", row->alias);
    if (row->key)
        mr_buf_printf(out, " | -%c", row->key);
    mr_buf_add_text(out, ") ");
}

static void add_words(mr_buf *out, const char *const *words)
{
    mr_buf_add_text(out, "words='");
    for (size_t i = 0; words[i]; i++)
        mr_buf_printf(out, "%s%s", i ? " " : "", words[i]);
    mr_buf_add_text(out, "' ;;\n");
}

static void add_option(void *context, const mr_option *row)
{
    lists *l = context;
    bool wants = mr_option_has_value(row) && !row->optional;
    if (row->hidden)
        return;
    mr_buf_printf(&l->options, "--%s%s ", row->name, wants ? "=" : "");
    if (!wants)
        return;
    add_pattern(&l->values, row);
    if (row->words)
        add_words(&l->values, row->words);
    else
        mr_buf_add_text(&l->values, mr_option_is_path(row) ? "paths=yes ;;\n" : "return ;;\n");
}

static void add_command(mr_buf *out, const mr_command *c)
{
    lists l = {{0}, {0}};
    mr_each_option(c, add_option, &l);
    mr_buf_printf(out, "    %s)\n        case $before in\n%s", c->name, mr_buf_text(&l.values));
    mr_buf_printf(out, "        *) if [[ $word == -* ]]; then\n            words='%s'\n", mr_buf_text(&l.options));
    if (c->arguments->words) {
        mr_buf_add_text(out, "        else\n            ");
        add_words(out, c->arguments->words);
        out->len -= strlen(" ;;\n");
        mr_buf_add_text(out, "\n        fi ;;\n        esac ;;\n");
    } else {
        mr_buf_add_text(out, "        else\n            paths=yes\n        fi ;;\n        esac ;;\n");
    }
    out->failed |= l.options.failed || l.values.failed;
    mr_buf_free(&l.options);
    mr_buf_free(&l.values);
}

static void add_commands(mr_buf *out, const mr_command *const *all)
{
    for (size_t i = 0; all[i]; i++)
        mr_buf_printf(out, "%s%s", i ? " " : "", all[i]->name);
}

void mr_completion_bash(const mr_command *const *all, mr_buf *out)
{
    mr_buf_add_text(out,
                    "# bash completion for millrace, made by 'millrace completion bash'\n"
                    "_millrace()\n{\n"
                    "    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} words='' paths=''\n"
                    "    COMPREPLY=()\n"
                    "    if [[ $word == = ]]; then\n        word=''\n"
                    "    elif [[ $before == = ]]; then\n        before=${COMP_WORDS[COMP_CWORD - 2]}\n    fi\n"
                    "    if ((COMP_CWORD == 1)); then\n        words='help --help --version ");
    add_commands(out, all);
    mr_buf_add_text(out, "'\n    else case ${COMP_WORDS[1]} in\n    help) words='");
    add_commands(out, all);
    mr_buf_add_text(out, "' ;;\n");
    for (size_t i = 0; all[i]; i++)
        add_command(out, all[i]);
    mr_buf_add_text(out, "    esac; fi\n"
                         "    if [[ $paths ]]; then\n"
                         "        compopt -o filenames 2>/dev/null\n"
                         "        mapfile -t COMPREPLY < <(compgen -f -- \"$word\")\n"
                         "        return\n    fi\n"
                         "    mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$word\")\n"
                         "    if [[ ${#COMPREPLY[@]} == 1 && ${COMPREPLY[0]} == *= ]]; then\n"
                         "        compopt -o nospace 2>/dev/null\n    fi\n"
                         "}\ncomplete -F _millrace millrace\n");
}
