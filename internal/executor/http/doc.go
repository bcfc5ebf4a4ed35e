// SPDX-License-Identifier: Apache-2.0

// Package httpwork executes HTTP work: one call made by the manager itself for each attempt of a run.
//
// A call lives in this process alone. What this process began it knows for certain; of a call that another process began
// it knows only when it cannot be going on any more (see look.go). An attempt sends its request once: it is sent again as
// another attempt, with the same Idempotency-Key and a higher Reprise-Attempt, or not at all.
package httpwork
