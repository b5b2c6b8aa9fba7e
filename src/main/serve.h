/* serve.h - `holdfast serve` and `holdfast commands`. */
#ifndef MAIN_SERVE_H
#define MAIN_SERVE_H

struct journal_io;

int serve_main(int argc, char **argv);
/* The same on a disk of the caller's, who closes it; NULL: the real one. */
int serve_on(struct journal_io *io, int argc, char **argv);
/* Prints docs/commands.md. */
int commands_main(int argc, char **argv);

#endif
