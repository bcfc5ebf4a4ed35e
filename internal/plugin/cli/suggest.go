// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

const (
	// suggested is how many names an error suggests.
	suggested = 3
	// searched is how many objects are looked at for them.
	searched = 2000
)

// suggesting adds to the error of an object that does not exist the names of those that are called alike. If they cannot be read
// the error stays as it is.
func suggesting(ctx context.Context, c client.Reader, err error, namespace, name string, wanted client.Object) error {
	if !apierrors.IsNotFound(err) || unknownKind(err) {
		return err
	}
	kind, kindErr := apiutil.GVKForObject(wanted, Scheme())
	if kindErr != nil {
		return err
	}
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	missing := &Missing{Kind: kind.Kind, Namespace: namespace, Name: name}
	if c.List(ctx, list, client.InNamespace(namespace), client.Limit(searched)) == nil {
		missing.none = len(list.Items) == 0
		missing.Similar = Similar(name, names(list))
	}
	if len(missing.Similar) == 0 && c.List(ctx, list, client.MatchingFields{"metadata.name": name}, client.Limit(suggested)) == nil {
		for i := range list.Items {
			missing.elsewhere = append(missing.elsewhere, list.Items[i].Namespace)
		}
	}
	return missing
}

func names(list *metav1.PartialObjectMetadataList) []string {
	all := make([]string, 0, len(list.Items))
	for i := range list.Items {
		all = append(all, list.Items[i].Name)
	}
	return all
}

// Missing is the error of an object that does not exist.
type Missing struct {
	Kind, Namespace, Name string
	// Similar are the names of those that are called alike, the best first.
	Similar []string

	elsewhere []string // namespaces that have one of that name
	none      bool     // the namespace has none of the kind
}

// Error implements error.
func (m *Missing) Error() string {
	text := fmt.Sprintf("there is no %s %q in namespace %q", m.Kind, m.Name, m.Namespace)
	switch {
	case len(m.Similar) > 0:
		return text + "\ndid you mean " + strings.Join(m.Similar, ", or ") + "?"
	case len(m.elsewhere) > 0:
		return fmt.Sprintf("%s\nthere is one in namespace %s: add --namespace", text, strings.Join(m.elsewhere, " and in "))
	case m.none:
		return fmt.Sprintf("%s, nor any other %s\nis it the right namespace? add --namespace, or --context for another cluster", text, m.Kind)
	default:
		return text
	}
}

// Similar returns the names that a misspelt one may mean, the best first: at most three.
func Similar(name string, names []string) []string {
	type match struct {
		name  string
		apart int
	}
	var matches []match
	for _, other := range names {
		apart := distance(name, other)
		if len(name) > 2 && (strings.Contains(other, name) || strings.Contains(name, other) && len(other) > 2) {
			apart = min(apart, 1)
		}
		if apart <= max(2, len(name)/4) && apart < len(name) {
			matches = append(matches, match{other, apart})
		}
	}
	slices.SortFunc(matches, func(a, b match) int { return cmp.Or(cmp.Compare(a.apart, b.apart), strings.Compare(a.name, b.name)) })
	var best []string
	for _, m := range matches[:min(len(matches), suggested)] {
		best = append(best, m.name)
	}
	return best
}

// distance is how many letters must be added, left out, changed or swapped with their neighbour to make one name of the other.
func distance(a, b string) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := range len(a) {
		row[0] = i + 1
		for j := range len(b) {
			row[j+1] = min(row[j]+1, last[j+1]+1, last[j]+differ(a[i], b[j]))
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}

func differ(a, b byte) int {
	if a == b {
		return 0
	}
	return 1
}
