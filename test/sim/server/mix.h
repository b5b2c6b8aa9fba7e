/* mix.h - what one seed is about: which commands, which faults, how often.
 *
 * Every seed draws its own weights, and leaves some kinds out altogether: a
 * run with a little of everything seldom gets deep into anything.
 */
#ifndef SIM_SERVER_MIX_H
#define SIM_SERVER_MIX_H

#include <stdio.h>

#include "hold/bounds.h"
#include "journal/journal.h"
#include "sim/server/disk.h"
#include "sim/server/net.h"
#include "sim/server/remote.h"
#include "sim/server/world.h"

/* What clients ask. */
enum make_kind {
    MAKE_LOCK,
    MAKE_LOCK_WAIT,
    MAKE_UNLOCK,
    MAKE_RENEW,
    MAKE_LOCKINFO,
    MAKE_LOCKS,
    MAKE_FENCE,
    MAKE_LOCKSET,
    MAKE_UNLOCKSET,
    MAKE_RENEWSET,
    MAKE_DOWNGRADE,
    MAKE_HELD,
    MAKE_REVOKE,
    MAKE_SESSION_OPEN,
    MAKE_SESSION_KEEP,
    MAKE_SESSION_CLOSE,
    MAKE_SESSION_INFO,
    MAKE_SESSION_LIST,
    MAKE_LOCKS_LAST = MAKE_SESSION_LIST,
    MAKE_STOCK_SET,
    MAKE_STOCK_ADD,
    MAKE_STOCK_GET,
    MAKE_STOCK_LIST,
    MAKE_STOCK_DEL,
    MAKE_RESERVE,
    MAKE_CONFIRM,
    MAKE_CANCEL,
    MAKE_EXTEND,
    MAKE_RESERVATION,
    MAKE_LIMIT,
    MAKE_LIMIT_POLICY,
    MAKE_LIMIT_ADMIN,
    MAKE_LIMIT_OTHER,
    MAKE_PING,
    MAKE_INFO,
    MAKE_CONFIG,
    MAKE_DESCRIBE,
    MAKE_WRONG,
    MAKE_QUIT,
    MAKE_FLUSH,
    MAKE_KINDS,
};

/* What is done to the server. */
enum fault_kind {
    FAULT_KILL,       /* at some time */
    FAULT_KILL_DISK,  /* at some disk call */
    FAULT_STOP,       /* SIGTERM */
    FAULT_STALL,      /* a batch takes long */
    FAULT_STALL_KILL, /* and the server dies meanwhile */
    FAULT_STALL_STOP, /* and is asked to stop meanwhile */
    FAULT_WRITE,      /* a batch cannot be written */
    FAULT_SIDE,       /* something else cannot */
    FAULT_FULL,       /* no room for new files */
    FAULT_DATE,       /* the date is set */
    FAULT_MEMORY,     /* no memory for a callback or a few */
    FAULT_PAUSE,      /* every client stops for a while */
    FAULT_SALE,       /* hundreds of reservations end at once */
    FAULT_KINDS,
};

extern const char *const fault_names[FAULT_KINDS];

struct fault {
    enum fault_kind kind;
    uint64_t at; /* after so many commands */
    uint64_t after_ns;
    uint64_t size_ns; /* how long, or how far */
    uint64_t number;
    bool power; /* the machine goes, not only the process */
};

#define FAULTS_MAX  64
#define CLIENTS_MAX 32

struct mix {
    uint64_t clients;
    uint64_t commands;
    uint64_t weights[MAKE_KINDS];
    uint64_t names;       /* of locks */
    uint64_t skus;        /* products */
    uint64_t ids;         /* of reservations */
    uint64_t keys;        /* of limits */
    uint64_t held_per_ms; /* time that earns ten permits of those with holds */
    uint64_t ttl_ms;      /* most */
    uint64_t wait_ms;     /* most */
    uint64_t think_ns;
    uint64_t pace_ns;     /* least time between two turns */
    uint64_t patience_ns; /* least time that a client waits for an answer */
    uint64_t stock;       /* units of a product, at most */
    uint64_t versions;    /* changes of it with IF */
    uint64_t products;    /* instead of them: LOW and ATTR */
    /* of 1000 */
    uint64_t request;  /* writes with a REQ */
    uint64_t again;    /* REQ asked again after an answer */
    uint64_t twins;    /* REQ that another client asks as well, at once */
    uint64_t pipeline; /* turns that send several */
    uint64_t bulk;     /* turns that send hundreds */
    uint64_t leave;    /* turns that end with the connection cut */
    uint64_t flood;    /* of those that leave, so many send too much before */
    uint64_t followed; /* or something else, and another one asks the same */
    bool nowait;       /* those that leave do not ask to wait */
    uint64_t half;     /* turns that end with the sending side closed */
    uint64_t slow;     /* visits that read slowly */
    uint64_t deaf;     /* of those, so many next to nothing for a minute */
    uint64_t inline_;  /* requests as a line */
    uint64_t garbage;  /* turns that send what is no request */
    uint64_t share;    /* locks taken in another client's name */
    uint64_t foreign;  /* visits from another machine */
    uint64_t groups;   /* requests that are groups */
    uint64_t classes;  /* of those to reserve, that set a class; 0: none is */
    uint64_t loose;    /* MULTI, EXEC and DISCARD one by one */
    uint64_t redis;    /* requests of lock clients of Redis */
    uint64_t past;     /* questions about what happened to stock */
    uint64_t events;   /* or events are asked for */
    uint64_t elects;   /* or are about elections */
    uint64_t seldom;   /* or what clients seldom ask */
    uint64_t hearers;  /* clients, not of 1000, that only hear of events */
    uint64_t held;     /* LIMITs of keys whose permits are held and settled */
    uint64_t queue;    /* RESERVEs that wait */
    uint64_t joins;    /* or are about a waitlist */
    uint64_t places;   /* or say from which places; 0: there are none */
    uint64_t bundles;  /* RESERVEs with GROUP, and what ends groups */
    uint64_t quotas;   /* settings of products that are limits per owner */
    uint64_t books;    /* or book what is announced, or announce it */

    /* of 1000 locks that are asked for */
    uint64_t shared;
    uint64_t permits;  /* counting ones, of a maximum by the name */
    uint64_t sessions; /* in a session */
    uint64_t bind;     /* of the sessions, so many are bound */
    uint64_t forever;  /* of those that wait */
    uint64_t barge;
    uint64_t priority;
    uint64_t policy; /* of deadlocks, other than usual */
    uint64_t terms;  /* MAXHOLD, DELAY, NOTE */
    uint64_t done;   /* of what is unlocked */
    uint64_t trees;  /* TREE; then names are below each other */

    struct net_mix net;
    struct disk_mix disk;
    struct remote_mix remote;
    enum journal_sync sync;
    uint64_t segment_bytes;
    uint64_t snapshot_bytes;
    uint64_t events_bytes; /* that are kept; 0: none */
    uint64_t clients_max;
    uint64_t output_max;
    uint64_t idle_ms;
    uint64_t memory_max;
    uint64_t step_ns;         /* what a step of the engine takes */
    uint64_t requests_max;    /* 0: the default */
    uint64_t request_keep_ms; /* 0: the default */
    uint64_t ended_keep_ms;   /* 0: the default */
    uint64_t waiters_max;     /* 0: the default */
    uint64_t few;             /* holders of a lock, and sessions; 0: many */
    uint64_t wound_grace_ms;

    struct fault faults[FAULTS_MAX];
    size_t fault_count;
};

/* Everything that the seed decides beforehand. `off`: a bit for each kind of
 * fault that is left out. */
/* The lock of that number. */
const char *mix_name(const struct mix *mix, uint64_t number);
/* The same of products: all of one sku at several places, perhaps. */
const char *mix_sku(const struct mix *mix, uint64_t number);
void mix_draw(struct mix *mix, uint64_t seed, uint64_t commands, uint32_t off);
/* Those of the engine that are other than usual. */
void mix_bounds(const struct mix *mix, struct hold_bounds *bounds);

/* Prints what the seed is about. */
void mix_describe(const struct mix *mix, uint64_t seed, FILE *out);

#endif
