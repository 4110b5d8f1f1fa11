/* fuzz_yaml.c - a small YAML file.
 * Promises: the tree is whole, no larger than the text makes it, and every text in it is UTF-8. */
#include "base/text.h"
#include "tests/fuzz/fuzz.h"
#include "base/yaml.h"

static void check(const mr_yaml *y, size_t size)
{
    FUZZ_MUST(y->count >= 1 && y->count <= 3 * size + 2); /* "?" is a map, a key and a value */
    for (uint32_t i = 1; i < y->count; i++) {
        const mr_yaml_node *n = &y->nodes[i];
        FUZZ_MUST((!n->next || n->next > i) && n->next < y->count);
        FUZZ_MUST((!n->first || n->first == i + 1) && n->first < y->count);
        FUZZ_MUST(n->kind != MR_YAML_TEXT || !n->first);
        const char *text = mr_yaml_text(y, n);
        FUZZ_MUST(n->kind != MR_YAML_TEXT || strlen(text) == n->text_len);
        FUZZ_MUST(mr_utf8_valid(text, strlen(text)));
        (void)mr_yaml_get(y, n, "names");
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    mr_yaml y;
    mr_error err;
    mr_status status = mr_yaml_parse(data, size, "data.yaml", &y, &err);
    if (status == MR_OK) {
        check(&y, size);
        mr_yaml_free(&y);
    } else {
        fuzz_refused(status, &err);
        FUZZ_MUST(!y.nodes);
    }
    return 0;
}
