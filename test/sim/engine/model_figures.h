/* model_figures.h - what the model counts of what it does. */
#ifndef SIM_ENGINE_MODEL_FIGURES_H
#define SIM_ENGINE_MODEL_FIGURES_H

/* How often something was reached, for `--figures`. */
#define MODEL_FIGURES(FIGURE)                                      \
    FIGURE(EXCLUSIVE, "grants, exclusive")                         \
    FIGURE(SHARED, "grants, shared")                               \
    FIGURE(COUNTING, "grants, counting")                           \
    FIGURE(SET, "grants, set")                                     \
    FIGURE(QUEUED, "grants to those who waited, single")           \
    FIGURE(QUEUED_SET, "grants to those who waited, set")          \
    FIGURE(BARGED, "grants that passed a queue")                   \
    FIGURE(REENTRY, "re-entries, single")                          \
    FIGURE(REENTRY_SET, "re-entries, set")                         \
    FIGURE(REENTRY_QUEUED, "re-entries of those who waited")       \
    FIGURE(TURN, "readers' turns")                                 \
    FIGURE(TURN_READERS, "readers who went before a writer")       \
    FIGURE(SHARED_PASSED, "readers who passed a set that waits")   \
    FIGURE(DOWNGRADED, "downgrades")                               \
    FIGURE(PRIORITY, "requests queued before others")              \
    FIGURE(EXPIRED, "grants expired")                              \
    FIGURE(EXPIRED_SET, "sets expired")                            \
    FIGURE(LOST, "grants lost with a session")                     \
    FIGURE(REVOKED, "grants revoked")                              \
    FIGURE(MAXHOLD, "ends moved forward by MAXHOLD")               \
    FIGURE(SEALED, "ends that could not be moved any more")        \
    FIGURE(CLOSED, "names closed by DELAY")                        \
    FIGURE(OPENED, "waits served when a delay ended")              \
    FIGURE(DONE, "names done")                                     \
    FIGURE(DONE_TOLD, "requests refused with DONE")                \
    FIGURE(DONE_WAITS, "waits answered with DONE")                 \
    FIGURE(TIMEOUT, "waits answered with TIMEOUT")                 \
    FIGURE(WAIT_LOST, "waits answered with LOST")                  \
    FIGURE(SESSION_EXPIRED, "sessions expired")                    \
    FIGURE(SESSION_CLOSED, "sessions closed")                      \
    FIGURE(SESSION_LEFT, "bound sessions left")                    \
    FIGURE(SESSION_PARTS, "parts ended with a session")            \
    FIGURE(SETTLED, "names settled on their own")                  \
    FIGURE(STATE_MODE, "STATE: held in another mode")              \
    FIGURE(STATE_MEMBER, "STATE: a member of a set")               \
    FIGURE(STATE_MAXIMUM, "STATE: another maximum")                \
    FIGURE(STATE_COUNT, "STATE: done, but held more than once")    \
    FIGURE(YOUNGER, "DEADLOCK, younger: a grant")                  \
    FIGURE(YOUNGER_WAIT, "DEADLOCK, younger: a wait")              \
    FIGURE(WOUND, "wounds, single")                                \
    FIGURE(WOUND_SET, "wounds, set")                               \
    FIGURE(CYCLE_2, "DEADLOCK, cycle of 2")                        \
    FIGURE(CYCLE_3, "DEADLOCK, cycle of 3")                        \
    FIGURE(CYCLE_4, "DEADLOCK, cycle of 4")                        \
    FIGURE(CYCLE_5, "DEADLOCK, cycle of 5")                        \
    FIGURE(CYCLE_6, "DEADLOCK, cycle of 6")                        \
    FIGURE(CYCLE_MORE, "DEADLOCK, longer cycle")                   \
    FIGURE(CYCLE_SET, "DEADLOCK, cycle through a set")             \
    FIGURE(CYCLE_SHARED, "DEADLOCK, cycle through a shared lock")  \
    FIGURE(CYCLE_COUNTING, "DEADLOCK, cycle through a counting")   \
    FIGURE(CYCLE_WAIT, "DEADLOCK, cycle through a place in queue") \
    FIGURE(CYCLE_BEHIND, "DEADLOCK, cycle closed by priority")     \
    FIGURE(CYCLE_TREE, "DEADLOCK, cycle through a related name")   \
    FIGURE(BUSY_WAITED, "BUSY by one who waits")                   \
    FIGURE(BUSY_CLOSED, "BUSY by DELAY")                           \
    FIGURE(TREE, "grants with TREE")                               \
    FIGURE(TREE_SHARED, "grants with TREE, shared")                \
    FIGURE(TREE_SET, "grants with TREE, set")                      \
    FIGURE(TREE_QUEUED, "grants with TREE to those who waited")    \
    FIGURE(TREE_REENTRY, "re-entries of a TREE without TREE")      \
    FIGURE(TREE_STATE, "STATE: held without TREE")                 \
    FIGURE(TREE_ABOVE, "BUSY by a TREE above")                     \
    FIGURE(TREE_BELOW, "BUSY by a name below")                     \
    FIGURE(TREE_WAITS, "requests that wait for a related name")    \
    FIGURE(TREE_YOUNGER, "DEADLOCK, younger: a related name")      \
    FIGURE(TREE_WOUND, "wounds at a related name")                 \
    FIGURE(TREE_CLOSED, "trees closed by DELAY")                   \
    FIGURE(TREE_FULL, "OVERLOADED: too many names below")          \
    FIGURE(KEY, "keys set")                                        \
    FIGURE(KEY_EACH, "steps that set keys to a value each")        \
    FIGURE(KEY_FIRST, "refusals that name one of the keys")        \
    FIGURE(KEY_REPLACED, "keys taken over by another value")       \
    FIGURE(KEY_OVER, "keys set for a time that is over")           \
    FIGURE(KEY_RENEWED, "keys renewed")                            \
    FIGURE(KEY_DELETED, "keys deleted")                            \
    FIGURE(STOCK_QUEUED, "requests that wait for stock")           \
    FIGURE(STOCK_SERVED, "of them, served")                        \
    FIGURE(STOCK_SEVERAL, "of them, served with several products") \
    FIGURE(STOCK_TIMEOUT, "of them, answered with TIMEOUT")        \
    FIGURE(STOCK_JOINED, "of them, by WAITLIST JOIN")              \
    FIGURE(STOCK_OFFERED, "offers to those")                       \
    FIGURE(STOCK_LEFT, "of them, ended by WAITLIST LEAVE")         \
    FIGURE(STOCK_PASSED, "requests that passed a queue of stock")  \
    FIGURE(STOCK_BEHIND, "SHORT because others wait")              \
    FIGURE(STOCK_LATE, "reservations sold in their time of grace") \
    FIGURE(STOCK_LATE_BEHIND, "those that others wait for")        \
    FIGURE(STOCK_CAPPED, "EXTEND refused by EXTENDS or LIFE")      \
    FIGURE(STOCK_GIVEN_UP, "reservations given up for a client")   \
    FIGURE(STOCK_SETTLED, "products settled while others are due") \
    FIGURE(STOCK_UNSETTLED, "and products that are not")           \
    FIGURE(STOCK_DOUBTED, "of them, without anything due")         \
    FIGURE(PLACED, "reservations from places")                     \
    FIGURE(PLACED_SPLIT, "of them, split over several")            \
    FIGURE(QUOTA, "refused by a limit per owner")                  \
    FIGURE(GROUP_CONFIRMED, "groups of reservations, confirmed")   \
    FIGURE(GROUP_CANCELLED, "and cancelled")                       \
    FIGURE(GROUP_LATE, "members confirmed in their time of grace") \
    FIGURE(ANNOUNCED, "arrivals announced")                        \
    FIGURE(ARRIVED, "arrivals that were announced")                \
    FIGURE(ARRIVED_SHORT, "of them, short")                        \
    FIGURE(ARRIVED_LATE, "arrivals that are late")                 \
    FIGURE(UNCOVERED, "announcements that left bookings bare")     \
    FIGURE(BOOKED, "reservations booked")                          \
    FIGURE(BOOKED_SERVED, "of them, served")                       \
    FIGURE(BOOKED_STOPPED, "of them, behind one that did not fit") \
    FIGURE(BOOKED_SPARED, "of them, not served for who waits")     \
    FIGURE(BOOKED_CANCELLED, "of them, cancelled")                 \
    FIGURE(GROUP, "groups")                                        \
    FIGURE(ABORT, "groups that were refused")                      \
    FIGURE(NOT_STUCK, "paths back that are no deadlock")           \
    FIGURE(SEARCHED, "requests searched for cycles")

#define MODEL_FIGURE_OF(figure, text) FIGURE_##figure,
enum model_figure { MODEL_FIGURES(MODEL_FIGURE_OF) MODEL_FIGURE_COUNT };
#undef MODEL_FIGURE_OF

#endif
