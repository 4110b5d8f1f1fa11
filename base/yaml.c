/* yaml.c - libyaml's events as a tree.
 * Invariant: the depth is bounded before anything is kept, an alias ends the reading at once, and no map has a key
 * twice. */
#include "base/yaml.h"

#include <stdlib.h>
#include <string.h>

#include <yaml.h>

#include "base/scope.h"
#include "base/text.h"

typedef struct builder {
    mr_yaml *out;
    const char *name;
    uint32_t open[MR_YAML_DEPTH]; /* lists and maps around what comes next */
    uint32_t last[MR_YAML_DEPTH]; /* what each of them holds last; 0: nothing yet */
    size_t depth;
    bool ended; /* the document */
    mr_error *err;
} builder;

static mr_status refuse(const builder *b, const yaml_event_t *event, const char *why)
{
    return mr_fail(b->err, MR_BAD_DATA, "%s: line %zu: %s", b->name, event->start_mark.line + 1, why);
}

static mr_status add_node(builder *b, const yaml_event_t *event, mr_yaml_node node)
{
    mr_yaml *y = b->out;
    if (!MR_GROW(y->nodes, y->count, y->capacity))
        return mr_fail_memory(b->err, b->name);
    uint32_t number = (uint32_t)y->count;
    node.line = (uint32_t)event->start_mark.line + 1;
    y->nodes[y->count++] = node;
    if (b->depth) {
        uint32_t *last = &b->last[b->depth - 1];
        *(*last ? &y->nodes[*last].next : &y->nodes[b->open[b->depth - 1]].first) = number;
        *last = number;
    }
    if (node.kind == MR_YAML_TEXT)
        return MR_OK;
    if (b->depth == MR_YAML_DEPTH)
        return refuse(b, event, "lists and maps are nested more than 16 deep");
    b->open[b->depth] = number;
    b->last[b->depth++] = 0;
    return MR_OK;
}

static mr_status add_text(builder *b, const yaml_event_t *event)
{
    const char *text = (const char *)event->data.scalar.value;
    size_t len = event->data.scalar.length, begin = b->out->text.len;
    if (memchr(text, '\0', len))
        return refuse(b, event, "a string contains a NUL character");
    mr_buf_add(&b->out->text, text, len);
    mr_buf_add(&b->out->text, "", 1);
    MR_TRY(mr_buf_status(&b->out->text, b->err, b->name));
    return add_node(b, event, (mr_yaml_node){.kind = MR_YAML_TEXT, .text_at = begin, .text_len = (uint32_t)len});
}

typedef struct map_key {
    const char *text;
    uint32_t line;
} map_key;

static int by_text_and_line(const void *a, const void *b)
{
    const map_key *x = a, *y = b;
    int order = strcmp(x->text, y->text);
    return order ? order : (x->line > y->line) - (x->line < y->line);
}

/* A map has each key once, or it depends on the reader which value counts. */
static mr_status check_keys(const builder *b, const mr_yaml_node *map)
{
    const mr_yaml *y = b->out;
    MR_AUTO(mr_scope_free) map_key *keys = NULL;
    size_t count = 0, capacity = 0;
    const map_key *twice = NULL;
    for (const mr_yaml_node *k = mr_yaml_first(y, map); k; k = mr_yaml_next(y, mr_yaml_next(y, k))) {
        if (!MR_GROW(keys, count, capacity))
            return mr_fail_memory(b->err, b->name);
        keys[count] = (map_key){mr_yaml_text(y, k), k->line};
        count += k->kind == MR_YAML_TEXT;
    }
    if (count)
        qsort(keys, count, sizeof *keys, by_text_and_line);
    for (size_t i = 1; i < count; i++)
        if (!strcmp(keys[i - 1].text, keys[i].text) && (!twice || keys[i].line < twice->line))
            twice = &keys[i];
    if (!twice)
        return MR_OK;
    MR_AUTO(mr_buf_free) mr_buf shown = {0};
    mr_text_show(&shown, twice->text, strnlen(twice->text, 100));
    return mr_fail(b->err, MR_BAD_DATA, "%s: line %u: \"%s\" occurs twice, first in line %u: remove one of them",
                   b->name, twice->line, mr_buf_text(&shown), twice[-1].line);
}

static mr_status take(builder *b, const yaml_event_t *event)
{
    switch (event->type) {
    case YAML_DOCUMENT_START_EVENT:
        return b->ended ? refuse(b, event, "a second document starts here; a file must hold exactly one") : MR_OK;
    case YAML_DOCUMENT_END_EVENT:
        b->ended = true;
        return MR_OK;
    case YAML_ALIAS_EVENT:
        return refuse(b, event, "an alias (*NAME), which is not supported; write out its value");
    case YAML_SCALAR_EVENT:
        return add_text(b, event);
    case YAML_SEQUENCE_START_EVENT:
        return add_node(b, event, (mr_yaml_node){.kind = MR_YAML_LIST});
    case YAML_MAPPING_START_EVENT:
        return add_node(b, event, (mr_yaml_node){.kind = MR_YAML_MAP});
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT:
        b->depth--;
        return event->type == YAML_MAPPING_END_EVENT ? check_keys(b, &b->out->nodes[b->open[b->depth]]) : MR_OK;
    default:
        return MR_OK;
    }
}

static mr_status fail_parse(const builder *b, const yaml_parser_t *p)
{
    MR_AUTO(mr_buf_free) mr_buf why = {0};
    if (p->error == YAML_MEMORY_ERROR)
        return mr_fail_memory(b->err, b->name);
    mr_text_show(&why, p->problem ? p->problem : "unknown", strlen(p->problem ? p->problem : "unknown"));
    if (p->error == YAML_READER_ERROR)
        return mr_fail(b->err, MR_BAD_DATA, "%s: byte %zu: not YAML: %s", b->name, p->problem_offset + 1,
                       mr_buf_text(&why));
    return mr_fail(b->err, MR_BAD_DATA, "%s: line %zu, column %zu: not YAML: %s", b->name, p->problem_mark.line + 1,
                   p->problem_mark.column + 1, mr_buf_text(&why));
}

static mr_status build(builder *b, yaml_parser_t *p)
{
    mr_status status = MR_OK;
    bool done = false;
    while (status == MR_OK && !done) {
        yaml_event_t event;
        if (!yaml_parser_parse(p, &event))
            return fail_parse(b, p);
        done = event.type == YAML_STREAM_END_EVENT;
        status = take(b, &event);
        yaml_event_delete(&event);
    }
    return status;
}

mr_status mr_yaml_parse(const void *bytes, size_t len, const char *name, mr_yaml *out, mr_error *err)
{
    builder b = {.out = out, .name = name, .err = err};
    yaml_parser_t parser;
    *out = (mr_yaml){0};
    if (!MR_GROW(out->nodes, out->count, out->capacity) || !yaml_parser_initialize(&parser)) {
        mr_yaml_free(out);
        return mr_fail_memory(err, name);
    }
    out->nodes[out->count++] = (mr_yaml_node){0};
    yaml_parser_set_input_string(&parser, bytes, len);
    mr_status status = build(&b, &parser);
    yaml_parser_delete(&parser);
    if (status != MR_OK)
        mr_yaml_free(out);
    return status;
}

void mr_yaml_free(mr_yaml *y)
{
    free(y->nodes);
    mr_buf_free(&y->text);
    *y = (mr_yaml){0};
}

/* ---- the tree ---------------------------------------------------------------------------------------------------- */

static const mr_yaml_node *at(const mr_yaml *y, uint32_t number)
{
    return number && number < y->count ? &y->nodes[number] : NULL;
}

const mr_yaml_node *mr_yaml_root(const mr_yaml *y)
{
    return at(y, 1);
}

const mr_yaml_node *mr_yaml_next(const mr_yaml *y, const mr_yaml_node *node)
{
    return node ? at(y, node->next) : NULL;
}

const mr_yaml_node *mr_yaml_first(const mr_yaml *y, const mr_yaml_node *node)
{
    return node ? at(y, node->first) : NULL;
}

const char *mr_yaml_text(const mr_yaml *y, const mr_yaml_node *node)
{
    return node && node->kind == MR_YAML_TEXT ? (const char *)y->text.data + node->text_at : "";
}

const mr_yaml_node *mr_yaml_get(const mr_yaml *y, const mr_yaml_node *node, const char *key)
{
    const mr_yaml_node *k = node && node->kind == MR_YAML_MAP ? mr_yaml_first(y, node) : NULL;
    for (; k; k = mr_yaml_next(y, mr_yaml_next(y, k)))
        if (k->kind == MR_YAML_TEXT && !strcmp(mr_yaml_text(y, k), key))
            return mr_yaml_next(y, k);
    return NULL;
}
