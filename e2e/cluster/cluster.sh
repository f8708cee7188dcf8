#!/bin/bash
# cluster.sh up [NODES=2] | down | load IMAGE.tar... | restart-apiserver | status
# A real Kubernetes of 1 to 5 nodes on one machine, without a container engine. etcd, API server, controllers and
# scheduler run in node-1's network; each node has containerd, kubelet and kube-proxy; CoreDNS runs in a pod. `up` writes
# $RUN/kubeconfig, which works from the host's loopback. Needs root; `get.sh` first.
set -euo pipefail
cd "$(dirname "$0")"
. ./versions.sh
. ./pki.sh

# The kubeconfig gets its name when all is up: who finds it finds a cluster that works.
kubectl() {
  local config=$RUN/kubeconfig
  [ -e "$config" ] || config=$RUN/kubeconfig.starting
  "$DIR/bin/kubectl" --kubeconfig "$config" "$@"
}
control_plane() { ./node.sh spawn node-1 "$@"; }

require_host() {
  [ "$(id -u)" = 0 ] || die "cluster.sh needs root"
  [ -d /sys/fs/cgroup/memory ] || die "cluster.sh needs cgroup v1 (or hybrid); use kind where there is only v2"
  [ -x "$DIR/bin/kubelet" ] || die "run get.sh first"
}

keys() {
  new_ca
  local names=DNS:localhost,DNS:kubernetes,DNS:kubernetes.default,DNS:kubernetes.default.svc
  names+=,DNS:kubernetes.default.svc.cluster.local,IP:127.0.0.1,IP:$HUB_IP,IP:$API_SERVICE_IP
  cert apiserver kube-apiserver mooring "$names"
  cert kubelet-client kube-apiserver-kubelet-client system:masters
  cert aggregator aggregator mooring
  kubeconfig "$RUN/kubeconfig.starting" "https://127.0.0.1:$API_PORT" admin admin system:masters
  kubeconfig "$RUN/controllers.conf" "https://$HUB_IP:6443" controllers system:kube-controller-manager mooring
  kubeconfig "$RUN/scheduler.conf" "https://$HUB_IP:6443" scheduler system:kube-scheduler mooring
}

etcd() {
  control_plane etcd etcd --data-dir="$RUN/node-1/etcd" --unsafe-no-fsync \
    --listen-client-urls=http://127.0.0.1:2379 --advertise-client-urls=http://127.0.0.1:2379 \
    --listen-peer-urls=http://127.0.0.1:2380
}

apiserver() {
  local pki=$RUN/pki
  control_plane kube-apiserver kube-apiserver \
    --etcd-servers=http://127.0.0.1:2379 --advertise-address="$HUB_IP" --secure-port=6443 \
    --service-cluster-ip-range="$SERVICE_CIDR" --allow-privileged=true \
    --authorization-mode=Node,RBAC --enable-admission-plugins=NodeRestriction \
    --client-ca-file="$pki/ca.crt" --tls-cert-file="$pki/apiserver.crt" --tls-private-key-file="$pki/apiserver.key" \
    --kubelet-client-certificate="$pki/kubelet-client.crt" --kubelet-client-key="$pki/kubelet-client.key" \
    --kubelet-preferred-address-types=InternalIP \
    --service-account-issuer=https://kubernetes.default.svc.cluster.local \
    --service-account-key-file="$pki/sa.pub" --service-account-signing-key-file="$pki/sa.key" \
    --requestheader-client-ca-file="$pki/ca.crt" --requestheader-allowed-names=aggregator \
    --requestheader-extra-headers-prefix=X-Remote-Extra- --requestheader-group-headers=X-Remote-Group \
    --requestheader-username-headers=X-Remote-User --enable-aggregator-routing=true \
    --proxy-client-cert-file="$pki/aggregator.crt" --proxy-client-key-file="$pki/aggregator.key"
}

# controllers PROGRAM KUBECONFIG FLAGS...
controllers() {
  local program=$1 config=$2
  shift 2
  control_plane "$program" "$program" --kubeconfig="$config" --authentication-kubeconfig="$config" \
    --authorization-kubeconfig="$config" --leader-elect=false "$@"
}

# The API server's port on the host's loopback.
forward() {
  ./forward.py "127.0.0.1:$API_PORT" "$(cat "$RUN/hub")" "$HUB_IP:6443" >"$RUN/forward.log" 2>&1 </dev/null &
  echo $! >"$RUN/forward.pid"
  disown
}

wait_for_apiserver() {
  local _
  for _ in $(seq 300); do
    if kubectl get --raw /readyz >/dev/null 2>&1; then return 0; fi
    sleep 0.2
  done
  tail -20 "$RUN/node-1/kube-apiserver.log" >&2
  die "the API server did not become ready"
}

wait_for_nodes() {
  local i _
  for i in $(seq "$1"); do
    for _ in $(seq 100); do
      if kubectl get node "node-$i" >/dev/null 2>&1; then break; fi
      sleep 0.2
    done
  done
  kubectl wait --for=condition=Ready node --all --timeout=120s >/dev/null
  kubectl -n kube-system rollout status deployment/coredns --timeout=120s >/dev/null
}

# Local volumes for claims: a fixed number on each node, of the class "standard".
volumes() {
  local i j
  for i in $(seq "$1"); do
    for j in $(seq 12); do
      mkdir -p "$RUN/node-$i/volumes/$j"
      chmod 777 "$RUN/node-$i/volumes/$j"
      cat <<YAML
---
apiVersion: v1
kind: PersistentVolume
metadata: {name: node-$i-$j}
spec:
  capacity: {storage: 10Gi}
  accessModes: [ReadWriteOnce]
  storageClassName: standard
  persistentVolumeReclaimPolicy: Retain
  local: {path: $RUN/node-$i/volumes/$j}
  nodeAffinity:
    required:
      nodeSelectorTerms: [{matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: [node-$i]}]}]
YAML
    done
  done | kubectl apply -f - >/dev/null
}

up() {
  local nodes=$1 i
  require_host
  [ "$nodes" -le "$MAX_NODES" ] || die "at most $MAX_NODES nodes"
  [ ! -e "$RUN/kubeconfig" ] || die "already up (cluster.sh down first)"
  # What an interrupted start left would be in the way.
  [ ! -e "$RUN" ] || down
  mkdir -p "$RUN"
  keys
  for i in $(seq "$nodes"); do
    say "node-$i: namespaces and containerd"
    ./node.sh up "node-$i" "$i"
  done
  say "control plane"
  etcd
  apiserver
  forward
  wait_for_apiserver
  controllers kube-controller-manager "$RUN/controllers.conf" \
    --service-account-private-key-file="$RUN/pki/sa.key" --root-ca-file="$RUN/pki/ca.crt" \
    --use-service-account-credentials=true --node-monitor-grace-period=20s \
    --cluster-signing-cert-file="$RUN/pki/ca.crt" --cluster-signing-key-file="$RUN/pki/ca.key"
  controllers kube-scheduler "$RUN/scheduler.conf"
  for i in $(seq "$nodes"); do
    say "node-$i: kubelet and kube-proxy"
    ./node.sh join "node-$i" "$i"
  done
  kubectl apply -f addons.yaml >/dev/null
  volumes "$nodes"
  say "waiting for nodes and DNS"
  wait_for_nodes "$nodes"
  mv "$RUN/kubeconfig.starting" "$RUN/kubeconfig"
  say "up: export KUBECONFIG=$RUN/kubeconfig"
}

down() {
  local node
  [ ! -e "$RUN/forward.pid" ] || kill "$(cat "$RUN/forward.pid")" 2>/dev/null || true
  # node-1 last: the others are plugged into it.
  for node in $(ls -d "$RUN"/node-* 2>/dev/null | sort -r); do ./node.sh down "$(basename "$node")"; done
  rm -rf "$RUN"
  say "down"
}

# Into every node, the nodes side by side.
load() {
  local node pid pids=()
  for node in "$RUN"/node-*; do
    ./node.sh load "$(basename "$node")" "$@" &
    pids+=($!)
  done
  for pid in "${pids[@]}"; do wait "$pid"; done
}

case ${1:-} in
  up) up "${2:-2}" ;;
  down) down ;;
  load)
    shift
    load "$@"
    ;;
  restart-apiserver)
    ./node.sh stop node-1 kube-apiserver
    apiserver
    wait_for_apiserver
    ;;
  status) kubectl get nodes,pods -A -o wide ;;
  *)
    sed -n 2,5p "$0"
    exit 2
    ;;
esac
