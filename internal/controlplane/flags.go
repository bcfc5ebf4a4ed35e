// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"path/filepath"
	"strconv"
	"strings"
)

// defaultControllers are what Jobs and their users need: Jobs get pods, owners take what they own along, namespaces empty
// themselves, finished Jobs end by their TTL, and the roles view, edit and admin are put together from their parts. The
// service account controller shows at start that all of them run.
var defaultControllers = []string{
	"job-controller",
	"garbage-collector-controller",
	"namespace-controller",
	"serviceaccount-controller",
	"ttl-after-finished-controller",
	"clusterrole-aggregation-controller",
}

// File names in a control plane's directory.
const (
	caFile         = "ca.crt"
	serverCertFile = "apiserver.crt"
	serverKeyFile  = "apiserver.key"
	signerKeyFile  = "service-accounts.key"
	kubeconfigFile = "kubeconfig"
	etcdDataDir    = "etcd"
)

// EtcdFlags are those of a store of one member, with its data below dir, that clients reach by a socket file. The peer
// address is unused; port 0 lets the kernel choose, and etcd wants a port in the address it advertises.
func EtcdFlags(dir, socket string, fsync bool) []string {
	flags := []string{
		"--data-dir=" + filepath.Join(dir, etcdDataDir),
		"--listen-client-urls=" + socketURL(socket),
		"--advertise-client-urls=http://127.0.0.1:0",
		"--listen-peer-urls=http://127.0.0.1:0",
		"--log-level=warn",
	}
	if !fsync {
		flags = append(flags, "--unsafe-no-fsync")
	}
	return flags
}

func socketURL(socket string) string { return "unix://" + socket }

// apiServerFlags are those of an API server on loopback. Admission by the ServiceAccount plugin is off: it refuses pods
// until a controller has made the namespace's default account, a race that every test would have to wait out.
func apiServerFlags(dir, socket string, port int, more []string) []string {
	in := func(file string) string { return filepath.Join(dir, file) }
	return append([]string{
		"--etcd-servers=" + socketURL(socket),
		"--bind-address=127.0.0.1",
		"--advertise-address=127.0.0.1",
		"--endpoint-reconciler-type=none", // it refuses to publish a loopback address
		"--secure-port=" + strconv.Itoa(port),
		"--tls-cert-file=" + in(serverCertFile),
		"--tls-private-key-file=" + in(serverKeyFile),
		"--client-ca-file=" + in(caFile),
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + in(signerKeyFile),
		"--service-account-signing-key-file=" + in(signerKeyFile),
		"--service-cluster-ip-range=10.0.0.0/24",
		"--authorization-mode=RBAC",
		"--disable-admission-plugins=ServiceAccount",
		"--allow-privileged=true",
		"--profiling=false",
	}, more...)
}

// controllerManagerFlags run the named controllers, with limits that never make a test wait, and listen nowhere.
func controllerManagerFlags(kubeconfig string, more []string) []string {
	controllers := append(append([]string{}, defaultControllers...), more...)
	return []string{
		"--kubeconfig=" + kubeconfig,
		"--controllers=" + strings.Join(controllers, ","),
		"--leader-elect=false",
		"--secure-port=0",
		"--kube-api-qps=2000",
		"--kube-api-burst=4000",
		"--concurrent-job-syncs=20",
		"--concurrent-gc-syncs=20",
		"--profiling=false",
	}
}
