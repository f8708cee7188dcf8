#!/bin/bash
# Fetches and builds what the cluster is made of, into $DIR. Does nothing that is done already.
# Needs root on Debian, and go, gcc and python3. What it leaves on the machine itself are Debian's own packages.
set -euo pipefail
cd "$(dirname "$0")"
. ./versions.sh

[ "$(id -u)" = 0 ] || die "get.sh needs root"
mkdir -p "$DIR/bin" "$DIR/image"

host_packages() {
  local program missing=
  for program in runc ip iptables nft conntrack ipset tini busybox jq openssl socat nsenter; do
    command -v "$program" >/dev/null || missing+=" $program"
  done
  [ -n "$missing" ] || return 0
  say "Debian packages, for$missing"
  apt-get update -qq
  apt-get install -y -qq --no-install-recommends \
    runc iproute2 iptables nftables conntrack ipset tini busybox-static jq openssl socat mount util-linux >/dev/null
}

# containerd, CNI and etcd are newer in sid. They are unpacked and not installed, since they need no more than the
# libc of Debian 12: the system's own packages stay as they are.
unpacked_packages() {
  [ ! -e "$DIR/.debian" ] || return 0
  say "containerd, CNI and etcd"
  local apt=$DIR/apt uri deb
  mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial" "$apt/deb"
  # Either file may be missing, and awk leaves at the first address that it finds: neither is a failure.
  uri=$({ cat /etc/apt/sources.list.d/debian.sources /etc/apt/sources.list 2>/dev/null || true; } |
    awk '/^URIs:/ && !found {print $2; found = 1} /^deb / && !found {for (i = 2; i <= NF && !found; i++) if ($i ~ /:\/\//) {print $i; found = 1}}')
  [ -n "$uri" ] || die "no Debian archive in /etc/apt/sources.list.d/debian.sources or /etc/apt/sources.list"
  echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $uri sid main" > "$apt/sources.list"
  cat > "$apt/apt.conf" <<CONF
Dir::Etc::sourcelist "$apt/sources.list";
Dir::Etc::sourceparts "/dev/null";
Dir::State::lists "$apt/lists";
Dir::Cache "$apt/cache";
APT::Sandbox::User "root";
CONF
  (
    cd "$apt/deb"
    export APT_CONFIG=$apt/apt.conf
    apt-get update -qq
    apt-get download -qq containerd/sid containernetworking-plugins/sid etcd-server/sid etcd-client/sid
    for deb in *.deb; do dpkg -x "$deb" unpacked; done
  )
  cp "$apt"/deb/unpacked/usr/bin/* "$DIR/bin/"
  rm -rf "$DIR/cni"
  cp -r "$apt/deb/unpacked/usr/lib/cni" "$DIR/cni"
  rm -rf "$apt"
  touch "$DIR/.debian"
}

kubernetes() {
  local pins stamp=$DIR/.kubernetes build=$DIR/go program
  pins=$(cat go/go.mod go/go.sum go/coredns/main.go | sha256sum)
  [ "$(cat "$stamp" 2>/dev/null)" != "$pins" ] || return 0
  say "Kubernetes $KUBE, CoreDNS and Helm, built from their Go modules (once; minutes)"
  rm -rf "$build"
  cp -r go "$build"
  local v=k8s.io/component-base/version minor=${KUBE#*.}
  local ldflags="-s -w -X $v.gitVersion=v$KUBE -X $v.gitMajor=${KUBE%%.*} -X $v.gitMinor=${minor%%.*}"
  ldflags+=" -X $v.gitTreeState=clean -X $v.gitCommit=modules -X $v.buildDate=1970-01-01T00:00:00Z"
  (
    cd "$build"
    export CGO_ENABLED=0 GOFLAGS=-mod=mod
    for program in kube-apiserver kube-controller-manager kube-scheduler kubelet kube-proxy kubectl; do
      say "  $program"
      go build -trimpath -ldflags "$ldflags" -o "$DIR/bin/" "k8s.io/kubernetes/cmd/$program"
    done
    say "  coredns"
    go build -trimpath -ldflags '-s -w' -o "$DIR/bin/coredns" ./coredns
    say "  helm"
    go build -trimpath -ldflags '-s -w' -o "$DIR/bin/helm" helm.sh/helm/v4/cmd/helm
  )
  rm -rf "$build" "$DIR/.images"
  echo "$pins" > "$stamp"
}

base_images() {
  [ ! -e "$DIR/.images" ] || return 0
  say "base images"
  local image=$DIR/image applet
  rm -rf "${image:?}"/*
  mkdir -p "$image/pause" "$image/busybox/bin" "$image/busybox/tmp" "$image/coredns"
  gcc -Os -static -s -o "$image/pause/pause" pause.c
  cp "$(command -v busybox)" "$image/busybox/bin/busybox"
  for applet in $(busybox --list); do
    [ "$applet" = busybox ] || ln -sf busybox "$image/busybox/bin/$applet"
  done
  cp "$DIR/bin/coredns" "$image/coredns/"
  ./mkimage.py "$image/pause.tar" local.test/pause:3.10 "$image/pause" \
    '{"Entrypoint":["/pause"],"User":"65535:65535"}'
  ./mkimage.py "$image/busybox.tar" local.test/busybox:1 "$image/busybox" '{"Cmd":["/bin/sh"],"Env":["PATH=/bin"]}'
  ./mkimage.py "$image/coredns.tar" local.test/coredns:1 "$image/coredns" \
    '{"Entrypoint":["/coredns"],"User":"65532:65532"}'
  rm -rf "$image/pause" "$image/busybox" "$image/coredns"
  touch "$DIR/.images"
}

host_packages
unpacked_packages
kubernetes
base_images
