/* The protocol between the CLI and the daemon: msgpack-RPC over a unix socket. Frames and methods,
 * no sockets.
 *
 * A frame is u32 size (little-endian) | one msgpack value of at most DP_CONTROL_FRAME_MAX bytes.
 *   request   [0, id, "method", {parameters}]
 *   reply     [1, id, nil, result]                                     result: a map
 *             [1, id, {"code", "what", "why", "fix", "exit"}, nil]     exit: the CLI's exit status
 *               (sysexits)
 *   notice    [2, id, {…}]     progress or stream items of request id, before its reply
 *
 * Methods (parameters -> result). Times are unix milliseconds, durations and sizes carry their unit
 * in the key. A key that does not apply is left out; a value that applies and is not known yet is
 * nil. Peers are {"id": 64 hex, "short": 12 characters, "name": nil before it has told one}.
 *   hello        {} -> {"version", "pid", "state":
 *                "idle"|"joining"|"starting"|"training"|"waiting" (the same in a run of any model,
 *                where this node has no script)|"gossip"|"paused"|"halted"|"left", "run"?}
 *   status       {} -> {"state", "pid", "version", "dir", "uptime_s", "name", "id", "port"?,
 *                       "paused"?: P: the owner's order, P: {"since_ms"?, "until_ms"?,
 *                       "waits"?: true, begins when a round has counted this node's work, "by"?: a
 *                       user of this machine, "text"}, "suspended"?: [{"cause":
 *                       "limits"|"schedule"|"battery"|"use"|"card"|"quota"|"heat", "text"}]: nor
 *                       does it train for these, "rests": [{"reason": a word of
 *                       daemon/owner/rest.h, "text"}]: every reason for which it does not train
 *                       now, those of "paused"
 *                       and "suspended" too; empty while it trains, "lost"?: text, the store was
 *                       damaged and names no run any more, "problem"?: {"code", "what", "why",
 *                       "fix"}: why the last try of first_start.h failed or its token is not used,
 *                       "trying"?: true, the first try is being made,
 *                       "machine": {"celsius", "watts": of the device that computes, nil where no
 *                       sensor was read in the last minute, "load": of the last minute, as
 *                       uptime(1), "processors"},
 *                       "rss_bytes", "log_dropped", "run"?: {"name", "id",
 *                       "round", "applied", "slot", "tokens", "state_root", "members", "alive",
 *                       "voters", "is_voter", "ballot_owner": short id of who is to propose the
 *                       next record, "quorum", "listed", "loss"?, "exchanges", "rejected",
 *                       "diverged", "elements", "data_objects" (tokenizer or table of tensors, base
 *                       of adapters, shards), "data_here" (of these), "round_ms", "external"?:
 *                       true, of a run of any model, "script_pid"?: process of the script that
 *                       trains it here,
 *                       "sample_tokens": tokens that a sample counts as, "trains": bool,
 *                       "tokens_per_s",
 *                       "compute_utilisation" (both nil while it does not), "trainer_ms"?:
 *                       {"trained", "computed", "data", "publish", "apply", "state", "tell"}, since
 *                       the trainer's start: computed of trained are steps, the others what the
 *                       rest went to (dp_trainer_spent), "outer_reach"?, "keep"?: one element of so
 *                       many in updates of the round to come, where the manifest has a span
 *                       (gossip/ledger/density.h), "update_norm"?: |a| of what was published last,
 *                       "update_residual"?: |e| that its codec left over, "update_error"?: their
 *                       ratio, "part_error"?: the same of the part that this node added up last,
 *                       "near"?: nodes that results of parts from afar are shared with,
 *                       "results_near"?: such results that one of them was asked for,
 *                       "sums_made"?: parts of all near that this node has added up for owners far
 *                       away, "sums_taken"?: such sums of others in parts that it has added up
 *                       itself, "checkpoint_round"?, "bytes_sent", "bytes_received", "upload_max"?,
 *                       "download_max"?: bytes per second that the owner, and what is left of a
 *                       month, allow now, "upload_held_ms", "download_held_ms": in all, bulk waited
 *                       for that, "upload_month"?, "download_month"?: bytes of a month that the
 *                       owner allows, "upload_month_used", "download_month_used", "month_used_up":
 *                       so that training rests,
 *                       "clock"?: {"behind_ms": this machine's, behind those of others,
 *                         "corrected_ms": by which this node goes, "text"}, where something is
 *                         wrong with it,
 *                       "chunks": that came, "chunks_hedged": requests for them of a second holder
 *                         because the first was late, "links", "handshakes_failed",
 *                         "accepts_refused": connections that found no place, "held": bytes of
 *                         memory that peers make this node hold, "held_guests": of guests,
 *                         "held_most": at any time, "held_max": the budget,
 *                       "refused": every address that is reached closes this node's
 *                         connections without an answer, for minutes,
 *                       "no_room"?: why an update of this node waits and is not counted, in words,
 *                       "voted_twice"?, "voted_twice_name"?: the voter whose two votes halted this
 *                         node,
 *                       "rounds_all", "rounds_some": decided since the daemon's start with every
 *                         member that was expected, and without some, "phases"?: {"round": the
 *                         newest one that is applied here, "compute_ms", "transfer_ms", "wait_ms":
 *                         as in rounds},
 *                       "held_out"?: {"loss","bits_per_byte","tokens","round","time_ms"}: on
 *                         held-out text, as this node measured it last (daemon/model/held_out.h),
 *                       "trainer": "up"|"down"|"starting"|"failing", "device"?: who computes,
 *                         "trainer_pid"?, "trainer_restarts", "trainer_next_ms"?: until it is
 *                         started again, "trainer_deaths"?: in a row before that, "counted": rounds
 *                         of the chain here that list this node}}: what is of
 *                       the chain is nil until it is read
 *   peers        {} -> {"peers": [{"id","short","name","state","self","linked","roster","voter",
 *                       "rtt_ms"?,"round","included","step_ms"?: as last measured,
 *                       "bytes_sent"?,"bytes_received"?: to and from it, over all links with it
 *                       since the start of the daemon,
 *                       "addresses":[text]}], "more"}: more members than the reply has room for
 *   rounds       F -> a notice {"round": R} each, oldest first, for ever when following; {"count",
 *                       "filtered"?: true, of a request with since_ms, until_ms or peer}. F:
 *                       {"last"?: n, the newest so many, 20, with since_ms, until_ms or peer all,
 *                       "follow"?: bool, "since_ms"?, "until_ms"?: times t with since <= t < until,
 *                       "peer"?: name or id, "after"?: the seq, or of an event the id, that the
 *                       client had last, "after_slot"?: and the slot; with these two "last" is not
 *                       looked at}. R: {"round","slot","kind": "sync"|"gossip","time_ms","seq"?: a
 *                       number that grows, of rounds of this life of the daemon,
 *                       "duration_ms"?,"listed","active","tokens","loss"?,"bytes",
 *                       "wire_bytes_per_copy": mean over the listed of the blob as framed and
 *                       sealed,"keep"?: as in status, of this round,"lines"? (with keep):
 *                       "fit"|"slow"|"free","update_residual"?,"update_error"?: as in status, of
 *                       this node's update in it,"counted": bool,
 *                       "state_root"?: of this node's trainer when it first had a state after
 *                       this round in this life of the daemon,
 *                       "phases"?: {"opened_at_ms": when this node opened it, and from then on
 *                         "published_ms"?: its update was stored, "ready_ms"?: and told,
 *                         "held_ms"?: all updates that count were here, "decided_ms"?,
 *                         "applied_ms"?}, of rounds of this life of the daemon; "compute_ms"?,
 *                         "transfer_ms"?, "wait_ms"?: of these the time until it published, then
 *                         until the updates were here, then until the end,
 *                       "left_out":[{"id","short","name","cause"}],
 *                       "parts"?, "parts_empty"?: of them without a contribution,
 *                       "peers":[{"id","short","name","tokens","steps","weight_share","age": 1, it
 *                         was late for the round before}],
 *                       "exchange"?: {"peer","weight_own","weight_other","moved","cause"}}
 *   events       F -> like rounds, notices {"event": {"id": a number that grows, through restarts
 *                too,"time_ms","name","round"?,"peer"?: short id that it is about,"text"}};
 *                {"count", "filtered"?}
 *   why          {"round"?: n, "peer"?: text, "since_ms"?, "until_ms"?} -> {"answer": text,
 *                "causes": [{"time_ms","text"}], the last ones, of the store too,
 *                "fix"?: text, "known"?: this node has that round}
 *   run.create   {"manifest": bin (canonical, keys, hashes and signature zero), "text_path"?
 *                       (absolute; not in a run of any model), "from_path"? (weights to start from,
 *                       absolute; in a run of any model a safetensors file, which must be given),
 *                       "skip_bad_lines"?: bool (of JSON lines),"name"?}
 *                       -> notices {"phase","ok","text"};
 *                       {"run","id","earlier_root_key"?: the name that the root key of a run that
 *                       this directory created before has now}
 *   run.join     {"token", "name"?} -> notices {"phase","ok","text","ms"?};
 *                       {"run","id","round","already"?: the state, where it is in that run}: once
 *                       manifest and data are here and the node follows the chain
 *   run.leave    {"keep_data"?: bool, "delete_run"?: its name, where this node is the only voter}
 *                -> {"run": nil, if it only tried to join one by its token, "ended": no voter
 *                remains}
 *   invite       {"uses"?: n (0: unlimited), "expires_s"?: n, "roles"?: ["train","vote","invite"]}
 *                       -> {"token","uses","expires_ms"} and "id", 32 hex: what token.list and
 *                       token.revoke know it by
 *   token.list   {} -> a notice {"token": K} each, {"count"}. K: {"token": 32 hex,"issued": made
 *                       here, then "uses","roles","from_ms","expires_ms", "admitted":
 *                       [{"id","short","name","gone"?: why it is no member, "through"?: by an
 *                       invite of one that came by this}], "admitted_count", "members_count": of
 *                       these now, "state": "valid"|"expired"|"used up"|"made
 *                       elsewhere"|"revoking": with the next record|"revoked"}
 *   token.rotate {} -> {"epoch": the one until the next record}: new tokens have another secret
 *     then
 *   token.revoke {"id": 32 hex, or its first characters, at least 4, "members"?: put them out too}
 *     -> {"token": K,"members","text"}
 *   run.fork     {"round"?: n} -> {"round", "text"}: the chain begins anew after the head here, or
 *                       after that round, and the daemon with it
 *   run.merge    {} -> {"round", "text"}: of two chains begun anew the one here goes on
 *   revoke       {"peer": name or id} -> {"peer": id, "key": "root"|"admin"}: out at once here,
 *                everywhere once a record has it
 *   limits       {L?, "reset"?: a key of L, or "all": orders are dropped} -> {L, "from": {key of
 *                       L: who says so, in words}, "set": {key of L, where dpnode limits set it:
 *                       {"ms", "by"?}}, "notes": {key of L: its state now, in words}, "month":
 *                       {"begin_ms", "end_ms", "upload_used", "download_used", "upload_rate"?,
 *                       "download_rate"?: bytes per second that the month allows now, "used_up":
 *                       bool}, "holds": {"upload_rate"?, "download_rate"?: bytes per second that
 *                       may pass now, "upload_by"?, "download_by"?: the L of it}}; L:
 *                       "upload_mbit", "download_mbit": of the line, "upload_month",
 *                       "download_month": bytes, 0: any, "month_day", "celsius_max", "watts_max",
 *                       "vram_share": percent, "threads", "nice", "schedule": text,
 *                       "yield_card", "idle_only", "not_on_battery": bool,
 *                       "store_max": bytes, 0: any; kept when it is answered
 *   config       {} -> {"file": path, "settings": [{"name", "value": text, "from":
 *                       "default"|"file"|"environment"|"command line"|"order": dpnode limits,
 *                       "line"?: of the file, "live": it changes without a restart, "set_ms"?,
 *                       "by"?: of an order, "until_restart"?: true, another value waits for it}]}
 *   pause        {"for_s"?: n, or "until_ms"?, "after_round"?: bool} -> {"state", "paused": P}
 *   resume       {} -> {"state"}
 *   drain        {"seconds"?: n, "end"?: bool, true} -> {"counted": bool, "text", "waited_ms"}:
 *                       when a round has counted this node's work, when there is none to wait for,
 *                       or after the seconds (drain-time); then, with end, the daemon ends
 *   ckpt.list    {} -> {"checkpoints": [{"round","slot","time_ms","bytes","state_root","state":
 *                       "writing"|"complete"|"kept"|"bad"|"recovered" (store/ckpt.h)}]}
 *   ckpt.verify  {} -> {"good","bad"}
 *   audit        {} -> {"head" (slot), "records" (judged), "rounds", A, "granted","returned","lost"
 *                       (of the run's line, samples), "pass_samples", "n_findings", "stopped":
 *                       slot from which on records are not judged whole, 0: none, "loosely": those
 *                       after it that hold as far as they can be judged, "causes":
 *                       [{"text","count","first","last": slots}], "findings": [{"slot","text"}],
 *                       "members": [{"id","short","name","gone", A, "lease" (samples left)}],
 *                       "more": members that the reply has no room for}; A:
 *                       "counted" (contributions),
 *                       "samples","leased","own","holes","twice"
 *   ckpt.export  {"path" (absolute, a new directory), "gguf"?: "f32"|"f16"|"bf16"|"q8_0", or
 *                       "llmc"?: "f32"|"bf16", "merged"?: bool (of a run with adapters)}
 *                       -> {"path","files":[text],"round"}
 *   sample       {"prompt"?, "tokens"?: n, "seed"?, "temperature"?, "top_k"?, "top_p"?}
 *                    -> {"text","round","source" ("checkpoint" of that round; "trainer": there is
 *                       no checkpoint yet),"temperature","top_k","top_p"}
 *   eval         {"tokens"?: n (0: all)} -> {"loss","bits_per_byte","tokens","round"}
 *   data         {} -> {"data": [{"kind": "tokenizer"|"table" (of tensors)|"tokens"|"weights"|
 *                       "base", "root","bytes","tokens"? (of a shard), "local": bool}],
 *                       "tokens" (of all shards), "samples" (of a pass)}
 *   down         {} -> {"pid"}: the daemon ends politely after this reply */
#ifndef DP_DAEMON_CONTROL_CONTROL_MSG_H
#define DP_DAEMON_CONTROL_CONTROL_MSG_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/pack.h"

enum {
    DP_CONTROL_FRAME_MAX = 1024 * 1024,
    DP_CONTROL_METHOD_MAX = 32,
    DP_CONTROL_PATH_MAX = 100 /* of the socket: sun_path has 108 bytes */
};

typedef enum dp_control_kind {
    DP_CONTROL_REQUEST = 0,
    DP_CONTROL_REPLY = 1,
    DP_CONTROL_NOTICE = 2
} dp_control_kind;

/* An error as people and scripts see it. Codes are stable: "E0101". */
typedef struct dp_control_error {
    char code[8];
    char what[256];
    char why[512];
    char fix[256];
    int exit; /* sysexits */
} dp_control_error;

/* One parsed frame. Views and values live as long as the frame. Close it with
 * dp_control_frame_close. */
typedef struct dp_control_frame {
    dp_unpacked *unpacked;
    dp_control_kind kind;
    uint64_t id;
    char method[DP_CONTROL_METHOD_MAX + 1]; /* REQUEST */
    const dp_pack_value *body;  /* parameters, result or notice: a map; NULL for an error reply */
    const dp_pack_value *error; /* REPLY with an error: a map */
} dp_control_frame;

/* Is there a whole frame at the start of bytes? *size: its bytes with header, 0 if more are needed.
 * DP_TOOBIG. */
DP_MUST dp_status dp_control_frame_size(dp_view bytes, size_t *size);
/* bytes: exactly one frame with its header; must outlive the frame. */
DP_MUST dp_status dp_control_frame_open(dp_control_frame *frame, dp_view bytes);
void dp_control_frame_close(dp_control_frame *frame);
/* Fill error from an error reply; missing keys become empty text. */
void dp_control_error_read(const dp_pack_value *map, dp_control_error *error);

/* Writing: begin leaves room for the size and packs everything up to the body, which the caller
 * packs as one map; end fills in the size. start: value of out->size before begin. */
dp_packer dp_control_begin(dp_buf *out, dp_control_kind kind, uint64_t id, const char *method,
                           size_t *start);
DP_MUST dp_status dp_control_end(dp_buf *out, size_t start, const dp_packer *packer);
DP_MUST dp_status dp_control_write_error(dp_buf *out, uint64_t id, const dp_control_error *error);

#endif
