/* dpnode-worker train, eval and sample: parses arguments for standalone.h and prints its events as
 * lines of JSON. SIGINT and SIGTERM save and end. */
#ifndef DP_COMPUTE_STANDALONE_STANDALONE_TOOL_H
#define DP_COMPUTE_STANDALONE_STANDALONE_TOOL_H

/* argv after "train" or "eval". Returns the exit status of the process. */
int dp_standalone_tool_train(int argc, char **argv);
int dp_standalone_tool_eval(int argc, char **argv);

/* sample_tool.c: argv[0] is "sample". Text from the weights of a folder of `dpnode train`, or of a
 * run's state: a process of its own, so that a trainer goes on meanwhile. */
int dp_sample_tool(int argc, char **argv);

#endif
