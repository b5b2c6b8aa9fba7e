/* serve.h - `holdfast serve` and `holdfast commands`. */
#ifndef SERVER_SERVE_H
#define SERVER_SERVE_H

int serve_main(int argc, char **argv);
/* Prints docs/commands.md. */
int commands_main(int argc, char **argv);

#endif
