/* A chain judged once more from its first record: every link, certificate, signature, number and
 * lease, and by a book of its own that no sample of the run's line was counted twice. Reads records
 * one by one, from wherever they come; decides and changes nothing. It ends with the chain, not
 * with the first finding: a record whose certificate alone is wrong is counted all the same; behind
 * one that cannot follow, or is missing, the ledger stands still, and records are judged for what
 * needs none: hash, form, slot, link, form of the certificate. */
#ifndef DP_GOSSIP_LEDGER_AUDIT_H
#define DP_GOSSIP_LEDGER_AUDIT_H

#include "gossip/ledger/valid.h"

enum {
    DP_AUDIT_FINDINGS_MAX = 64, /* that are kept; all are counted */
    DP_AUDIT_CAUSES_MAX = 32,   /* the same */
    DP_AUDIT_SPANS_MAX =
        64 * 1024 /* stretches of counted samples; a chain with more is a finding */
};

typedef struct dp_audit dp_audit;

typedef struct dp_audit_config {
    const dp_manifest *manifest; /* copied */
    dp_run_id run;
    dp_crypto crypto; /* only verifies */
    dp_admission admission;
} dp_audit_config;

typedef struct dp_audit_finding {
    uint64_t slot;
    const char *text; /* static */
} dp_audit_finding;

/* Findings with the same text. */
typedef struct dp_audit_cause {
    const char *text; /* static */
    uint64_t count;
    uint64_t first; /* slot */
    uint64_t last;
} dp_audit_cause;

/* Of the whole chain, or of one member. In samples, where nothing else is said. */
typedef struct dp_audit_count {
    uint64_t counted; /* contributions */
    uint64_t samples; /* that their tokens come from */
    uint64_t leased;  /* gone over, of leases */
    uint64_t own;     /* gone over, of own lines */
    uint64_t twice;   /* counted before, by whomever */
} dp_audit_count;

typedef struct dp_audit_view {
    uint64_t records; /* that hold in all that is judged */
    uint64_t rounds;  /* that were counted */
    uint64_t stopped; /* slot from which on the ledger stands still; 0: it does not */
    uint64_t loosely; /* records from there on that hold as far as they can be judged without it */
    dp_audit_count count;
    uint64_t granted;  /* of the line: its cursor */
    uint64_t returned; /* granted, came back, and not granted again */
    uint64_t lost;     /* came back and found no room */
    uint32_t members;  /* for dp_audit_member */
    uint64_t n_findings;
    dp_audit_finding findings[DP_AUDIT_FINDINGS_MAX]; /* the first ones */
    uint32_t n_causes;
    dp_audit_cause causes[DP_AUDIT_CAUSES_MAX]; /* in the order in which they came up */
} dp_audit_view;

typedef struct dp_audit_member_view {
    dp_peer peer;
    bool gone;
    dp_audit_count count;
    uint64_t left; /* of its lease */
} dp_audit_member_view;

/* All memory is taken here. DP_NOMEM. */
DP_MUST dp_status dp_audit_open(dp_audit **audit, const dp_audit_config *config);
void dp_audit_close(dp_audit *audit); /* Accepts NULL. */
/* The next record as it was stored, in the order of slots, or that it is not to be had. */
void dp_audit_record(dp_audit *audit, uint64_t slot, const dp_hash *stored, dp_view record,
                     dp_view cert);
void dp_audit_gap(dp_audit *audit, uint64_t slot, const char *text);
void dp_audit_look(const dp_audit *audit, dp_audit_view *view);
/* index < view.members: everybody ever admitted, in order of admission. */
void dp_audit_member(const dp_audit *audit, uint32_t index, dp_audit_member_view *view);

#endif
