/* cmd_damage.h - what a command prints about damaged samples that it skipped. */
#ifndef CMD_DAMAGE_H
#define CMD_DAMAGE_H

#include "loader/batch/damage.h"

/* Names those of a joined list on standard error, even with --quiet.  Prints nothing if no sample is damaged. */
mr_status mr_cmd_damage_warn(const mr_damage *d, const mr_dataset *ds, const char *split, mr_error *err);

#endif
