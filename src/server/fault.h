/* fault.h - a disk that misbehaves on request, to test the server's answers.
 *
 *   HOLDFAST_FAULT=write:N:KIND    the Nth batch write (from 0)
 *     eio, enospc   fails with that error, nothing written
 *     short         writes its first half, then fails
 *     stall         hangs until the process gets SIGUSR1
 *     gate          N does not count: every write from SIGUSR2 on hangs until
 *                   SIGUSR1
 *
 * Without the variable nothing stands between journal and disk.
 */
#ifndef SERVER_FAULT_H
#define SERVER_FAULT_H

#include "holdfast/status.h"

struct journal_io;

/* `*out` is NULL without the variable. HF_INVALID with a text (of
 * JOURNAL_ERROR_MAX bytes) if it makes no sense. */
enum hf_status fault_from_environment(struct journal_io **out, char *error);

#endif
