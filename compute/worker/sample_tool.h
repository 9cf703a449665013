/* dpnode-worker sample: text from the weights of a folder of `dpnode train`, or of a run's state.
 * A process of its own, so that a trainer goes on meanwhile. */
#ifndef DP_COMPUTE_WORKER_SAMPLE_TOOL_H
#define DP_COMPUTE_WORKER_SAMPLE_TOOL_H

/* argv[0] is "sample". Returns an exit status of sysexits(3); the usage is in the source. */
int dp_sample_tool(int argc, char **argv);

#endif
