// SPDX-License-Identifier: Apache-2.0

// Command bench measures Reprise beside what it is compared with, in one run on one machine: a raw writer that makes the same
// writes, and Kubernetes' own CronJob and Job controllers. The manager and they are processes of their own against a real
// API server whose etcd syncs to disk. Repetitions alternate, and what counts are ratios: seconds are this machine's. See
// docs/performance.md.
//
// A row is one question, row_*.go one each. It has sides, which are measured in turn, and figures made of what they return.
package main
