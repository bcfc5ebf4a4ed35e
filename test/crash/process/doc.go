// SPDX-License-Identifier: Apache-2.0

// Package process tests the built manager as processes, while those and the control plane are killed and stopped under load.
//
// Two histories go on side by side, each in a namespace of its own: two managers with leader election, of which one runs in
// what looks like a pod and one does not, and one manager without leader election that is started again. A seed makes the
// schedule of interventions: SIGKILL and SIGSTOP of managers, of the API server and of etcd, at random times, in bursts
// with calm between them. Then everything is healed, it settles, and package invariant checks what a watch has seen, and
// what the work itself wrote down.
//
// The environment:
//
//	PROCESS_KILLS   how many interventions there are (default 10; about 50 a minute)
//	SEED            of the schedule and of the load (default random; it is printed)
//	PROCESS_LOGS    a directory that keeps the logs of the managers, and what was seen (default a temporary one)
//
// The same SEED and PROCESS_KILLS make the same schedule and the same load. What the processes make of them differs a little
// from time to time, as on any machine.
package process
