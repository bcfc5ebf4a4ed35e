// SPDX-License-Identifier: Apache-2.0

package httpwork

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestWhateverIsSentWhatIsKeptIsShortValidText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := &head{}
		var n int64
		for _, piece := range rapid.SliceOf(rapid.SliceOf(rapid.Byte())).Draw(t, "response") {
			m, err := h.Write(piece)
			if err != nil || m != len(piece) {
				t.Fatalf("wrote %d, %v", m, err)
			}
			n += int64(m)
		}
		kept := h.result(200, n, nil)
		if len(kept.Body) > maxKept || !utf8.ValidString(kept.Body) {
			t.Fatalf("%d bytes: %q", len(kept.Body), kept.Body)
		}
		for _, r := range kept.Body {
			if unicode.IsControl(r) && r != '\n' && r != '\t' {
				t.Fatalf("%q is kept", r)
			}
		}
		if n > maxKept && !kept.BodyTruncated {
			t.Fatalf("%d bytes are said to be all kept", n)
		}
	})
}

func TestPlainTextIsKeptUnchanged(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOf(rapid.RuneFrom(nil, unicode.L, unicode.N, unicode.P)).Draw(t, "response")
		h := &head{}
		_, _ = h.Write([]byte(text))
		kept := h.result(200, int64(len(text)), nil)
		if !strings.HasPrefix(text, kept.Body) || len(text)-len(kept.Body) >= utf8.UTFMax && len(text) <= maxKept {
			t.Fatalf("kept %q of %q", kept.Body, text)
		}
		if kept.BodyTruncated != (len(kept.Body) < len(text)) {
			t.Fatalf("truncated %v: %d of %d bytes", kept.BodyTruncated, len(kept.Body), len(text))
		}
	})
}
