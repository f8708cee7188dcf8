#!/bin/bash
# node.sh up NAME INDEX | join NAME INDEX | down NAME | load NAME IMAGE.tar... | exec NAME CMD...
#         spawn NAME PROGRAM CMD... | stop NAME PROGRAM [SIGNAL] | cut NAME | heal NAME
# A node is a set of namespaces (net, mount, pid, uts, ipc, cgroup) with its own containerd; `join` adds kubelet and
# kube-proxy. All of it dies with its first process, and nothing is left on the host. Needs root and cgroup v1 (hybrid).
set -euo pipefail
cd "$(dirname "$0")"
. ./versions.sh
. ./pki.sh

CONTROLLERS="cpu cpuacct cpuset memory devices freezer blkio pids systemd"

# cgroup CONTROLLER NODE: the node's group. For memory below our own group, so that its limit holds for the node too.
cgroup() {
  local parent=
  if [ "$1" = memory ]; then
    [ -e "$RUN/memroot" ] || awk -F: '$2 == "memory" {print $3}' /proc/self/cgroup > "$RUN/memroot"
    parent=$(cat "$RUN/memroot")
  fi
  echo "/sys/fs/cgroup/$1${parent%/}/mooring-$2"
}

# in_node NODE CMD...: in all of the node's namespaces and groups
in_node() {
  (
    node=$1
    shift
    for controller in $CONTROLLERS; do echo $BASHPID > "$(cgroup "$controller" "$node")/cgroup.procs"; done
    exec nsenter -t "$(cat "$RUN/$node/pid")" -a -- env PATH="$DIR/bin:$PATH" "$@"
  )
}

# spawn NODE PROGRAM CMD...: in the background, its process id and its log in the node's folder
spawn() {
  local node=$1 program=$2
  shift 2
  in_node "$node" setsid sh -c 'echo $$ > "$0"; exec "$@"' "$RUN/$node/$program.pid" "$@" \
    >> "$RUN/$node/$program.log" 2>&1 < /dev/null &
  disown
}

stop() {
  local pid
  pid=$(cat "$RUN/$1/$2.pid")
  in_node "$1" kill "-${3:-TERM}" "$pid"
  while in_node "$1" kill -0 "$pid" 2>/dev/null; do sleep 0.1; done
}

make_cgroups() {
  local controller group file
  for controller in $CONTROLLERS; do
    group=$(cgroup "$controller" "$1")
    mkdir -p "$group"
    [ "$controller" = cpuset ] || continue
    for file in cpuset.cpus cpuset.mems; do cat "$group/../$file" > "$group/$file"; done
  done
}

# What the node's first process does inside its new namespaces.
init_script() {
  cat <<SCRIPT
set -e
hostname $1
ip link set lo up
sysctl -qw net.ipv4.ip_forward=1 net.ipv4.ip_local_port_range="10240 65535"
umount /sys/fs/cgroup/unified
for c in cpu cpuacct cpuset memory devices freezer blkio pids; do
  umount /sys/fs/cgroup/\$c
  mount -t cgroup -o \$c cgroup /sys/fs/cgroup/\$c
done
umount /sys/fs/cgroup/systemd
mount -t cgroup -o none,name=systemd cgroup /sys/fs/cgroup/systemd
mount -t tmpfs tmpfs /run
mkdir -p /run/netns /run/lock
mount -t tmpfs tmpfs /var/log
mount -t tmpfs tmpfs /var/lib
mkdir /var/lib/kubelet /var/lib/cni
mount --bind $RUN/$1/kubelet /var/lib/kubelet
# kubelet wants these values and would write them for the whole machine; it reads these files instead
mount --bind $RUN/$1/vm.overcommit_memory /proc/sys/vm/overcommit_memory
mount --bind $RUN/$1/kernel.panic /proc/sys/kernel/panic
mount --bind $RUN/$1/kernel.panic_on_oops /proc/sys/kernel/panic_on_oops
mount --make-rshared /
touch $RUN/$1/ready
exec tini -s -- sleep infinity
SCRIPT
}

start_init() {
  local node=$1 groups= controller _
  printf 'nameserver 127.0.0.1\n' > "$RUN/$node/resolv.conf"
  echo 1 > "$RUN/$node/vm.overcommit_memory"
  echo 10 > "$RUN/$node/kernel.panic"
  echo 1 > "$RUN/$node/kernel.panic_on_oops"
  init_script "$node" > "$RUN/$node/init.sh"
  for controller in $CONTROLLERS; do groups+="echo \$\$ > $(cgroup "$controller" "$node")/cgroup.procs; "; done
  setsid bash -c "$groups exec unshare --cgroup --net --mount --uts --ipc --pid --fork --mount-proc \
    --propagation private --kill-child bash $RUN/$node/init.sh" > "$RUN/$node/init.log" 2>&1 < /dev/null &
  local unshare=$!
  for _ in $(seq 100); do
    if [ -e "$RUN/$node/ready" ]; then break; fi
    sleep 0.1
  done
  [ -e "$RUN/$node/ready" ] || { cat "$RUN/$node/init.log" >&2; die "$node: no namespaces"; }
  tr -d ' ' < "/proc/$unshare/task/$unshare/children" > "$RUN/$node/pid"
}

# plug NODE INDEX: node-1 is a bridge, and every other node is plugged into it
plug() {
  local pid hub other
  pid=$(cat "$RUN/$1/pid")
  if [ "$2" = 1 ]; then
    nsenter -t "$pid" -n ip link add br0 type bridge
    nsenter -t "$pid" -n ip addr add "$HUB_IP/24" dev br0
    nsenter -t "$pid" -n ip link set br0 up
    nsenter -t "$pid" -n ip route add default dev br0 # service addresses need a route
    echo "$pid" > "$RUN/hub"
  else
    hub=$(cat "$RUN/hub")
    ip link add "up-$2" netns "$hub" type veth peer name uplink netns "$pid"
    nsenter -t "$hub" -n ip link set "up-$2" master br0 up
    nsenter -t "$pid" -n ip addr add "${HUB_IP%.*}.$2/24" dev uplink
    nsenter -t "$pid" -n ip link set uplink up
    nsenter -t "$pid" -n ip route add default via "$HUB_IP"
  fi
  for other in $(seq $MAX_NODES); do
    [ "$other" = "$2" ] || nsenter -t "$pid" -n ip route add "${POD_CIDR%.*.*}.$other.0/24" via "${HUB_IP%.*}.$other"
  done
}

containerd() {
  local node=$1 _ image
  cat > "$RUN/$node/net.d/10.conflist" <<JSON
{"cniVersion": "1.0.0", "name": "podnet", "plugins": [
  {"type": "ptp", "ipMasq": false, "ipam": {
    "type": "host-local", "dataDir": "$RUN/$node/cni",
    "ranges": [[{"subnet": "${POD_CIDR%.*.*}.$2.0/24"}]], "routes": [{"dst": "0.0.0.0/0"}]}},
  {"type": "portmap", "capabilities": {"portMappings": true}}]}
JSON
  cat > "$RUN/$node/containerd.toml" <<TOML
version = 3
root  = "$RUN/$node/containerd"
state = "/run/containerd"
[grpc]
  address = "/run/containerd/containerd.sock"
[plugins.'io.containerd.cri.v1.images'.pinned_images]
  sandbox = "local.test/pause:3.10"
[plugins.'io.containerd.cri.v1.runtime']
  disable_apparmor = true
  restrict_oom_score_adj = true      # without CAP_SYS_RESOURCE a score below 0 is refused
[plugins.'io.containerd.cri.v1.runtime'.cni]
  bin_dirs = ["$DIR/cni"]
  conf_dir = "$RUN/$node/net.d"
[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"
[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
  SystemdCgroup = false
TOML
  spawn "$node" containerd "$DIR/bin/containerd" -c "$RUN/$node/containerd.toml"
  for _ in $(seq 100); do
    if in_node "$node" "$DIR/bin/ctr" version >/dev/null 2>&1; then break; fi
    sleep 0.1
  done
  load "$node" "$DIR"/image/{pause,busybox,coredns}.tar
}

load() {
  local node=$1 archive
  shift
  for archive in "$@"; do
    in_node "$node" "$DIR/bin/ctr" -n k8s.io images import "$(realpath "$archive")" >/dev/null
  done
}

up() {
  mkdir -p "$RUN/$1"/{kubelet,net.d,volumes}
  rm -f "$RUN/$1/ready"
  make_cgroups "$1"
  start_init "$1"
  plug "$1" "$2"
  containerd "$1" "$2"
}

join() {
  local node=$1 folder=$RUN/$1
  kubeconfig "$folder/kubelet.conf" "https://$HUB_IP:6443" "node-$node" "system:node:$node" system:nodes
  kubeconfig "$folder/kube-proxy.conf" "https://$HUB_IP:6443" "proxy-$node" system:kube-proxy system:node-proxier
  cat > "$folder/kubelet.yaml" <<YAML
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
authentication: {anonymous: {enabled: false}, webhook: {enabled: true}, x509: {clientCAFile: $RUN/pki/ca.crt}}
authorization: {mode: Webhook}
containerRuntimeEndpoint: unix:///run/containerd/containerd.sock
cgroupDriver: cgroupfs
failCgroupV1: false
oomScoreAdj: 0
maxOpenFiles: 20000
clusterDNS: [$DNS_SERVICE_IP]
clusterDomain: cluster.local
resolvConf: $folder/resolv.conf
imageGCHighThresholdPercent: 100
imageGCLowThresholdPercent: 99
evictionHard: {memory.available: 100Mi, nodefs.available: 1%, imagefs.available: 1%}
syncFrequency: 10s
nodeStatusUpdateFrequency: 4s
shutdownGracePeriod: 0s
serializeImagePulls: false
YAML
  cat > "$folder/kube-proxy.yaml" <<YAML
apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
clientConnection: {kubeconfig: $folder/kube-proxy.conf}
mode: nftables
clusterCIDR: $POD_CIDR
hostnameOverride: $node
conntrack: {maxPerCore: 0, min: 0, tcpBeLiberal: true}
YAML
  spawn "$node" kubelet "$DIR/bin/kubelet" --config="$folder/kubelet.yaml" --kubeconfig="$folder/kubelet.conf" \
    --hostname-override="$node" --node-ip="${HUB_IP%.*}.$2" --cert-dir="$folder/kubelet-pki" \
    --root-dir=/var/lib/kubelet
  spawn "$node" kube-proxy "$DIR/bin/kube-proxy" --config="$folder/kube-proxy.yaml"
}

down() {
  local pid controller group _
  pid=$(cat "$RUN/$1/pid" 2>/dev/null || true)
  if [ -n "$pid" ]; then
    kill -9 "$pid" 2>/dev/null || true
    for _ in $(seq 100); do
      [ -d "/proc/$pid" ] || break
      sleep 0.1
    done
  fi
  # A group can be removed when the last of its processes is gone, which takes a moment.
  for controller in $CONTROLLERS; do
    group=$(cgroup "$controller" "$1")
    for _ in $(seq 6); do
      [ -d "$group" ] || break
      if find "$group" -depth -type d -exec rmdir {} + 2>/dev/null; then break; fi
      sleep 0.3
    done
  done
  rm -rf "${RUN:?}/$1"
}

# A node other than node-1 loses every other node, and the API server.
cut_off() { in_node "$1" ip link set uplink down; }

heal() {
  local other
  in_node "$1" ip link set uplink up
  in_node "$1" ip route replace default via "$HUB_IP"
  for other in $(seq $MAX_NODES); do
    [ "node-$other" = "$1" ] || in_node "$1" ip route replace "${POD_CIDR%.*.*}.$other.0/24" via "${HUB_IP%.*}.$other"
  done
}

verb=${1:-}
shift || true
case $verb in
  up | join | down | load | spawn | stop | heal) "$verb" "$@" ;;
  exec) in_node "$@" ;;
  cut) cut_off "$@" ;;
  *)
    sed -n 2,3p "$0"
    exit 2
    ;;
esac
