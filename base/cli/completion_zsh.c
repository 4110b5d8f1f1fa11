/* completion_zsh.c - completion for zsh: specifications of _arguments.
 * Invariant: texts of the tables are inside single quotes, with what _arguments gives a meaning to escaped.
 * Source: zshcompsys(1), _arguments. */
#include <string.h>

#include "base/cli/pages.h"

/* To the first ';': a line of a list is short. */
static void add_quoted(mr_buf *out, const char *text)
{
    for (size_t i = 0, len = strcspn(text, ";\n"); i < len; i++)
        if (text[i] == '\'')
            mr_buf_add_text(out, "'\\''");
        else if (strchr("[]:\\", text[i]))
            mr_buf_printf(out, "\\%c", text[i]);
        else
            mr_buf_add(out, text + i, 1);
}

static void add_action(mr_buf *out, const mr_option *row)
{
    mr_buf value = {0};
    mr_option_add_value(row, &value);
    mr_buf_add_text(out, row->optional ? "::" : ":");
    add_quoted(out, row->value || !row->words ? mr_buf_text(&value) : "value");
    mr_buf_add_text(out, ":");
    if (row->words) {
        mr_buf_add_text(out, "(");
        for (size_t i = 0; row->words[i]; i++)
            mr_buf_printf(out, "%s%s", i ? " " : "", row->words[i]);
        mr_buf_add_text(out, ")");
    } else {
        mr_buf_add_text(out, mr_option_is_path(row) ? "_files" : " ");
    }
    out->failed |= value.failed;
    mr_buf_free(&value);
}

static void add_one(mr_buf *out, const mr_option *row, const char *dashes, const char *name)
{
    bool value = mr_option_has_value(row), longer = dashes[1] == '-';
    mr_buf_printf(out, " \\\n            '%s%s%s%s[", row->kind == MR_ARG_LIST ? "*" : "", dashes, name,
                  !value   ? ""
                  : longer ? (row->optional ? "=-" : "=")
                           : "+");
    add_quoted(out, row->help);
    mr_buf_add_text(out, "]");
    if (value)
        add_action(out, row);
    mr_buf_add_text(out, "'");
}

static void add_option(void *context, const mr_option *row)
{
    mr_buf *out = context;
    if (row->hidden)
        return;
    add_one(out, row, "--", row->name);
    if (row->key)
        add_one(out, row, "-", (const char[]){row->key, '\0'});
}

static void add_command(mr_buf *out, const mr_command *c)
{
    mr_buf_printf(out, "        %s)\n            _arguments -s -S", c->name);
    mr_each_option(c, add_option, out);
    mr_buf_add_text(out, " \\\n            '*:");
    if (c->arguments->words) {
        mr_buf_add_text(out, "value:(");
        for (size_t i = 0; c->arguments->words[i]; i++)
            mr_buf_printf(out, "%s%s", i ? " " : "", c->arguments->words[i]);
        mr_buf_add_text(out, ")' ;;\n");
    } else {
        mr_buf_add_text(out, "file:_files' ;;\n");
    }
}

void mr_completion_zsh(const mr_command *const *all, mr_buf *out)
{
    mr_buf_add_text(out, "#compdef millrace\n# zsh completion for millrace, made by 'millrace completion zsh'\n"
                         "_millrace()\n{\n    local context state state_descr line\n    typeset -A opt_args\n"
                         "    local -a commands=(\n");
    for (size_t i = 0; all[i]; i++) {
        mr_buf_printf(out, "        '%s:", all[i]->name);
        add_quoted(out, all[i]->title);
        mr_buf_add_text(out, "'\n");
    }
    mr_buf_add_text(out, "    )\n    _arguments -C '1:command:->command' '*::argument:->argument'\n"
                         "    case $state in\n    command)\n"
                         "        _describe command commands\n        ;;\n"
                         "    argument)\n        case $words[1] in\n"
                         "        help) _describe command commands ;;\n");
    for (size_t i = 0; all[i]; i++)
        add_command(out, all[i]);
    mr_buf_add_text(out, "        esac ;;\n    esac\n}\n"
                         "if [[ $funcstack[1] == _millrace ]]; then\n    _millrace \"$@\"\nelse\n"
                         "    compdef _millrace millrace\nfi\n");
}
