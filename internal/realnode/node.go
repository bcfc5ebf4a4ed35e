// SPDX-License-Identifier: Apache-2.0

package realnode

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"reprise.dev/reprise/internal/controlplane"
)

// Names of the processes, which are those of their logs.
const (
	etcdName         = controlplane.Etcd
	apiServerName    = controlplane.APIServer
	controllersName  = controlplane.ControllerManager
	schedulerName    = "kube-scheduler"
	containerdName   = "containerd"
	runtimeEventName = "containerd-events"
	kubeletName      = "kubelet"
)

// Node is a running cluster of one node.
type Node struct {
	*controlplane.Access
	processes *controlplane.Processes
	dir       string // by its name outside
	ctr       ctr
	journal   *Journal
	progress  io.Writer

	stopOnce sync.Once
	stopErr  error
}

// Start starts a cluster and returns when its node is ready and the images are loaded. It works in a process that Enter
// has started. ctx bounds the starting; what is started runs until Stop, or the end of this process.
func Start(ctx context.Context, o Options) (*Node, error) {
	if !Inside() {
		return nil, errors.New("not in the namespaces of a cluster: run this by `realnode enter -- ...`")
	}
	if o.PauseImage == "" {
		o.PauseImage = DefaultPauseImage
	}
	if o.NodeGrace == 0 {
		o.NodeGrace = DefaultNodeGrace
	}
	if o.Progress == nil {
		o.Progress = os.Stderr
	}
	assets, runtime, err := ensureBinaries(ctx, o.Progress)
	if err != nil {
		return nil, err
	}
	access, err := writeFiles(time.Now(), cgroupName(os.Getenv(nameVariable)), runtime, o.PauseImage, assets.Kubectl)
	if err != nil {
		return nil, err
	}
	n := &Node{
		Access:    access,
		processes: controlplane.NewProcesses(at(logsDir)),
		dir:       os.Getenv(dirVariable),
		ctr:       ctr{path: runtime.ctr},
		progress:  o.Progress,
	}
	if err := n.start(ctx, assets, runtime, o); err != nil {
		return nil, errors.Join(err, n.Stop())
	}
	return n, nil
}

// start brings up the processes one after the other. Whatever it leaves behind on an error, Stop removes.
func (n *Node) start(ctx context.Context, assets controlplane.Assets, runtime runtimeBinaries, o Options) error {
	const etcdSocket = "/run/etcd.sock"
	programs := []controlplane.Program{
		{Name: containerdName, Path: runtime.containerd, Args: []string{"--config", at(containerdConfFile)}, Ready: n.ctr.answers},
		{Name: etcdName, Path: assets.Etcd, Args: controlplane.EtcdFlags(inside, etcdSocket, false), Ready: listens("unix", etcdSocket)},
		{Name: apiServerName, Path: assets.APIServer, Args: apiServerFlags(etcdSocket, o.APIServerArgs), Ready: n.get("/readyz")},
		{Name: controllersName, Path: assets.ControllerManager, Args: controllerManagerFlags(o.NodeGrace), Ready: n.get("/api/v1/namespaces/default/serviceaccounts/default")},
		{Name: schedulerName, Path: assets.Scheduler, Args: schedulerFlags(), Ready: atOnce},
	}
	for _, program := range programs {
		if err := n.processes.Run(ctx, program); err != nil {
			return err
		}
	}
	journal, err := n.follow(ctx)
	if err != nil {
		return err
	}
	n.journal = journal
	if err := n.Load(ctx, o.Images...); err != nil {
		return err
	}
	kubelet := controlplane.Program{Name: kubeletName, Path: assets.Kubelet, Args: kubeletFlags(), Ready: n.kubeletAnswers}
	if err := n.processes.Run(ctx, kubelet); err != nil {
		return err
	}
	return n.waitForNode(ctx)
}

// atOnce is for a program that shows nowhere that it works; what it does is waited for later.
func atOnce(context.Context) error { return nil }

func (n *Node) kubeletAnswers(ctx context.Context) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("http://127.0.0.1:%d/healthz", healthPort), nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		err = errors.New(response.Status)
	}
	return errors.Join(err, response.Body.Close())
}

// waitForNode returns when pods can be scheduled to the node.
func (n *Node) waitForNode(ctx context.Context) error {
	client, err := kubernetes.NewForConfig(n.Config())
	if err != nil {
		return err
	}
	return n.eventually(ctx, "the node is not ready", func(ctx context.Context) error {
		node, err := client.CoreV1().Nodes().Get(ctx, NodeName, metav1.GetOptions{})
		if err != nil {
			return err
		}
		for _, condition := range node.Status.Conditions {
			if condition.Type == corev1.NodeReady && condition.Status != corev1.ConditionTrue {
				return errors.New(condition.Message)
			}
		}
		if len(node.Spec.Taints) > 0 {
			return fmt.Errorf("it has the taint %s", node.Spec.Taints[0].Key)
		}
		return nil
	})
}

// Load loads images from files, for pods with imagePullPolicy Never or IfNotPresent.
func (n *Node) Load(ctx context.Context, tarballs ...string) error {
	for _, tarball := range tarballs {
		if err := n.ctr.load(ctx, tarball); err != nil {
			return err
		}
	}
	return nil
}

// KillKubelet ends the kubelet at once (SIGKILL). Its pods go on.
func (n *Node) KillKubelet() error { return n.processes.Kill(kubeletName) }

// StartKubelet starts the kubelet again after KillKubelet and returns when it answers; the node may count as not ready for
// some seconds more.
func (n *Node) StartKubelet(ctx context.Context) error { return n.processes.Restart(ctx, kubeletName) }

// AuditLog returns the path of the API server's audit log: a line of JSON (audit.k8s.io/v1 Event, level Metadata) for each
// request, when it is answered; a watch has two, at its start (stage ResponseStarted) and at its end.
func (n *Node) AuditLog() string { return filepath.Join(n.dir, auditLogFile) }

// Dir returns the directory with everything of the cluster.
func (n *Node) Dir() string { return n.dir }

// Logs returns the directory with the logs: a file per process, and pods/<namespace>_<pod>_<uid>/<container>/ for the pods.
func (n *Node) Logs() string { return filepath.Join(n.dir, logsDir) }

// Ended is closed when a process of the cluster has ended, be it by Stop, but not by KillKubelet.
func (n *Node) Ended() <-chan struct{} { return n.processes.Ended() }

// Err explains the end of the first process that ended without being asked; nil while all run.
func (n *Node) Err() error { return n.processes.Err() }
