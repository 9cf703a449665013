#compdef dpnode
# zsh completion of dpnode; made by: dpnode completion zsh
_dpnode() {
  local verb=$words[2]
  local -a found
  if ((CURRENT == 2)); then
    found=(
      'up:start the daemon if it is not running'
      'down:stop the daemon; training continues on the other nodes'
      'doctor:check this machine and this node, and print a fix for each problem'
      'run:create, validate, fork, merge'
      'invite:print an invite token for other nodes'
      'token:inspect, ls, revoke, rotate'
      'join:join a run by its invite token and train'
      'status:show this node and its run'
      'peers:list the members of the run and their state as seen from this node'
      'audit:verify the chain from its first record, and list the samples of each member'
      'rounds:list the last rounds\: updates counted, duration, loss'
      'wait:wait until the run has come so far'
      'why:explain the state of this node, of a round or of a peer'
      'logs:list the last events of this node'
      'pause:stop training and stay a member, until resume or for a time'
      'resume:train again after pause'
      'drain:wait until a round has counted this node'\''s work, then stop the daemon'
      'limits:show or set the limits of this node\: line, heat, power, hours, disk; while it runs'
      'config:show'
      'leave:leave the run for good; the daemon keeps running, idle'
      'revoke:remove a member from the run for good; for the run'\''s creator and admins'
      'ckpt:ls, verify, export'
      'sample:generate text with the newest checkpoint, of the daemon'\''s run or of a `dpnode train` folder'
      'eval:measure the loss on held-out text, of the daemon'\''s model or of a `dpnode train` folder'
      'train:train on this machine alone, without daemon and peers'
      'data:tokenize, info, verify'
      'top:watch this node on a screen\: loss, rounds, nodes, events; q leaves, it trains on'
      'web:serve a page about this node, and /metrics for Prometheus; read-only'
      'swarm:start several nodes on this machine that train one model; Ctrl-C ends them'
      'explain:print the meaning of an error code, or of all'
      'completion:print the completion script of a shell'
      'version:print the version of dpnode and of the running daemon'
    )
  else
    if ((CURRENT > 3)); then verb+=" $words[3]"; fi
    case $verb in
      'up'*) found=( '--dir:directory of keys and store for a new daemon [DPNODE_DIR]' '--listen:address for peers of a new daemon [DPNODE_LISTEN]' '--json:print JSON\: one object, or one per line for a stream' '--socket:control socket of the daemon [DPNODE_SOCKET]' '--help:show this help' ) ;;
      'down'*) found=( '--json:print JSON\: one object, or one per line for a stream' '--socket:control socket of the daemon [DPNODE_SOCKET]' '--help:show this help' ) ;;
      'doctor'*) found=( '--dir:directory to check as the daemon'\''s' '--listen:address to check as the daemon'\''s' '--backend:backend to check\: auto, cpu, cuda, or a plugin'\''s path' '--json:print JSON\: one object, or one per line for a stream' '--socket:control socket of the daemon [DPNODE_SOCKET]' '--help:show this help' ) ;;
      'run') found=( 'create:create a run from a manifest and a text, or a model file of any kind' 'validate:check a manifest without a daemon, or list its keys' 'fork:restart the chain after its voters are lost, or from an earlier round; needs the root key' 'merge:resolve a fork in favour of this node; needs the root key' ) ;;
      'run create') found=( '--demo:a built-in manifest\: kjv, the King James Bible' '--text:UTF-8 text, a folder of such files, or a folder of `data tokenize`; replaces the manifest'\''s text' '--from:weights to start from\: a Hugging Face folder (its model and tokenizer are used) or an llm.c file; model keys of the manifest win; with model.arch external a safetensors file, which is the model' '--name:name of this node' '--dir:directory of keys and store for a new daemon [DPNODE_DIR]' '--listen:address for peers of a new daemon [DPNODE_LISTEN]' '--json:print JSON\: one object, or one per line for a stream' '--socket:control socket of the daemon [DPNODE_SOCKET]' '--help:show this help' ) ;;
      'run validate') found=( '--keys:list every key with its default and bounds' '--from:with model.arch external\: the safetensors file of the model' '--json:print JSON\: one object, or one per line for a stream' '--socket:control socket of the daemon [DPNODE_SOCKET]' '--help:show this help' ) ;;
      'run fork') found=( '--to:restart after this round, of `dpnode ckpt ls`; later rounds are undone' '--yes:do not ask for confirmation' '--json:print JSON\: one object, or one per line for a stream' '--socket:control socket of the daemon [DPNODE_SOCKET]' '--help:show this help' ) ;;
      'run merge') found=( '--yes:do not ask for confirmation' '--json:print JSON\: one object, or one per line for a stream' '--socket:control socket of the daemon [DPNODE_SOCKET]' '--help:show this help' ) ;;
      'invite'*) found=( '--uses:number of nodes that may join by it; 0\: any number [1]' '--expires:time until it expires\: 90s, 15m, 24h, 7d [24h]' '--role:train; vote\: also votes; invite\: also invites; observe\: only watches [train]' '--qr:print a QR code even if the output is not a terminal' '--json:print JSON\: one object, or one per line for a stream' '--socket:control socket of the daemon [DPNODE_SOCKET]' '--help:show this help' ) ;;
      'token') found=( 'inspect:show the contents of a token, offline' 'ls:list the tokens of this node and the members that joined by each token' 'revoke:revoke a token\: no further node joins by it; for the run'\''s creator and admins' 'rotate:give the run a new join secret; for the run'\''s creator and admins' ) ;;
      'token inspect') found=( '--json:print JSON\: one object, or one per line for a stream' '--socket:control socket of the daemon [DPNODE_SOCKET]' '--help:show this help' ) ;;
      'token ls') found=( '--json:print JSON\: one object, or one per line for a stream' '--socket:control socket of the daemon [DPNODE_SOCKET]' '--help:show this help' ) ;;
      'token revoke') found=( '--members:also remove the members that joined by it, and those that such members invited' '--json:print JSON\: one object, or one per line for a stream' '--socket:control socket of the daemon [DPNODE_SOCKET]' '--help:show this help' ) ;;
      'token rotate') found=( '--json:print JSON\: one object, or one per line for a stream' '--socket:control socket of the daemon [DPNODE_SOCKET]' '--help:show this help' ) ;;
      'join'*) found=( '--name:name of this node [the host'\''s name]' '--dir:directory of keys and store for a new daemon [DPNODE_DIR]' '--listen:address for peers of a new daemon [DPNODE_LISTEN]' '--json:print JSON\: one object, or one per line for a stream' '--socket:control socket of the daemon [DPNODE_SOCKET]' '--help:show this help' ) ;;
      'status'*) found=( '--check:exit status 0 or 1\: ready tests that it trains, live that it answers and has its run' '--json:print JSON\: one object, or one per line for a stream' '--socket:control socket of the daemon [DPNODE_SOCKET]' '--help:show this help' ) ;;
      'peers'*) found=( '--wide:also the bytes sent to each and received from it' '--sort:order\: rate (tokens per second, fastest first), rtt (nearest first) or name' '--json:print JSON\: one object, or one per line for a stream' '--socket:control socket of the daemon [DPNODE_SOCKET]' '--help:show this help' ) ;;
      'audit'*) found=( '--json:print JSON\: one object, or one per line for a stream' '--socket:control socket of the daemon [DPNODE_SOCKET]' '--help:show this help' ) ;;
      'rounds'*) found=( '--last:number of lines [20; with --since, --until or --peer all]' '--follow:print new ones until Ctrl-C, over restarts of the daemon' '--wide:also when each phase of a round was, from its opening here' '--since:from then on\: 10m, 2h, 3d, 10\:40 or 2026-11-28T10\:40' '--until:up to then, in the same forms' '--peer:only rounds that list this member, or list it as late' '--json:print JSON\: one object, or one per line for a stream' '--socket:control socket of the daemon [DPNODE_SOCKET]' '--help:show this help' ) ;;
      'wait'*) found=( '--round:until round N is decided' '--loss:until the loss that dpnode status shows is at most X' '--peers:until N nodes are alive, this one included' '--timeout:give up after so long\: 90s, 15m, 24h [never]' '--json:print JSON\: one object, or one per line for a stream' '--socket:control socket of the daemon [DPNODE_SOCKET]' '--help:show this help' ) ;;
      'why'*) found=( '--since:from then on\: 10m, 2h, 3d, 10\:40 or 2026-11-28T10\:40' '--until:up to then, in the same forms' '--peer:as the words peer P' '--json:print JSON\: one object, or one per line for a stream' '--socket:control socket of the daemon [DPNODE_SOCKET]' '--help:show this help' ) ;;
      'logs'*) found=( '--last:number of events [20; with --only, --since, --until or --peer all]' '--follow:print new ones until Ctrl-C, over restarts of the daemon' '--since:from then on\: 10m, 2h, 3d, 10\:40 or 2026-11-28T10\:40' '--until:up to then, in the same forms' '--peer:only events about this member\: its name or id' '--only:only events whose name begins with one of these words\: join,trainer' '--json:print JSON\: one object, or one per line for a stream' '--socket:control socket of the daemon [DPNODE_SOCKET]' '--help:show this help' ) ;;
      'pause'*) found=( '--for:length of the pause, such as 90m or 2h' '--until:end of the pause\: 07\:30, the next such time of the local clock, or 2026-11-28T07\:30' '--after-round:first wait until a round has counted this node'\''s work' '--json:print JSON\: one object, or one per line for a stream' '--socket:control socket of the daemon [DPNODE_SOCKET]' '--help:show this help' ) ;;
      'resume'*) found=( '--json:print JSON\: one object, or one per line for a stream' '--socket:control socket of the daemon [DPNODE_SOCKET]' '--help:show this help' ) ;;
      'drain'*) found=( '--time:longest wait [the daemon'\''s drain-time, 25s]' '--leave:leave the run for good, then keep the daemon running, idle' '--keep-data:with --leave\: keep model and votes in the directory' '--delete-run:with --leave\: allow it if the run ends with this node' '--json:print JSON\: one object, or one per line for a stream' '--socket:control socket of the daemon [DPNODE_SOCKET]' '--help:show this help' ) ;;
      'limits'*) found=( '--upload:largest upload rate in Mbit/s; 0\: unlimited' '--download:largest download rate in Mbit/s; 0\: unlimited' '--upload-month:upload quota per month, such as 200GB; 0\: unlimited' '--download-month:download quota per month, such as 200GB; 0\: unlimited' '--month-day:day on which the month begins, 00\:00 UTC; 1 to 28' '--celsius:highest temperature in degrees Celsius; 0\: unlimited' '--watts:highest average power of a GPU; 0\: unlimited' '--threads:threads of the trainer; 0\: as many as the machine grants' '--nice:niceness of the trainer, 0 to 19' '--disk:largest size of the store, such as 50GB; 0\: unlimited' '--schedule:local hours of training\: "22\:00-07\:00", "mon-fri 22\:00-07\:00, sat-sun", always' '--idle-only:train only while nobody uses the machine' '--not-on-battery:train only while the machine is on mains' '--reset:drop the order about a limit, or all of them' '--json:print JSON\: one object, or one per line for a stream' '--socket:control socket of the daemon [DPNODE_SOCKET]' '--help:show this help' ) ;;
      'config') found=( 'show:show every setting of the running daemon, and where it comes from' ) ;;
      'config show') found=( '--origin:name the source\: default, file and line, environment, command line, or an order of dpnode limits' '--json:print JSON\: one object, or one per line for a stream' '--socket:control socket of the daemon [DPNODE_SOCKET]' '--help:show this help' ) ;;
      'leave'*) found=( '--keep-data:keep model and votes in the directory' '--delete-run:allow it if the run ends with this node' '--json:print JSON\: one object, or one per line for a stream' '--socket:control socket of the daemon [DPNODE_SOCKET]' '--help:show this help' ) ;;
      'revoke'*) found=( '--yes:do not ask for confirmation' '--json:print JSON\: one object, or one per line for a stream' '--socket:control socket of the daemon [DPNODE_SOCKET]' '--help:show this help' ) ;;
      'ckpt') found=( 'ls:list the checkpoints of this node' 'verify:read every checkpoint and check its hashes' 'export:write the model to a folder, in a format that other programs read' ) ;;
      'ckpt ls') found=( '--json:print JSON\: one object, or one per line for a stream' '--socket:control socket of the daemon [DPNODE_SOCKET]' '--help:show this help' ) ;;
      'ckpt verify') found=( '--json:print JSON\: one object, or one per line for a stream' '--socket:control socket of the daemon [DPNODE_SOCKET]' '--help:show this help' ) ;;
      'ckpt export') found=( '--gguf:write model.gguf for llama.cpp\: f32, f16, bf16 or q8_0' '--llmc:write model.bin for llm.c\: f32 or bf16' '--from:folder of `dpnode train`\: export its newest checkpoint, without a daemon' '--best:with --from\: the checkpoint of the lowest held-out loss' '--force:overwrite an existing model' '--json:print JSON\: one object, or one per line for a stream' '--socket:control socket of the daemon [DPNODE_SOCKET]' '--help:show this help' ) ;;
      'sample'*) found=( '--prompt:start of the text' '--tokens:number of tokens, at most 2000 [120]' '--seed:seed of the random choice of tokens [from the clock]' '--temperature:0\: always the most likely token; 1\: as the model has it [0.8]' '--top-k:only the N most likely tokens [40]' '--top-p:only the most likely tokens whose probabilities sum to X [1]' '--best:with FOLDER\: the checkpoint of the lowest held-out loss' '--threads:with FOLDER\: number of threads; does not affect the text [all processors]' '--json:print JSON\: one object, or one per line for a stream' '--socket:control socket of the daemon [DPNODE_SOCKET]' '--help:show this help' ) ;;
      'eval'*) found=( '--tokens:number of tokens; 0\: all [0]' '--best:with FOLDER\: the checkpoint of the lowest held-out loss' '--data:with FOLDER\: text or token shard to measure on' '--json:print JSON\: one object, or one per line for a stream' '--socket:control socket of the daemon [DPNODE_SOCKET]' '--help:show this help' ) ;;
      'train'*) found=( '--out:folder for data, checkpoints and model [the run'\''s name]' '--steps:optimizer steps in all [until train.total_tokens]' '--threads:number of threads; does not affect the result [all processors]' '--processes:processes that train as one, best one per CPU socket; affects the last bits of the result [1]' '--resume:continue from the newest complete checkpoint' '--demo:a built-in manifest\: kjv, the King James Bible' '--text:UTF-8 text, a folder of such files, or a folder of `data tokenize`; replaces the manifest'\''s text' '--from:weights to start from\: a Hugging Face folder (its model and tokenizer are used) or an llm.c file; model keys of the manifest win; with model.arch external a safetensors file, which is the model' '--backend:backend\: cpu, auto, cuda, cuda\:0,1 (two cards as one), or a plugin'\''s path [cpu]' '--rows:sequences at a time, set at the first start [2,048 tokens; on a GPU 8,192]' '--save-steps:save a checkpoint every N steps' '--save-seconds:save a checkpoint every N seconds; 0\: never [300]' '--val-steps:measure the loss of held-out text every N steps; 0\: never [20 times in all]' '--val-tokens:on at most N tokens of it [65536]' '--patience:end after N measurements without a lower one; 0\: never [0]' '--metrics:append the figures of each step, as lines of JSON' '--tensorboard:write them as an event file for TensorBoard' '--json:print JSON\: one object, or one per line for a stream' '--socket:control socket of the daemon [DPNODE_SOCKET]' '--help:show this help' ) ;;
      'data') found=( 'tokenize:make token shards from text, JSON lines, or token files of llm.c and nanoGPT' 'info:show format, tokens and vocabulary of token shards' 'verify:check the hashes of the tokenizer and of all shards' ) ;;
      'data tokenize') found=( '--out:folder for tokenizer.json, the shards and their table' '--tokenizer:a tokenizer.json (BPE or Unigram) of Hugging Face' '--vocab:train a tokenizer with N entries on the input [1024]' '--format:auto (by the file'\''s name), text, jsonl, tokens or nanogpt [auto]' '--field:field of each JSON line that holds the text [text]' '--separator:text after each document; ""\: none [the tokenizer'\''s end of text]' '--shard-tokens:tokens per shard [100000000]' '--json:print JSON\: one object, or one per line for a stream' '--socket:control socket of the daemon [DPNODE_SOCKET]' '--help:show this help' ) ;;
      'data info') found=( '--format:nanogpt, whose files have no header' '--json:print JSON\: one object, or one per line for a stream' '--socket:control socket of the daemon [DPNODE_SOCKET]' '--help:show this help' ) ;;
      'data verify') found=( '--json:print JSON\: one object, or one per line for a stream' '--socket:control socket of the daemon [DPNODE_SOCKET]' '--help:show this help' ) ;;
      'data'*) found=( '--json:print JSON\: one object, or one per line for a stream' '--socket:control socket of the daemon [DPNODE_SOCKET]' '--help:show this help' ) ;;
      'top'*) found=( '--every:time between two looks [1s]' '--once:print one picture as text; needs no terminal' '--size:columns and rows of that picture [80x24]' '--json:print JSON\: one object, or one per line for a stream' '--socket:control socket of the daemon [DPNODE_SOCKET]' '--help:show this help' ) ;;
      'web'*) found=( '--listen:where to serve; port 0\: any that is free [127.0.0.1\:7719]' '--name:names of hosts under which it is asked, besides addresses and localhost' '--json:print JSON\: one object, or one per line for a stream' '--socket:control socket of the daemon [DPNODE_SOCKET]' '--help:show this help' ) ;;
      'swarm'*) found=( '--nodes:number of nodes, 1 to 32 [3]' '--demo:a built-in manifest [kjv]' '--text:UTF-8 text to train on' '--rounds:end after N rounds that count every node' '--dir:keep the nodes'\'' folders here [a temporary folder]' '--json:print JSON\: one object, or one per line for a stream' '--socket:control socket of the daemon [DPNODE_SOCKET]' '--help:show this help' ) ;;
      'explain'*) found=( '--json:print JSON\: one object, or one per line for a stream' '--socket:control socket of the daemon [DPNODE_SOCKET]' '--help:show this help' ) ;;
      'completion'*) found=( '--json:print JSON\: one object, or one per line for a stream' '--socket:control socket of the daemon [DPNODE_SOCKET]' '--help:show this help' ) ;;
      'version'*) found=( '--json:print JSON\: one object, or one per line for a stream' '--socket:control socket of the daemon [DPNODE_SOCKET]' '--help:show this help' ) ;;
    esac
  fi
  _describe dpnode found || _files
}
if [[ $funcstack[1] == _dpnode ]]; then _dpnode; else compdef _dpnode dpnode; fi
