# The cluster's keys, certificates and kubeconfigs, in $RUN. Sourced after versions.sh.

# new_ca: the authority that everything else is signed by, and the key of ServiceAccount tokens
new_ca() {
  mkdir -p "$RUN/pki"
  openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 30 -subj /CN=mooring-ca \
    -keyout "$RUN/pki/ca.key" -out "$RUN/pki/ca.crt" 2>/dev/null
  openssl genrsa -out "$RUN/pki/sa.key" 2048 2>/dev/null
  openssl rsa -in "$RUN/pki/sa.key" -pubout -out "$RUN/pki/sa.pub" 2>/dev/null
}

# cert FILE COMMON-NAME ORGANISATION [SUBJECT-ALTERNATIVE-NAMES]
cert() {
  local file=$RUN/pki/$1 extensions='extendedKeyUsage=clientAuth,serverAuth'
  [ ! -e "$file.crt" ] || return 0
  [ -z "${4:-}" ] || extensions+=$'\n'"subjectAltName=$4"
  openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj "/O=$3/CN=$2" \
    -keyout "$file.key" -out "$file.csr" 2>/dev/null
  openssl x509 -req -in "$file.csr" -CA "$RUN/pki/ca.crt" -CAkey "$RUN/pki/ca.key" -CAcreateserial -days 30 \
    -out "$file.crt" -extfile <(echo "$extensions") 2>/dev/null
}

# kubeconfig FILE SERVER CERTIFICATE COMMON-NAME ORGANISATION
kubeconfig() {
  cert "$3" "$4" "$5"
  cat > "$1" <<YAML
apiVersion: v1
kind: Config
clusters: [{name: mooring, cluster: {server: "$2", certificate-authority-data: $(base64 -w0 "$RUN/pki/ca.crt")}}]
users:
- name: "$4"
  user:
    client-certificate-data: $(base64 -w0 "$RUN/pki/$3.crt")
    client-key-data: $(base64 -w0 "$RUN/pki/$3.key")
contexts: [{name: mooring, context: {cluster: mooring, user: "$4"}}]
current-context: mooring
YAML
}
