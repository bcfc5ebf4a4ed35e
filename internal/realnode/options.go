// SPDX-License-Identifier: Apache-2.0

package realnode

import (
	"io"
	"time"
)

// Options say what kind of node is wanted.
type Options struct {
	// Progress receives lines about what takes long; nil means standard error.
	Progress io.Writer
	// Images are files of images, as `docker save` writes them or as OCI archives, that are loaded before the kubelet
	// starts. The pause image must be among them.
	Images []string
	// PauseImage is the image that holds a pod's namespaces; empty means DefaultPauseImage.
	PauseImage string
	// NodeGrace is how long the kubelet may be silent until its node counts as not ready; 0 means DefaultNodeGrace.
	NodeGrace time.Duration
	// APIServerArgs are further flags of kube-apiserver.
	APIServerArgs []string
}

const (
	// DefaultPauseImage is the pause image of the project's own tests.
	DefaultPauseImage = "reprise/e2e-pause:latest"
	// DefaultNodeGrace is short, for tests of nodes that are lost. The kubelet gives a sign of life every 2 seconds.
	DefaultNodeGrace = 10 * time.Second
	// NodeName is the name of the one node.
	NodeName = "node"
	// NodeIP is the node's address, and the API server's, in the network namespace. Every cluster has the same one.
	NodeIP = "10.88.0.1"
)

// The addresses inside a cluster. Nobody outside sees them, so all clusters have the same.
const (
	bridge = "reprise0"
	// bridgeMAC stays. A bridge without one takes a port's, and loses it with that port's pod: all others would then call a
	// gateway that is gone until they ask again.
	bridgeMAC  = "02:00:0a:58:00:01"
	podSubnet  = "10.88.0.0/16"
	serviceIPs = "10.96.0.0/16"
	// apiService is the address that Kubernetes gives to its own API: the first one for services. The bridge has it too, so
	// that pods reach the API server at it, port 443, without anything that would route services.
	apiService = "10.96.0.1"
)

// Places inside the namespaces. They are short because the path of a socket may have 100 bytes.
const (
	// inside is the cluster's directory.
	inside = "/run/reprise"
	// runtimeSocket is containerd's. Its shims use this directory whatever it is told.
	runtimeSocket = "/run/containerd/containerd.sock"
)

// Files and directories of the cluster's directory.
const (
	kubeconfigFile = "kubeconfig"
	logsDir        = "logs"
	podLogsDir     = "logs/pods"
	auditLogFile   = "logs/audit.log"
	kubeletDir     = "kubelet"
	containerdDir  = "containerd"
	pidFile        = "pid"
	markerFile     = ".reprise-node"
)
