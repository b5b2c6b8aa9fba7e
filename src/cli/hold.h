/* hold.h - the plain commands: stock, reservations and limits. */
#ifndef CLI_HOLD_H
#define CLI_HOLD_H

int stock_main(int argc, char **argv);
int reserve_main(int argc, char **argv);
int confirm_main(int argc, char **argv);
int cancel_main(int argc, char **argv);
int limit_main(int argc, char **argv);

#endif
