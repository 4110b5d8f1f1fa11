/* commands.h - the commands of this folder, for the table in millrace.c.
 * Contract: argv[0] is the command's name; the result is the exit code (0 done, 1 bad data, 2 wrong use, 3 system). */
#ifndef MR_TRAIN_COMMANDS_H
#define MR_TRAIN_COMMANDS_H

int cmd_train(int argc, char **argv);
int cmd_eval(int argc, char **argv);
int cmd_predict(int argc, char **argv);
int cmd_tokenizer(int argc, char **argv);

#endif
