/* snapshot_list.h - copy-on-write list: visited all the time, changed rarely.
 *
 * For observers, hooks, peers: whoever visits walks one version of the list
 * without a lock; whoever adds or removes makes a new version (see snapshot.h)
 * and disturbs nobody:
 *
 *   visitor  --->  [ a b c ]          it sees a, b and c, whatever happens
 *                      ^ was current
 *                  [ a   c d ] <---   current: b removed, d added
 *
 * Items are pointers; each is in the list once. They keep the order in which
 * they were added.
 *
 * Threads: any call but open and close may overlap any other. A visitor may
 *          add, remove and visit; it goes on with its own version.
 * Memory:  with `free` the list owns its items: one that was removed is freed
 *          when nobody visits a version that has it, by the next change after
 *          that, by flush or by close. Without `free` items are the caller's,
 *          who cannot tell when the last visitor has left.
 * Time:    a change copies the list.
 *
 *   call             lock-free  linearizable  allocates
 *   add, remove      yes        yes           yes
 *   visit, contains, yes        yes           a record at a thread's first
 *   count
 *
 * Example:
 *
 *   struct hf_snapshot_list *list;
 *   static int a, b;
 *   size_t count;
 *   assert(hf_snapshot_list_open(&list, NULL) == HF_OK);
 *   assert(hf_snapshot_list_add(list, &a) == HF_OK);
 *   assert(hf_snapshot_list_add(list, &b) == HF_OK);
 *   assert(hf_snapshot_list_add(list, &a) == HF_EXISTS);
 *   assert(hf_snapshot_list_remove(list, &a) == HF_OK);
 *   assert(hf_snapshot_list_contains(list, &a) == HF_NOTFOUND);
 *   assert(hf_snapshot_list_count(list, &count) == HF_OK && count == 1);
 *   hf_snapshot_list_close(list);
 */
#ifndef HOLDFAST_SNAPSHOT_LIST_H
#define HOLDFAST_SNAPSHOT_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "holdfast/status.h"

#ifdef __cplusplus
extern "C" {
#endif

struct hf_snapshot_list;

struct hf_snapshot_list_opts {
    const char *name; /* for hf_inspect() */
    /* Called once for each item that is out of the list and of every visit, or
     * in it at close; outside locks. It must not use the list. NULL: items are
     * the caller's. */
    void (*free)(void *context, void *item);
    void *context;
};

struct hf_snapshot_list_stats {
    uint64_t count;   /* items; exact while nobody changes the list */
    uint64_t changes; /* adds and removes since open */
    uint64_t retries; /* copies that were made in vain */
    uint64_t kept;    /* old versions that are not freed yet */
};

/* HF_INVALID if list is NULL; HF_NOMEM. */
enum hf_status hf_snapshot_list_open(struct hf_snapshot_list **list,
                                     const struct hf_snapshot_list_opts *opts);
/* Frees what is left. Nobody may be inside a call. NULL is allowed. */
void hf_snapshot_list_close(struct hf_snapshot_list *list);

/* To the end. HF_EXISTS, HF_NOMEM: nothing changed, the item stays the
 * caller's. HF_INVALID: NULL. An item that the list frees must not be added
 * again after it was removed. */
enum hf_status hf_snapshot_list_add(struct hf_snapshot_list *list, void *item);
/* HF_NOTFOUND, HF_NOMEM: nothing changed. HF_INVALID: NULL. */
enum hf_status hf_snapshot_list_remove(struct hf_snapshot_list *list,
                                       void *item);

/* Calls `visit` for the items of one version, in order, until it returns
 * false; HF_OK also then. HF_NOMEM can happen at a thread's first call only.
 * HF_INVALID: NULL. */
enum hf_status hf_snapshot_list_visit(struct hf_snapshot_list *list,
                                      bool (*visit)(void *context, void *item),
                                      void *context);
/* HF_OK or HF_NOTFOUND; HF_NOMEM and HF_INVALID as visit. */
enum hf_status hf_snapshot_list_contains(struct hf_snapshot_list *list,
                                         const void *item);
/* HF_NOMEM and HF_INVALID as visit. */
enum hf_status hf_snapshot_list_count(struct hf_snapshot_list *list,
                                      size_t *count);

/* Frees what nobody visits any more, now rather than with the next change. */
void hf_snapshot_list_flush(struct hf_snapshot_list *list);

void hf_snapshot_list_stats(struct hf_snapshot_list *list,
                            struct hf_snapshot_list_stats *out);

#ifdef __cplusplus
}
#endif

#endif
