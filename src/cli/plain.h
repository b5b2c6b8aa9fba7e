/* plain.h - the plain commands: one request, one printed answer. */
#ifndef CLI_PLAIN_H
#define CLI_PLAIN_H

/* stock, reserve, confirm, cancel, limit: argv[0] says which. */
int plain_main(int argc, char **argv);

#endif
