/* The combinations of optimizer and weight format that differ; tests of engines run all of them. */
#ifndef DP_TESTS_LIB_OPTIM_PAIRS_H
#define DP_TESTS_LIB_OPTIM_PAIRS_H

#include "compute/model/optim.h"

typedef struct optim_pair {
    dp_optim_kind optimizer;
    dp_weights_kind weights;
} optim_pair;

static const optim_pair optim_pairs[] = {
    {DP_OPTIM_ADAMW, DP_WEIGHTS_FP32},    {DP_OPTIM_ADAMW, DP_WEIGHTS_BF16},
    {DP_OPTIM_ADAMW, DP_WEIGHTS_BF16_SR}, {DP_OPTIM_LAMB, DP_WEIGHTS_BF16},
    {DP_OPTIM_LARS, DP_WEIGHTS_FP32},     {DP_OPTIM_MUON, DP_WEIGHTS_BF16_SR}};
enum { OPTIM_PAIRS = sizeof optim_pairs / sizeof optim_pairs[0] };

#endif
