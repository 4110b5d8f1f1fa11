/* configs.c - the configs of a dataset card; see configs.h. */
#include "ingest/layout/hub/configs.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "base/scope.h"
#include "base/text.h"

enum { CARD_MAX = 4 << 20, PATTERN_MAX = 1000, DOUBLE_STARS = 2 };

static const char card_name[] = "README.md";

void mr_hub_configs_free(mr_hub_configs *card)
{
    mr_yaml_free(&card->yaml);
    free(card->rules);
    *card = (mr_hub_configs){.count = 0};
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

static mr_status add_rule(mr_hub_configs *card, mr_hub_rule rule, mr_error *err)
{
    size_t stars = 0;
    while (!strncmp(rule.pattern, "./", 2))
        rule.pattern += 2;
    for (const char *at = rule.pattern; (at = strstr(at, "**")); at += 2)
        stars++;
    if (strlen(rule.pattern) + strlen(rule.dir) > PATTERN_MAX || stars > DOUBLE_STARS)
        return mr_fail(err, MR_BAD_DATA,
                       "%s: configs: the pattern %.200s is longer than %d bytes, or has more than %d **", card_name,
                       rule.pattern, PATTERN_MAX, DOUBLE_STARS);
    if (!MR_GROW(card->rules, card->count, card->capacity))
        return mr_fail_memory(err, card_name);
    card->rules[card->count++] = rule;
    return MR_OK;
}

static mr_status not_read(const mr_yaml_node *node, const char *what, mr_error *err)
{
    return mr_fail(err, MR_BAD_DATA, "%s: configs: line %u of them: %s", card_name, node->line, what);
}

/* A text, or a list of texts. */
static mr_status add_patterns(mr_hub_configs *card, const mr_yaml_node *node, mr_hub_rule rule, mr_error *err)
{
    const mr_yaml *y = &card->yaml;
    if (node->kind == MR_YAML_TEXT) {
        rule.pattern = mr_yaml_text(y, node);
        return add_rule(card, rule, err);
    }
    if (node->kind != MR_YAML_LIST)
        return not_read(node, "a path is neither a string nor a list of strings", err);
    for (const mr_yaml_node *n = mr_yaml_first(y, node); n; n = mr_yaml_next(y, n)) {
        if (n->kind != MR_YAML_TEXT)
            return not_read(n, "a path is not a string", err);
        rule.pattern = mr_yaml_text(y, n);
        MR_TRY(add_rule(card, rule, err));
    }
    return MR_OK;
}

/* {split: train, path: ...}, or {train: ...}. */
static mr_status add_split(mr_hub_configs *card, const mr_yaml_node *map, mr_hub_rule rule, mr_error *err)
{
    const mr_yaml *y = &card->yaml;
    const mr_yaml_node *path = mr_yaml_get(y, map, "path"), *split = mr_yaml_get(y, map, "split");
    if (path) {
        rule.split = split && *mr_yaml_text(y, split) ? mr_yaml_text(y, split) : "train";
        return add_patterns(card, path, rule, err);
    }
    for (const mr_yaml_node *key = mr_yaml_first(y, map), *value; key; key = mr_yaml_next(y, value)) {
        value = mr_yaml_next(y, key);
        rule.split = mr_yaml_text(y, key);
        MR_TRY(add_patterns(card, value, rule, err));
    }
    return MR_OK;
}

static mr_status add_config(mr_hub_configs *card, const mr_yaml_node *config, mr_error *err)
{
    const mr_yaml *y = &card->yaml;
    const mr_yaml_node *name = mr_yaml_get(y, config, "config_name"), *files = mr_yaml_get(y, config, "data_files"),
                       *dir = mr_yaml_get(y, config, "data_dir");
    mr_hub_rule rule = {
        .config = name ? mr_yaml_text(y, name) : "default", .dir = dir ? mr_yaml_text(y, dir) : "", .pattern = "**"};
    if (config->kind != MR_YAML_MAP)
        return not_read(config, "a config is not a map", err);
    if (!files)
        return add_rule(card, rule, err);
    if (files->kind == MR_YAML_MAP)
        return add_split(card, files, rule, err);
    const mr_yaml_node *first = mr_yaml_first(y, files);
    rule.split = "train";
    if (files->kind == MR_YAML_TEXT || !first || first->kind != MR_YAML_MAP)
        return add_patterns(card, files, rule, err);
    for (const mr_yaml_node *n = first; n; n = mr_yaml_next(y, n)) {
        if (n->kind != MR_YAML_MAP)
            return not_read(n, "a split is not a map", err);
        MR_TRY(add_split(card, n, rule, err));
    }
    return MR_OK;
}

/* The lines of the key "configs" in the YAML before the text: the rest of it may be of any kind and size. */
static bool find_configs(const char *text, const char **from, size_t *len)
{
    text += mr_utf8_mark(text, strlen(text));
    if (strncmp(text, "---", 3) != 0 || (text[3] != '\n' && text[3] != '\r'))
        return false;
    const char *end = strstr(text + 3, "\n---"), *at = strstr(text, "\nconfigs:");
    if (!end || !at || at > end)
        return false;
    *from = ++at;
    do {
        const char *line = memchr(at, '\n', (size_t)(end - at));
        at = line ? line + 1 : end;
    } while (at < end && strchr(" \t-#\r\n", *at));
    *len = (size_t)(at - *from);
    return true;
}

static mr_status parse(mr_hub_configs *card, const char *from, size_t len, mr_error *err)
{
    const mr_yaml *y = &card->yaml;
    MR_TRY(mr_yaml_parse(from, len, card_name, &card->yaml, err));
    const mr_yaml_node *configs = mr_yaml_get(y, mr_yaml_root(y), "configs");
    for (const mr_yaml_node *n = configs ? mr_yaml_first(y, configs) : NULL; n; n = mr_yaml_next(y, n))
        MR_TRY(add_config(card, n, err));
    return MR_OK;
}

mr_status mr_hub_configs_read(const mr_tree *t, mr_hub_configs *card, mr_error *err)
{
    MR_AUTO(mr_buf_free) mr_buf text = {0};
    uint32_t entry = mr_tree_find(t, card_name, sizeof card_name - 1);
    const char *from;
    size_t len;
    if (entry == MR_NO_ENTRY || mr_source_entry(t->source, entry)->size > CARD_MAX)
        return MR_OK;
    MR_TRY(mr_source_read(t->source, entry, &text, err));
    const char *all = mr_buf_text(&text);
    if (text.failed)
        return mr_fail_memory(err, card_name);
    if (!find_configs(all, &from, &len))
        return MR_OK;
    return mr_source_dispensable(t->source, entry, "takes splits and configs from the file names",
                                 parse(card, from, len, err), err);
}

/* ---- matching ---------------------------------------------------------------------------------------------------- */

static bool part_matches(const char *pattern, size_t pattern_len, const char *name, size_t len)
{
    char p[PATTERN_MAX + 2], n[256];
    if (len >= sizeof n || pattern_len >= sizeof p)
        return false;
    memcpy(p, pattern, pattern_len);
    p[pattern_len] = '\0';
    memcpy(n, name, len);
    n[len] = '\0';
    return fnmatch(p, n, 0) == 0;
}

/* Part by part: "**" is any number of folders, and at the end everything. */
static bool matches(const char *pattern, const char *path)
{
    for (;;) {
        if (!strcmp(pattern, "**"))
            return true;
        if (!strncmp(pattern, "**/", 3)) {
            for (const char *at = path; at; at = strchr(at, '/') ? strchr(at, '/') + 1 : NULL)
                if (matches(pattern + 3, at))
                    return true;
            return false;
        }
        size_t p = strcspn(pattern, "/"), n = strcspn(path, "/");
        if (!part_matches(pattern, p, path, n))
            return false;
        if (!pattern[p] || !path[n])
            return !pattern[p] && !path[n];
        pattern += p + 1;
        path += n + 1;
    }
}

static bool rule_fits(const mr_hub_rule *r, const mr_hub_file *f)
{
    char path[4200];
    const char *dir = strcmp(r->dir, ".") != 0 ? r->dir : "", *rest = path;
    size_t len = strlen(dir);
    if (f->path.len >= sizeof path)
        return false;
    memcpy(path, f->path.text, f->path.len);
    path[f->path.len] = '\0';
    while (!strncmp(dir, "./", 2)) {
        dir += 2;
        len -= 2;
    }
    while (len && dir[len - 1] == '/')
        len--;
    if (len && (strncmp(path, dir, len) != 0 || path[len] != '/'))
        return false;
    rest += len ? len + 1 : 0;
    return matches(r->pattern, rest);
}

bool mr_hub_configs_fits(const mr_hub_configs *card, const mr_hub_files *files)
{
    for (size_t i = 0; i < card->count; i++)
        for (size_t k = 0; k < files->count; k++)
            if (rule_fits(&card->rules[i], &files->items[k]))
                return true;
    return false;
}

/* ---- applying ---------------------------------------------------------------------------------------------------- */

/* The requested config, or the only one. */
static mr_status choose(const mr_hub_configs *card, const char *wanted, const char **config, mr_error *err)
{
    MR_AUTO(mr_buf_free) mr_buf names = {0};
    size_t count = 0;
    *config = NULL;
    for (size_t i = 0; i < card->count; i++) {
        const char *name = card->rules[i].config;
        bool again = false;
        for (size_t k = 0; k < i && !again; k++)
            again = !strcmp(card->rules[k].config, name);
        if (wanted ? !strcmp(wanted, name) : !*config)
            *config = name;
        if (again)
            continue;
        mr_buf_add_text(&names, count++ ? ", " : "");
        mr_text_escape(&names, name, strlen(name));
    }
    if (wanted && !*config)
        return mr_fail(err, MR_MISUSE, "--config %s does not exist; choose one of: %s", wanted, mr_buf_text(&names));
    if (!wanted && count > 1)
        return mr_fail(err, MR_MISUSE, "the source holds %zu configs; choose one with --config: %s", count,
                       mr_buf_text(&names));
    return MR_OK;
}

/* The file's rule in the config; *elsewhere: it has one in another config. */
static mr_status find_rule(const mr_hub_configs *card, const char *config, const mr_hub_file *f,
                           const mr_hub_rule **rule, bool *elsewhere, mr_error *err)
{
    *rule = NULL;
    *elsewhere = false;
    for (size_t i = 0; i < card->count; i++) {
        const mr_hub_rule *r = &card->rules[i];
        if (!rule_fits(r, f))
            continue;
        if (strcmp(r->config, config) != 0) {
            *elsewhere = true;
            continue;
        }
        if (*rule && r->split && (*rule)->split && strcmp((*rule)->split, r->split) != 0)
            return mr_fail(err, MR_BAD_DATA,
                           "%.*s: is in two splits of config %s, %s and %s, as %s says; --exclude %s takes splits and "
                           "configs from the file names",
                           (int)f->path.len, f->path.text, config, (*rule)->split, r->split, card_name, card_name);
        *rule = *rule ? *rule : r;
    }
    return MR_OK;
}

static mr_status in_no_config(const mr_hub_file *f, mr_error *err)
{
    MR_AUTO(mr_buf_free) mr_buf name = {0}, option = {0};
    mr_text_show(&name, f->path.text, f->path.len);
    mr_source_leave_out(f->path.text, f->path.len, &option);
    return mr_fail(
        err, MR_BAD_DATA,
        "%s: is not in any config of %s; %s leaves it out, --exclude %s takes splits and configs from the file names",
        mr_buf_text(&name), card_name, mr_buf_text(&option), card_name);
}

mr_status mr_hub_configs_apply(const mr_hub_configs *card, const char *wanted, mr_hub_files *files, mr_error *err)
{
    const char *config;
    size_t kept = 0;
    if (!mr_hub_configs_fits(card, files))
        return MR_OK;
    MR_TRY(choose(card, wanted, &config, err));
    if (!config) /* the card has none */
        return MR_OK;
    size_t len = strcmp(config, "default") == 0 ? 0 : strlen(config);
    for (size_t i = 0; i < files->count; i++) {
        mr_hub_file f = files->items[i];
        const mr_hub_rule *rule;
        bool elsewhere;
        MR_TRY(find_rule(card, config, &f, &rule, &elsewhere, err));
        if (!rule && !elsewhere)
            return in_no_config(&f, err);
        if (!rule)
            continue;
        f.config = (mr_hub_part){config, len};
        if (rule->split) {
            f.split = (mr_hub_part){rule->split, strlen(rule->split)};
            f.several = false;
        }
        f.by_card = true;
        files->items[kept++] = f;
    }
    files->count = kept;
    return MR_OK;
}
