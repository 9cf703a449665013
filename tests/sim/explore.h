/* All interleavings of the votes of a slot among three voters, and of the following slots, with the
 * machines of gossip/vote/commit.h: an exhaustive search of a bounded world, in addition to the
 * random schedules of duel.h.
 *
 * The world. Messages are sets that only grow: any may be lost, late, repeated or overtaken. Any
 * voter may crash at any point, also between two sends (the last message may be lost like any
 * other), and restarts at once from its disk; a vote row and a record under way are on it or not,
 * independently. The write of a vote row may fail, with the row on the disk or not; the bounds
 * count that as a crash. Every voter may accept any valid record at once. A voter that has a record
 * on its disk may give it to any voter that lacks it, at any time or never. Bounds: the number of
 * slots, of bids of each voter, and of all crashes together. States are merged when voters, disks
 * and sets of messages that can still matter are equal (by 64 bits of hash).
 *
 * With several slots the voters of the next one are those that gossip/ledger/ledger.h makes of the
 * record before; with --voters change the owner of ballot 0 puts a fourth host in the place of the
 * owner of ballot 1. The votes of a slot reach whoever goes by the record before it, as in the
 * node. */
#ifndef DP_SIM_EXPLORE_H
#define DP_SIM_EXPLORE_H

/* dpsim --explore [--slots N] [--voters stay|change] [--bids N] [--bids-all N] [--crashes N]
 * [--states N] [--claim all|s1] [--votes together|each] (explore_arguments.h); argv[1] is the first
 * of these.
 * Returns the exit status: 0 all states searched and right, 1 a claim fails, 2 more than so many
 * states, 64 usage. */
int dp_explore_main(int argc, char **argv);

#endif
