// SPDX-License-Identifier: Apache-2.0

package bounded

import (
	"strings"
	"testing"
)

func TestATextIsCutToSoManyCharacters(t *testing.T) {
	for text, want := range map[string]string{"": "", "ääää": "ääää", "äääää": "äää…"} {
		if got := Text(text, 4); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

func TestATextIsCutToSoManyBytesBetweenTwoCharacters(t *testing.T) {
	for text, want := range map[string]string{"äääää": "äääää", "aäääää": "aäää…", strings.Repeat("ä", 6): "äää…"} {
		if got := Bytes(text, 10); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}
