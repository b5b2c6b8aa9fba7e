/* main.c - the server on a disk that misbehaves: faulty FAULT serve ... */
#include <stdio.h>

#include "journal/disk.h"
#include "journal/journal.h"
#include "main/serve.h"
#include "support/fault.h"

int main(int argc, char **argv)
{
    char error[JOURNAL_ERROR_MAX] = "usage: faulty FAULT serve [options]";
    struct journal_io *io;

    if (argc < 3 || fault_open(argv[1], &io, error) != HF_OK) {
        fprintf(stderr, "%s\n", error);
        return 2;
    }
    int code = serve_on(io, argc - 2, argv + 2);
    io->close(io);
    return code;
}
