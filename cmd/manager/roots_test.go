// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// A process reads the roots of its system once, so each case has a process of its own: this test binary, started with
// trustVariable, prints what it makes of a certificate and ends before any test begins.
const trustVariable = "REPRISE_TEST_TRUST"

// bundled, as the value of trustVariable, asks whether the roots of this program are trusted; a URL, for an HTTPS call.
const bundled = "bundled"

func init() {
	if asked := os.Getenv(trustVariable); asked != "" {
		fmt.Println(trusts(asked))
		os.Exit(0)
	}
}

// trusts returns an error, or nil for trusted.
func trusts(asked string) error {
	if asked == bundled {
		return trustsBundle()
	}
	response, err := http.Get(asked)
	if err != nil {
		return err
	}
	return response.Body.Close()
}

// trustsBundle checks each bundled root that is valid today as a client would, with the roots that a client would use.
func trustsBundle() error {
	good := 0
	for root := range bundle.Roots() {
		certificate, err := x509.ParseCertificate(root.Certificate)
		if err != nil {
			return err
		}
		if root.Constraint != nil || time.Now().After(certificate.NotAfter) {
			continue // trusted for certificates of before some day only
		}
		if _, err := certificate.Verify(x509.VerifyOptions{}); err != nil {
			return fmt.Errorf("%s: %w", certificate.Subject, err)
		}
		good++
	}
	if good < 50 {
		return fmt.Errorf("only %d roots, which is not the public web", good)
	}
	return nil
}

// ask returns what a process with these roots of a system says.
func ask(t *testing.T, asked, file, dir string) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Env = []string{trustVariable + "=" + asked, "SSL_CERT_FILE=" + file, "SSL_CERT_DIR=" + dir}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return strings.TrimSpace(string(out))
}

const (
	trusted = "<nil>"
	foreign = "certificate signed by unknown authority"
)

func TestWhichRootsAreTrusted(t *testing.T) {
	server := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(server.Close)
	mounted := t.TempDir()
	file := filepath.Join(mounted, "ca.crt")
	content := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
	nothing := filepath.Join(mounted, "nothing")
	for name, c := range map[string]struct{ asked, file, dir, want string }{
		"a system without roots trusts those of the program":        {bundled, nothing, nothing, trusted},
		"a system without roots trusts nobody else":                 {server.URL, nothing, nothing, foreign},
		"a mounted directory of roots is trusted":                   {server.URL, nothing, mounted, trusted},
		"a mounted file of roots is trusted":                        {server.URL, file, nothing, trusted},
		"with mounted roots those of the program count for nothing": {bundled, nothing, mounted, foreign},
	} {
		t.Run(name, func(t *testing.T) {
			if got := ask(t, c.asked, c.file, c.dir); !strings.Contains(got, c.want) {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}
