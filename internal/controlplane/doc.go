// SPDX-License-Identifier: Apache-2.0

// Package controlplane gives tests and tools a Kubernetes control plane of their own: etcd, kube-apiserver and,
// on request, kube-controller-manager, as processes of this machine that listen on loopback only and end with the
// process that started them.
//
// It finds or makes the binaries (EnsureAssets), runs them (Start), and hands out what a client needs. An exported
// KUBECONFIG is never read; the one way to use another cluster is CLUSTER=existing CONTEXT=<name> with Acquire.
//
// Kill, Pause, Continue and Restart do to its processes what tests of crashes need.
//
// Its parts (Processes, Access, Authority and the binaries) serve internal/realnode too, which adds a node with pods.
//
// The package is support for tests and tools. Nothing that is shipped imports it.
package controlplane
