/* dpnode-worker train and eval: arguments to solo.h, and its events as lines of JSON on stdout.
 * SIGINT and SIGTERM: save and end. */
#ifndef DP_COMPUTE_WORKER_SOLO_TOOL_H
#define DP_COMPUTE_WORKER_SOLO_TOOL_H

/* Arguments after the word "train" or "eval". Exit status of the process. */
int dp_solo_tool_train(int argc, char **argv);
int dp_solo_tool_eval(int argc, char **argv);

#endif
