/* verify.h - `holdfast verify` and `holdfast repair`: a journal, offline. */
#ifndef CLI_VERIFY_H
#define CLI_VERIFY_H

#include <stdbool.h>

int verify_main(int argc, char **argv);
struct history_opts;
/* `verify --history`: the exit code. */
int verify_history(const char *path, const struct history_opts *opts,
                   bool json);
/* Tells what is wrong, with the folder unless that is NULL; CLI_FAILED. */
int verify_failed(const char *dir, const char *text, bool json);
int repair_main(int argc, char **argv);

#endif
