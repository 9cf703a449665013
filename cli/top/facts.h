/* The facts that the screen of `dpnode top` shows, as a struct, read from the daemon's replies
 * (daemon/control/control_msg.h). No sockets, no clock. Text is as it came: dp_grid_put makes it
 * harmless. */
#ifndef DP_CLI_TOP_FACTS_H
#define DP_CLI_TOP_FACTS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

enum {
    DP_FACTS_WORD_MAX = 24,
    DP_FACTS_NAME_MAX = 64,
    DP_FACTS_TEXT_MAX = 256,
    DP_FACTS_SENTENCE_MAX = 1600, /* an answer of why has 1500 bytes at most */
    DP_FACTS_ID_MAX = 65,
    DP_FACTS_ROUNDS_MAX = 512,
    DP_FACTS_PEERS_MAX = 160, /* a reply of peers has 116 at most */
    DP_FACTS_EVENTS_MAX = 100,
    DP_FACTS_SHARE_ROUNDS = 20 /* rounds that the own share is of */
};

#define DP_FACTS_SPEED_WEIGHT 0.2 /* of a look in the mean speed */

typedef struct dp_facts_round {
    uint64_t key; /* of this entry among all */
    uint64_t round;
    uint64_t time_ms;
    uint64_t duration_ms; /* 0: unknown */
    bool gossip;          /* an exchange with partner; what follows is of rounds */
    bool counted;         /* lists this node */
    char partner[DP_FACTS_NAME_MAX];
    uint32_t listed;
    uint32_t active;
    double loss; /* 0: unknown */
    uint64_t bytes;
    uint64_t tokens;
    uint64_t own_tokens;  /* of this node */
    uint64_t step_tokens; /* of one step of a member; 0: unknown */
    bool has_times;       /* of this node in it: */
    uint64_t compute_ms;
    uint64_t transfer_ms;
    uint64_t wait_ms;
    uint32_t n_left_out;
    char left_out[DP_FACTS_TEXT_MAX]; /* "bob: its update came too late", the first of them */
} dp_facts_round;

typedef struct dp_facts_peer {
    uint64_t key;
    char id[DP_FACTS_ID_MAX];
    char brief[DP_FACTS_WORD_MAX]; /* its short id */
    char name[DP_FACTS_NAME_MAX];  /* "" before it has told one */
    char state[DP_FACTS_WORD_MAX];
    char address[DP_FACTS_NAME_MAX];
    bool self;
    bool linked;
    bool member;
    bool voter;
    bool has_round;
    uint64_t round;
    uint64_t counted; /* newest round that lists it; 0: none */
    double rtt_ms;    /* 0: unknown */
    double step_ms;   /* 0: unknown */
} dp_facts_peer;

typedef struct dp_facts_event {
    uint64_t key;
    uint64_t time_ms;
    char name[DP_FACTS_NAME_MAX];
    char text[DP_FACTS_TEXT_MAX];
} dp_facts_event;

/* The use of the trainer's time since its start. */
typedef struct dp_facts_spent {
    uint64_t at_ms; /* when it was asked; 0: never */
    double trained; /* milliseconds, here and below */
    double steps;
    double rounds; /* encoding, applying, handing over */
} dp_facts_spent;

typedef struct dp_facts {
    bool known;           /* the daemon has answered once; the rest is of its last answer */
    bool old;             /* it has not answered the last question */
    uint64_t answered_ms; /* unix, of the last answer */
    char problem[DP_FACTS_TEXT_MAX]; /* of the last question */
    char remedy[DP_FACTS_TEXT_MAX];

    char node[DP_FACTS_NAME_MAX];
    char id[DP_FACTS_ID_MAX];
    char state[DP_FACTS_WORD_MAX];
    char reason[DP_FACTS_SENTENCE_MAX]; /* why it does not train, or the trouble that it has; "" */
    bool healthy;                       /* it trains, without any trouble: nobody needs a reason */
    bool paused;                        /* by its owner */

    bool in_run;
    char run[DP_FACTS_NAME_MAX];
    char run_id[DP_FACTS_ID_MAX];
    char unit[DP_FACTS_WORD_MAX]; /* "tokens" or "samples" */
    bool has_round;               /* the chain is read */
    uint64_t round;
    uint64_t slot;
    uint64_t exchanges;
    uint64_t tokens;
    uint64_t counted; /* rounds that list this node */
    uint64_t alive;
    uint64_t members;
    bool voter;
    double loss;         /* 0: unknown */
    double held_out;     /* on held-out text, as this node measured it last; 0: unknown */
    double tokens_per_s; /* of this node; 0: unknown */
    uint64_t round_ms;   /* as the manifest has it */
    char device[DP_FACTS_TEXT_MAX];
    uint64_t upload_max; /* bytes per second; 0: unlimited */
    uint64_t download_max;
    uint64_t bytes_sent;
    uint64_t bytes_received;
    dp_facts_spent spent[3]; /* now, and at the begin of this and of the last half minute */

    uint32_t n_rounds; /* oldest first, all three */
    uint32_t n_peers;
    uint32_t n_events;
    uint32_t more_peers; /* that the daemon does not list */
    dp_facts_round rounds[DP_FACTS_ROUNDS_MAX];
    dp_facts_peer peers[DP_FACTS_PEERS_MAX];
    dp_facts_event events[DP_FACTS_EVENTS_MAX];
} dp_facts;

/* A reply to status. A node that is in another run than before has no rounds yet. */
void dp_facts_status(dp_facts *facts, const json_t *status, uint64_t unix_ms);
/* A reply to peers; NULL: it is not known. */
void dp_facts_peers(dp_facts *facts, const json_t *peers);
/* Rounds, oldest first: those that are known are told anew, the others come after them, and the
 * oldest go where there is no room. */
void dp_facts_add_rounds(dp_facts *facts, const json_t *rounds);
/* The newest events, oldest first, instead of those before. */
void dp_facts_events(dp_facts *facts, const json_t *events);
/* The answer of why becomes the reason. NULL: there is none. */
void dp_facts_why(dp_facts *facts, const json_t *why);

/* Shares of the trainer's time in the last half minute or minute: steps, work for rounds, and the
 * rest. False: it has not trained since. */
typedef struct dp_facts_times {
    double steps;
    double rounds;
    double waiting;
} dp_facts_times;
bool dp_facts_times_of(const dp_facts *facts, dp_facts_times *times);

/* This node in the last DP_FACTS_SHARE_ROUNDS rounds. False: no round is known. */
typedef struct dp_facts_own {
    double share; /* of the tokens */
    uint32_t counted;
    uint32_t rounds;
} dp_facts_own;
bool dp_facts_own_of(const dp_facts *facts, dp_facts_own *own);

/* Tokens per second of all nodes, over the same rounds; 0: unknown. */
double dp_facts_speed(const dp_facts *facts);
/* Tokens per second of a peer while it trains; 0: unknown. */
double dp_facts_peer_speed(const dp_facts *facts, const dp_facts_peer *peer);

#endif
