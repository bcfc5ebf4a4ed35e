// SPDX-License-Identifier: Apache-2.0

// Package memoryapi is a Kubernetes API server in memory, for tests that run histories by the thousand. It serves the kinds
// that the product uses, and of the server's behaviour all that the product may meet: resource versions and conflicts, the
// status subresource, generations, generated names, finalizers, preconditions, selectors and pages, and for custom resources
// the pruning, defaulting and validation (CEL with transition rules and ratcheting included) of the definitions that are
// installed on clusters, by the API server's own libraries. The package conformance holds it against a real API server.
//
// It is deterministic: UIDs and generated names come from counters, lists are in the order of keys, and time is what the
// caller says. Nothing happens by itself: there is no controller, no kubelet, and the garbage collector collects when told to.
//
// What it leaves out: managed fields (they are always empty), server-side apply, patches other than merge patches, watches (the
// history of every kind is kept whole instead; see Server.Events), the end of old pages and versions, dry runs, the deletion of
// namespaces, the cost budget of rules, the refusal of unknown fields (they are dropped), admission beyond the existence of the
// namespace, authentication and authorisation. Of the rules of pods and Jobs it has those that the product meets.
package memoryapi
