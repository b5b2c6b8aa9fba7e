/* commands.h - the subcommands that ask a server, each a whole program. */
#ifndef CLI_COMMANDS_H
#define CLI_COMMANDS_H

/* `holdfast bench`: how fast a server is. */
int bench_main(int argc, char **argv);
/* `holdfast lock`: runs a command while holding a lock. */
int lock_main(int argc, char **argv);
/* `holdfast once`: runs a command that nobody has run yet. */
int once_main(int argc, char **argv);
/* `holdfast elect`: runs a command while it leads. */
int elect_main(int argc, char **argv);
/* `holdfast session`: opens, keeps, shows and closes sessions, or runs a
 * command under one. */
int session_main(int argc, char **argv);
/* `holdfast events`: what happened, and what happens. */
int events_main(int argc, char **argv);
/* `holdfast stock`: import and export, else plain_main(). */
int stock_main(int argc, char **argv);
/* stock, reserve, limit, locks and others: argv[0] says which. One request,
 * one printed answer. */
int plain_main(int argc, char **argv);

#endif
