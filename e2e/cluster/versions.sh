# What the throwaway cluster is made of: versions, folders, addresses. Sourced by the other scripts.

KUBE=1.36.3
CACHE=${MOORING_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/mooring}
DIR=$CACHE/kubernetes-$KUBE             # built programs and images, kept between runs
RUN=$DIR/run                            # the running cluster: state, keys, logs
API_PORT=${MOORING_API_PORT:-16443}     # the API server, on the host's loopback

HUB_IP=172.31.0.1                       # node-1, where the control plane runs; node-N is 172.31.0.N
POD_CIDR=10.244.0.0/16                  # node-N's pods are in 10.244.N.0/24
SERVICE_CIDR=10.96.0.0/16
API_SERVICE_IP=10.96.0.1
DNS_SERVICE_IP=10.96.0.10
MAX_NODES=5

say() { printf '%(%T)T  %s\n' -1 "$*" >&2; }
die() { say "$*"; exit 1; }
