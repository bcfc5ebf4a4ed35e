// SPDX-License-Identifier: Apache-2.0

// Package bounded fits what is told to people into what the API server takes: a write that is refused for the length of its
// message would be repeated for ever.
package bounded

import "strings"

const more = "…"

// Text cuts a text to so many characters, as the CRDs count.
func Text(text string, most int) string {
	if r := []rune(text); len(r) > most {
		return string(r[:most-1]) + more
	}
	return text
}

// Bytes cuts a text to so many bytes, between two characters.
func Bytes(text string, most int) string {
	if len(text) > most {
		return strings.ToValidUTF8(text[:most-len(more)], "") + more
	}
	return text
}
