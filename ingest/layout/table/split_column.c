/* split_column.c - the column that says in which split an image is.
 * Invariant: a column of flags counts only where its header says which split it flags, and is then noted. */
#include <string.h>
#include <strings.h>

#include "ingest/layout/folder_names.h"
#include "ingest/layout/table/table.h"

static const char *const words[] = {"split", "subset", "partition", "set", "data_split", "usage", NULL};

bool mr_header_is_partition(const char *header)
{
    static const char *const partition[] = {"partition", NULL};
    return mr_header_among(header, partition);
}

/* The first cell that is not a word for a split; NULL: there is none. */
static const char *other_cell(const mr_sheet *s, size_t column)
{
    for (size_t r = 0; r < s->csv.rows; r++) {
        const char *cell = mr_sheet_cell(s, r, column);
        if (*cell && !mr_split_word(cell, strlen(cell)))
            return cell;
    }
    return NULL;
}

/* ---- flags ----------------------------------------------------------------------------------------------------- */

int mr_sheet_flag(const char *cell)
{
    static const char *const flags[2][3] = {{"0", "0.0", "false"}, {"1", "1.0", "true"}};
    for (int flag = 0; flag < 2; flag++)
        for (size_t i = 0; i < MR_COUNT(flags[flag]); i++)
            if (!strcasecmp(cell, flags[flag][i]))
                return flag;
    return -1;
}

static bool all_flags(const mr_sheet *s, size_t column)
{
    for (size_t r = 0; r < s->csv.rows; r++)
        if (mr_sheet_flag(mr_sheet_cell(s, r, column)) < 0)
            return false;
    return s->csv.rows > 0;
}

/* The split that a header such as "is_valid" or "Is Test" names; NULL: none. */
static const char *flagged_split(const char *header)
{
    if (strncasecmp(header, "is", 2) != 0 || !strchr("_- ", header[2]) || !header[2])
        return NULL;
    return mr_split_word(header + 3, strlen(header + 3));
}

/* What is not in the training split is held out for a test, as in CUB's is_training_image; what is not flagged as held
 * out is for training, as in fastai's is_valid. */
static mr_status find_flags(mr_sheet *s, mr_notes *notes, mr_error *err)
{
    for (size_t c = 0; c < s->csv.columns; c++) {
        const char *split = flagged_split(s->csv.header[c]);
        if (!split || (int)c == s->path || !all_flags(s, c))
            continue;
        if (s->split >= 0)
            return mr_fail(err, MR_MISUSE,
                           "%s: the columns %s and %s both say whether a row is in a split; name the splits in one "
                           "column called split",
                           s->name, s->csv.header[s->split], s->csv.header[c]);
        s->split = (int)c;
        s->flagged[1] = split;
        s->flagged[0] = strcmp(split, "train") == 0 ? "test" : "train";
    }
    if (s->split >= 0)
        mr_note_add(notes, MR_NOTE_INFO, s->name, strlen(s->name), 0,
                    "column %.80s gives the splits: rows with 1 or true are in %s, the others in %s",
                    s->csv.header[s->split], s->flagged[1], s->flagged[0]);
    return MR_OK;
}

static bool all_partitions(const mr_sheet *s, size_t column)
{
    for (size_t r = 0; r < s->csv.rows; r++) {
        const char *cell = mr_sheet_cell(s, r, column);
        if (strspn(cell, "012") != 1 || cell[1])
            return false;
    }
    return mr_header_is_partition(s->csv.header[column]);
}

/* Source: README.txt of CelebA, "EVALUATION PARTITIONS". */
static bool find_partitions(mr_sheet *s, mr_notes *notes)
{
    if (s->split < 0 || !all_partitions(s, (size_t)s->split))
        return false;
    s->flagged[0] = "train";
    s->flagged[1] = "val";
    s->flagged[2] = "test";
    mr_note_add(notes, MR_NOTE_INFO, s->name, strlen(s->name), 0,
                "column %.80s gives the splits: rows with 0 are in train, 1 in val, 2 in test",
                s->csv.header[s->split]);
    return true;
}

mr_status mr_sheet_find_split(mr_sheet *s, mr_notes *notes, mr_error *err)
{
    s->split = mr_sheet_column_among(s, words);
    if (find_partitions(s, notes))
        return MR_OK;
    const char *other =
        s->split >= 0 && strcmp(s->csv.header[s->split], "split") ? other_cell(s, (size_t)s->split) : NULL;
    if (other) {
        mr_note_add(notes, MR_NOTE_INFO, s->name, strlen(s->name), 0,
                    "column %.80s is not read as the split: \"%.40s\" is not the name of one", s->csv.header[s->split],
                    other);
        s->split = -1;
    }
    return s->split >= 0 ? MR_OK : find_flags(s, notes, err);
}

const char *mr_sheet_split(const mr_sheet *s, size_t row)
{
    const char *cell = mr_sheet_cell(s, row, (size_t)s->split);
    int flag = s->flagged[1] ? mr_sheet_flag(cell) : -1;
    if (s->flagged[2] && !strcmp(cell, "2"))
        flag = 2;
    return flag < 0 ? cell : s->flagged[flag];
}
