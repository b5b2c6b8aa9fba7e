/* bench.h - `holdfast bench`: how fast a server is. */
#ifndef CLI_BENCH_H
#define CLI_BENCH_H

int bench_main(int argc, char **argv);

#endif
