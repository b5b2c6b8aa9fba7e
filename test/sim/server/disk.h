/* disk.h - the journal's disk in the simulation: real files, borrowed power.
 *
 * The files lie in a folder in memory, as the journal sees them. Beside them
 * stands what a crash may take back:
 *
 *   written, not synced     each sector of 512 bytes is the old or the new one
 *   direct, under way       none of it, all of it, a part of it
 *   created, renamed,       undone from the last one backwards, as far as the
 *   removed, not synced     dice say
 *
 * A process that dies without its machine loses only what is under way.
 *
 * Files that the server uses without the journal's seam (lock, lossy) are as
 * they are.
 */
#ifndef SIM_SERVER_DISK_H
#define SIM_SERVER_DISK_H

#include "journal/disk.h"
#include "sim/server/world.h"

struct disk_mix {
    uint64_t write_ns;     /* least time of a write or sync */
    uint64_t write_max_ns; /* most */
    uint64_t sync_max_ns;
};

/* A new, empty disk in the folder `path`, which is emptied. */
void disk_begin(const char *path, const struct disk_mix *mix);
void disk_end(void);
/* No more faults, no more slow writes. */
void disk_heal(void);
/* The seam of the running server. */
struct journal_io *disk_io(void);
/* When the last batch was done; UINT64_MAX: one is under way. */
uint64_t disk_done_ns(void);
/* The server dies: what is under way is torn. */
void disk_cut(void);
/* The server is off, and so is its machine if `power` went: what is lost is
 * lost. */
void disk_restart(bool power);

/* ---- Faults. ---- */

/* The next batch takes that long. */
void disk_stall(uint64_t ns);
/* The next write or sync fails with this error; `batch`: the next batch. */
void disk_fail(int error, bool batch);
/* There is no room for new files until then. */
void disk_fill(uint64_t until_ns);
/* Power goes at the disk call after so many others. */
void disk_kill_in(uint64_t calls);

#endif
