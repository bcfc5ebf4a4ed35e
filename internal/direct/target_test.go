// SPDX-License-Identifier: Apache-2.0

package direct

import (
	"net/url"
	gopath "path"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestTheAddressIsTheUpstreamWithTheRestOfThePath(t *testing.T) {
	for _, c := range []struct{ upstream, rest, query, want string }{
		{"http://ollama:11434", "/api/chat", "", "http://ollama:11434/api/chat"},
		{"http://ollama:11434/", "/api/chat", "", "http://ollama:11434/api/chat"},
		{"http://ollama/base", "/x", "q=1&r", "http://ollama/base/x?q=1&r"},
		{"http://ollama/base/", "/x/", "", "http://ollama/base/x/"},
		{"http://ollama/base", "", "", "http://ollama/base"},
		{"http://ollama/base/", "", "", "http://ollama/base/"},
		{"http://ollama/base", "/", "", "http://ollama/base/"},
		{"http://ollama/a%2Fb", "/c%2Fd", "", "http://ollama/a%2Fb/c%2Fd"},
		{"http://ollama", "//elsewhere/x", "", "http://ollama//elsewhere/x"},
		{"http://ollama", "/@elsewhere", "", "http://ollama/@elsewhere"},
		{"http://ollama", "/a...b/..c/d..", "", "http://ollama/a...b/..c/d.."},
		{"http://ollama", "/x", "a;b&c=d e%zz", "http://ollama/x?a;b&c=d%20e%zz"},
	} {
		u, p := target(c.upstream, c.rest, c.query)
		if p != nil || u.String() != c.want {
			t.Errorf("%s + %s: %v, %v, want %s", c.upstream, c.rest, u, p, c.want)
		}
	}
}

func TestAPathThatLeadsUpIsRefused(t *testing.T) {
	for _, rest := range []string{
		"/..", "/../x", "/a/../x", "/a/..", "/.", "/./x", "/%2e%2e/x", "/%2E./x", "/a/.%2e", "/%252e%252e/x", "/..%2f..%2fx", "/a%2f..%2fx",
		"/..%5cx", "/a%5c..%5cx", "/%2e%2e%3fx", "/..%3F", "/a/%2e%2e%23x", "/..%253fx", "/.%3bx%3f",
		"/..;/x", "/..;a=b/x", "/%2e%2e%3b/x", "/a%00b", "/a%0d%0ab", "/a%250d%250ab",
		"/%252e%252e/100%25", "/%25252525252e",
	} {
		if u, p := target("http://ollama/base", rest, ""); p == nil || p.status != 400 {
			t.Errorf("%s: %v, %v", rest, u, p)
		}
	}
}

func TestAnUpstreamThatIsNoAddressIsNotCalled(t *testing.T) {
	for _, upstream := range []string{"", "ollama", "ftp://ollama", "http://", "http://user:pass@ollama", "http://ollama:port", "//ollama"} {
		if u, p := target(upstream, "/", ""); p == nil || p.status != 502 || strings.Contains(p.message, "pass") {
			t.Errorf("%s: %v, %v", upstream, u, p)
		}
	}
}

func TestWhateverThePathTheAddressStaysBelowTheUpstream(t *testing.T) {
	piece := rapid.SampledFrom([]string{"/", "..", ".", "%2e", "%2E", "%25", "2e", "%2f", "%5c", "\\", ";", "a", "%61", "@", ":", "//", "?", "%3f", "%23"})
	rapid.Check(t, func(t *rapid.T) {
		text := "/" + strings.Join(rapid.SliceOfN(piece, 0, 12).Draw(t, "pieces"), "")
		in, err := url.Parse("https://front.test/direct" + text)
		if err != nil {
			return
		}
		u, p := target("http://ollama/base", strings.TrimPrefix(in.EscapedPath(), "/direct"), in.RawQuery)
		if p != nil {
			return
		}
		if u.Scheme != "http" || u.Host != "ollama" || u.User != nil {
			t.Fatalf("%s leads to %s", text, u)
		}
		for path := u.EscapedPath(); ; {
			before, _, _ := strings.Cut(strings.ReplaceAll(path, "#", "?"), "?") // as one sees it who decodes first
			for _, seen := range []string{path, before} {
				clean := gopath.Clean(strings.ReplaceAll(seen, "\\", "/"))
				if clean != "/base" && !strings.HasPrefix(clean, "/base/") {
					t.Fatalf("%s leads to %s, which is %s", text, u, clean)
				}
			}
			decoded := decode(path)
			if decoded == path {
				return
			}
			path = decoded
		}
	})
}
