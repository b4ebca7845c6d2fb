#!/usr/bin/env bash
# bench.sh: the crypto libraries on this machine, then sealed against plain MPI on lab nodes: every figure of docs/benchmarking.md.
set -u
. "$(dirname "$0")/lib.sh"
step build tools/build.sh release programs || exit 1
mpisec=build/release/bin/mpisec
pingpong() {
    echo
    echo "mpisec bench pingpong $*"
    "$mpisec" bench pingpong "$@"
}
"$mpisec" bench crypto --ciphers aes-128-gcm,aes-256-gcm,aegis-128x4 || exit 1
for cipher in aes-256-gcm aes-128-gcm; do
    pingpong --aead "auto:$cipher" --rate 10gbit --sizes 256,262144,2097152 || exit 1
    pingpong --aead "auto:$cipher" --sizes 1,256,65536,2097152,4194304 --rounds 101 || exit 1
    pingpong --aead "auto:$cipher" --rate 10gbit --window 64 --sizes 16384 --rounds 101 || exit 1
done
pingpong --aead aegis:aegis-128x4 --sizes 1,65536,2097152,4194304 || exit 1
pingpong --same-node --no-pin --rounds 101 || exit 1
pingpong --sizes 16 --own-cost || exit 1
for collective in allgather bcast allreduce alltoall; do
    echo
    echo "mpisec bench $collective"
    "$mpisec" bench "$collective" --no-pin --aead auto:aes-128-gcm || exit 1
done
echo
echo "mpisec bench startup"
"$mpisec" bench startup
