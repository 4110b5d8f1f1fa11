/* cmd_damage.c - what a command prints about damaged samples that it skipped. */
#include "loader/cmd_damage.h"

#include "base/scope.h"
#include "base/cli/term.h"

mr_status mr_cmd_damage_warn(const mr_damage *d, const mr_dataset *ds, const char *split, mr_error *err)
{
    MR_AUTO(mr_buf_free) mr_buf text = {0};
    MR_TRY(mr_damage_text(d, ds, split, &text, err));
    if (text.len)
        mr_term_warn(mr_buf_text(&text));
    return MR_OK;
}
