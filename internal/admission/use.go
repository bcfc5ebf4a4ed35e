// SPDX-License-Identifier: Apache-2.0

package admission

// use counts what holders of slots use of types and resources, whether the queue lists them or not: limits change.
type use struct {
	types     map[string]int
	resources map[string]int
}

func newUse() use { return use{types: map[string]int{}, resources: map[string]int{}} }

// add counts one holder more, or less with sign -1.
func (u use) add(kind string, claims []Claim, sign int) {
	if kind != "" {
		plus(u.types, kind, sign)
	}
	for _, c := range claims {
		plus(u.resources, c.Name, sign*c.Count)
	}
}

func plus(m map[string]int, key string, n int) {
	if m[key] += n; m[key] == 0 {
		delete(m, key)
	}
}
