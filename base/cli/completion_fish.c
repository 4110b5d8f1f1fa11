/* completion_fish.c - completion for fish: one `complete` per option.
 * Invariant: texts of the tables are inside single quotes, where only ' and \ are special.
 * Source: complete(1) of fish. */
#include <string.h>

#include "base/cli/pages.h"

typedef struct command_page {
    mr_buf *out;
    const mr_command *command;
} command_page;

/* To the first ';': a line of a list is short. */
static void add_quoted(mr_buf *out, const char *text)
{
    mr_buf_add_text(out, "'");
    for (size_t i = 0, len = strcspn(text, ";\n"); i < len; i++)
        mr_buf_printf(out, strchr("'\\", text[i]) ? "\\%c" : "%c", text[i]);
    mr_buf_add_text(out, "'");
}

static void add_words(mr_buf *out, const char *const *words)
{
    mr_buf_add_text(out, " -a '");
    for (size_t i = 0; words[i]; i++)
        mr_buf_printf(out, "%s%s", i ? " " : "", words[i]);
    mr_buf_add_text(out, "'");
}

static void add_option(void *context, const mr_option *row)
{
    const command_page *p = context;
    mr_buf *out = p->out;
    if (row->hidden)
        return;
    mr_buf_printf(out, "complete -c millrace -n '__fish_seen_subcommand_from %s' -l %s", p->command->name, row->name);
    if (row->key)
        mr_buf_printf(out, " -s '%c'", row->key);
    if (mr_option_has_value(row) && !row->optional)
        mr_buf_add_text(out, mr_option_is_path(row) ? " -r -F" : " -x");
    if (row->words)
        add_words(out, row->words);
    mr_buf_add_text(out, " -d ");
    add_quoted(out, row->help);
    mr_buf_add_text(out, "\n");
}

void mr_completion_fish(const mr_command *const *all, mr_buf *out)
{
    mr_buf_add_text(out, "# fish completion for millrace, made by 'millrace completion fish'\n"
                         "complete -c millrace -f -n __fish_use_subcommand -a help -d 'explain a command'\n");
    for (size_t i = 0; all[i]; i++) {
        mr_buf_printf(out, "complete -c millrace -f -n __fish_use_subcommand -a %s -d ", all[i]->name);
        add_quoted(out, all[i]->title);
        mr_buf_printf(out, "\ncomplete -c millrace -f -n '__fish_seen_subcommand_from help' -a %s\n", all[i]->name);
        if (all[i]->arguments->words) {
            mr_buf_printf(out, "complete -c millrace -f -n '__fish_seen_subcommand_from %s'", all[i]->name);
            add_words(out, all[i]->arguments->words);
            mr_buf_add_text(out, "\n");
        }
        mr_each_option(all[i], add_option, &(command_page){out, all[i]});
    }
}
