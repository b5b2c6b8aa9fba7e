/* disk_state.h - what the simulated disk remembers; its two files share it. */
#ifndef SIM_SERVER_DISK_STATE_H
#define SIM_SERVER_DISK_STATE_H

#include "sim/server/disk.h"

#define DISK_BLOCK       4096u
#define DISK_SECTOR      512u
#define DISK_NAME_MAX    64
#define DISK_FDS_MAX     1024
#define DISK_CHANGES_MAX 512
#define DISK_FLIGHTS_MAX 8

/* A block as it was when last synced. */
struct disk_old {
    struct disk_old *next;
    uint64_t block;
    uint64_t stamp; /* of the newest write to it */
    size_t len;     /* less than a block at the file's end */
    char data[DISK_BLOCK];
};

struct disk_file {
    struct disk_file *next;
    char name[DISK_NAME_MAX];
    char grave[DISK_NAME_MAX]; /* where a removed one lies */
    bool removed;
    uint64_t size;
    uint64_t durable_size;
    struct disk_old *olds; /* what is not synced */
};

enum disk_kind { DISK_CREATE, DISK_RENAME, DISK_REMOVE };

/* A change of the folder that is not synced. */
struct disk_change {
    enum disk_kind kind;
    struct disk_file *file;
    struct disk_file *replaced; /* by a rename; may be NULL */
    char from[DISK_NAME_MAX];
};

/* A direct write that is under way. */
struct disk_flight {
    struct disk_file *file;
    int fd;
    const char *data;
    size_t len;
    uint64_t offset;
};

struct disk_batch {
    bool busy;
    bool done;
    bool notify;
    uint64_t number;
    int error;
    struct disk_flight flight;
};

struct disk_fd {
    struct disk_file *file;
    bool direct;
};

struct disk {
    char path[256];
    int dir; /* the folder */
    struct disk_mix mix;
    struct dice dice;
    bool healed;
    struct disk_file *files;
    struct disk_fd fds[DISK_FDS_MAX];
    struct disk_change changes[DISK_CHANGES_MAX];
    size_t change_count;
    uint64_t settled; /* changes that were synced so far */
    struct disk_flight flights[DISK_FLIGHTS_MAX];
    size_t flight_count;
    uint64_t done_ns; /* of the last batch */
    struct disk_batch batch;
    uint64_t stamp;
    uint64_t graves;
    uint64_t stall_ns;
    int fail;
    bool fail_batch;
    uint64_t full_until_ns;
    uint64_t kill_in;
};

extern struct disk disk;

struct disk_file *disk_find(const char *name);
void disk_drop_olds(struct disk_file *file, uint64_t stamp);
/* The first so many changes are on disk. */
void disk_settle_changes(size_t count);
/* Some sectors of the write reach the file, or none, or all; true: all. Of one
 * that is reported as failed the first one only if all do. */
bool disk_tear(const struct disk_flight *flight, bool failed);

#endif
