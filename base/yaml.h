/* yaml.h - a small YAML file as a tree, for settings beside a dataset and options files.
 * Invariant: the tree is not larger than the text makes it: aliases are refused, so nothing is repeated.
 * Source: YAML 1.1, as libyaml reads it. */
#ifndef MR_YAML_H
#define MR_YAML_H

#include "base/buf.h"

enum { MR_YAML_MAX = 1 << 20, MR_YAML_DEPTH = 16 }; /* bytes of a file; lists and maps inside of one another */

typedef enum mr_yaml_kind { MR_YAML_TEXT, MR_YAML_LIST, MR_YAML_MAP } mr_yaml_kind;

typedef struct mr_yaml_node {
    mr_yaml_kind kind;
    uint32_t line;     /* from 1 */
    uint32_t next;     /* its sibling; 0: none.  A map has its keys and values in turn */
    uint32_t first;    /* the first node in a list or a map; 0: it is empty */
    uint32_t text_len; /* length of a text, which is UTF-8 without NUL */
    size_t text_at;
} mr_yaml_node;

typedef struct mr_yaml { /* a zeroed one is empty */
    mr_yaml_node *nodes; /* nodes[0] is unused, nodes[1] the document */
    size_t count, capacity;
    mr_buf text;
} mr_yaml;

/* MR_BAD_DATA: not YAML, more than one document, an alias, too deep, a key twice; names file and line. */
mr_status mr_yaml_parse(const void *bytes, size_t len, const char *name, mr_yaml *out, mr_error *err);
void mr_yaml_free(mr_yaml *y);

/* The value of a key of the map `node`; NULL: there is none, or the node is not a map. */
const mr_yaml_node *mr_yaml_get(const mr_yaml *y, const mr_yaml_node *node, const char *key);
const mr_yaml_node *mr_yaml_root(const mr_yaml *y);                            /* NULL: an empty document */
const mr_yaml_node *mr_yaml_next(const mr_yaml *y, const mr_yaml_node *node);  /* its sibling, or NULL */
const mr_yaml_node *mr_yaml_first(const mr_yaml *y, const mr_yaml_node *node); /* what it holds first, or NULL */
/* A text, NUL-terminated; "" for any other node. */
const char *mr_yaml_text(const mr_yaml *y, const mr_yaml_node *node);

#endif
