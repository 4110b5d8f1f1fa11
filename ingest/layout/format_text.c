/* format_text.c - lines of text as in annotation formats: cells, numbers, names of images.
 * Invariant: no format is recognised from less than a whole line, so an empty file is of no format.
 * Sources: KITTI's object development kit (15 values in a line, 16 with a score), DOTA's page "Data format" (lines
 * "imagesource:" and "gsd:", then 8 coordinates, class, difficult), Darknet's label files, MOTChallenge's gt.txt
 * (frame, id, x, y, width, height ...), VisDrone's annotations (x, y, width, height ...), ICDAR's (four corners, text),
 * WIDER FACE's readme.txt.
 */
#include "ingest/layout/format_text.h"
#include "ingest/source/names.h"

#include <ctype.h>
#include <string.h>

enum { CELLS = 40, LINES = 8, STEM_LEAST = 4 }; /* a shorter name may be a number of something else */

typedef struct cell {
    const char *at;
    size_t len;
} cell;

typedef struct line {
    cell cells[CELLS];
    size_t count;
} line;

bool mr_head_ends(const mr_head *h, const char *suffix)
{
    return mr_name_ends(h->name, h->name_len, suffix);
}

bool mr_head_has(const mr_head *h, const char *word)
{
    return memmem(h->bytes, h->len, word, strlen(word)) != NULL;
}

/* The end of the line at `at`; NULL: it is not whole. */
static const char *line_end(const mr_head *h, const char *at)
{
    const char *end = h->bytes + h->len;
    while (at < end && *at != '\n' && *at != '\r')
        at++;
    return at < end || h->whole ? at : NULL;
}

static cell trim(cell c)
{
    while (c.len && (isspace((unsigned char)*c.at) || *c.at == '"'))
        c = (cell){c.at + 1, c.len - 1};
    while (c.len && (isspace((unsigned char)c.at[c.len - 1]) || c.at[c.len - 1] == '"'))
        c.len--;
    return c;
}

/* The cells of the next line that is not empty, between any of the `marks`; false: there is none. */
static bool next_line(const mr_head *h, const char **at, const char *marks, line *out)
{
    const char *end;
    while ((end = line_end(h, *at)) && end == *at && *at < h->bytes + h->len)
        ++*at;
    if (!end || end == *at)
        return false;
    *out = (line){0};
    for (const char *from = *at; from < end && out->count < CELLS;) {
        size_t len = 0;
        while (from + len < end && !strchr(marks, from[len]))
            len++;
        cell c = trim((cell){from, len});
        if (c.len || *marks != ' ')
            out->cells[out->count++] = c;
        from += len + 1;
    }
    *at = end;
    return true;
}

/* A number in decimal notation; `unit`: from -1 to about 2, with any fraction. */
static bool is_number(cell c, bool unit)
{
    size_t i = c.len && (*c.at == '-' || *c.at == '+'), digits = 0, whole = i;
    while (i < c.len && isdigit((unsigned char)c.at[i]))
        i++;
    whole = i - whole;
    digits = whole;
    if (i < c.len && c.at[i] == '.')
        for (i++; i < c.len && isdigit((unsigned char)c.at[i]); i++)
            digits++;
    if (digits && i + 1 < c.len && (c.at[i] == 'e' || c.at[i] == 'E')) {
        i += c.at[i + 1] == '-' || c.at[i + 1] == '+' ? 2 : 1;
        while (i < c.len && isdigit((unsigned char)c.at[i]))
            i++;
    }
    return digits && i == c.len && (!unit || whole <= 1);
}

static bool are_numbers(const line *l, size_t from, size_t to, bool unit)
{
    for (size_t i = from; i < to; i++)
        if (i >= l->count || !is_number(l->cells[i], unit))
            return false;
    return true;
}

bool mr_head_is_kitti(const mr_head *h)
{
    const char *at = h->bytes;
    line l;
    return next_line(h, &at, " \t", &l) && (l.count == 15 || l.count == 16) && !is_number(l.cells[0], false) &&
           are_numbers(&l, 1, l.count, false);
}

bool mr_head_is_pixels(const mr_head *h)
{
    const char *at = h->bytes;
    line l;
    return next_line(h, &at, ",", &l) && l.count >= 8 && are_numbers(&l, 0, 8, false);
}

static bool begins(cell c, const char *word)
{
    return c.len >= strlen(word) && !memcmp(c.at, word, strlen(word));
}

bool mr_head_is_dota(const mr_head *h)
{
    const char *at = h->bytes;
    line l;
    bool more;
    while ((more = next_line(h, &at, " \t", &l)) && l.count &&
           (begins(l.cells[0], "imagesource:") || begins(l.cells[0], "gsd:")))
        ;
    return more && (l.count == 9 || l.count == 10) && are_numbers(&l, 0, 8, false) && !is_number(l.cells[8], false);
}

bool mr_head_is_yolo(const mr_head *h)
{
    const char *at = h->bytes;
    line l;
    size_t lines = 0;
    while (lines < LINES && next_line(h, &at, " \t", &l)) {
        if (l.count < 5 || strspn(l.cells[0].at, "0123456789") < l.cells[0].len || !are_numbers(&l, 1, 5, true))
            return false;
        lines++;
    }
    return lines > 0;
}

static bool names_image(cell c)
{
    return mr_name_is_image(c.at, c.len);
}

/* The part before the first space. */
static cell first_word(cell c)
{
    const char *space = memchr(c.at, ' ', c.len);
    return (cell){c.at, space ? (size_t)(space - c.at) : c.len};
}

/* "cake/101": the path of an image without its ending. */
static bool names_stem(const mr_head *h, cell c)
{
    const char *slash = memrchr(c.at, '/', c.len);
    return h->stems && slash && mr_stems_have(h->stems, slash + 1, c.len - (size_t)(slash + 1 - c.at));
}

/* One of the first lines begins with the name of an image, as after CelebA's two lines of heading; or all lines are
 * names with spaces, or without endings. */
bool mr_head_is_image_list(const mr_head *h)
{
    enum { HEADING = 2 };
    const char *at = h->bytes;
    line l;
    size_t lines = 0, whole = 0, stems = 0;
    while (lines < LINES && next_line(h, &at, ",;\t", &l)) {
        cell first = first_word(l.cells[0]);
        if (lines <= HEADING && names_image(first))
            return true;
        whole += names_image(l.cells[0]);
        stems += names_stem(h, first);
        lines++;
    }
    return lines > 0 && (whole == lines || stems == lines);
}

/* The name of an image, the number of its boxes, and a line for each box. */
bool mr_head_is_wider(const mr_head *h)
{
    const char *at = h->bytes;
    line name, count, box;
    return next_line(h, &at, "\t", &name) && names_image(name.cells[0]) && next_line(h, &at, " \t", &count) &&
           count.count == 1 && are_numbers(&count, 0, 1, false) && next_line(h, &at, " \t", &box) && box.count >= 4 &&
           are_numbers(&box, 0, box.count, false);
}

/* The first line with a name of an image in a cell; false: no line has one. */
static bool find_row(const mr_head *h, line *l)
{
    const char *at = h->bytes;
    for (size_t lines = 0; lines <= LINES && next_line(h, &at, ",;\t|", l); lines++)
        for (size_t i = 0; i < l->count; i++) {
            cell c = l->cells[i];
            if (names_image(c) || (lines && h->stems && c.len >= STEM_LEAST && mr_stems_have(h->stems, c.at, c.len)))
                return true;
        }
    return false;
}

bool mr_head_names_images(const mr_head *h)
{
    line l;
    return find_row(h, &l);
}

/* -1, 0 or 1, also with zeros after the point: labels of classes, if all cells are. */
static bool is_flag(cell c)
{
    size_t at = c.len && *c.at == '-';
    bool digit = at < c.len && (c.at[at] == '0' || c.at[at] == '1');
    for (at++; at < c.len; at++)
        digit = digit && (c.at[at] == '.' || c.at[at] == '0');
    return digit;
}

bool mr_head_has_box_cells(const mr_head *h)
{
    enum { SIDES = 4 };
    line l;
    if (!find_row(h, &l))
        return false;
    for (size_t i = 0; i + SIDES <= l.count; i++) {
        size_t flags = 0;
        for (size_t k = i; k < i + SIDES; k++)
            flags += is_flag(l.cells[k]);
        if (flags < SIDES && are_numbers(&l, i, i + SIDES, false))
            return true;
    }
    return false;
}

bool mr_head_is_beside_image(const mr_head *h)
{
    const char *dot = memrchr(h->path, '.', h->path_len);
    if (!dot)
        return false;
    size_t len = (size_t)(dot + 1 - h->path);
    for (uint32_t n = mr_source_lower(h->source, h->path, len); n < mr_source_count(h->source); n++) {
        const mr_entry *e = mr_source_entry(h->source, n);
        if (e->path_len <= len || memcmp(e->path, h->path, len) != 0)
            return false;
        if (!memchr(e->path + len, '/', e->path_len - len) && mr_name_is_image(e->path, e->path_len))
            return true;
    }
    return false;
}

bool mr_head_is_caption(const mr_head *h)
{
    return h->len && !memchr(h->bytes, '\0', h->len) && mr_head_is_beside_image(h);
}
