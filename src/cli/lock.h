/* lock.h - `holdfast lock`: runs a command while holding a lock. */
#ifndef CLI_LOCK_H
#define CLI_LOCK_H

int lock_main(int argc, char **argv);

#endif
