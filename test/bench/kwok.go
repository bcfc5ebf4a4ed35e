// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"reprise.dev/reprise/internal/controlplane"
)

// Stages of kwok, as files below kustomize/stage of its module: what becomes of its nodes and pods, each as fast as it goes.
const (
	nodesGetReady = "node/fast/node-initialize.yaml"
	podsGetReady  = "pod/fast/pod-ready.yaml"
	podsComplete  = "pod/fast/pod-complete.yaml"
	podsVanish    = "pod/fast/pod-delete.yaml"
)

// Kwok plays the nodes of a row's control plane, to which a kube-scheduler binds pods: no container ever runs, yet the API
// server, the scheduler and the controllers have the work of that many pods. It is hack/kwok's, with stages of its own.
type Kwok struct {
	plane           *controlplane.Plane
	program, module string // the binary, and the sources, which have the stages
	config          string // a file with its parallelism
	name            string // of the process that plays now
	plays           int
}

// OpenKwok starts kube-scheduler without client limits, and makes nodes that get ready. Everything ends with the control plane.
func (b *Bench) OpenKwok(ctx context.Context, nodes int) (*Kwok, error) {
	if err := b.schedule(ctx); err != nil {
		return nil, err
	}
	k := &Kwok{plane: b.Plane, config: filepath.Join(b.Plane.Dir(), "kwok.json")}
	var err error
	if k.program, err = goTells(ctx, "tool", "-modfile=hack/kwok/go.mod", "-n", "kwok"); err != nil {
		return nil, err
	}
	if k.module, err = goTells(ctx, "list", "-modfile=hack/kwok/go.mod", "-m", "-f={{.Dir}}", "sigs.k8s.io/kwok"); err != nil {
		return nil, err
	}
	if err := os.WriteFile(k.config, kwokConfiguration(), 0o600); err != nil {
		return nil, err
	}
	if err := Parallel(ctx, nodes, clients, b.addNode); err != nil {
		return nil, err
	}
	if err := k.Play(ctx); err != nil {
		return nil, err
	}
	return k, Until(ctx, "every node is ready", func() (bool, error) {
		list := &corev1.NodeList{}
		err := b.Client.List(ctx, list)
		return everyNodeIsReady(list.Items), err
	})
}

// schedule starts kube-scheduler, with the limits that the control plane's controllers have.
func (b *Bench) schedule(ctx context.Context) error {
	assets, err := controlplane.EnsureAssets(ctx, controlplane.AssetOptions{Scheduler: true, Progress: b.progress})
	if err != nil {
		return err
	}
	return b.Plane.Run(ctx, controlplane.Program{
		Name: "kube-scheduler", Path: assets.Scheduler, Ready: atOnce,
		Args: []string{
			"--kubeconfig=" + b.Plane.Kubeconfig(), "--leader-elect=false", "--secure-port=0",
			"--kube-api-qps=2000", "--kube-api-burst=4000", "--profiling=false",
		},
	})
}

// Play ends what kwok plays now, and has it play these stages of pods on all nodes from now on. What nodes and pods are stays.
func (k *Kwok) Play(ctx context.Context, stages ...string) error {
	if k.name != "" {
		if err := k.plane.Kill(k.name); err != nil {
			return err
		}
	}
	args := []string{"--kubeconfig=" + k.plane.Kubeconfig(), "--config=" + k.config}
	for _, stage := range append([]string{nodesGetReady}, stages...) { // it plays no pods of nodes that it does not play
		args = append(args, "--config="+filepath.Join(k.module, "kustomize", "stage", stage))
	}
	k.plays++
	k.name = fmt.Sprintf("kwok-%d", k.plays)
	return k.plane.Run(ctx, controlplane.Program{Name: k.name, Path: k.program, Args: args, Ready: atOnce})
}

// atOnce is for programs that show what they do in what they do.
func atOnce(context.Context) error { return nil }

// kwokConfiguration lets kwok play so many pods at once that it is not what everything waits for; it has no limit of requests.
// There are no leases of nodes, since no controller here asks for them.
func kwokConfiguration() []byte {
	data, _ := json.Marshal(map[string]any{ // of maps and numbers: it cannot fail
		"apiVersion": "config.kwok.x-k8s.io/v1alpha1", "kind": "KwokConfiguration",
		"options": map[string]any{
			"manageAllNodes": true, "cidr": "10.64.0.0/12", "nodeIP": "10.63.0.1",
			"podPlayStageParallelism": clients, "nodePlayStageParallelism": clients, "podsOnNodeSyncParallelism": clients,
		},
	})
	return data
}

// addNode makes a node, and takes the taint away that the API server gives to new ones: there is no node controller, which
// would do so once the node is ready, but would want to see it live, too.
func (b *Bench) addNode(ctx context.Context, i int) error {
	node := kwokNode(i)
	if err := b.Client.Create(ctx, node); err != nil {
		return err
	}
	return b.Client.Patch(ctx, node, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"taints":null}}`)))
}

// kwokNode has room for as many pods as kubelets take by default.
func kwokNode(i int) *corev1.Node {
	room := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("32"), corev1.ResourceMemory: resource.MustParse("256Gi"), corev1.ResourcePods: resource.MustParse("110"),
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("kwok-%03d", i)},
		Status:     corev1.NodeStatus{Allocatable: room, Capacity: room},
	}
}

func everyNodeIsReady(nodes []corev1.Node) bool {
	ready := 0
	for _, node := range nodes {
		for _, c := range node.Status.Conditions {
			if c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue {
				ready++
			}
		}
	}
	return ready == len(nodes)
}

// goTells returns what a go command prints, run in the repository's root.
func goTells(ctx context.Context, args ...string) (string, error) {
	root, err := controlplane.Root()
	if err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir, cmd.Env = root, append(os.Environ(), "CGO_ENABLED=0")
	out, err := cmd.Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return "", fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, strings.TrimSpace(string(exit.Stderr)))
	}
	return strings.TrimSpace(string(out)), err
}
