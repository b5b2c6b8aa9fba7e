/* loop.h - what the simulation may do to the libuv of its own. */
#ifndef SIM_SERVER_LOOP_H
#define SIM_SERVER_LOOP_H

#include <stdint.h>

/* A signal arrives; the loop hears of it in its next turn. */
void loop_signal(int number);
/* The journal's wake_fd, which is none: readable or not. */
void loop_wake(int readable);
/* Handles that watch a descriptor and are not closed. */
int loop_polls(void);
/* Called between two callbacks of the loop. */
extern void (*loop_between)(void);
/* Turns since the start of the program. */
uint64_t loop_turns(void);

#endif
