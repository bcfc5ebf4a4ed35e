// SPDX-License-Identifier: Apache-2.0

package httpwork

import (
	"strings"
	"unicode"
	"unicode/utf8"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

const (
	// maxKept is how many bytes of a response's body are kept in status.result.
	maxKept = 1024
	// maxErrorText is how many bytes of a foreign error text are quoted.
	maxErrorText = 512
)

// head keeps the first bytes written to it and drops the rest.
type head struct{ kept []byte }

func (h *head) Write(b []byte) (int, error) {
	h.kept = append(h.kept, b[:min(len(b), maxKept-len(h.kept))]...)
	return len(b), nil
}

// result returns what is kept of a response of n bytes, of which err cut off the rest.
func (h *head) result(code int, n int64, err error) *batchv1alpha1.WorkResult {
	status := int32(code)
	cut := n > int64(len(h.kept))
	text := string(h.kept)
	if cut {
		text = wholeRunes(text)
	}
	body, short := printable(text, maxKept)
	return &batchv1alpha1.WorkResult{HTTPStatus: &status, Body: body, BodyTruncated: cut || short || err != nil}
}

// wholeRunes drops a last rune that was cut in two.
func wholeRunes(s string) string {
	for i := len(s) - 1; i >= max(0, len(s)-utf8.UTFMax); i-- {
		if utf8.RuneStart(s[i]) {
			if !utf8.FullRuneInString(s[i:]) {
				return s[:i]
			}
			break
		}
	}
	return s
}

// printable returns at most limit bytes of s as valid text that is safe to print, and whether that was not all: what is no
// valid UTF-8 and every control character but tab and line feed becomes U+FFFD, and carriage returns go.
func printable(s string, limit int) (text string, short bool) {
	var b strings.Builder
	for _, r := range s {
		switch {
		case r == '\r':
			continue
		case unicode.IsControl(r) && r != '\n' && r != '\t':
			r = utf8.RuneError
		}
		if b.Len()+utf8.RuneLen(r) > limit {
			return b.String(), true
		}
		b.WriteRune(r)
	}
	return b.String(), false
}
