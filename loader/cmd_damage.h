/* cmd_damage.h - what a command says of damaged samples that it passed over. */
#ifndef CMD_DAMAGE_H
#define CMD_DAMAGE_H

#include "batch/damage.h"

/* Names those of a joined list on standard error, however quiet the command is: it is the data that speaks.  Nothing
 * where none is damaged. */
mr_status cmd_damage_warn(const mr_damage *d, const mr_dataset *ds, const char *split, mr_error *err);

#endif
