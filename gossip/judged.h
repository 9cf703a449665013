/* What is measured of an update: base/judged.h, which the trainer's side has too. */
#ifndef DP_GOSSIP_JUDGED_H
#define DP_GOSSIP_JUDGED_H

#include "base/judged.h"

#endif
