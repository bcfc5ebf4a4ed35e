// SPDX-License-Identifier: Apache-2.0

// Package realnode runs a Kubernetes cluster of one node that runs pods for real, on a Linux machine where one is root and
// no Docker engine is needed: etcd, kube-apiserver, kube-controller-manager, kube-scheduler, containerd and kubelet.
//
// All of it lives in namespaces of its own (network, mounts, processes), made by Enter, and in one directory. Whatever
// happens to it, the kernel takes it down with the first process of those namespaces: no mount, no device and no process
// outlives it, and a second cluster beside it is never in its way. A program that uses Start runs inside:
//
//	bin/realnode enter -name e2e -- bin/e2e.test
//
// There is no kube-proxy and no DNS: a pod reaches other pods by their addresses, and the API server by the address that
// Kubernetes tells every pod. Nothing in it reaches the outside, so images are loaded from files.
//
// The package is support for tests and tools. Nothing that is shipped imports it.
package realnode
