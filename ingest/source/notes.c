/* notes.c - what ingest reports to the user.
 * Invariant: path and detail of a kept note are valid UTF-8, whatever bytes the source's names had. */
#include "ingest/source/notes.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

const char *const mr_note_words[MR_NOTE_COUNT] = {
#define X(word, json, head) [MR_NOTE_##word] = json,
    MR_NOTE_KINDS(X)
#undef X
};

const char *const mr_note_heads[MR_NOTE_COUNT] = {
#define X(word, json, head) [MR_NOTE_##word] = head,
    MR_NOTE_KINDS(X)
#undef X
};

const char *const mr_note_advice[MR_NOTE_COUNT] = {
    [MR_NOTE_REJECT] = "replace these files, or leave them out with --exclude; --max-rejects sets how many may fail",
    [MR_NOTE_LINK] = "give the folder that a link leads to as another SRC",
    [MR_NOTE_BAD_NAME] = "rename these files in the source",
    [MR_NOTE_COLLISION] =
        "the first is used: rename or remove one of each pair; --max-rejects sets how many may be left out",
    [MR_NOTE_UNLISTED] = "--keep-unlisted includes them",
    [MR_NOTE_MISSING] = "if the images are elsewhere, give that folder or archive as another SRC",
    [MR_NOTE_LEAK] = "--exclude removes one of each pair; --fail-on-leak makes leaks an error",
    [MR_NOTE_DUPLICATE] = "--exclude removes one of each pair",
    [MR_NOTE_LEFT_OUT] = "nothing is written until an option says what they are",
};

/* Escaped path text, allocated; NULL: out of memory. */
static char *path_text(const char *bytes, size_t len)
{
    mr_buf buf = {0};
    mr_text_escape(&buf, bytes, len);
    mr_buf_text(&buf);
    if (buf.failed)
        mr_buf_free(&buf);
    return (char *)buf.data;
}

/* A detail often quotes the source: if it is not UTF-8, all of it becomes path text. */
static char *detail_text(const char *format, va_list args)
{
    char *text, *escaped;
    if (vasprintf(&text, format, args) < 0)
        return NULL;
    size_t len = strlen(text);
    if (mr_utf8_valid(text, len))
        return text;
    escaped = path_text(text, len);
    free(text);
    return escaped;
}

static int by_kind_and_path(const void *a, const void *b)
{
    const mr_note *x = a, *y = b;
    int order = x->kind != y->kind ? (x->kind > y->kind) - (x->kind < y->kind) : strcmp(x->path, y->path);
    return order ? order : strcmp(x->detail, y->detail);
}

void mr_notes_sort(mr_notes *notes, size_t from)
{
    if (notes->count > from)
        qsort(notes->items + from, notes->count - from, sizeof *notes->items, by_kind_and_path);
}

static bool is_full(const mr_notes *notes, mr_note_kind kind)
{
    return notes->kept[kind] >= MR_NOTES_KEPT || notes->count >= 2 * MR_NOTES_KEPT;
}

/* Takes over the note's strings; it has been counted. */
static void keep(mr_notes *notes, mr_note note)
{
    bool full = is_full(notes, note.kind);
    if (full || !note.path || !note.detail || !MR_GROW(notes->items, notes->count, notes->capacity)) {
        free(note.path);
        free(note.detail);
        notes->failed |= !full;
        return;
    }
    notes->items[notes->count++] = note;
    notes->kept[note.kind]++;
}

void mr_note_add(mr_notes *notes, mr_note_kind kind, const char *path, size_t path_len, uint64_t bytes,
                 const char *format, ...)
{
    va_list args;
    notes->counts[kind]++;
    if (is_full(notes, kind))
        return;
    va_start(args, format);
    mr_note note = {.kind = kind, .bytes = bytes, .path = path_text(path, path_len)};
    note.detail = detail_text(format, args);
    va_end(args);
    keep(notes, note);
}

void mr_notes_move(mr_notes *notes, mr_notes *from)
{
    for (int kind = 0; kind < MR_NOTE_COUNT; kind++)
        notes->counts[kind] += from->counts[kind];
    for (size_t i = 0; i < from->count; i++)
        keep(notes, from->items[i]);
    notes->failed = notes->failed || from->failed;
    free(from->items);
    *from = (mr_notes){0};
}

void mr_notes_pack(const mr_notes *notes, mr_buf *out)
{
    mr_buf_add(out, notes->counts, sizeof notes->counts);
    for (size_t i = 0; i < notes->count; i++) {
        const mr_note *n = &notes->items[i];
        mr_buf_add(out, &n->kind, sizeof n->kind);
        mr_buf_add(out, &n->bytes, sizeof n->bytes);
        mr_buf_add(out, n->path, strlen(n->path) + 1);
        mr_buf_add(out, n->detail, strlen(n->detail) + 1);
    }
}

void mr_notes_unpack(mr_notes *notes, const uint8_t *packed, size_t len)
{
    const uint8_t *end = packed + len;
    size_t counts[MR_NOTE_COUNT];
    memcpy(counts, packed, sizeof counts);
    packed += sizeof counts;
    for (int kind = 0; kind < MR_NOTE_COUNT; kind++)
        notes->counts[kind] += counts[kind];
    while (packed < end) {
        mr_note n = {0};
        memcpy(&n.kind, packed, sizeof n.kind);
        memcpy(&n.bytes, packed + sizeof n.kind, sizeof n.bytes);
        const char *path = (const char *)packed + sizeof n.kind + sizeof n.bytes;
        const char *detail = path + strlen(path) + 1;
        n.path = strdup(path);
        n.detail = strdup(detail);
        keep(notes, n);
        packed = (const uint8_t *)detail + strlen(detail) + 1;
    }
}

void mr_notes_free(mr_notes *notes)
{
    for (size_t i = 0; i < notes->count; i++) {
        free(notes->items[i].path);
        free(notes->items[i].detail);
    }
    free(notes->items);
    *notes = (mr_notes){0};
}
