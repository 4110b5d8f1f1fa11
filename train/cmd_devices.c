/* cmd_devices.c - `millrace devices`: what --device can name, and which of it works here.
 * Invariant: a device that cannot be opened is a line with the reason, and not a failure of the command. */
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/cli/cli.h"
#include "base/scope.h"
#include "base/cli/term.h"
#include "device/device.h"
#include "base/json/json.h"
#include "train/commands.h"

typedef struct request {
    bool json;
} request;

static const mr_option options[] = {
    {"json", 0, MR_ARG_FLAG, MR_FIELD(request, json), .own = true, .help = "print one JSON object"},
    MR_OPTION_QUIET_IGNORED,
    {0},
};

static const mr_option arguments[] = {{0}};

/* Device `index` of the kind, opened and closed again: "here" is its description, "missing" the reason why it cannot be
 * used.  NULL: out of memory. */
static json_t *look_at(const mr_device_iface *iface, unsigned index, mr_status *status)
{
    const mr_device_options one = {.index = index};
    char name[64];
    mr_device *d = NULL;
    mr_error why = {0};
    snprintf(name, sizeof name, index ? "%s:%u" : "%s", iface->name, index);
    json_t *facts = json_pack("{ssss}", "name", name, "what", iface->what);
    *status = mr_device_open(iface->name, &one, &d, &why);
    if (facts && *status == MR_OK)
        json_object_set_new(facts, "here", json_string(iface->describe(d)));
    else if (facts)
        json_object_set_new(facts, "missing", json_string(why.text));
    mr_device_close(d);
    return facts;
}

/* The first device of the kind, here or missing, and the others that are here. */
static bool look_at_all(const mr_device_iface *iface, json_t *all)
{
    mr_status status = MR_OK;
    for (unsigned index = 0; status == MR_OK; index++) {
        json_t *one = look_at(iface, index, &status);
        if (!one)
            return false;
        if (index && status != MR_OK)
            json_decref(one);
        else if (json_array_append_new(all, one) != 0)
            return false;
    }
    return true;
}

/* `text` in lines of the last column. */
static mr_status add_lines(mr_table *t, const char *text, mr_error *err)
{
    enum { LINE = 80 }; /* with the columns before it, at most 100 */
    MR_AUTO(mr_buf_free) mr_buf line = {0};
    for (size_t word; *text; text += word + strspn(text + word, " ")) {
        word = strcspn(text, " ");
        if (line.len && line.len + 1 + word > LINE) {
            mr_table_row(t, "", "", mr_buf_text(&line));
            line.len = 0;
        }
        mr_buf_printf(&line, "%s%.*s", line.len ? " " : "", (int)word, text);
    }
    mr_table_row(t, "", "", mr_buf_text(&line));
    return mr_buf_status(&line, err, "listing devices");
}

/* What a device is, and under it what is here of it, or why nothing is. */
static mr_status print_table(const json_t *all, mr_error *err)
{
    mr_table *t = mr_table_new(3);
    mr_status status = MR_OK;
    size_t i;
    json_t *one;
    mr_table_row(t, "device", "here", "what");
    json_array_foreach(all, i, one)
    {
        const char *here = json_string_value(json_object_get(one, "here"));
        mr_table_row(t, json_string_value(json_object_get(one, "name")), here ? "yes" : "no",
                     json_string_value(json_object_get(one, "what")));
        if (status == MR_OK)
            status = add_lines(t, here ? here : json_string_value(json_object_get(one, "missing")), err);
    }
    mr_status printed = mr_table_print(t, stdout, err); /* which also frees it */
    return status != MR_OK ? status : printed;
}

static void release(json_t **doc)
{
    json_decref(*doc);
}

static mr_status list(const request *q, mr_error *err)
{
    json_t *all = json_array();
    MR_AUTO(release) json_t *doc = json_pack("{so}", "devices", all);
    const mr_device_iface *iface;
    if (!doc)
        return mr_fail_memory(err, "listing devices");
    for (size_t i = 0; (iface = mr_device_iface_at(i)); i++)
        if (!look_at_all(iface, all))
            return mr_fail_memory(err, "listing devices");
    return q->json ? mr_json_print(doc, err) : print_table(all, err);
}

static int start(int argc, char **argv)
{
    request q = {.json = false};
    MR_AUTO(mr_cli_release) mr_cli cli = {0};
    mr_error err = {0};
    if (!mr_cli_parse(&cli, &mr_cmd_devices, argc, argv, &q))
        return cli.code;
    return mr_cli_end(NULL, list(&q, &err), &err);
}

const mr_command mr_cmd_devices = {
    .name = "devices",
    .title = "list the devices that --device accepts",
    .usage = "",
    .example = "millrace devices",
    .summary = "Lists the devices that a model can be computed on, and which of them this machine has.",
    .notes = "Examples:\n"
             "  millrace devices\n"
             "  millrace devices --json | jq -r '.devices[] | select(.here) | .name'\n"
             "\n"
             "Exit status: 0 done; 2 usage error; 3 system error.",
    .options = options,
    .arguments = arguments,
    .run = start,
};
