/* The data tools of dpnode-worker: arguments to calls, results as a line of JSON on standard
 * output, a sentence on standard error. */
#ifndef DP_COMPUTE_WORKER_DATA_TOOL_H
#define DP_COMPUTE_WORKER_DATA_TOOL_H

/* argv after "dpnode-worker data": tokenize, info, verify or encode, and what these take. Exit
 * status of sysexits. */
int dp_data_tool(int argc, char **argv);

#endif
