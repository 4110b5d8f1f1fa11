/* parse.c - a tokenizer.json: reads the vocabulary and merges, and checks every component.
 * Invariant: what this tokenizer does not support is refused by name, never ignored; padding, truncation and the
 * decoder are ignored, as they do not change ids: the caller sets the length. Source: tokenizers 0.21
 * (tokenizer/serialization.rs, models/bpe/serialization.rs, processors). */
#include <stdlib.h>
#include <string.h>

#include "base/scope.h"
#include "train/text/parts.h"

typedef struct reader {
    mr_tokenizer *t;
    const char *name;
    mr_error *err;
} reader;

/* "NAME: WHAT is VALUE; ..." */
static mr_status refuse(const reader *r, const char *what, const json_t *value, const char *wanted)
{
    MR_AUTO(mr_scope_free)
    char *text = json_is_object(value) || json_is_array(value) ? NULL : json_dumps(value, JSON_ENCODE_ANY);
    const char *type = json_string_value(json_object_get(value, "type"));
    return mr_fail(r->err, MR_BAD_DATA, "%s: %s is %.80s; this tokenizer requires %s", r->name, what,
                   text     ? text
                   : type   ? type
                   : !value ? "missing"
                            : "another",
                   wanted);
}

/* The members that an object may have, and their values. */
typedef struct rule {
    const char *key;
    enum { ANY, NOTHING, NO, YES, EMPTY, FLAG } value; /* EMPTY: null or "" */
} rule;

static bool follows(const json_t *value, const rule *wanted)
{
    switch (wanted->value) {
    case ANY:
        return true;
    case NOTHING:
        return json_is_null(value);
    case NO:
        return json_is_false(value);
    case YES:
        return json_is_true(value);
    case EMPTY:
        return json_is_null(value) || (json_is_string(value) && json_string_length(value) == 0);
    case FLAG:
        return json_is_boolean(value);
    }
    return false;
}

static mr_status check_members(const reader *r, json_t *object, const char *what, const rule *rules)
{
    static const char *const words[] = {"", "null", "false", "true", "null or \"\"", "true or false"};
    const char *key;
    json_t *value;
    if (!json_is_object(object))
        return refuse(r, what, object, "an object");
    json_object_foreach(object, key, value)
    {
        const rule *found = rules;
        while (found->key && strcmp(found->key, key) != 0)
            found++;
        if (!found->key)
            return mr_fail(r->err, MR_BAD_DATA, "%s: %s has \"%.60s\", which this tokenizer does not support", r->name,
                           what, key);
        if (follows(value, found))
            continue;
        char place[64];
        snprintf(place, sizeof place, "\"%s\" of %s", key, what);
        return refuse(r, place, value, words[found->value]);
    }
    return MR_OK;
}

static bool is_type(const json_t *object, const char *type)
{
    const char *found = json_string_value(json_object_get(object, "type"));
    return found && strcmp(found, type) == 0;
}

/* ---- model ------------------------------------------------------------------------------------------------------- */

static mr_status read_vocab(const reader *r, json_t *vocab)
{
    if (!json_is_object(vocab))
        return refuse(r, "\"vocab\"", vocab, "an object of tokens and ids");
    return mr_tokens_add(r->t, vocab, r->name, r->err);
}

static mr_status read_merge(const reader *r, const json_t *merge, size_t number)
{
    const json_t *a = json_array_get(merge, 0), *b = json_array_get(merge, 1);
    if (json_is_array(merge) && json_array_size(merge) == 2 && json_is_string(a) && json_is_string(b))
        return mr_merge_add(r->t, json_string_value(a), json_string_length(a), json_string_value(b),
                            json_string_length(b), r->name, r->err);
    const char *text = json_string_value(merge), *blank = text ? strchr(text, ' ') : NULL;
    if (text && strncmp(text, "#version", 8) == 0)
        return MR_OK;
    if (!blank || strchr(blank + 1, ' '))
        return mr_fail(r->err, MR_BAD_DATA, "%s: merge %zu is neither \"A B\" nor [\"A\", \"B\"]", r->name, number + 1);
    return mr_merge_add(r->t, text, (size_t)(blank - text), blank + 1, strlen(blank + 1), r->name, r->err);
}

static mr_status read_merges(const reader *r, const json_t *merges)
{
    if (!json_is_array(merges))
        return refuse(r, "\"merges\"", merges, "a list");
    for (size_t i = 0; i < json_array_size(merges); i++)
        MR_TRY(read_merge(r, json_array_get(merges, i), i));
    return MR_OK;
}

static mr_status read_model(const reader *r, json_t *model)
{
    static const rule rules[] = {{"type", ANY},
                                 {"dropout", NOTHING},
                                 {"unk_token", ANY},
                                 {"fuse_unk", FLAG},
                                 {"continuing_subword_prefix", EMPTY},
                                 {"end_of_word_suffix", EMPTY},
                                 {"byte_fallback", NO},
                                 {"ignore_merges", NO},
                                 {"vocab", ANY},
                                 {"merges", ANY},
                                 {NULL, ANY}};
    json_t *type = json_object_get(model, "type"), *unk = json_object_get(model, "unk_token");
    if (!json_is_object(model) || (type && !is_type(model, "BPE")))
        return refuse(r, "\"model\"", model, "BPE");
    MR_TRY(check_members(r, model, "the model", rules));
    MR_TRY(read_vocab(r, json_object_get(model, "vocab")));
    MR_TRY(read_merges(r, json_object_get(model, "merges")));
    if (!unk || json_is_null(unk))
        return MR_OK;
    size_t n = json_is_string(unk) ? mr_token_find(r->t, json_string_value(unk), json_string_length(unk)) : SIZE_MAX;
    if (n == SIZE_MAX)
        return refuse(r, "\"unk_token\"", unk, "null or a token of the vocabulary");
    r->t->unk = r->t->tokens[n].id;
    r->t->fuse_unk = json_is_true(json_object_get(model, "fuse_unk"));
    return MR_OK;
}

/* ---- components -------------------------------------------------------------------------------------------------- */

/* The element in {"type":"Sequence","KEY":[element]}, otherwise the component itself. */
static json_t *only_one(json_t *component, const char *key)
{
    json_t *list = json_object_get(component, key);
    return is_type(component, "Sequence") && json_array_size(list) == 1 ? json_array_get(list, 0) : component;
}

static mr_status check_pre_tokenizer(const reader *r, json_t *component)
{
    static const rule rules[] = {
        {"type", ANY}, {"add_prefix_space", NO}, {"trim_offsets", ANY}, {"use_regex", YES}, {NULL, ANY}};
    component = only_one(component, "pretokenizers");
    if (!is_type(component, "ByteLevel"))
        return refuse(r, "\"pre_tokenizer\"", component, "ByteLevel");
    if (!json_object_get(component, "add_prefix_space"))
        return refuse(r, "\"add_prefix_space\" of the pre_tokenizer", NULL, "false");
    return check_members(r, component, "the pre_tokenizer", rules);
}

static bool is_named(const json_t *value, const char *text)
{
    return json_is_string(value) && strcmp(json_string_value(value), text) == 0;
}

/* ["<s>", 0] */
static bool is_pair(const reader *r, const json_t *pair, const char *text)
{
    return json_array_size(pair) == 2 && is_named(json_array_get(pair, 0), text) &&
           json_is_integer(json_array_get(pair, 1)) &&
           json_integer_value(json_array_get(pair, 1)) == mr_token_id(r->t, text);
}

/* {"SpecialToken":{"id":"<s>"}}, where "<s>" means its id only. */
static bool is_special(const reader *r, const json_t *template, size_t at, const char *text)
{
    const json_t *piece = json_array_get(json_object_get(template, "single"), at);
    const json_t *ids = json_object_get(json_object_get(json_object_get(template, "special_tokens"), text), "ids");
    const json_t *id = json_array_get(ids, 0);
    return is_named(json_object_get(json_object_get(piece, "SpecialToken"), "id"), text) && json_array_size(ids) == 1 &&
           json_is_integer(id) && json_integer_value(id) == mr_token_id(r->t, text);
}

static bool is_template(const reader *r, const json_t *component)
{
    const json_t *single = json_object_get(component, "single"), *text = json_array_get(single, 1);
    return json_array_size(single) == 3 && is_special(r, component, 0, "<s>") &&
           is_named(json_object_get(json_object_get(text, "Sequence"), "id"), "A") &&
           is_special(r, component, 2, "</s>");
}

/* <s> TEXT </s>, in one of its forms; a ByteLevel beside it only affects offsets. */
static mr_status check_post_processor(const reader *r, json_t *component)
{
    static const char wanted[] = "RobertaProcessing, or a TemplateProcessing of the same, <s> TEXT </s>";
    json_t *list = json_object_get(component, "processors"), *found = is_type(component, "Sequence") ? NULL : component;
    if (!found)
        for (size_t i = 0; i < json_array_size(list); i++) {
            json_t *one = json_array_get(list, i);
            if (!is_type(one, "ByteLevel") && found)
                return refuse(r, "\"post_processor\"", component, wanted);
            if (!is_type(one, "ByteLevel"))
                found = one;
        }
    bool roberta = is_type(found, "RobertaProcessing") && is_pair(r, json_object_get(found, "cls"), "<s>") &&
                   is_pair(r, json_object_get(found, "sep"), "</s>");
    return roberta || (is_type(found, "TemplateProcessing") && is_template(r, found))
               ? MR_OK
               : refuse(r, "\"post_processor\"", component, wanted);
}

static mr_status read_one_added(const reader *r, json_t *one, size_t number)
{
    static const rule rules[] = {{"id", ANY},      {"content", ANY},     {"single_word", FLAG}, {"lstrip", FLAG},
                                 {"rstrip", FLAG}, {"normalized", FLAG}, {"special", FLAG},     {NULL, ANY}};
    const json_t *content = json_object_get(one, "content"), *id = json_object_get(one, "id");
    MR_TRY(check_members(r, one, "an added token", rules));
    if (!json_is_string(content) || !json_is_integer(id) || json_integer_value(id) < 0 ||
        json_integer_value(id) > MR_ID_MAX)
        return mr_fail(r->err, MR_BAD_DATA, "%s: added token %zu has no text, or no id from 0 to %d", r->name, number,
                       MR_ID_MAX);
    bool special = json_is_true(json_object_get(one, "special"));
    const json_t *normalized = json_object_get(one, "normalized");
    const mr_added flags = {.id = (int32_t)json_integer_value(id),
                            .single_word = json_is_true(json_object_get(one, "single_word")),
                            .lstrip = json_is_true(json_object_get(one, "lstrip")),
                            .rstrip = json_is_true(json_object_get(one, "rstrip")),
                            .normalized = normalized ? json_is_true(normalized) : !special,
                            .special = special};
    return mr_added_add(r->t, json_string_value(content), json_string_length(content), &flags, r->name, r->err);
}

static mr_status read_added(const reader *r, json_t *added)
{
    if (added && !json_is_array(added) && !json_is_null(added))
        return refuse(r, "\"added_tokens\"", added, "a list");
    for (size_t i = 0; i < json_array_size(added); i++)
        MR_TRY(read_one_added(r, json_array_get(added, i), i + 1));
    return MR_OK;
}

/* ---- the document ------------------------------------------------------------------------------------------------ */

static mr_status read_document(const reader *r, json_t *doc)
{
    static const rule rules[] = {{"version", ANY}, {"truncation", ANY},    {"padding", ANY},
                                 {"model", ANY},   {"added_tokens", ANY},  {"normalizer", NOTHING},
                                 {"decoder", ANY}, {"pre_tokenizer", ANY}, {"post_processor", ANY},
                                 {NULL, ANY}};
    json_t *version = json_object_get(doc, "version");
    MR_TRY(check_members(r, doc, "the file", rules));
    if (version && !is_named(version, "1.0"))
        return refuse(r, "\"version\"", version, "\"1.0\"");
    MR_TRY(check_pre_tokenizer(r, json_object_get(doc, "pre_tokenizer")));
    MR_TRY(read_model(r, json_object_get(doc, "model")));
    MR_TRY(read_added(r, json_object_get(doc, "added_tokens")));
    MR_TRY(mr_tokenizer_seal(r->t, r->name, r->err));
    return check_post_processor(r, json_object_get(doc, "post_processor"));
}

mr_status mr_tokenizer_parse(const void *json, size_t len, const char *name, mr_tokenizer **out, mr_error *err)
{
    MR_AUTO(json_decrefp) json_t *doc = NULL;
    reader r = {.name = name, .err = err};
    if (len > MR_FILE_MAX)
        return mr_fail(err, MR_BAD_DATA, "%s: %zu bytes are more than the limit of %d", name, len, MR_FILE_MAX);
    MR_TRY(mr_tokenizer_json(json, len, name, &doc, err));
    MR_TRY(mr_tokenizer_new(&r.t, err));
    mr_status status = read_document(&r, doc);
    if (status == MR_OK)
        *out = r.t;
    else
        mr_tokenizer_free(r.t);
    return status;
}
