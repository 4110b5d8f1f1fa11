/* commands.h - the commands that read finished datasets.
 * Contract: argv[0] is the command's name; the result is the exit code (0 done, 1 bad data, 2 wrong use, 3 system). */
#ifndef MR_SHARDS_COMMANDS_H
#define MR_SHARDS_COMMANDS_H

int cmd_verify(int argc, char **argv);
int cmd_inspect(int argc, char **argv);
int cmd_show(int argc, char **argv);
int cmd_export(int argc, char **argv);
int cmd_reindex(int argc, char **argv);
int cmd_seek(int argc, char **argv);

#endif
