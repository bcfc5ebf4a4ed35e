// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	webhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	svix "github.com/svix/svix-webhooks/go"
	clocktesting "k8s.io/utils/clock/testing"
)

// written is a key of that many bytes, all of them b, as a Secret has it.
func written(b byte, size int) string {
	return "whsec_" + base64.StdEncoding.EncodeToString([]byte(strings.Repeat(string(b), size)))
}

func keysOf(t *testing.T, secrets ...string) []SigningKey {
	t.Helper()
	var keys []SigningKey
	for _, secret := range secrets {
		key, err := ParseSigningKey([]byte(secret))
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		keys = append(keys, key)
	}
	return keys
}

// delivered is what a receiver got.
type delivered struct {
	header http.Header
	body   []byte
}

// sent sends the event, signed with those keys, and returns what arrives.
func sent(t *testing.T, at time.Time, secrets ...string) delivered {
	t.Helper()
	got := make(chan delivered, 1)
	server := serve(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got <- delivered{r.Header, body}
	}))
	sender := loopbackSender(t)
	sender.Clock = clocktesting.NewFakePassiveClock(at)
	NewWithT(t).Expect(sender.Send(t.Context(), Letter{Address: server.URL, Event: someEvent(t), Keys: keysOf(t, secrets...)})).To(Succeed())
	return <-got
}

// verifiers are what receivers verify with.
func verifiers(t *testing.T, secret string) map[string]func([]byte, http.Header) error {
	t.Helper()
	standard, err := webhooks.NewWebhook(secret)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	other, err := svix.NewWebhook(secret)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return map[string]func([]byte, http.Header) error{"standard-webhooks": standard.Verify, "svix": other.Verify}
}

func TestOtherPeoplesLibrariesVerifyTheSignature(t *testing.T) {
	g := NewWithT(t)
	secret := written('k', 32)
	now := time.Now()
	got := sent(t, now, secret)
	g.Expect(got.header.Get("webhook-id")).To(Equal(someEvent(t).ID()))
	g.Expect(got.header.Get("webhook-timestamp")).To(Equal(strconv.FormatInt(now.Unix(), 10)))
	g.Expect(got.header.Get("webhook-signature")).To(MatchRegexp(`^v1,[A-Za-z0-9+/]{43}=$`))
	for library, verify := range verifiers(t, secret) {
		g.Expect(verify(got.body, got.header)).To(Succeed(), library)
		g.Expect(verify(append([]byte(" "), got.body...), got.header)).NotTo(Succeed(), "%s: another body", library)
		forged := got.header.Clone()
		forged.Set("webhook-id", "another")
		g.Expect(verify(got.body, forged)).NotTo(Succeed(), "%s: another id", library)
		forged = got.header.Clone()
		forged.Set("webhook-timestamp", strconv.FormatInt(now.Unix()+1, 10))
		g.Expect(verify(got.body, forged)).NotTo(Succeed(), "%s: another time", library)
	}
	for library, verify := range verifiers(t, written('x', 32)) {
		g.Expect(verify(got.body, got.header)).NotTo(Succeed(), "%s: another key", library)
	}
}

func TestWhileAKeyIsReplacedBothVerify(t *testing.T) {
	g := NewWithT(t)
	before, after := written('a', 24), written('b', 64)
	got := sent(t, time.Now(), after, before)
	g.Expect(strings.Split(got.header.Get("webhook-signature"), " ")).To(HaveEach(HavePrefix("v1,")))
	for _, secret := range []string{before, after} {
		for library, verify := range verifiers(t, secret) {
			g.Expect(verify(got.body, got.header)).To(Succeed(), library)
		}
	}
}

func TestADeliveryLongAgoIsRefusedByItsTime(t *testing.T) {
	g := NewWithT(t)
	secret := written('k', 32)
	got := sent(t, time.Now().Add(-time.Hour), secret)
	for library, verify := range verifiers(t, secret) {
		g.Expect(verify(got.body, got.header)).To(MatchError(ContainSubstring("too old")), library)
	}
}

func TestARepetitionHasTheSameIDAndATimeAndSignatureOfItsOwn(t *testing.T) {
	g := NewWithT(t)
	secret := written('k', 32)
	first, second := sent(t, time.Now(), secret), sent(t, time.Now().Add(10*time.Second), secret)
	g.Expect(second.body).To(Equal(first.body))
	g.Expect(second.header.Get("webhook-id")).To(Equal(first.header.Get("webhook-id")))
	g.Expect(second.header.Get("webhook-signature")).NotTo(Equal(first.header.Get("webhook-signature")))
}

func TestWithoutKeysNothingIsSigned(t *testing.T) {
	g := NewWithT(t)
	got := sent(t, time.Now())
	g.Expect(got.header).NotTo(HaveKey("Webhook-Signature"))
	g.Expect(got.header.Get("webhook-id")).To(Equal(someEvent(t).ID()))
}

func TestAKeyIsReadAsSecretsHaveIt(t *testing.T) {
	for name, c := range map[string]struct{ written, problem string }{
		"as it should be":           {written('k', 32), ""},
		"of the fewest bytes":       {written('k', 24), ""},
		"of the most bytes":         {written('k', 64), ""},
		"with the end of a line":    {written('k', 32) + "\r\n", ""},
		"of too few bytes":          {written('k', 23), "is a key of 23 bytes, and has to be one of 24 to 64"},
		"of too many bytes":         {written('k', 65), "is a key of 65 bytes, and has to be one of 24 to 64"},
		"empty":                     {"", "does not begin with whsec_"},
		"without its prefix":        {strings.TrimPrefix(written('k', 32), "whsec_"), "does not begin with whsec_"},
		"of the other kind of keys": {"whsk_" + written('k', 32), "does not begin with whsec_"},
		"not in base64":             {"whsec_hidden!hidden", "is not in base64 after whsec_"},
		"cut off":                   {strings.TrimSuffix(written('k', 32), "="), "is not in base64 after whsec_"},
		"in two lines":              {"whsec_" + written('k', 32)[6:20] + " " + written('k', 32)[20:], "is not in base64 after whsec_"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			_, err := ParseSigningKey([]byte(c.written))
			if c.problem == "" {
				g.Expect(err).NotTo(HaveOccurred())
			} else {
				g.Expect(err).To(MatchError(c.problem))
			}
		})
	}
}

func TestAKeyShowsNothingOfItselfWhenItIsPrinted(t *testing.T) {
	key := keysOf(t, written('k', 32))[0]
	for _, format := range []string{"%v", "%+v", "%#v", "%s", "%q"} {
		shown := fmt.Sprintf(format, key) + fmt.Sprintf(format, []SigningKey{key}) + fmt.Sprintf(format, Letter{Keys: []SigningKey{key}})
		NewWithT(t).Expect(shown).NotTo(Or(ContainSubstring("kkkk"), ContainSubstring("107"), ContainSubstring("0x6b")), format)
	}
}
