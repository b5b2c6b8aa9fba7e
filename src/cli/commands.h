/* commands.h - the subcommands that ask a server, each a whole program. */
#ifndef CLI_COMMANDS_H
#define CLI_COMMANDS_H

/* `holdfast bench`: how fast a server is. */
int bench_main(int argc, char **argv);
/* `holdfast lock`: runs a command while holding a lock. */
int lock_main(int argc, char **argv);
/* stock, reserve, confirm, cancel, limit: argv[0] says which. One request, one
 * printed answer. */
int plain_main(int argc, char **argv);

#endif
