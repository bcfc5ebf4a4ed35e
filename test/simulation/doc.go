// SPDX-License-Identifier: Apache-2.0

// Package simulation plays random histories with the real operator: manager processes on a simulated network, an API server
// in memory, and a world that runs pods, answers calls and has users who want things.
//
// One history is a function of its seed. Everything happens in a bubble with a clock of its own (testing/synctest), and in
// one order: whatever a process asks of the API server or of a web server waits until the scheduler carries it out, after a
// delay that is drawn from the seed and from what is asked. Caches learn of changes when the scheduler tells them, each kind
// by itself, as late as it likes. So a whole operator with leader election, crashes, lost answers and late requests is played
// in milliseconds, and played again from its seed.
package simulation
