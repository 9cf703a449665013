#!/usr/bin/env bash
# netlab.sh - N hosts with emulated WAN links on one Linux machine, as root.
#
# Every host is a network namespace with one TUN device (lab0, 10.77.0.I/24)
# and its own loopback. A small userspace forwarder (netlab_em.c beside this
# file, compiled on first use) moves packets between the hosts and applies
# rate, one-way delay, loss and cuts. It needs only network namespaces and
# /dev/net/tun: the kernel needs no sch_netem, bridge or veth.
#
#   netlab.sh up N [--rate R] [--delay D] [--loss L] [--queue D] [--mtu M] [--cc NAME]
#   netlab.sh exec I CMD...          run CMD inside host I (1..N)
#   netlab.sh ip I                   print host I's address
#   netlab.sh set I|all [--rate R] [--down R] [--delay D] [--loss L] [--queue D]
#   netlab.sh site I|all S           hosts at one site (1, 2 ..; 0: none) have a free line to each other
#   netlab.sh cut I J | cut I all    drop every packet between them (silent: no RST)
#   netlab.sh oneway I J             drop packets from I to J only
#   netlab.sh heal                   undo all cuts
#   netlab.sh stats [--reset]        per host: tx/rx packets and bytes, drops
#   netlab.sh down                   stop it all (also processes left in its hosts)
#
# R: 100mbit, 1gbit, 500kbit or 0 (unlimited); it limits each host's uplink and,
# separately, its downlink, which --down sets alone. D: 50ms, 200us (one way: ping shows twice that; a
# host's delay applies to what it sends; nothing of this inside a site). L: 0.5% per packet. --queue: how much
# backlog a link holds before it tail-drops (default 100ms). --cc: TCP congestion
# control inside the hosts (adds NAME to the machine's
# net.ipv4.tcp_allowed_congestion_control when it is missing there). Byte counts are IP-level, retransmissions included; what stays inside a site
# is in near_bytes alone.
# Several labs can coexist: set NETLAB=name (default "lab"). 'down' removes only
# what 'up' of the same name made. State lives in /run/netlab-$NETLAB.
# NETLAB_SEED=n makes the loss pattern repeatable.
set -euo pipefail
LAB=${NETLAB:-lab}; ST=/run/netlab-$LAB; ME=$(readlink -f "$0")
die() { echo "netlab: $*" >&2; exit 1; }
ns() { echo "netlab-$LAB-$1"; }
[[ $LAB =~ ^[A-Za-z0-9_]{1,24}$ ]] || die "bad lab name"

num() { # scale a value with a unit to bit/s or ns or parts per million
  local v=$1 k=$2
  awk -v v="$v" -v k="$k" 'BEGIN{
    if (match(v,/^[0-9.]+/)==0) exit 1; n=substr(v,1,RLENGTH)+0; u=tolower(substr(v,RLENGTH+1)); f=-1
    if(k=="rate"){m["gbit"]=1e9;m["mbit"]=1e6;m["kbit"]=1e3;m["bit"]=1;m[""]=1}
    if(k=="time"){m["s"]=1e9;m["ms"]=1e6;m["us"]=1e3;m["ns"]=1;m[""]=1e6}
    if(k=="loss"){m["%"]=1e4;m[""]=1e4}
    if(!(u in m)) exit 1; printf "%.0f", n*m[u] }' || die "bad value '$v'"
}
opts() { # parse link options into RATE DELAY LOSS QUEUE (empty: keep)
  RATE=; DOWN=; DELAY=; LOSS=; QUEUE=; MTU=1500; CC=
  while (($#)); do
    (($# >= 2)) || die "$1 needs a value"
    case $1 in
      --rate) RATE=$(num "$2" rate);; --down) DOWN=$(num "$2" rate);; --delay) DELAY=$(num "$2" time);;
      --loss) LOSS=$(num "$2" loss);; --queue) QUEUE=$(num "$2" time);;
      --mtu) MTU=$2;; --cc) CC=$2;; *) die "unknown option $1";;
    esac; shift 2
  done
  DOWN=${DOWN:-$RATE}
}
ctl() { # send one command line to the forwarder and wait until it was applied
  [[ -p $ST/ctl ]] || die "lab '$LAB' is not up"
  local tok=$RANDOM$RANDOM i
  ( flock 9; rm -f "$ST/ack"; echo "$tok $*" >"$ST/ctl"
    for i in $(seq 500); do [[ -e $ST/ack && $(<"$ST/ack") == "$tok" ]] && exit 0; sleep 0.01; done
    exit 1 ) 9>"$ST/lock" || die "the forwarder did not answer"
}
case ${1:-} in
up)
  N=${2:-}; [[ $N =~ ^[0-9]+$ ]] && ((N >= 1 && N <= 64)) || die "usage: up N (1..64) [options]"
  shift 2; opts "$@"
  [[ ! -e $ST ]] || die "lab '$LAB' exists already: $0 down"
  al=/proc/sys/net/ipv4/tcp_allowed_congestion_control
  [[ -z $CC || " $(<$al) " == *" $CC "* ]] || echo "$(<$al) $CC" >$al || die "cannot use --cc $CC"
  mkdir -p "$ST"; mkfifo "$ST/ctl"; : >"$ST/made"
  trap '"$ME" down >/dev/null 2>&1 || true' ERR
  ${CC_FOR_NETLAB:-cc} -O2 -D_GNU_SOURCE= -o "$ST/netlab_em" "$(dirname "$ME")/netlab_em.c"
  for ((i = 1; i <= N; i++)); do
    ip netns add "$(ns $i)"; ns $i >>"$ST/made"; ip -n "$(ns $i)" link set lo up
  done
  setsid "$ST/netlab_em" "$LAB" "$N" "$ST" </dev/null >"$ST/log" 2>&1 9>&- &
  echo $! >"$ST/pid"
  for i in $(seq 300); do [[ -e $ST/ready ]] && break; sleep 0.01; done
  [[ -e $ST/ready ]] || { cat "$ST/log" >&2; false; }
  for ((i = 1; i <= N; i++)); do
    ip -n "$(ns $i)" addr add "10.77.0.$i/24" dev lab0
    ip -n "$(ns $i)" link set lab0 mtu "$MTU" txqueuelen 1000 up
    [[ -z $CC ]] || ip netns exec "$(ns $i)" sh -c "echo $CC >/proc/sys/net/ipv4/tcp_congestion_control"
  done
  ctl set 0 "${RATE:--1}" "${DOWN:--1}" "${DELAY:--1}" "${LOSS:--1}" "${QUEUE:--1}"
  trap - ERR
  echo "lab '$LAB': $N hosts, 10.77.0.1..10.77.0.$N";;
exec) I=${2:-}; [[ -n $I && $# -ge 3 ]] || die "usage: exec I CMD..."; shift 2
  exec ip netns exec "$(ns "$I")" "$@";;
ip) echo "10.77.0.${2:?host}";;
set) W=${2:?host or all}; shift 2; opts "$@"; [[ $W == all ]] && W=0
  ctl set "$W" "${RATE:--1}" "${DOWN:--1}" "${DELAY:--1}" "${LOSS:--1}" "${QUEUE:--1}";;
site) W=${2:?host or all}; [[ $W == all ]] && W=0; ctl site "$W" "${3:?site}";;
cut) J=${3:?}; [[ $J == all ]] && J=0; ctl cut "${2:?}" "$J" 2;;
oneway) ctl cut "${2:?}" "${3:?}" 1;;
heal) ctl heal;;
stats) ctl stats "$([[ ${2:-} == --reset ]] && echo 1 || echo 0)"; cat "$ST/stats";;
down)
  [[ -d $ST ]] || exit 0
  while read -r n; do
    for sig in TERM KILL; do
      p=$(ip netns pids "$n" 2>/dev/null || true); [[ -z $p ]] || { kill -$sig $p 2>/dev/null || true; sleep 0.2; }
    done
  done <"$ST/made"
  if [[ -s $ST/pid ]] && p=$(<"$ST/pid") && [[ $(cat /proc/$p/comm 2>/dev/null) == netlab_em ]]; then
    kill "$p" 2>/dev/null || true
  fi
  while read -r n; do ip netns del "$n" 2>/dev/null || true; done <"$ST/made"
  rm -rf "$ST";;
*) sed -n '2,/^set -/p' "$ME" | sed '$d;s/^# \{0,1\}//'; exit 2;;
esac
