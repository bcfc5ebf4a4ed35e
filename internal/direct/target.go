// SPDX-License-Identifier: Apache-2.0

package direct

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"unicode"
)

// maxDecodings is how often a path may be decoded before nothing changes any more: a server behind the upstream may decode again,
// but nobody means more than that.
const maxDecodings = 4

// target returns the address to call: the upstream with the rest of the request's path, still escaped, and its query. It is never
// above the upstream's own path.
func target(upstream, rest, query string) (*url.URL, *problem) {
	u, err := url.Parse(upstream)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Hostname() == "" || u.User != nil {
		// The address is not quoted: it is the queue's owner's, not the client's.
		return nil, refuse(http.StatusBadGateway, "InvalidUpstream", "spec.direct.upstream of the queue is no http or https address")
	}
	if !stays(rest) {
		return nil, refuse(http.StatusBadRequest, "InvalidPath", "the path must hold neither '.' nor '..' as a segment, in any spelling, nor control characters")
	}
	base := strings.TrimRight(u.EscapedPath(), "/")
	path := base + rest
	if rest == "" {
		path = u.EscapedPath()
	}
	u.RawPath = path
	if u.Path, err = url.PathUnescape(path); err != nil {
		return nil, refuse(http.StatusBadRequest, "InvalidPath", "the path is not properly escaped")
	}
	u.RawQuery, u.Fragment = strings.ReplaceAll(query, " ", "%20"), "" // HTTP/2 lets a space through, which would end the request line of HTTP/1
	return u, nil
}

// stays says whether a path leads nowhere but down, however often it is decoded, and whatever counts as a separator.
func stays(path string) bool {
	for range maxDecodings {
		if strings.ContainsFunc(path, unicode.IsControl) {
			return false
		}
		for segment := range strings.FieldsFuncSeq(path, func(r rune) bool { return r == '/' || r == '\\' }) {
			// Some servers cut parameters off before they look at dots, and a query or fragment if they decode first.
			if end := strings.IndexAny(segment, ";?#"); end >= 0 {
				segment = segment[:end]
			}
			if segment == "." || segment == ".." {
				return false
			}
		}
		decoded := decode(path)
		if decoded == path {
			return true
		}
		path = decoded
	}
	return false
}

// decode decodes what is escaped properly and leaves the rest as it is, as lenient servers do.
func decode(path string) string {
	var b strings.Builder
	for i := 0; i < len(path); i++ {
		if path[i] == '%' && i+2 < len(path) {
			if c, err := strconv.ParseUint(path[i+1:i+3], 16, 8); err == nil {
				b.WriteByte(byte(c))
				i += 2
				continue
			}
		}
		b.WriteByte(path[i])
	}
	return b.String()
}
