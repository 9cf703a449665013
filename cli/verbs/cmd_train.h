/* Calls dpnode-worker for training without peers, for the verbs train and eval. */
#ifndef DP_CLI_VERBS_CMD_TRAIN_H
#define DP_CLI_VERBS_CMD_TRAIN_H

#include "cli/cmd.h"

/* eval FOLDER [--data FILE] [--tokens N]: the newest checkpoint of `dpnode train`. Exit status. */
int dp_train_eval(const dp_cmd *cmd);

#endif
