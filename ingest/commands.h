/* commands.h - the commands of this folder, for the table in millrace.c.
 * Each takes argv[0] = its own name and returns the exit code: 0 done, 1 bad data, 2 wrong use, 3 the system failed. */
#ifndef MR_INGEST_COMMANDS_H
#define MR_INGEST_COMMANDS_H

int cmd_ingest(int argc, char **argv);
int cmd_sample(int argc, char **argv);

#endif
