/* fault.h - a disk that misbehaves on request, to test the server's answers.
 *
 *   write:N:KIND    the Nth batch write (from 0)
 *     eio, enospc   fails with that error, nothing written
 *     short         writes its first half, then fails
 *     stall         hangs until the process gets SIGUSR1
 *     gate          N does not count: every batch write and every sync of a
 *                   file from SIGUSR2 on, once `gate shut` is on standard
 *                   error, hangs until SIGUSR1
 *     feed          N does not count: every write of events fails, the disk is
 *                   full, until SIGUSR1
 *
 * build/test/faulty is the server with such a disk (test/support/faulty); its
 * first argument is the fault, the others are those of `holdfast serve`.
 *
 * Threads: signals act on the disk opened last; one disk at a time.
 */
#ifndef TEST_SUPPORT_FAULT_H
#define TEST_SUPPORT_FAULT_H

#include "holdfast/status.h"

struct journal_io;

/* HF_INVALID with a text (of JOURNAL_ERROR_MAX bytes) if `what` makes no
 * sense. */
enum hf_status fault_open(const char *what, struct journal_io **out,
                          char *error);

#endif
