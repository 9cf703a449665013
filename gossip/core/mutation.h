/* The switch of base/mutation.h for the sources of gossip/ and of the simulator. */
#ifndef DP_GOSSIP_CORE_MUTATION_H
#define DP_GOSSIP_CORE_MUTATION_H

#include "base/mutation.h"

#endif
