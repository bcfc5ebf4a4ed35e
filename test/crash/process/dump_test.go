// SPDX-License-Identifier: Apache-2.0

package process

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"testing"

	"reprise.dev/reprise/internal/invariant"
)

// dump writes a history to a file, a line for each thing that happened.
func dump(t *testing.T, path string, past invariant.History) {
	t.Helper()
	file, err := os.Create(path)
	if err != nil {
		t.Error(err)
		return
	}
	out := json.NewEncoder(file)
	for _, v := range past.Versions {
		err = errors.Join(err, out.Encode(map[string]any{
			"at": clock(v.At), "type": v.Type, "kind": fmt.Sprintf("%T", v.Object), "name": v.Object.GetName(), "object": v.Object,
		}))
	}
	for _, a := range past.Acts {
		err = errors.Join(err, out.Encode(map[string]any{"at": clock(a.At), "act": a}))
	}
	for _, m := range past.Managers {
		err = errors.Join(err, out.Encode(map[string]any{"at": clock(m.Began), "manager": m}))
	}
	if err := errors.Join(err, file.Close()); err != nil {
		t.Error(err)
	}
}
