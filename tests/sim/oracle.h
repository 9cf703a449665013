/* The omniscient judge: sees every message, write and trainer command of every host, keeps its own
 * chain and its own model, and names the invariant that breaks. It never changes what the nodes
 * see. */
#ifndef DP_SIM_ORACLE_H
#define DP_SIM_ORACLE_H

#include "tests/sim/sim.h"

typedef struct dp_oracle dp_oracle;

DP_MUST dp_status dp_oracle_open(dp_sim *sim);
void dp_oracle_close(dp_sim *sim);

void dp_oracle_sent(dp_host *host, dp_view message);
/* A DP_DO_STORE was asked for; nothing is durable yet. */
void dp_oracle_store(dp_host *host, const dp_action *action);
/* It is durable now. */
void dp_oracle_stored(dp_host *host, const dp_disk_write *write);
/* The node of this host has taken in a message. */
void dp_oracle_delivered(dp_host *host, dp_view message);
/* ... which was a copy, perhaps of an earlier life of its author. */
void dp_oracle_copied(dp_host *host);
/* The trainer of this host found that a blob decodes. */
void dp_oracle_checked(dp_host *host, const dp_hash *root);
/* Four times a second. */
void dp_oracle_look(dp_sim *sim);
/* It is not durable: the write failed, and may be requested again. */
void dp_oracle_store_failed(dp_host *host, const dp_disk_write *write);
/* The host starts with this disk. */
void dp_oracle_booted(dp_host *host);
/* The disk of this host was lost or restored from a backup. */
void dp_oracle_forgot(dp_host *host);
void dp_oracle_published(dp_host *host, const dp_hash *root);
/* PUBLISH for this round asks for this density. */
void dp_oracle_density(dp_host *host, uint64_t round, uint32_t keep);
/* theta of the trainer of this host is now that of round. */
void dp_oracle_theta(dp_host *host, uint64_t round, const dp_hash *tensor_root);
/* The node makes its trainer train for this round. */
void dp_oracle_train(dp_host *host, uint64_t round);
/* A publication got its outcome in the trainer. */
void dp_oracle_settled(dp_host *host, const dp_hash *root, const dp_toy_outcome *outcome,
                       uint64_t round);
/* A nonce that distinguishes the result of a part of this round from others with the same
 * numbers. */
uint64_t dp_oracle_reduce_nonce(uint64_t round, uint32_t part);
/* The trainer begins a command, and has finished it: LOAD, INIT, RESTORE, PUBLISH, APPLY, FREEZE,
 * MIX (change: its change of F). */
void dp_oracle_command(dp_host *host);
void dp_oracle_buffers(dp_host *host, const dp_action *action, const dp_toy_vector change);
void dp_oracle_trainer_gone(dp_host *host);
/* The node has given its trainer a command. */
void dp_oracle_ordered(dp_host *host, const dp_action *action);
/* A pair exchange moved mass in the trainer of this host. */
void dp_oracle_mixed(dp_host *host, const dp_action *mix, const dp_toy_vector change);
void dp_oracle_note(dp_host *host, const dp_note *note);
/* Is this host a voter of the slot, at most the one after the newest? */
bool dp_oracle_votes(const dp_sim *sim, uint64_t slot, uint32_t index);
/* After the healing, four times a second: has the run recovered? */
bool dp_oracle_converged(dp_sim *sim);
/* Called at the end if it has not. */
void dp_oracle_stuck(dp_sim *sim);
/* According to the chain. */
bool dp_oracle_is_member(const dp_sim *sim, uint32_t index);
/* After an event of a node in a small world: no sample is lost. */
void dp_oracle_leases(const dp_host *host);
uint64_t dp_oracle_rounds(const dp_sim *sim);
uint64_t dp_oracle_slots(const dp_sim *sim);
/* Voters of the newest record; 1 before any. */
uint32_t dp_oracle_voters(const dp_sim *sim);

#endif
