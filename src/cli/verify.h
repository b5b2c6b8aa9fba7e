/* verify.h - `holdfast verify` and `holdfast repair`: a journal, offline. */
#ifndef CLI_VERIFY_H
#define CLI_VERIFY_H

int verify_main(int argc, char **argv);
int repair_main(int argc, char **argv);

#endif
