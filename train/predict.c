/* predict.c - a line of predictions: its cells, and where the sample came from.
 * Invariant: untrusted text is printable, and quoted where CSV needs it. */
#include "train/predict.h"

#include <stdio.h>
#include <string.h>

#include "base/cli/term.h"
#include "base/text.h"
#include "shards/dataset/dataset.h"
#include "shards/format/meta.h"

void mr_predict_cell(const mr_predict_request *q, mr_buf *out, const char *text, size_t len)
{
    if (q->json) {
        mr_json_add_shown(out, text, len);
        return;
    }
    bool quoted =
        memchr(text, ',', len) || memchr(text, '"', len) || memchr(text, '\n', len) || memchr(text, '\r', len);
    mr_buf_add_text(out, quoted ? "\"" : "");
    for (size_t from = 0, i = 0; i <= len; i++) {
        if (i < len && !memchr("\"\n\r\t", text[i], 4))
            continue;
        mr_text_show(out, text + from, i - from);
        if (i < len)
            mr_buf_add(out, text[i] == '"' ? "\"\"" : text + i, text[i] == '"' ? 2 : 1);
        from = i + 1;
    }
    mr_buf_add_text(out, quoted ? "\"" : "");
}

mr_status mr_predict_source(const mr_session *t, const mr_verdict *v, mr_buf *out, mr_error *err)
{
    mr_meta_facts facts;
    mr_buf_clear(out);
    if (!(v->facts->weight > 0))
        mr_sample_source(t->ds, t->evaluator.loader.split, v->facts->sample, out);
    else if (v->facts->meta)
        return mr_meta_scan(v->facts->meta, v->facts->meta_len, &facts, out, err);
    return MR_OK;
}

mr_status mr_predict_take(void *ctx, const char *text, size_t len, mr_error *err)
{
    (void)ctx;
    fwrite(text, 1, len, stdout);
    return mr_term_flush(err);
}
