# bash completion of dpnode; made by: dpnode completion bash
_dpnode() {
  local word=${COMP_WORDS[COMP_CWORD]} verb=${COMP_WORDS[1]} words='' common='--json --socket --help'
  if ((COMP_CWORD == 1)); then
    words='up down doctor run invite token join status peers audit rounds wait why logs pause resume drain limits config leave revoke ckpt sample eval train data top web swarm explain completion version --help --version'
  else
    if ((COMP_CWORD > 2)); then verb+=" ${COMP_WORDS[2]}"; fi
    case $verb in
    'up'*) words="--dir --listen $common" ;;
    'down'*) words="$common" ;;
    'doctor'*) words="--dir --listen --backend $common" ;;
    'run') words='create validate fork merge --help' ;;
    'run create') words="--demo --text --skip-bad-lines --from --name --dir --listen $common" ;;
    'run validate') words="--keys --from $common" ;;
    'run fork') words="--to --yes $common" ;;
    'run merge') words="--yes $common" ;;
    'invite'*) words="--uses --expires --role --qr $common" ;;
    'token') words='inspect ls revoke rotate --help' ;;
    'token inspect') words="$common" ;;
    'token ls') words="$common" ;;
    'token revoke') words="--members $common" ;;
    'token rotate') words="$common" ;;
    'join'*) words="--name --dir --listen $common" ;;
    'status'*) words="--check $common" ;;
    'peers'*) words="--wide --sort $common" ;;
    'audit'*) words="$common" ;;
    'rounds'*) words="--last --follow --wide --since --until --peer $common" ;;
    'wait'*) words="--round --loss --peers --timeout $common" ;;
    'why'*) words="--since --until --peer $common" ;;
    'logs'*) words="--last --follow --since --until --peer --only $common" ;;
    'pause'*) words="--for --until --after-round $common" ;;
    'resume'*) words="$common" ;;
    'drain'*) words="--time --leave --keep-data --delete-run $common" ;;
    'limits'*) words="--upload --download --upload-month --download-month --month-day --celsius --watts --vram-share --yield-card --threads --nice --disk --schedule --idle-only --not-on-battery --reset $common" ;;
    'config') words='show --help' ;;
    'config show') words="--origin $common" ;;
    'leave'*) words="--keep-data --delete-run $common" ;;
    'revoke'*) words="--yes $common" ;;
    'ckpt') words='ls verify export --help' ;;
    'ckpt ls') words="$common" ;;
    'ckpt verify') words="$common" ;;
    'ckpt export') words="--gguf --llmc --merged --from --best --force $common" ;;
    'sample'*) words="--prompt --tokens --seed --temperature --top-k --top-p --best --threads $common" ;;
    'eval'*) words="--tokens --best --data $common" ;;
    'train'*) words="--out --steps --threads --processes --resume --demo --text --skip-bad-lines --from --backend --rows --save-steps --save-seconds --val-steps --val-tokens --patience --metrics --tensorboard $common" ;;
    'data') words='tokenize info verify --help' ;;
    'data tokenize') words="--out --tokenizer --vocab --format --field --separator --shard-tokens --skip-bad-lines $common" ;;
    'data info') words="--format $common" ;;
    'data verify') words="$common" ;;
    'data'*) words="$common" ;;
    'top'*) words="--every --once --size $common" ;;
    'web'*) words="--listen --sample --tensorboard --name $common" ;;
    'swarm'*) words="--nodes --demo --text --rounds --dir $common" ;;
    'explain'*) words="$common" ;;
    'completion'*) words="$common" ;;
    'version'*) words="$common" ;;
    esac
  fi
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
  if [[ ${#COMPREPLY[@]} == 0 && $word != -* ]]; then compopt -o default; fi
}
complete -F _dpnode dpnode
