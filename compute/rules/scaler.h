/* Dynamic loss scaling for training in fp16 (Micikevicius et al. 2018, section 3.2): the factor on
 * the loss that keeps small gradients above fp16's least value, as data and two rules. Multiplies
 * nothing itself: the engine takes the factor as its scale, dp_optim_step as loss_scale.
 *
 * A step whose gradients are not finite is skipped and halves the scale; so many good steps in a
 * row double it. The scale is a power of two, so that it changes no bits of values that do not
 * overflow, and stays within the bounds below. */
#ifndef DP_COMPUTE_RULES_SCALER_H
#define DP_COMPUTE_RULES_SCALER_H

#include <stdbool.h>
#include <stdint.h>

#define DP_SCALER_START 65536.0F  /* 2^16 */
#define DP_SCALER_MIN 1.0F        /* below it fp16 is not the cause */
#define DP_SCALER_MAX 16777216.0F /* 2^24 */

enum { DP_SCALER_GOOD_STEPS = 1000 };

/* Part of a checkpoint: three numbers. */
typedef struct dp_scaler {
    float scale;
    uint32_t good;    /* steps since the last change */
    uint64_t skipped; /* steps that overflowed, ever */
} dp_scaler;

dp_scaler dp_scaler_start(void);
/* Call after each step. finite: loss and all gradients were. */
void dp_scaler_told(dp_scaler *scaler, bool finite);
/* True if the rules can lead to these values, read from a checkpoint. */
bool dp_scaler_is_possible(const dp_scaler *scaler);

#endif
