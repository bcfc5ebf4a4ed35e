// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"reprise.dev/reprise/internal/realnode"
)

// requireNode returns the node of ours that a test needs. Elsewhere the table says that the test was not made.
func requireNode(t *testing.T) *realnode.Node {
	t.Helper()
	if node == nil {
		notHere(t, "needs a node of its own: only where there is neither Docker nor CLUSTER=existing")
	}
	return node
}

// slow leaves a test to the full suite.
func slow(t *testing.T) {
	t.Helper()
	if os.Getenv("E2E") != "full" {
		notHere(t, "is slow: make e2e-full")
	}
}

func notHere(t *testing.T, why string) {
	t.Helper()
	results.Absent(t.Name(), why)
	t.Skip(why)
}

// atEnd registers a check of what the whole suite has left behind. It is made after all tests, if all were run.
func atEnd(sentence string, check func(context.Context) error) struct{} {
	endChecks = append(endChecks, endCheck{sentence, check})
	return struct{}{}
}

type endCheck struct {
	sentence string
	check    func(context.Context) error
}

var endChecks []endCheck

// errNotHere is returned, wrapped with why, by a check that cannot be made on this cluster.
var errNotHere = errors.New("not here")

func atTheEnd(code int) {
	slices.SortFunc(endChecks, func(a, b endCheck) int { return strings.Compare(a.sentence, b.sentence) })
	for _, c := range endChecks {
		if code != 0 || isSet("test.run") || isSet("test.skip") {
			results.AddAbsent(c.sentence, "judges a whole run in which nothing failed")
			continue
		}
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		start := time.Now()
		err := c.check(ctx)
		cancel()
		if errors.Is(err, errNotHere) {
			results.AddAbsent(c.sentence, err.Error())
			continue
		}
		results.Add(c.sentence, time.Since(start).Seconds(), err)
	}
}
