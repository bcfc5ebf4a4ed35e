// SPDX-License-Identifier: Apache-2.0

// Package group decides what becomes of a JobGroup: which members are made now, which runs are asked to end, and what its
// status says. It is pure.
//
// A member has settled when its chain has, and nothing of its work lives; what it settled as never changes. Its chain may
// still be taken up again by a person: that run is no longer the group's. A group ends when every member has settled.
//
// One rule a file: name.go names the runs, standing.go says where a member stands, turn.go whose turn it is, policy.go and
// the files of its policies what a failure does to the rest, ending.go what else ends a group early, phase.go and
// conditions.go what the group says of itself.
package group
