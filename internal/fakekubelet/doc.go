// SPDX-License-Identifier: Apache-2.0

// Package fakekubelet plays the scheduler and the kubelet of a control plane that has neither, so that Jobs get pods that
// start, run and end without any container. It speaks to the API server as the real ones do: it binds pods, writes their
// status, and at last removes terminating ones, which until then live on as they would on a node. Test support: not
// linked into the manager.
//
// A pod says by annotations what its containers do; a test may also decide while the pod runs, by Finish. Start one for
// a control plane, not one a test.
package fakekubelet
