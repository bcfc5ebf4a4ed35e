// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"slices"
	"strings"
)

// Judge compares rights with what was asked for. It can be shown several accounts that have the same rights in different
// places: a right that one of them has used is used.
type Judge struct {
	used   map[Right]bool // by what they are, not where
	beyond map[Request]Request
}

// Show tells the judge what an account has asked for under its rights. A refusal of what is among the rights is none: when an
// account is installed or removed, its rights come or go a moment before or after it.
func (j *Judge) Show(rights []Right, requests []Request) {
	if j.used == nil {
		j.used, j.beyond = map[Right]bool{}, map[Request]Request{}
	}
	for _, q := range requests {
		if everybodys(q) {
			continue
		}
		right, found := needed(rights, q)
		switch {
		case !found:
			kind := q
			kind.Namespace, kind.Name, kind.Path, kind.User = "", "", "", ""
			if _, known := j.beyond[kind]; !known {
				j.beyond[kind] = q
			}
		case !q.Refused():
			j.used[right.anywhere()] = true
		}
	}
}

// needed returns the narrowest right that allows what was asked.
func needed(rights []Right, q Request) (best Right, found bool) {
	for _, r := range rights {
		if r.allows(q) && (!found || r.narrowness() > best.narrowness()) {
			best, found = r, true
		}
	}
	return best, found
}

// Unused returns those of the rights that nobody has used.
func (j *Judge) Unused(rights []Right) []Right {
	unused := slices.DeleteFunc(slices.Clone(rights), func(r Right) bool { return j.used[r.anywhere()] })
	slices.SortFunc(unused, compare)
	return unused
}

// Beyond returns what was asked for without a right, one example of each kind.
func (j *Judge) Beyond() []Request {
	var all []Request
	for _, q := range j.beyond {
		all = append(all, q)
	}
	slices.SortFunc(all, func(a, b Request) int { return strings.Compare(a.String(), b.String()) })
	return all
}

// everybodys says whether every account of every cluster may ask that: which kinds there are, by the role system:discovery.
func everybodys(q Request) bool {
	if q.Resource != "" || q.Verb != "get" {
		return false
	}
	for _, root := range []string{"/api", "/apis", "/version", "/openapi"} {
		if q.Path == root || strings.HasPrefix(q.Path, root+"/") {
			return true
		}
	}
	return false
}
