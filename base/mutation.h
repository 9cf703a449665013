/* A switch that breaks one rule on purpose, so that a test can show that it notices: DP_MUTATION is
 * the number of a row in docs/MUTATIONS.md; 0, always outside of those tests, breaks none. */
#ifndef DP_BASE_MUTATION_H
#define DP_BASE_MUTATION_H

#ifndef DP_MUTATION
#define DP_MUTATION 0
#endif

#endif
