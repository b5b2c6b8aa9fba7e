/* simulate.h - `holdfast simulate`: the engine against a naive model.
 *
 *   seed -> commands and times -> engine --\
 *                             \-> model ---+-> equal after every step?
 *
 * One seed is one run, on every machine. Along the way the engine is saved,
 * loaded under another hash seed, rebuilt from its records, and starved of
 * memory.
 */
#ifndef CLI_SIMULATE_H
#define CLI_SIMULATE_H

int simulate_main(int argc, char **argv);

#endif
