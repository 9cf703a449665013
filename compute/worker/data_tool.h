/* The data tools of dpnode-worker: parses arguments, prints results as a line of JSON on standard
 * output and errors as a sentence on standard error. */
#ifndef DP_COMPUTE_WORKER_DATA_TOOL_H
#define DP_COMPUTE_WORKER_DATA_TOOL_H

/* argv after "dpnode-worker data": tokenize, info, verify or encode with their options. Returns an
 * exit status of sysexits. */
int dp_data_tool(int argc, char **argv);

#endif
