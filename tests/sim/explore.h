/* Every interleaving of the votes of one slot among three voters, with the machines of gossip/commit.h themselves: an
 * exhaustive search of a bounded world, beside the random schedules of duel.h.
 *
 * The world. Messages are sets that only grow: any may be lost, late, repeated or overtaken. Any voter may crash at any point,
 * between two sends too (what was sent last is lost like any message), and is up again at once with what its disk has; the
 * write under way is there or not. Everyone may accept any record at once. Bounds: how often each voter bids, and how many
 * crashes there are in all. States are merged when voters, disks and sets of messages are equal (by 64 bits of hash). */
#ifndef DP_SIM_EXPLORE_H
#define DP_SIM_EXPLORE_H

/* dpsim --explore [--bids N] [--crashes N] [--states N] [--claim all|s1]; argv[1] is the first of these.
 * Returns the exit status: 0 all states searched and right, 1 a claim fails, 2 more than so many states, 64 usage. */
int dp_explore_main(int argc, char **argv);

#endif
