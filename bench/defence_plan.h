/* The cases of bench_defence as values: the attack of hostile workers, the rule against it, and the
 * limits of the rule. */
#ifndef DP_BENCH_DEFENCE_PLAN_H
#define DP_BENCH_DEFENCE_PLAN_H

#include <stdbool.h>
#include <stdint.h>

/* Every hostile worker trains like an honest one and sends another update. The mean m is that of
 * the honest updates of the round before compression, so the attackers know more than any node
 * does. */
typedef enum defence_attack {
    DEFENCE_HONEST,
    DEFENCE_FLIP,      /* its own update times -1 */
    DEFENCE_FLIP_TEN,  /* ... times -10 */
    DEFENCE_NOISE,     /* Gaussian noise, as long as the lower median of the round */
    DEFENCE_COPY,      /* the update of worker 0 */
    DEFENCE_COPY_NEAR, /* the same with 5 % noise in every value */
    DEFENCE_REPLAY,    /* its own honest update of four rounds before */
    DEFENCE_LAZY,      /* zero */
    /* its own update - size |a| m / |m|, with the largest size of at most DEFENCE_DRIFT_MAX that
     * the rule passes */
    DEFENCE_DRIFT,
    DEFENCE_COLLUDE, /* all send -m */
    /* its own update plus orthogonal noise, of the largest size that the rule passes */
    DEFENCE_NUDGE,
    DEFENCE_ATTACKS
} defence_attack;

#define DEFENCE_DRIFT_MAX 8.0

typedef enum defence_rule {
    /* the clip to the median norm of gossip/ledger/weights.h; all other rules have it too */
    DEFENCE_CLIP,
    /* coordinate-wise trimmed mean (Yin et al. 2018): without a quarter at each end; codecs that
     * keep all elements */
    DEFENCE_TRIM,
    /* a coordinate moves only if the two signs of the updates that store it differ by half of their
     * number or more */
    DEFENCE_SIGNS,
    /* an update counts if its cosine with the weighted sum of the others is above 0 */
    DEFENCE_COSINE,
    DEFENCE_LOSS,     /* only the loss test, of randomly drawn updates, within the budget */
    DEFENCE_LOSS_ALL, /* only the loss test, of every update, with DEFENCE_ALL_TOKENS each */
    DEFENCE_SHIPPED,  /* the rule of the product, with its limits (defence_shipped.h) */
    /* the proposed rule: alignment names suspects, gain within the budget acquits them; likeness
     * and energy */
    DEFENCE_JUDGE,
    DEFENCE_ALIGN, /* only alignment and energy */
    /* knows the hostile workers: counts only the honest ones, with the schedule of all */
    DEFENCE_ORACLE,
    DEFENCE_RULES
} defence_rule;

enum {
    DEFENCE_VOTERS = 3, /* workers 0 to 2, of which two decide */
    DEFENCE_HISTORY = 8,
    DEFENCE_WINDOW = 16,       /* tokens of a window of the loss test */
    DEFENCE_ALL_TOKENS = 512,  /* held-out and claimed together */
    DEFENCE_TEST_TOKENS = 128, /* the same of one test within the budget, */
    DEFENCE_TEST_LEAST = 64    /* and the least where several suspects share it */
};

typedef enum defence_reference {
    DEFENCE_OF_ROUND,  /* the voter's update before compression, of the same round */
    DEFENCE_OF_BEFORE, /* ... of the round before */
    DEFENCE_OF_WORK,   /* only the local work of the round, without error feedback */
    DEFENCE_REFERENCES
} defence_reference;

typedef struct defence_limits {
    defence_reference reference;
    double align_share; /* rejected below this share of ref */
    double acquit;      /* a suspect counts if its gain is so many standard errors above 0 */
    double errors;      /* rejected if the gain is so many standard errors below 0 */
    double likeness;    /* rejected within so many bits of another update */
    /* of the loss test, in steps that the run would make if all updates were this one */
    double step;
    double budget; /* the share of a node's training compute that the loss test may take */
} defence_limits;

const char *defence_attack_name(defence_attack attack);
const char *defence_rule_name(defence_rule rule);
defence_limits defence_limits_standard(void);

#endif
