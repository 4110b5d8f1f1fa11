/* fuzz_jsonl.c - one JSON object a line.
 * Promises: rows come in order, each is in the file where it says, without blanks around it, and is one JSON
 * object if its fields can be picked. */
#include "tests/fuzz/fuzz.h"
#include "ingest/tables/jsonl.h"

static void check_fields(const mr_jsonl *j, const mr_jsonl_row *row)
{
    mr_jsonl_field fields[] = {{.name = "image"}, {.name = "label"}, {.name = "contest_number"}, {.name = ""}};
    mr_buf names = {0};
    mr_error err;
    mr_status status = mr_jsonl_pick(j, row, fields, MR_COUNT(fields), &names, &err);
    if (status == MR_OK) {
        FUZZ_MUST(row->text[0] == '{' && row->text[row->len - 1] == '}' && fuzz_is_json(row->text, row->len));
        for (size_t i = 0; i < MR_COUNT(fields); i++) {
            FUZZ_MUST(fields[i].kind != MR_JSONL_INTEGER || fields[i].text.len > 0);
            FUZZ_MUST((fields[i].kind != MR_JSONL_ABSENT && fields[i].kind != MR_JSONL_NULL) ||
                      fields[i].text.len == 0);
        }
    } else {
        FUZZ_MUST(status == MR_BAD_DATA);
        fuzz_refused(status, &err);
    }
    for (size_t i = 0; i < MR_COUNT(fields); i++)
        mr_buf_free(&fields[i].text);
    mr_buf_free(&names);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    mr_notes notes = {0};
    mr_source *source = fuzz_source_one(data, size, "train.jsonl", &notes);
    mr_jsonl j = {.source = source};
    mr_jsonl_row row;
    mr_error err;
    mr_status status;
    uint64_t behind = 0, line = 0;
    while ((status = mr_jsonl_next(&j, &row, &err)) == MR_OK) {
        FUZZ_MUST(row.len > 0 && row.line > line);
        FUZZ_MUST(row.at >= behind && row.at <= size && row.len <= size - row.at);
        FUZZ_MUST(memcmp(row.text, data + row.at, row.len) == 0);
        FUZZ_MUST(!memchr(row.text, '\n', row.len));
        FUZZ_MUST(!strchr(" \t\r", row.text[0]) || row.text[0] == '\0');
        FUZZ_MUST(!strchr(" \t\r", row.text[row.len - 1]) || row.text[row.len - 1] == '\0');
        behind = row.at + row.len;
        line = row.line;
        check_fields(&j, &row);
    }
    if (status != MR_END)
        fuzz_refused(status, &err);
    mr_buf_free(&j.buf);
    mr_source_free(source);
    mr_notes_free(&notes);
    return 0;
}
