/* cmd_damage.c - what a command says of damaged samples that it passed over. */
#include "loader/cmd_damage.h"

#include "base/term.h"

mr_status cmd_damage_warn(const mr_damage *d, const mr_dataset *ds, const char *split, mr_error *err)
{
    mr_buf text = {0};
    mr_status status = mr_damage_text(d, ds, split, &text, err);
    if (status == MR_OK && text.len)
        mr_term_warn(mr_buf_text(&text));
    mr_buf_free(&text);
    return status;
}
