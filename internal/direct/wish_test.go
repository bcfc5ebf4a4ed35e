// SPDX-License-Identifier: Apache-2.0

package direct

import (
	"net/http"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

func TestWhatARequestDoesNotSayTheQueueSays(t *testing.T) {
	g := NewWithT(t)
	queue := &batchv1alpha1.QueueDirect{Type: "chat", Claims: []batchv1alpha1.ResourceClaim{{Name: "ollama", Count: 2}}}
	w, p := wished(http.Header{}, queue)
	g.Expect(p).To(BeNil())
	g.Expect(w).To(Equal(wish{typeName: "chat", claims: queue.Claims}))

	w, p = wished(http.Header{HeaderType: {"story"}, HeaderClaims: {"remote=3, gpu", " x = 1 "}, HeaderIdempotencyKey: {"once ~!"}}, queue)
	g.Expect(p).To(BeNil())
	g.Expect(w).To(Equal(wish{typeName: "story", key: "once ~!", claims: []batchv1alpha1.ResourceClaim{
		{Name: "remote", Count: 3}, {Name: "gpu", Count: 1}, {Name: "x", Count: 1},
	}}))

	w, p = wished(http.Header{HeaderType: {""}, HeaderClaims: {""}}, queue)
	g.Expect(p).To(BeNil())
	g.Expect(w).To(Equal(wish{}), "an empty header asks for none")
}

func TestAWishThatMakesNoSenseIsRefused(t *testing.T) {
	many := strings.TrimSuffix(strings.Repeat("a=1,", 17), ",")
	for _, c := range []struct{ header, value, code string }{
		{HeaderType, "Story", "InvalidType"},
		{HeaderType, "a b", "InvalidType"},
		{HeaderType, strings.Repeat("a", 64), "InvalidType"},
		{HeaderClaims, "ollama=0", "InvalidClaims"},
		{HeaderClaims, "ollama=-1", "InvalidClaims"},
		{HeaderClaims, "ollama=100001", "InvalidClaims"},
		{HeaderClaims, "ollama=99999999999999999999", "InvalidClaims"},
		{HeaderClaims, "ollama=", "InvalidClaims"},
		{HeaderClaims, "=1", "InvalidClaims"},
		{HeaderClaims, "a=1,,b=1", "InvalidClaims"},
		{HeaderClaims, "a=1,a=1", "InvalidClaims"},
		{HeaderClaims, "Ollama=1", "InvalidClaims"},
		{HeaderClaims, many, "InvalidClaims"},
		{HeaderIdempotencyKey, "", "InvalidIdempotencyKey"},
		{HeaderIdempotencyKey, strings.Repeat("k", 256), "InvalidIdempotencyKey"},
		{HeaderIdempotencyKey, "\xff", "InvalidIdempotencyKey"},
		{HeaderIdempotencyKey, "schlüssel", "InvalidIdempotencyKey"},
		{HeaderIdempotencyKey, "a\tb", "InvalidIdempotencyKey"},
		{HeaderIdempotencyKey, "a\x7f", "InvalidIdempotencyKey"},
	} {
		_, p := wished(http.Header{c.header: {c.value}}, &batchv1alpha1.QueueDirect{})
		if p == nil || p.status != http.StatusBadRequest || p.code != c.code {
			t.Errorf("%s: %q: %v", c.header, c.value, p)
		}
	}
	for _, header := range []string{HeaderType, HeaderIdempotencyKey} {
		if _, p := wished(http.Header{header: {"a", "b"}}, &batchv1alpha1.QueueDirect{}); p == nil {
			t.Errorf("two of %s are accepted", header)
		}
	}
}
