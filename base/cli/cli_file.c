/* cli_file.c - options from a YAML file, and written as one.
 * Invariant: a file says what a command line can say, in the same words, and is checked by the same code. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/cli/cli_line.h"
#include "base/files/file.h"
#include "base/scope.h"
#include "base/cli/term.h"
#include "base/yaml.h"

/* ---- reading ---------------------------------------------------------------------------------------------------- */

static mr_status at_line(const char *path, const mr_yaml_node *node, mr_status status, mr_error *err)
{
    mr_error why = *err;
    if (status != MR_MISUSE)
        return status;
    return mr_fail(err, MR_MISUSE, "%s: line %u: %s", path, node->line, why.text);
}

static mr_status take_list(mr_cli_line *l, const mr_cli_entry *e, const mr_yaml_node *list, mr_error *err)
{
    const mr_yaml *y = &l->cli->file;
    if (e->row->kind != MR_ARG_LIST)
        return mr_fail(err, MR_MISUSE, "%s takes one value, not a list", e->row->name);
    for (const mr_yaml_node *item = mr_yaml_first(y, list); item; item = mr_yaml_next(y, item)) {
        if (item->kind != MR_YAML_TEXT)
            return mr_fail(err, MR_MISUSE, "%s: a value must be a string or a number", e->row->name);
        MR_TRY(mr_cli_take(l, e, mr_yaml_text(y, item), err));
    }
    return MR_OK;
}

/* NULL: no option of that name. */
static const mr_cli_entry *find_key(const mr_cli_line *l, const char *key)
{
    for (size_t i = 0; i < l->count && l->entries[i].row != &mr_help_options[0]; i++)
        if (strcmp(l->entries[i].name, key) == 0)
            return &l->entries[i];
    return NULL;
}

static mr_status take_key(mr_cli_line *l, const mr_yaml_node *key, mr_error *err)
{
    const mr_yaml *y = &l->cli->file;
    const mr_yaml_node *value = mr_yaml_next(y, key);
    if (key->kind != MR_YAML_TEXT)
        return mr_fail(err, MR_MISUSE, "a key must be the name of an option");
    const mr_cli_entry *e = find_key(l, mr_yaml_text(y, key));
    if (!e)
        return mr_cli_unknown(l, "", mr_yaml_text(y, key), err);
    const mr_cli_entry *first = mr_cli_first(l, e);
    if (first->on_line)
        return MR_OK;
    if (first->value)
        return mr_fail(err, MR_MISUSE, "%s is set twice", e->row->name);
    if (value->kind == MR_YAML_LIST)
        return take_list(l, e, value, err);
    if (value->kind != MR_YAML_TEXT)
        return mr_fail(err, MR_MISUSE, "%s takes a value, not a map", e->row->name);
    return mr_cli_take(l, e, mr_yaml_text(y, value), err);
}

mr_status mr_cli_read_file(mr_cli_line *l, const char *path, mr_error *err)
{
    MR_AUTO(mr_buf_free) mr_buf bytes = {0};
    mr_yaml *y = &l->cli->file;
    MR_TRY(mr_cli_find_input(&mr_file_options[0], path, err));
    mr_status status = mr_file_read_all(AT_FDCWD, path, MR_YAML_MAX, &bytes, err);
    if (status == MR_OK)
        status = mr_yaml_parse(mr_buf_text(&bytes), bytes.len, path, y, err);
    if (status == MR_BAD_DATA)
        err->status = MR_MISUSE;
    if (status != MR_OK)
        return err->status;
    const mr_yaml_node *root = mr_yaml_root(y);
    if (root && root->kind != MR_YAML_MAP && !(root->kind == MR_YAML_TEXT && !root->text_len))
        return mr_fail(err, MR_MISUSE, "%s: not a map of options; write one per line, for example: %s: %s", path,
                       l->entries[0].name, "VALUE");
    for (const mr_yaml_node *key = root ? mr_yaml_first(y, root) : NULL; key;
         key = mr_yaml_next(y, mr_yaml_next(y, key)))
        MR_TRY(at_line(path, key, take_key(l, key, err), err));
    return MR_OK;
}

/* ---- writing ---------------------------------------------------------------------------------------------------- */

static void add_scalar(mr_buf *out, const char *text)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./+%";
    size_t len = strlen(text);
    if (len && strspn(text, plain) == len) {
        mr_buf_add_text(out, text);
        return;
    }
    mr_buf_add_text(out, "\"");
    for (const char *at = text; *at; at++)
        if (*at == '"' || *at == '\\')
            mr_buf_printf(out, "\\%c", *at);
        else if ((unsigned char)*at < ' ' || *at == 0x7f)
            mr_buf_printf(out, "\\x%02X", (unsigned)*at);
        else
            mr_buf_add(out, at, 1);
    mr_buf_add_text(out, "\"");
}

static void add_values(mr_buf *out, const mr_cli_entry *e)
{
    const mr_option *row = e->row;
    const char *given = e->value;
    if (row->kind == MR_ARG_LIST) {
        const mr_cli_list *list = (const mr_cli_list *)(e->request + row->offset);
        mr_buf_add_text(out, "[");
        for (size_t i = 0; i < list->count; i++) {
            mr_buf_add_text(out, i ? ", " : "");
            add_scalar(out, list->items[i]);
        }
        mr_buf_add_text(out, "]");
    } else if (!mr_option_has_value(row)) {
        mr_buf_add_text(out, given && strcmp(given, "false") != 0 ? "true" : "false");
    } else {
        const char *value = given ? given : row->standard;
        if (value && *value)
            add_scalar(out, value);
        else
            mr_option_add_value(row, out); /* its name, in a comment */
    }
}

mr_status mr_cli_write_file(const mr_cli_line *l, mr_error *err)
{
    MR_AUTO(mr_buf_free) mr_buf out = {0};
    mr_buf_printf(&out, "# Options of millrace %s, version %s; lines that begin with # are not set.\n",
                  l->command->name, MILLRACE_VERSION);
    for (size_t i = 0; i < l->count; i++) {
        const mr_cli_entry *e = &l->entries[i];
        if (e->row == &mr_help_options[0])
            break;
        if (e->row->group)
            mr_buf_printf(&out, "\n# %s\n", e->row->group);
        if (e->row->hidden || e->name != e->row->name)
            continue;
        mr_buf_printf(&out, "%s%s: ", e->value ? "" : "#", e->name);
        add_values(&out, e);
        mr_buf_add_text(&out, "\n");
    }
    MR_TRY(mr_buf_status(&out, err, "writing the options"));
    fwrite(out.data, 1, out.len, stdout);
    mr_term_flush_stream(stdout);
    return MR_OK;
}
