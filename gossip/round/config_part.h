/* The config part of a record that this node drafts: removals, admissions, fences and voters that
 * are due. */
#ifndef DP_GOSSIP_ROUND_CONFIG_PART_H
#define DP_GOSSIP_ROUND_CONFIG_PART_H

#include <stdbool.h>
#include <stdint.h>

#include "gossip/core/limits.h"
#include "gossip/identity/admission.h"
#include "gossip/record/record.h"

/* Removals, admissions, fences and voters that are due, into a draft whose time and list stand;
 * admitted as in dp_valid. */
void dp_config_draft(const dp_node *node, dp_record *draft, dp_admitted *admitted);
bool dp_config_removes(const dp_config_part *config, const dp_peer *peer);
/* In order of peer. */
void dp_config_add_voter(dp_config_part *config, const dp_voter_entry *entry);
void dp_config_add_removal(dp_config_part *config, const dp_remove *remove);
bool dp_config_may_stand_alone(const dp_node *node);
/* A CONFIG record is worth it now. */
bool dp_config_due(dp_node *node);

#endif
